import { createHash, randomUUID } from 'node:crypto';
import type Keyv from 'keyv';
import { GatewayError } from '../contract/errors.ts';
import { steadyNow } from '../contract/steady-now.ts';
import type { Counters } from '../contract/store.ts';

/** What is kept of a response. */
export interface KeptResult {
  /** Of the request: another one under the same key is refused. */
  readonly fingerprint: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Base64; absent for a response that is larger than what is kept. */
  readonly body?: string;
}

/** Whose key it is, and where it was sent to. */
export interface KeyScope {
  readonly account: string;
  readonly userId: string;
  readonly path: string;
  readonly key: string;
}

/** A key that this request has for itself until it is released. */
export interface Claim {
  /** Keeps the result before others get the key. */
  keep(result: KeptResult): Promise<void>;
  release(): Promise<void>;
}

export interface KeptResultsOptions {
  /** What belongs to idempotency keys in the store. */
  readonly documents: () => Keyv<KeptResult>;
  readonly counters: () => Counters;
  readonly keepForMs: number;
}

/** Results by idempotency key, in the store: so they survive a restart and count on every node. */
export interface KeptResults {
  /** The kept result of this request, or the claim to make it. Throws `conflict` for another request, or while the first one runs. */
  open(scope: KeyScope, fingerprint: string): Promise<KeptResult | Claim>;
}

/** How long a claim of a gateway that died holds; a living one renews it. */
const LEASE_MS = 60_000;
const RENEW_MS = 20_000;

/** How soon a caller may try again while the first request runs. */
const RETRY_MS = 1000;

/** Whether it is a result, and not a claim. */
export function isKept(opened: KeptResult | Claim): opened is KeptResult {
  return 'fingerprint' in opened;
}

export function createKeptResults({ documents, counters, keepForMs }: KeptResultsOptions): KeptResults {
  const find = async (name: string, fingerprint: string): Promise<KeptResult | undefined> => {
    const kept = await documents().get(name);
    if (kept && kept.fingerprint !== fingerprint)
      throw new GatewayError(
        'conflict',
        'This Idempotency-Key was used for another request. Send a new key with a new request.',
        { param: 'Idempotency-Key' },
      );
    return kept;
  };
  return {
    async open(scope, fingerprint) {
      const name = nameOf(scope);
      const known = await find(name, fingerprint);
      if (known) return known;
      const holder = randomUUID();
      const lease = (): Promise<boolean> => counters().lease(name, holder, 1, LEASE_MS, steadyNow());
      if (!(await lease())) throw stillRuns();
      const renewal = setInterval(() => void lease().catch(() => undefined), RENEW_MS).unref();
      const release = async (): Promise<void> => {
        clearInterval(renewal);
        // What cannot be released runs out.
        await counters()
          .release(name, holder)
          .catch(() => undefined);
      };
      try {
        // The first request may have ended between the two looks.
        const kept = await find(name, fingerprint);
        if (!kept) return { release, keep: async (result) => void (await documents().set(name, result, keepForMs)) };
        await release();
        return kept;
      } catch (error) {
        await release();
        throw error;
      }
    },
  };
}

function stillRuns(): GatewayError {
  return new GatewayError(
    'conflict',
    'The first request with this Idempotency-Key still runs. Try again in a moment.',
    {
      ...{ param: 'Idempotency-Key', retryAfterMs: RETRY_MS, headers: { 'x-should-retry': 'true' } },
    },
  );
}

/** Nothing of it is readable in the store, and no part can pass for another. */
function nameOf({ account, userId, path, key }: KeyScope): string {
  return createHash('sha256')
    .update(JSON.stringify([account, userId, path, key]))
    .digest('base64url');
}
