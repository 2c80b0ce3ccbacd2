import { isDeepStrictEqual } from 'node:util';
import { GatewayError, isObject, type RouteContext, type Schema } from '../../../contract/index.ts';
import { changedMeanwhile } from '../../../contract/operators.ts';

/** What operators read and write back: versions as `ETag` and `If-Match`, so that no change is lost, and fields that are only read. */

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
      'If-Match must be a list of ETags. Send the value of "ETag", such as "3" with quotes.',
      {
        param: 'If-Match',
      },
    );
  if (header.split(',').some((tag) => tag.trim() === `"${version}"`)) return true;
  throw changedMeanwhile();
}

/** The schema of a body that takes a thing as it is shown: what only is read is `readOnly` in it. */
export function withReadOnly(body: Schema, shown: Schema): Schema {
  const [own, others] = [body['properties'], shown['properties']];
  const [items, shownItems] = [body['items'], shown['items']];
  if (isObject(items) && isObject(shownItems)) return { ...body, items: withReadOnly(items, shownItems) };
  if (!isObject(own) || !isObject(others)) return body;
  const properties = { ...own };
  for (const [name, schema] of Object.entries(others)) {
    const mine = own[name];
    if (!isObject(schema)) continue;
    properties[name] = isObject(mine) ? withReadOnly(mine, schema) : { ...schema, readOnly: true };
  }
  return { ...body, properties };
}

interface WrittenBack {
  /** What the client sent, valid by {@link withReadOnly}. */
  readonly sent: unknown;
  /** The thing as it is shown now; undefined for one that there is not. */
  readonly shown: object | undefined;
  /** The schema of what may be written. */
  readonly body: Schema;
  /** Whether what the body does not name stays. */
  readonly isPart: boolean;
}

/**
 * What a body changes of a thing, without the fields that are only read; undefined where it changes nothing. Throws `invalid_request`
 * where such a field is not as it is shown.
 */
export function readWrittenBack({ sent, shown, body, isPart }: WrittenBack): object | undefined {
  const now: unknown = shown && JSON.parse(JSON.stringify(shown));
  const wanted = pickWritten(sent, now, body, '');
  if (!isObject(wanted) || !isObject(now)) return isObject(wanted) ? wanted : {};
  const before = pickWritten(now, now, body, '');
  if (!isObject(before)) return wanted;
  if (!isPart) return isDeepStrictEqual(wanted, before) ? undefined : wanted;
  const changed = Object.entries(wanted).filter(([name, value]) => !isDeepStrictEqual(value, before[name] ?? null));
  return changed.length > 0 ? Object.fromEntries(changed) : undefined;
}

function pickWritten(sent: unknown, shown: unknown, schema: unknown, path: string): unknown {
  if (!isObject(schema)) return sent;
  const { properties, items } = schema;
  if (Array.isArray(sent) && isObject(items) && isObject(items['properties']))
    return sent.map((each, at) => pickWritten(each, findLike(each, at, shown), items, `${path}[${at}]`));
  if (!isObject(sent) || !isObject(properties)) return sent;
  const was = isObject(shown) ? shown : {};
  const picked: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(sent)) {
    const own = path === '' ? name : `${path}.${name}`;
    if (Object.hasOwn(properties, name)) picked[name] = pickWritten(value, was[name], properties[name], own);
    else if (!isDeepStrictEqual(value, was[name]))
      throw new GatewayError(
        'invalid_request',
        `"${own}" is read-only and ${shown === undefined ? 'does not exist yet' : 'differs from its current value'}. Remove it, or send the value of a new GET.`,
        { param: own },
      );
  }
  return picked;
}

/** What a list shows under the same name, else in the same place. */
function findLike(each: unknown, at: number, shown: unknown): unknown {
  if (!Array.isArray(shown)) return undefined;
  if (!isObject(each) || each['name'] === undefined) return shown[at];
  return shown.find((other) => isObject(other) && other['name'] === each['name']);
}
