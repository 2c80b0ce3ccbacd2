import type { UpstreamFailure } from '../../../core/index.ts';
import { classifyError } from './errors.ts';
import { isRecord, text } from './records.ts';
import type { ErrorRules } from './spec.ts';

/**
 * The failure that came in an answer with a good status, or in an event of a stream; undefined when there is none.
 * Vendors put it at the top, in a choice, or send an error body where an answer was due.
 */
export function failureIn(
  body: unknown,
  rules: ErrorRules | undefined,
  isErrorEvent = false,
): UpstreamFailure | undefined {
  if (!isRecord(body)) {
    if (Array.isArray(body) && isRecord(body[0]) && body[0]['error']) return classifyError(200, body, {}, rules);
    return isErrorEvent ? classifyError(200, body, {}, rules) : undefined;
  }
  if (isErrorEvent || isError(body['error']) || body['object'] === 'error') return classifyError(200, body, {}, rules);
  const groq = body['x_groq'];
  if (isRecord(groq) && isError(groq['error'])) return classifyError(200, groq, {}, rules);
  const { choices } = body;
  if (!Array.isArray(choices)) {
    const isAnswer = text(body['message']) === undefined && body['detail'] === undefined;
    return isAnswer ? undefined : classifyError(200, body, {}, rules);
  }
  const failed: unknown = choices.find((choice) => isRecord(choice) && isError(choice['error']));
  return failed === undefined ? undefined : classifyError(200, failed, {}, rules);
}

function isError(value: unknown): boolean {
  return isRecord(value) || text(value) !== undefined;
}
