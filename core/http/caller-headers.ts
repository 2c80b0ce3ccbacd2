import type { IncomingHttpHeaders } from 'node:http';
import type { Principal } from '../contract/call.ts';
import { GatewayError } from '../contract/errors.ts';
import type { Route } from '../contract/plugin.ts';
import { MAX_TAGS, refuseTag, type TagRules, tagName } from '../contract/tags.ts';

/** The header by which a request says what its calls are booked under: `team=search`, more with commas between or once more. */
const HEADER = 'x-tollgate-tag';

/** The caller with the tags that the request names behind its own; what it calls on the way carries them all. */
export function withRequestTags(
  principal: Principal,
  headers: IncomingHttpHeaders,
  rules: TagRules,
  { auth, role }: Pick<Route, 'auth' | 'role'>,
): Principal {
  const sent = headers[HEADER];
  // Routes that call no model book nothing.
  if (sent === undefined || role === 'admin' || !auth.includes('key')) return principal;
  const tags = readTags(String(sent), principal.tags ?? [], rules);
  return tags.length === 0 ? principal : Object.freeze({ ...principal, tags });
}

/** The tags of a header behind those of the key or token; throws a 400 for what may not be there. */
export function readTags(header: string, own: readonly string[], rules: TagRules): readonly string[] {
  const sent = header
    .split(',')
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '');
  const tags = [...own];
  for (const tag of sent) {
    if (tags.includes(tag)) continue;
    const reason = refuseTag(tag, rules);
    if (reason !== undefined) throw wrongTag(reason);
    const name = tagName(tag);
    if (own.some((each) => tagName(each) === name))
      throw wrongTag(`The tag "${name}" belongs to this key or token and cannot be chosen by a request; leave it out.`);
    if (tags.some((each) => tagName(each) === name))
      throw wrongTag(`The tag "${name}" has two values; a call has one value of each tag.`);
    if (tags.length >= MAX_TAGS)
      throw wrongTag(`A call carries at most ${MAX_TAGS} tags, those of its key or token included.`);
    tags.push(tag);
  }
  return Object.freeze(tags);
}

function wrongTag(message: string): GatewayError {
  return new GatewayError('invalid_request', `${HEADER}: ${message}`, { param: HEADER });
}

/** Coding clients each have a header of their own for the session, such as `x-<client>-session-id`. */
const SESSION = /^x-(?:[a-z0-9]+-)*session-id$/;

/** A longer one is no name of a session. */
const MAX_SESSION = 128;

/** What a caller named its session, in a header: a word for the choice of a target, never for limits or money. */
export function sessionOf(headers: IncomingHttpHeaders): string | undefined {
  const name = 'x-session-id' in headers ? 'x-session-id' : Object.keys(headers).find((each) => SESSION.test(each));
  const session = name === undefined ? undefined : headers[name];
  return typeof session === 'string' && session !== '' && session.length <= MAX_SESSION ? session : undefined;
}
