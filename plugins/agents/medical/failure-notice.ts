import { GatewayError, toGatewayError } from '../../../contract/index.ts';
import type { Notices } from './notices.ts';
import type { Rule } from './rules/index.ts';

/** Errors that carry a notice already. */
const noticed = new WeakSet<GatewayError>();

export function hasNotice(error: GatewayError): boolean {
  return noticed.has(error);
}

/**
 * An error that tells the person what to do: the notice of the danger signs, or that no answer can be given, and the
 * emergency number of the country. Code, status and headers stay.
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
