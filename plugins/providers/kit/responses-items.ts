import {
  type FinishReason,
  type JsonObject,
  type NativeFinish,
  type ReasoningDetail,
  readArray,
  readObject,
  readString,
  type ToolCall,
  type UpstreamFailure,
} from '../../../core/index.ts';
import { customArguments, namespacedName } from './responses-tools.ts';

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
