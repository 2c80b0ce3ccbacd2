import { isDeepStrictEqual } from 'node:util';
import { GatewayError, isObject, type RouteContext, type Schema } from '../../../contract/index.ts';
import { changedMeanwhile } from '../../../contract/operators.ts';

/**
 * Objects that operators read and write back: versions as `ETag` and `If-Match` against lost updates, and read-only
 * fields.
 */

/** Sends an object, with its version as `ETag`. */
export function sendVersion(ctx: RouteContext<unknown>, version: number | string, body: object): void {
  ctx.set('cache-control', 'no-store');
  ctx.set('etag', `"${version}"`);
  ctx.body = body;
}

const ETAGS = /^(?:W\/)?"[\x21\x23-\x7e]{0,200}"(?:\s*,\s*(?:W\/)?"[\x21\x23-\x7e]{0,200}")*$/;

/**
 * Compares `If-Match` with the version. Returns true if the header names one, so that the write must apply to this
 * version. Throws `precondition_failed` for another version, `invalid_request` for an invalid header. Weak tags never
 * match (RFC 9110, section 13.1.1).
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

/**
 * Returns true for `If-None-Match: *`: the request is to create an object, and must not replace one. Throws
 * `precondition_failed` if it exists (RFC 9110, section 13.1.2).
 */
export function assertNew(ctx: Pick<RouteContext<unknown>, 'headers'>, exists: boolean): boolean {
  const isNew = ctx.headers['if-none-match']?.trim() === '*';
  if (isNew && exists)
    throw new GatewayError('precondition_failed', 'This name is taken. Choose another one, or change the object.', {
      param: 'If-None-Match',
    });
  return isNew;
}

/** Schema of a body that accepts an object as shown: read-only fields are `readOnly` in it. */
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
  /** Body of the client, valid by {@link withReadOnly}. */
  readonly sent: unknown;
  /** Object as currently shown; undefined if it does not exist. */
  readonly shown: object | undefined;
  /** Schema of the writable fields. */
  readonly body: Schema;
  /** True if fields missing in the body keep their value. */
  readonly isPart: boolean;
}

/**
 * Returns a body's changes without read-only fields; undefined if nothing changes. Throws `invalid_request` if a
 * read-only field differs from the shown value.
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

/** Finds the shown list item of the same name, else at the same index. */
function findLike(each: unknown, at: number, shown: unknown): unknown {
  if (!Array.isArray(shown)) return undefined;
  if (!isObject(each) || each['name'] === undefined) return shown[at];
  return shown.find((other) => isObject(other) && other['name'] === each['name']);
}
