import { createHash } from 'node:crypto';
import {
  type FinishReason,
  isObject,
  type JsonObject,
  type NativeFinish,
  parseJson,
  type ReasoningDetail,
  readArray,
  readObject,
  readString,
  type ToolCall,
  type UpstreamFailure,
} from '../../../core/index.ts';

/** What a vendor's failure amounts to: an error body, or the `error` of a response or an event. */
export type ClassifyFailure = (body: unknown) => UpstreamFailure;

/** An item of reasoning as canonical details. */
export function readReasoningItem(item: JsonObject): readonly ReasoningDetail[] {
  const id = readString(item['id']);
  const base = { format: 'responses', ...(id !== undefined && { id }) };
  const texts = (list: unknown, kind: 'summary' | 'text'): readonly ReasoningDetail[] =>
    readArray(list).flatMap((part) => {
      const text = readString(readObject(part)['text']);
      return text === undefined ? [] : [{ kind, text, ...base }];
    });
  const data = readString(item['encrypted_content']);
  return [
    ...texts(item['summary'], 'summary'),
    ...texts(item['content'], 'text'),
    ...(data === undefined ? [] : [{ kind: 'encrypted', data, ...base } as const]),
  ];
}

/** The name by which a call is known in the canonical request. */
export function calledName(item: JsonObject): string {
  return namespacedName(readString(item['namespace']), readString(item['name']) ?? '');
}

export function isCall({ type }: JsonObject): boolean {
  return type === 'function_call' || type === 'custom_tool_call';
}

export function readCall(item: JsonObject): ToolCall {
  const { type, input, arguments: given } = item;
  const text = type === 'custom_tool_call' ? customArguments(readString(input) ?? '') : (readString(given) ?? '{}');
  return {
    id: readString(item['call_id']) ?? readString(item['id']) ?? '',
    type: 'function',
    function: { name: calledName(item), arguments: text },
  };
}

/** Citations in chat's form, which has an object around their fields. */
export function readAnnotations(list: unknown): readonly JsonObject[] {
  return readArray(list).flatMap((given) => {
    const { type, ...fields } = readObject(given);
    return type === 'url_citation' || type === 'file_citation' ? [{ type, [type]: fields }] : [];
  });
}

/** Why a response ended, by its status and what it holds. */
export function finishOf(
  response: JsonObject,
  calledTools: boolean,
  refused: boolean,
): { readonly reason: FinishReason; readonly finish: NativeFinish } {
  const status = readString(response['status']) ?? 'completed';
  const reason = readString(readObject(response['incomplete_details'])['reason']);
  const finish = { native: reason ?? status };
  if (status === 'incomplete') return { reason: reason === 'content_filter' ? 'content_filter' : 'length', finish };
  if (refused) return { reason: 'content_filter', finish };
  return { reason: calledTools ? 'tool_calls' : 'stop', finish };
}

const MAX_NAME = 64;
const HASH_LENGTH = 8;

/** The name of a tool of a Responses namespace among tools without namespaces: at most 64 characters, cut with a hash of the whole. */
export function namespacedName(namespace: string | undefined, name: string): string {
  if (namespace === undefined) return name;
  const whole = `${namespace}__${name}`;
  if (whole.length <= MAX_NAME) return whole;
  const hash = createHash('sha256').update(whole).digest('hex').slice(0, HASH_LENGTH);
  return `${whole.slice(0, MAX_NAME - HASH_LENGTH - 1)}_${hash}`;
}

/** The arguments of the function that stands for a custom tool of Responses, whose input is plain text. */
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
