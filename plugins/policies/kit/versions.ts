import { GatewayError, type RouteContext } from '../../../core/index.ts';
import { changedMeanwhile } from '../../../core/operators.ts';

/** Versions of what operators change, as `ETag` and `If-Match`: no change is lost to another one. */

/** Sends one thing, with its version as `ETag`. */
export function sendVersion(ctx: RouteContext<unknown>, version: number | string, body: object): void {
  ctx.set('cache-control', 'no-store');
  ctx.set('etag', `"${version}"`);
  ctx.body = body;
}

const ETAGS = /^(?:W\/)?"[\x21\x23-\x7e]{0,200}"(?:\s*,\s*(?:W\/)?"[\x21\x23-\x7e]{0,200}")*$/;

/**
 * Holds a change to the version that `If-Match` names; true when it named one, so that the write has to be of this version.
 * Throws `precondition_failed` for another version, `invalid_request` for a header that is none. Weak tags never match
 * (RFC 9110, section 13.1.1).
 */
export function matchVersion(ctx: Pick<RouteContext<unknown>, 'headers'>, version: number | string): boolean {
  const header = ctx.headers['if-match']?.trim();
  if (header === undefined || header === '*') return false;
  if (!ETAGS.test(header))
    throw new GatewayError(
      'invalid_request',
      'If-Match is no list of ETags: send back what "ETag" said, such as "3" with its quotes.',
      {
        param: 'If-Match',
      },
    );
  if (header.split(',').some((tag) => tag.trim() === `"${version}"`)) return true;
  throw changedMeanwhile();
}
