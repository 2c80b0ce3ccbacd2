import { createHash } from 'node:crypto';
import {
  type ChatMessage,
  type ChatRequest,
  isObject,
  readArray,
  readObject,
  readString,
  type Schema,
  type Tool,
} from '../../../contract/index.ts';
import { invalid } from './content.ts';

/** Tool names that every vendor accepts. */
export const TOOL_NAME = /^[A-Za-z0-9_-]{1,64}$/;

/** Validated function tool of a request. */
export interface FunctionTool {
  readonly name: string;
  readonly description?: string;
  readonly parameters?: Schema;
  readonly strict: boolean;
  /** Original tool, including vendor fields. */
  readonly source: Readonly<Record<string, unknown>>;
  readonly at: string;
}

/** Permitted use of tools; `only` restricts them. */
export interface ToolMode {
  readonly mode: 'none' | 'auto' | 'required';
  readonly only?: readonly string[];
}

/** Format of the response text; `schema` is absent if the caller sent none. */
export type AnswerFormat =
  | { readonly kind: 'text' }
  | { readonly kind: 'json' }
  | { readonly kind: 'schema'; readonly name: string; readonly description?: string; readonly schema: Schema };

/**
 * Tool that codecs add for vendors that form JSON only as arguments of a call. A caller's tool cannot have this name.
 */
export const ANSWER_TOOL = 'tollgate_json_answer';

/** Function tools of a request. Throws `invalid_request` for other kinds, invalid names and duplicates. */
export function readTools(input: ChatRequest): readonly FunctionTool[] {
  const tools: unknown = input.tools ?? [];
  if (!Array.isArray(tools)) throw invalid('tools', 'must be an array');
  const seen = new Set<string>();
  return tools.map((source: unknown, index) => {
    const at = `tools[${index}]`;
    if (!isObject(source) || source['type'] !== 'function' || !isObject(source['function'])) {
      throw invalid(`${at}.type`, 'must be `function`; this provider supports no other tools');
    }
    const { name, description, parameters, strict } = source['function'];
    if (typeof name !== 'string' || !TOOL_NAME.test(name)) {
      throw invalid(`${at}.function.name`, 'must be 1 to 64 letters, digits, underscores or dashes');
    }
    if (seen.has(name) || name === ANSWER_TOOL) throw invalid(`${at}.function.name`, 'is used by another tool');
    seen.add(name);
    if (parameters !== undefined && parameters !== null && !isObject(parameters)) {
      throw invalid(`${at}.function.parameters`, 'must be a JSON Schema');
    }
    return {
      name,
      ...(typeof description === 'string' && description !== '' && { description }),
      ...(isObject(parameters) && { parameters }),
      strict: strict === true,
      source,
      at,
    };
  });
}

/** Tool choice in one shape; default: `auto`. Throws `invalid_request` for a name that is not a tool of the request. */
export function readToolChoice(input: ChatRequest, tools: readonly FunctionTool[]): ToolMode {
  const choice: unknown = input.tool_choice ?? 'auto';
  if (choice === 'none' || choice === 'auto') return { mode: choice };
  if (tools.length === 0) throw invalid('tool_choice', 'needs `tools` to choose from');
  if (choice === 'required') return { mode: 'required' };
  const { mode, names } = readNamedChoice(choice);
  const unknown = names.find((name) => !tools.some((tool) => tool.name === name));
  if (names.length === 0 || unknown !== undefined) {
    throw invalid(
      'tool_choice',
      unknown ? `names \`${unknown}\`, which is not in \`tools\`` : 'must be auto, none, required or a named tool',
    );
  }
  return { mode, only: names };
}

/** `{type: "function"}` names one tool, `{type: "allowed_tools"}` several. */
function readNamedChoice(choice: unknown): { mode: 'auto' | 'required'; names: readonly string[] } {
  if (!isObject(choice)) return { mode: 'required', names: [] };
  if (choice['type'] !== 'allowed_tools') return { mode: 'required', names: namesOf([choice]) };
  const allowed = isObject(choice['allowed_tools']) ? choice['allowed_tools'] : choice;
  return { mode: allowed['mode'] === 'required' ? 'required' : 'auto', names: namesOf(readArray(allowed['tools'])) };
}

function namesOf(choices: readonly unknown[]): readonly string[] {
  return choices.flatMap((choice) => {
    const named = isObject(choice) ? choice['function'] : undefined;
    return isObject(named) && typeof named['name'] === 'string' ? [named['name']] : [];
  });
}

/** Response format in one shape; default: `text`. Throws `invalid_request` for an unknown type. */
export function readAnswerFormat(input: ChatRequest): AnswerFormat {
  const format: unknown = input.response_format ?? { type: 'text' };
  const type = isObject(format) ? format['type'] : undefined;
  if (!isObject(format) || type === 'text') {
    if (type === 'text') return { kind: 'text' };
    throw invalid('response_format', 'must be an object with a `type`');
  }
  if (type === 'json_object') return { kind: 'json' };
  if (type !== 'json_schema') throw invalid('response_format.type', 'must be text, json_object or json_schema');
  const definition = format['json_schema'];
  if (!isObject(definition)) throw invalid('response_format.json_schema', 'must be an object with a `schema`');
  const { schema, name, description } = definition;
  if (schema === undefined || schema === null) return { kind: 'json' };
  if (!isObject(schema)) throw invalid('response_format.json_schema.schema', 'must be a JSON Schema');
  return {
    kind: 'schema',
    name: typeof name === 'string' ? name : 'answer',
    ...(typeof description === 'string' && description !== '' && { description }),
    schema,
  };
}

const HASH_LENGTH = 16;

/**
 * Converts the id of a tool call to characters that every vendor accepts (`A-Z a-z 0-9 _ -`, at most `maxLength`). A
 * valid id stays unchanged. Any other id gets a hash of the whole, so that a call and its result still match.
 */
export function toolCallId(id: string, maxLength: number): string {
  if (/^[A-Za-z0-9_-]+$/.test(id) && id.length <= maxLength) return id;
  const hash = createHash('sha256').update(id).digest('hex').slice(0, HASH_LENGTH);
  const readable = id.slice(0, maxLength - HASH_LENGTH - 1).replace(/[^A-Za-z0-9_-]/g, '_');
  return `${readable}_${hash}`;
}

/** Tools called in a conversation, for vendors that reject calls in the history of a request that declares none. */
export function toolsOfHistory(messages: readonly ChatMessage[]): readonly Tool[] {
  const names = messages
    .flatMap((message) => readArray(message.tool_calls))
    .flatMap((call) => (isObject(call) ? (readString(readObject(call['function'])['name']) ?? []) : []));
  return [...new Set(names)].map((name) => ({
    type: 'function',
    function: { name, parameters: { type: 'object', properties: {} } },
  }));
}
