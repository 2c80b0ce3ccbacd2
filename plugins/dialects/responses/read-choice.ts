import {
  type DialectNeed,
  isObject,
  type JsonObject,
  readArray,
  readString,
  type ToolChoice,
} from '../../../core/index.ts';
import { namespacedName } from '../../formats/openai-responses/index.ts';
import type { ToolTable } from './read-tools.ts';
import type { ResponsesBody } from './types.ts';

export interface ReadChoice {
  readonly choice?: ToolChoice;
  readonly needs: readonly DialectNeed[];
}

/**
 * The tool choice, by canonical names. One that names a tool of the vendor, or wants some tool where only the vendor's are left,
 * needs a vendor that has them: without them the response would not be to what was requested.
 */
export function readToolChoice({ tool_choice: choice }: ResponsesBody, { tools, hosted }: ToolTable): ReadChoice {
  if (choice === undefined || choice === null) return { needs: [] };
  if (typeof choice === 'string') {
    if (choice === 'required' && tools.length === 0 && hosted.length > 0) return onlyThere(hosted[0] ?? choice);
    // Vendors refuse a choice without tools, also one that says nothing.
    if (tools.length === 0 && choice !== 'required') return { needs: [] };
    return { choice: choice as ToolChoice, needs: [] };
  }
  if (choice['type'] === 'allowed_tools') return readAllowed(choice);
  const name = calledName(choice);
  return name === undefined
    ? onlyThere(readString(choice['type']) ?? 'tool')
    : { choice: functionChoice(name), needs: [] };
}

function onlyThere(name: string): ReadChoice {
  return { needs: [{ kind: 'native', name, param: 'tool_choice' }] };
}

function readAllowed(choice: JsonObject): ReadChoice {
  const named = readArray(choice['tools']).filter(isObject);
  const tools = named.flatMap((tool) => {
    const name = calledName(tool);
    return name === undefined ? [] : [functionChoice(name)];
  });
  if (tools.length === 0) return onlyThere(readString(named[0]?.['type']) ?? 'allowed_tools');
  const mode = choice['mode'] === 'required' ? 'required' : 'auto';
  return { choice: { type: 'allowed_tools', allowed_tools: { mode, tools } }, needs: [] };
}

function functionChoice(name: string): { readonly type: 'function'; readonly function: { readonly name: string } } {
  return { type: 'function', function: { name } };
}

function calledName(tool: JsonObject): string | undefined {
  const { type, namespace } = tool;
  const name = readString(tool['name']);
  if (name === undefined || (type !== 'function' && type !== 'custom')) return undefined;
  return namespacedName(readString(namespace), name);
}
