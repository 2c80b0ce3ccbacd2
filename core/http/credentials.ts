import type { IncomingMessage } from 'node:http';
import { GatewayError } from '../contract/errors.ts';

export interface PresentedCredential {
  readonly credential: string;
  /** Whether it came as `Authorization: Bearer`. */
  readonly bearer: boolean;
}

/** The longest credential that is looked at, in characters; a JWT with many claims has a few thousand. */
const MAX_LENGTH = 8192;

/**
 * The credential of a request: `Authorization: Bearer` or `x-api-key`, nothing else (never the query). The same one twice
 * is fine; two different ones, or a header sent twice, are refused, because checks and limits must not see different callers.
 */
export function readCredential(request: IncomingMessage): PresentedCredential | undefined {
  const { authorization } = request.headers;
  const apiKey = request.headers['x-api-key'];
  if (authorization === undefined && apiKey === undefined) return undefined;
  assertOnce(request.rawHeaders);
  const bearer = authorization?.trim() ? readBearer(authorization) : undefined;
  const key = typeof apiKey === 'string' ? apiKey.trim() : undefined;
  if (bearer && key && bearer !== key)
    throw ambiguous(
      'The request has an "authorization" and an "x-api-key" header with different credentials. Send one of them.',
    );
  const credential = bearer || key;
  if (!credential) return undefined;
  if (credential.length > MAX_LENGTH)
    throw new GatewayError('invalid_api_key', `The credential is longer than ${MAX_LENGTH} characters.`);
  return { credential, bearer: Boolean(bearer) };
}

function readBearer(header: string): string | undefined {
  if (!/^bearer(\s|$)/i.test(header))
    throw new GatewayError('invalid_api_key', 'The "authorization" header must be "Bearer <key>".');
  return header.slice(6).trim() || undefined;
}

/** Node keeps the first of two `authorization` headers and joins two `x-api-key` ones: neither may decide who calls. */
function assertOnce(rawHeaders: readonly string[]): void {
  let authorizations = 0;
  let keys = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (name.length === 13 && name.toLowerCase() === 'authorization') authorizations += 1;
    else if (name.length === 9 && name.toLowerCase() === 'x-api-key') keys += 1;
  }
  if (authorizations > 1 || keys > 1) throw ambiguous('The request has a credential header twice. Send one.');
}

function ambiguous(message: string): GatewayError {
  return new GatewayError('ambiguous_credentials', message);
}
