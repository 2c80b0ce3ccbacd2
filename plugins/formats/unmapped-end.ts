import { type FinishReason, isObject, type NativeFinish, parseJson, StreamFailure } from '../../contract/index.ts';

/** Fields of a message or a delta with model output. */
const DELIVERED = Object.freeze([
  ...['content', 'refusal', 'reasoning_content', 'reasoning_details', 'tool_calls', 'function_call'],
  ...['images', 'audio', 'annotations', 'opaque'],
]);

/** Returns true if a message or a delta contains model output. */
export function hasDelivered(message: object): boolean {
  const fields = message as Readonly<Record<string, unknown>>;
  return DELIVERED.some((name) => {
    const value = fields[name] ?? '';
    return value !== '' && !(Array.isArray(value) && value.length === 0);
  });
}

/** Maximum length of a stop reason that is passed on. */
const MAX_REASON = 64;

/** The end of one choice. */
export interface ChoiceEnd {
  readonly finish_reason: FinishReason;
  readonly finish?: NativeFinish;
}

/**
 * Returns the end of a response with a stop reason that has no finish reason. Delivered output is kept and counts as
 * incomplete (`length`), with the vendor's stop reason. If the arguments of all its tool calls are complete, it ends
 * with `tool_calls`, so that an agent can continue. Throws {@link StreamFailure} without any output: another target
 * may succeed.
 */
export function unmappedEnd(reason: string, isDelivered: boolean, callArguments: readonly string[]): ChoiceEnd {
  if (!isDelivered) throw brokenOff(reason);
  const isWhole = callArguments.length > 0 && callArguments.every((text) => isObject(parseJson(text)));
  return {
    finish_reason: isWhole ? 'tool_calls' : 'length',
    finish: { native: reason.slice(0, MAX_REASON), unmapped: true },
  };
}

/** Failure for a stop reason. */
export function brokenOff(reason: string): StreamFailure {
  return new StreamFailure({
    class: 'broken_off',
    message: `The model stopped before the end of its response (${reason.slice(0, 40)}).`,
  });
}
