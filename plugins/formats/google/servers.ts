import {
  isObject,
  type JsonObject,
  type KnownServers,
  type NamedServer,
  readString,
  type WithoutServers,
} from '../../../contract/index.ts';
import { fieldOf, type GeminiBody, listOf, nameIn } from './types.ts';

/**
 * Takes servers of the gateway out of a request: `tools[].mcpServers` whose name is configured. Source:
 * https://ai.google.dev/api/caching#McpServer
 */
export function takeGeminiServers(body: GeminiBody, known: KnownServers): WithoutServers<GeminiBody> | undefined {
  const servers: NamedServer[] = [];
  const place = nameIn(body, 'tools');
  const tools = listOf(fieldOf(body, 'tools')).flatMap((tool, index): readonly unknown[] => {
    if (!isObject(tool)) return [tool];
    const field = nameIn(tool, 'mcpServers');
    const entries = listOf(fieldOf(tool, 'mcpServers'));
    const others = entries.filter((entry, at) => {
      const name = isObject(entry) ? readString(entry['name']) : undefined;
      if (name === undefined || !known.has(name)) return true;
      servers.push({ server: name, param: `${place}[${index}].${field}[${at}]` });
      return false;
    });
    if (others.length === entries.length) return [tool];
    const { [field]: _servers, ...rest } = tool;
    const kept: JsonObject = others.length > 0 ? { ...rest, [field]: others } : rest;
    return Object.keys(kept).length > 0 ? [kept] : [];
  });
  if (servers.length === 0) return undefined;
  const { [place]: _tools, ...rest } = body as JsonObject;
  return { body: { ...rest, ...(tools.length > 0 && { [place]: tools }) } as GeminiBody, servers };
}
