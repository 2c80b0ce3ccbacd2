import { type ChatMessage, type ContentPart, isObject, type JsonObject } from '../../../core/index.ts';
import { invalid } from '../../providers/kit/index.ts';
import type { FoundCall } from './model-turn.ts';
import { readMedia } from './read-parts.ts';
import { fieldOf, listOf } from './spelling.ts';

/** A `functionResponse` and where it stands. */
export interface FoundResponse {
  readonly response: JsonObject;
  readonly at: string;
}

interface PairedResponse {
  readonly message: ChatMessage;
  readonly places: readonly (readonly [string, string])[];
}

/**
 * The tool messages for the responses to one turn's calls. They pair by id, else by order within one name, else by order: many
 * clients give no ids, and calls of one function may come in parallel.
 */
export function pairResponses(
  calls: readonly FoundCall[],
  responses: readonly FoundResponse[],
): readonly PairedResponse[] {
  const open = new Set(calls);
  const paired = new Map<FoundResponse, FoundCall>();
  const pair = (matches: (call: FoundCall, response: JsonObject) => boolean): void => {
    for (const found of responses) {
      if (paired.has(found)) continue;
      const call = [...open].find((each) => matches(each, found.response));
      if (!call) continue;
      open.delete(call);
      paired.set(found, call);
    }
  };
  pair(({ id }, response) => id !== undefined && response['id'] === id);
  pair(({ call }, response) => call.function.name === response['name']);
  pair(() => true);
  return responses.map((found) => {
    const call = paired.get(found);
    if (!call) throw invalid(found.at, 'is the response to no `functionCall` of the turn of the model before it');
    return resultOf(call, found);
  });
}

function resultOf({ call }: FoundCall, { response, at }: FoundResponse): PairedResponse {
  const { text, isError } = readOutput(fieldOf(response, 'response'));
  const media = listOf(response['parts']).flatMap((part, index) =>
    isObject(part) ? [readMedia(part, `${at}.parts[${index}]`)] : [],
  );
  const words: readonly ContentPart[] = text === '' ? [] : [{ type: 'text', text }];
  return {
    message: {
      role: 'tool',
      tool_call_id: call.id,
      content: media.length === 0 ? text : [...words, ...media],
      ...(isError && { is_error: true }),
    },
    places: [['', at]],
  };
}

/** `output` alone is what the function gave, `error` alone why it failed; any other object is the output itself. */
function readOutput(value: unknown): { readonly text: string; readonly isError: boolean } {
  if (value === undefined || value === null) return { text: '', isError: false };
  if (!isObject(value)) return { text: textOf(value), isError: false };
  const names = Object.keys(value);
  if (names.length === 0) return { text: '', isError: false };
  const [name] = names;
  if (names.length === 1 && (name === 'output' || name === 'error'))
    return { text: textOf(value[name]), isError: name === 'error' };
  return { text: textOf(value), isError: false };
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
