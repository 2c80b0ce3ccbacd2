import { LRUCache } from 'lru-cache';
import type { ChatResponse } from '../../../core/index.ts';

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
