import { type ChatRequest, isObject, type JsonObject, readArray, readObject, readString } from '../../../core/index.ts';
import { EFFORTS, effortOfTokens, isEffort } from '../../providers/kit/index.ts';
import type { Reading } from './reading.ts';
import type { MessagesRequest } from './types.ts';

/** Fields that the canonical request says; all others are `dialect_fields`. */
const SAID: ReadonlySet<string> = new Set([
  ...['model', 'max_tokens', 'messages', 'system', 'stream', 'temperature', 'top_p', 'stop_sequences', 'service_tier'],
  ...['tools', 'tool_choice', 'cache_control', 'metadata'],
]);

/** The least effort that `output_config` has a word for. */
const LEAST = EFFORTS.indexOf('low');

/** Fields of a request that are neither messages nor tools. */
export function readFields(body: MessagesRequest, headers: Readonly<Record<string, unknown>>): Partial<ChatRequest> {
  const { max_tokens, temperature, top_p, stop_sequences: stop, service_tier: tier, stream, cache_control } = body;
  const user = readString(readObject(body.metadata)['user_id']);
  const effort = readEffort(body);
  const own = ownFields(body, headers);
  const format = readFormat(body);
  return {
    ...(typeof max_tokens === 'number' && { max_completion_tokens: max_tokens }),
    ...(stream === true && { stream }),
    ...(typeof temperature === 'number' && { temperature }),
    ...(typeof top_p === 'number' && { top_p }),
    ...(stop && stop.length > 0 && { stop }),
    ...(user !== undefined && { user }),
    ...(typeof tier === 'string' && { service_tier: tier === 'standard_only' ? 'default' : tier }),
    ...(effort !== undefined && { reasoning_effort: effort }),
    ...(format && { response_format: format }),
    ...(isObject(cache_control) &&
      typeof cache_control['type'] === 'string' && {
        cache_control: { ...cache_control, type: cache_control['type'] },
      }),
    ...(Object.keys(own).length > 0 && { dialect_fields: { messages: own } }),
  };
}

/** How much the model shall think, in the words of other formats; what was said exactly is kept beside it. */
function readEffort({ thinking, output_config: config }: MessagesRequest): string | undefined {
  const { type, budget_tokens: budget } = readObject(thinking);
  if (type === 'disabled') return 'none';
  const effort = readObject(config)['effort'];
  if (isEffort(effort) && EFFORTS.indexOf(effort) >= LEAST) return effort;
  if (type === 'enabled' && typeof budget === 'number') return effortOfTokens(budget, 'anthropic');
  return type === 'enabled' || type === 'adaptive' ? 'medium' : undefined;
}

function readFormat({ output_config: config, output_format: old }: MessagesRequest): ChatRequest['response_format'] {
  const format = readObject(readObject(config)['format'] ?? old);
  const { type, schema } = format;
  if (type !== 'json_schema' || !isObject(schema)) return undefined;
  return { type, json_schema: { name: 'response', schema, strict: true } };
}

/** What only a provider of this format understands. */
function ownFields(body: MessagesRequest, headers: Readonly<Record<string, unknown>>): JsonObject {
  const unsaid = Object.entries(body).filter(
    ([name, value]) => !SAID.has(name) && value !== null && value !== undefined && name !== '__proto__',
  );
  const { user_id: _user, ...metadata } = readObject(body.metadata);
  const betas = [headers['anthropic-beta']]
    .flat()
    .flatMap((value) => (typeof value === 'string' ? value.split(',') : []))
    .map((name) => name.trim())
    .filter((name) => name !== '');
  return {
    ...Object.fromEntries(unsaid),
    ...(Object.keys(metadata).length > 0 && { metadata }),
    ...(betas.length > 0 && { betas }),
  };
}

/** Fields beside {@link SAID} that other fields of the canonical request say, or that are needs of their own. */
const SAID_OTHERWISE: ReadonlySet<string> = new Set([
  ...['thinking', 'output_config', 'output_format', 'container', 'mcp_servers', 'fallbacks'],
]);

/** Fields that only a provider of this format understands. */
export function lostFields(body: MessagesRequest): readonly string[] {
  return Object.keys(ownFields({ ...body, metadata: null }, {})).filter((name) => !SAID_OTHERWISE.has(name));
}

/** What a request refers to in the operator's account, and which other models it names. */
export function readReferences(body: MessagesRequest, { needs }: Reading): void {
  const { container, mcp_servers: servers, fallbacks } = body;
  if (container !== undefined && container !== null)
    needs.push({ kind: 'reference', name: 'container', param: 'container' });
  if (readArray(servers).length > 0) needs.push({ kind: 'reference', name: 'mcp_servers', param: 'mcp_servers' });
  for (const [index, one] of readArray(fallbacks).entries()) {
    const model = readString(isObject(one) ? one['model'] : one);
    if (model !== undefined) needs.push({ kind: 'model', name: model, param: `fallbacks[${index}].model` });
  }
}
