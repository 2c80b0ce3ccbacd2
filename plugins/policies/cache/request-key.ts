import { createHash } from 'node:crypto';
import { type Call, isObject, type Principal } from '../../../core/index.ts';

/** Who gets a kept response. */
export type SharedBy = 'user' | 'account' | 'everyone';

/** How the response is wanted, not which one. */
const MANNER: ReadonlySet<string> = new Set(['stream', 'stream_options']);

/**
 * What makes two requests the same one: who may share it, the client's format, the headers that a provider sees, the targets, the
 * request as hooks left it and as the caller wrote it, every field of both. Equal only when all of that is equal: nothing is compared by likeness.
 */
export function requestKey({ principal, client, targets, request }: Call<'chat'>, sharedBy: SharedBy): string {
  const { dialect, headers, body } = client ?? {};
  const facts = [ownerOf(principal, sharedBy), dialect, headers, targets, withoutManner(request), withoutManner(body)];
  return createHash('sha256')
    .update(JSON.stringify(sortKeys(facts)))
    .digest('base64url');
}

function ownerOf({ account, userId }: Principal, sharedBy: SharedBy): readonly string[] {
  if (sharedBy === 'everyone') return [];
  return sharedBy === 'account' ? [account] : [account, userId];
}

function withoutManner(request: unknown): object {
  if (!isObject(request)) return {};
  return Object.fromEntries(Object.entries(request).filter(([field, value]) => !MANNER.has(field) && value !== null));
}

/** The same value with the names of all objects in order: clients write the same thing in different ones. */
function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== 'object' || value === null) return value ?? null;
  const entries = Object.entries(value).filter(([, member]) => member !== undefined);
  return Object.fromEntries(
    entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, member]) => [name, sortKeys(member)]),
  );
}
