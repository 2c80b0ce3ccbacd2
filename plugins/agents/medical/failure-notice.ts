import { GatewayError, toGatewayError } from '../../../contract/index.ts';
import type { Notices } from './notices.ts';
import type { Rule } from './rules/index.ts';

/** Errors that already contain a notice. */
const noticed = new WeakSet<GatewayError>();

export function hasNotice(error: GatewayError): boolean {
  return noticed.has(error);
}

/**
 * Adds advice to an error: the notice of the danger signs, or that no answer is available, and the country's emergency
 * number. Code, status and headers are unchanged.
 */
export function withNotice(thrown: unknown, notices: Notices, kinds: readonly Rule['kind'][]): GatewayError {
  const error = toGatewayError(thrown);
  if (noticed.has(error)) return error;
  const { code, message, param, retryAfterMs, headers } = error;
  const noted = new GatewayError(code, `${message} ${kinds.length > 0 ? notices.notice(kinds) : notices.unanswered}`, {
    ...(param !== undefined && { param }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    headers,
    cause: error.cause ?? error,
  });
  noticed.add(noted);
  return noted;
}
