import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import { GatewayError } from '../../../contract/index.ts';

/** Clocks of a key source in milliseconds. */
export interface KeyTimes {
  /** Keys older than this are read again, while they go on being used. */
  readonly freshMs: number;
  /** Keys older than this are not used: the provider may have withdrawn them. */
  readonly maxAgeMs: number;
  /** A token with an unknown key id makes the keys be read again, but not sooner after the last time. */
  readonly cooldownMs: number;
  /** After a failure the next attempt waits this long. */
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
  /** Milliseconds of a clock that only goes forward. */
  now(): number;
  readonly times?: Partial<KeyTimes>;
}

export interface KeySource {
  /** Finds the key for a token's header, for `jwtVerify`. Throws `store_unavailable` when there are no keys to look in. */
  readonly getKey: JWTVerifyGetKey;
  /** Reads the keys now; rejects with what went wrong. */
  refresh(): Promise<void>;
}

/**
 * Public keys that are read on first use and kept: one read at a time however many tokens wait, new keys picked up when
 * a token names them, old ones used for an hour while the provider cannot be reached. No timer runs.
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

  /** As `refresh`, for callers who wait: not again right after a failure, and with an error that may be shown. */
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
    void refresh().catch(() => undefined); // `onFailure` was called
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
      // The key may be new: whether it is, is unknown until the keys have been read again.
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
