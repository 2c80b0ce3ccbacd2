import { createHash } from 'node:crypto';
import { type FinishReason, isObject, parseJson, readString } from '../../../contract/index.ts';
import type { Item, ResponsesBody } from './types.ts';

/** `incomplete_details.reason` of a response that was cut, and the canonical finish reason. */
export const INCOMPLETE = Object.freeze({
  max_output_tokens: 'length',
  content_filter: 'content_filter',
} as const satisfies Readonly<Record<string, FinishReason>>);

/** Asks for reasoning in a form that comes back with the next request, without the vendor keeping the response. */
export const INCLUDE_ENCRYPTED = 'reasoning.encrypted_content';

/** The least that vendors take as `max_output_tokens`. */
export const MIN_OUTPUT_TOKENS = 16;

/** The format's name in canonical details of reasoning, opaque parts and `dialect_fields`. */
export const FORMAT = 'responses';

/** Fields that a chat request has under the same name. */
export const SAME_FIELDS = Object.freeze([
  ...['temperature', 'top_p', 'parallel_tool_calls', 'metadata', 'user', 'safety_identifier', 'service_tier'],
  ...['prompt_cache_key', 'prompt_cache_options', 'prompt_cache_retention'],
] as const);

/** The lifetime of a prompt's cache whose price OpenAI publishes: https://developers.openai.com/api/docs/guides/prompt-caching */
const PRICED_TTL = '30m';

/** `prompt_cache_options` without a lifetime whose price nobody publishes; the same object where there is none. */
export function pricedCache(options: unknown): unknown {
  if (!isObject(options) || (options['ttl'] ?? PRICED_TTL) === PRICED_TTL) return options;
  const { ttl: _unpriced, ...rest } = options;
  return rest;
}

const MAX_NAME = 64;
const HASH_LENGTH = 8;

/** The name of a tool of a namespace among tools without namespaces: at most 64 characters, cut with a hash of the full name. */
export function namespacedName(namespace: string | undefined, name: string): string {
  if (namespace === undefined) return name;
  const full = `${namespace}__${name}`;
  if (full.length <= MAX_NAME) return full;
  const hash = createHash('sha256').update(full).digest('hex').slice(0, HASH_LENGTH);
  return `${full.slice(0, MAX_NAME - HASH_LENGTH - 1)}_${hash}`;
}

/** The arguments of the function that stands for a custom tool, whose input is plain text. */
export function customArguments(input: string): string {
  return JSON.stringify({ input });
}

/** The plain text that such arguments hold; what a model wrote in another form is its input as it is. */
export function customInput(text: string): string {
  const parsed = parseJson(text);
  if (typeof parsed === 'string') return parsed;
  const input = isObject(parsed) ? parsed['input'] : undefined;
  return typeof input === 'string' ? input : text;
}

/** Whether a field says something: null is "not set". */
export function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** The order in which what a message holds is written where it names no other: reasoning, content, calls. */
export function usualOrder(details: number, parts: number, calls: number): readonly string[] {
  const list = (kind: string, length: number) => Array.from({ length }, (_, at) => `${kind}:${at}`);
  return [...list('reasoning', details), ...list('content', parts), ...list('tool', calls)];
}

/** Input as items: a text is what the user says. */
export function inputItems(input: ResponsesBody['input']): readonly Item[] {
  return typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : (input ?? []);
}

/** The name by which a call is known in the canonical request. */
export function calledName(item: Item): string {
  return namespacedName(readString(item['namespace']), readString(item['name']) ?? '');
}

/** Whether an item is a call of a tool that the caller runs. */
export function isCall({ type }: Item): boolean {
  return type === 'function_call' || type === 'custom_tool_call';
}

/** The id that names a call in its result. */
export function callIdOf(item: Item): string {
  return readString(item['call_id']) ?? readString(item['id']) ?? '';
}
