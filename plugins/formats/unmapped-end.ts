import { type FinishReason, isObject, type NativeFinish, parseJson, StreamFailure } from '../../contract/index.ts';

/** Parts of a message or a delta that a model writes. */
const DELIVERED = Object.freeze([
  ...['content', 'refusal', 'reasoning_content', 'reasoning_details', 'tool_calls', 'function_call'],
  ...['images', 'audio', 'annotations', 'opaque'],
]);

/** Whether a message or a delta holds something that a model wrote. */
export function hasDelivered(message: object): boolean {
  const fields = message as Readonly<Record<string, unknown>>;
  return DELIVERED.some((name) => {
    const value = fields[name] ?? '';
    return value !== '' && !(Array.isArray(value) && value.length === 0);
  });
}

/** Longest stop reason that is passed on. */
const MAX_REASON = 64;

/** The end of one choice. */
export interface ChoiceEnd {
  readonly finish_reason: FinishReason;
  readonly finish?: NativeFinish;
}

/**
 * The end of an answer whose stop reason no finish reason stands for. What came is kept and counts as incomplete (`length`), with the
 * vendor's word; where all its tool calls have whole arguments it is `tool_calls`, so that an agent can go on. Throws
 * {@link StreamFailure} when nothing came: another target may do better.
 */
export function unmappedEnd(reason: string, isDelivered: boolean, callArguments: readonly string[]): ChoiceEnd {
  if (!isDelivered) throw brokenOff(reason);
  const isWhole = callArguments.length > 0 && callArguments.every((text) => isObject(parseJson(text)));
  return {
    finish_reason: isWhole ? 'tool_calls' : 'length',
    finish: { native: reason.slice(0, MAX_REASON), unmapped: true },
  };
}

/** The failure that a stop reason stands for. */
export function brokenOff(reason: string): StreamFailure {
  return new StreamFailure({
    class: 'broken_off',
    message: `The model broke off its response (${reason.slice(0, 40)}).`,
  });
}
