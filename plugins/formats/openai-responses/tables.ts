import { createHash } from 'node:crypto';
import { type FinishReason, isObject, parseJson, readString } from '../../../contract/index.ts';
import type { Item, ResponsesBody } from './types.ts';

/** Canonical finish reasons by `incomplete_details.reason` of a truncated response. */
export const INCOMPLETE = Object.freeze({
  max_output_tokens: 'length',
  content_filter: 'content_filter',
} as const satisfies Readonly<Record<string, FinishReason>>);

/**
 * Requests encrypted reasoning, which comes back with the next request, so that the vendor need not store the
 * response.
 */
export const INCLUDE_ENCRYPTED = 'reasoning.encrypted_content';

/** Minimum `max_output_tokens` of vendors. */
export const MIN_OUTPUT_TOKENS = 16;

/** Name of this format in canonical reasoning details, opaque parts and `dialect_fields`. */
export const FORMAT = 'responses';

/** Fields with the same name in a chat request. */
export const SAME_FIELDS = Object.freeze([
  ...['temperature', 'top_p', 'parallel_tool_calls', 'metadata', 'user', 'safety_identifier', 'service_tier'],
  ...['prompt_cache_key', 'prompt_cache_options', 'prompt_cache_retention'],
] as const);

/** Cache lifetime with a published price: https://developers.openai.com/api/docs/guides/prompt-caching */
const PRICED_TTL = '30m';

/**
 * Removes a cache lifetime without a published price from `prompt_cache_options`; returns the same object without
 * one.
 */
export function pricedCache(options: unknown): unknown {
  if (!isObject(options) || (options['ttl'] ?? PRICED_TTL) === PRICED_TTL) return options;
  const { ttl: _unpriced, ...rest } = options;
  return rest;
}

/** Type of the tool that searches for deferred tools, and its name as a function. */
export const TOOL_SEARCH = 'tool_search';

/** Type of the item with the tools that it found. */
export const TOOL_SEARCH_OUTPUT = 'tool_search_output';

const MAX_NAME = 64;
const HASH_LENGTH = 8;

/**
 * Name of a namespaced tool among tools without namespaces: at most 64 characters, truncated with a hash of the full
 * name.
 */
export function namespacedName(namespace: string | undefined, name: string): string {
  if (namespace === undefined) return name;
  const full = `${namespace}__${name}`;
  if (full.length <= MAX_NAME) return full;
  const hash = createHash('sha256').update(full).digest('hex').slice(0, HASH_LENGTH);
  return `${full.slice(0, MAX_NAME - HASH_LENGTH - 1)}_${hash}`;
}

/** Arguments of the function that replaces a custom tool, whose input is plain text. */
export function customArguments(input: string): string {
  return JSON.stringify({ input });
}

/** Plain text in such arguments; arguments in another form are returned unchanged as the input. */
export function customInput(text: string): string {
  const parsed = parseJson(text);
  if (typeof parsed === 'string') return parsed;
  const input = isObject(parsed) ? parsed['input'] : undefined;
  return typeof input === 'string' ? input : text;
}

/** Null means "not set". */
export function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** Default order of a message's parts: reasoning, content, calls. */
export function usualOrder(details: number, parts: number, calls: number): readonly string[] {
  const list = (kind: string, length: number) => Array.from({ length }, (_, at) => `${kind}:${at}`);
  return [...list('reasoning', details), ...list('content', parts), ...list('tool', calls)];
}

/** Input as items; a text becomes a user message. */
export function inputItems(input: ResponsesBody['input']): readonly Item[] {
  return typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : (input ?? []);
}

/** Name of a call in the canonical request. */
export function calledName(item: Item): string {
  return namespacedName(readString(item['namespace']), readString(item['name']) ?? '');
}

/** Returns true for a call of a tool that the caller runs. */
export function isCall({ type }: Item): boolean {
  return type === 'function_call' || type === 'custom_tool_call';
}

/** Id by which a result refers to a call. */
export function callIdOf(item: Item): string {
  return readString(item['call_id']) ?? readString(item['id']) ?? '';
}
