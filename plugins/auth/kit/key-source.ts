import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import { GatewayError } from '../../../contract/index.ts';

/** Timing of a key source in milliseconds. */
export interface KeyTimes {
  /** Age after which keys are read again, while they stay in use. */
  readonly freshMs: number;
  /** Age after which keys are no longer used: the provider may have withdrawn them. */
  readonly maxAgeMs: number;
  /** Shortest interval between reads due to tokens with an unknown key id. */
  readonly cooldownMs: number;
  /** Delay before the next attempt after a failure. */
  readonly retryMs: number;
}

export const KEY_TIMES: KeyTimes = Object.freeze({
  freshMs: 600_000,
  maxAgeMs: 3_600_000,
  cooldownMs: 30_000,
  retryMs: 5000,
});

export interface KeySourceParts {
  load(): Promise<JSONWebKeySet>;
  /** Called with the error of every failed attempt. */
  onFailure(error: unknown): void;
  /** Milliseconds of a monotonic clock. */
  now(): number;
  readonly times?: Partial<KeyTimes>;
}

export interface KeySource {
  /** Finds the key for a token's header, for `jwtVerify`. Throws `store_unavailable` if no keys are available. */
  readonly getKey: JWTVerifyGetKey;
  /** Reads the keys now; rejects with the reason of a failure. */
  refresh(): Promise<void>;
}

/**
 * Public keys, read on first use and cached. Concurrent tokens share one read, and an unknown key id causes a new one.
 * Old keys stay in use for an hour while the provider is unreachable. Uses no timer.
 */
export function createKeySource({ load, onFailure, now, times }: KeySourceParts): KeySource {
  const { freshMs, maxAgeMs, cooldownMs, retryMs } = { ...KEY_TIMES, ...times };
  let current: { readonly find: JWTVerifyGetKey; readonly readAt: number } | undefined;
  let failedAt = -Infinity;
  let running: Promise<void> | undefined;

  const refresh = (): Promise<void> => {
    running ??= load()
      .then((keys) => {
        current = { find: createLocalJWKSet(keys), readAt: now() };
        failedAt = -Infinity;
      })
      .catch((error: unknown) => {
        failedAt = now();
        onFailure(error);
        throw error;
      })
      .finally(() => (running = undefined));
    return running;
  };

  /** Like `refresh`, for waiting callers: not again right after a failure, and with a public error. */
  const refreshOrRefuse = async (): Promise<void> => {
    if (!running && now() - failedAt < retryMs) throw unavailable(undefined);
    try {
      await refresh();
    } catch (cause) {
      throw unavailable(cause);
    }
  };

  const refreshInBackground = (): void => {
    if (running || now() - failedAt < retryMs) return;
    void refresh().catch(() => undefined); // reported by `onFailure`
  };

  const usable = async (): Promise<JWTVerifyGetKey> => {
    const age = current ? now() - current.readAt : Infinity;
    if (age >= maxAgeMs) await refreshOrRefuse();
    else if (age >= freshMs) refreshInBackground();
    return current?.find ?? Promise.reject(unavailable(undefined));
  };

  return {
    refresh,
    async getKey(header, token) {
      const find = await usable();
      try {
        return await find(header, token);
      } catch (error) {
        const isKnown = !(error instanceof errors.JWKSNoMatchingKey);
        if (isKnown || (current && now() - current.readAt < cooldownMs)) throw error;
      }
      // The key may be new: read the keys again to find out.
      await refreshOrRefuse();
      return (await usable())(header, token);
    },
  };
}

function unavailable(cause: unknown): GatewayError {
  return new GatewayError(
    'store_unavailable',
    'The signing keys of the identity provider are unavailable, so this token cannot be checked. Try again shortly.',
    { retryAfterMs: KEY_TIMES.retryMs, cause },
  );
}
