import { getHeapStatistics } from 'node:v8';
import { definePlugin, type Store, type StoreWatcher } from '../../../contract/index.ts';
import { createDocuments } from '../kit/documents.ts';
import { storeClosed } from '../kit/failure.ts';
import { KEPT_OPTION, withStored } from '../kit/kept.ts';
import { createMemoryAtomic } from './atomic.ts';

/** Share of the heap for documents of accounts. */
const KEPT_SHARE = 1 / 8;

/** Opens a store that ends with this process, for tests and trials. */
export async function openMemory(observe?: StoreWatcher, keepPerAccount?: string | number): Promise<Store> {
  let closed = false;
  const isClosed = () => closed;
  const keyv = createDocuments(() => new DocumentMap(isClosed), observe);
  const atomic = createMemoryAtomic(isClosed, observe);
  return {
    kind: 'memory',
    endsWithProcess: true,
    ...atomic,
    ...withStored(
      { keyv, sets: atomic.sets },
      keepPerAccount,
      undefined,
      getHeapStatistics().heap_size_limit * KEPT_SHARE,
    ),
    health: async () => {
      if (closed) throw storeClosed();
    },
    close: async () => {
      closed = true;
    },
  };
}

export default definePlugin({
  name: 'memory',
  kind: 'store',
  apiVersion: 1,
  processes: 'one',
  configSchema: {
    type: 'object',
    additionalProperties: false,
    properties: { keepPerAccount: KEPT_OPTION },
    examples: ['memory:'],
  },
  setup(api, { keepPerAccount }) {
    api.store((observe) => openMemory(observe, keepPerAccount));
  },
});

/** Number of documents in a namespace before expired ones are dropped. */
const FIRST_LOOK = 1000;

/**
 * Map of one namespace. Values are JSON, so that callers do not share objects. Drops expired documents whenever its
 * size has doubled; Keyv drops only those that are read.
 */
class DocumentMap extends Map<string, string> {
  readonly #expires = new Map<string, number>();
  readonly #isClosed: () => boolean;
  #nextCheckAt = FIRST_LOOK;

  constructor(isClosed: () => boolean) {
    super();
    this.#isClosed = isClosed;
  }

  override get(key: string): string | undefined {
    if (this.#isClosed()) throw storeClosed();
    return super.get(key);
  }

  /** Keyv passes the time to live as a third argument, which Map does not have. */
  override set(key: string, value: string, ttlMs?: number): this {
    if (this.#isClosed()) throw storeClosed();
    if (ttlMs === undefined) this.#expires.delete(key);
    else this.#expires.set(key, Date.now() + ttlMs);
    super.set(key, value);
    if (this.size >= this.#nextCheckAt) this.#dropExpired();
    return this;
  }

  override delete(key: string): boolean {
    if (this.#isClosed()) throw storeClosed();
    this.#expires.delete(key);
    return super.delete(key);
  }

  override clear(): void {
    // oxlint-disable-next-line typescript/no-unnecessary-condition -- the base class's constructor calls this before the field exists
    this.#expires?.clear();
    super.clear();
  }

  #dropExpired(): void {
    const now = Date.now();
    for (const [key, expires] of this.#expires) if (expires <= now) this.delete(key);
    this.#nextCheckAt = Math.max(FIRST_LOOK, this.size * 2);
  }
}
