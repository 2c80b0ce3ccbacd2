import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { type Call, type ChatResponse, isObject, type Principal } from '../../../core/index.ts';

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

/** A response that is kept. */
export interface CachedResponse {
  readonly response: ChatResponse;
  /** What it cost, in micro-dollars; undefined where that is not known. */
  readonly cost: number | undefined;
  /** Unix milliseconds. */
  readonly keptAt: number;
}

export interface ResponseCache {
  find(key: string): CachedResponse | undefined;
  keep(key: string, kept: CachedResponse): void;
}

export interface CacheBounds {
  readonly ttlMs: number;
  readonly maxBytes: number;
  readonly maxResponseBytes: number;
}

/** Responses in the memory of this process, as text: so its size is known, and nobody can change what is kept. */
export function createResponseCache({ ttlMs, maxBytes, maxResponseBytes }: CacheBounds): ResponseCache {
  const texts = new LRUCache<string, string>({
    ttl: ttlMs,
    maxSize: maxBytes,
    maxEntrySize: Math.min(maxResponseBytes, maxBytes),
    sizeCalculation: (text) => Buffer.byteLength(text),
  });
  return {
    find(key) {
      const text = texts.get(key);
      return text === undefined ? undefined : (JSON.parse(text) as CachedResponse);
    },
    keep: (key, kept) => void texts.set(key, JSON.stringify(kept)),
  };
}
