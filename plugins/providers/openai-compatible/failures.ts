import { isObject, readString, type UpstreamFailure } from '../../../core/index.ts';
import { classifyError, type ErrorRules } from './errors.ts';

/**
 * The failure that came in a response with a good status, or in an event of a stream; undefined when there is none.
 * Vendors put it at the top, in a choice, or send an error body where a response was due.
 */
export function failureIn(
  body: unknown,
  rules: ErrorRules | undefined,
  isErrorEvent = false,
): UpstreamFailure | undefined {
  if (!isObject(body)) {
    if (Array.isArray(body) && isObject(body[0]) && body[0]['error']) return classifyError(200, body, {}, rules);
    return isErrorEvent ? classifyError(200, body, {}, rules) : undefined;
  }
  if (isErrorEvent || isError(body['error']) || body['object'] === 'error') return classifyError(200, body, {}, rules);
  const groq = body['x_groq'];
  if (isObject(groq) && isError(groq['error'])) return classifyError(200, groq, {}, rules);
  const { choices } = body;
  if (!Array.isArray(choices)) {
    const isAnswer = readString(body['message']) === undefined && body['detail'] === undefined;
    return isAnswer ? undefined : classifyError(200, body, {}, rules);
  }
  const failed: unknown = choices.find((choice) => isObject(choice) && isError(choice['error']));
  return failed === undefined ? undefined : classifyError(200, failed, {}, rules);
}

function isError(value: unknown): boolean {
  return isObject(value) || readString(value) !== undefined;
}
