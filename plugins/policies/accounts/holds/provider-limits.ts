import {
  type Call,
  type ChatRequest,
  GatewayError,
  type Metered,
  OptionError,
  type Outcome,
  type PluginApi,
  parseDuration,
  type Schema,
  type WindowState,
} from '../../../../contract/index.ts';
import { steadyNow } from '../../kit/index.ts';
import { isStoreFailure } from '../../kit/write-queue.ts';
import type { ProviderPlace } from './call-hold.ts';
import type { Leases } from './leases.ts';

const MINUTE_MS = 60_000;

/** Maximum `wait` of a call. The timeout of hooks ends the call soon after it. */
const LONGEST_WAIT_MS = 25_000;

/** Interval at which waiting calls check for capacity that other processes have returned. */
const LOOK_AGAIN_MS = 250;

/** Limits of all callers together at one provider, as in the option `providers`. */
export interface ProviderLimit {
  readonly rpm?: number;
  readonly tpm?: number;
  readonly concurrency?: number;
  readonly wait: string;
  readonly queue: number;
}

export const PROVIDER_LIMITS = Object.freeze({
  type: 'object',
  description: 'Limits per provider over all callers, by provider name. Further calls wait, or go to the next target.',
  additionalProperties: {
    type: 'object',
    additionalProperties: false,
    properties: {
      rpm: { type: 'integer', minimum: 1, description: 'Requests per minute.' },
      tpm: { type: 'integer', minimum: 1, description: 'Tokens per minute.' },
      concurrency: { type: 'integer', minimum: 1, description: 'Concurrent requests.' },
      wait: {
        type: 'string',
        format: 'duration',
        default: '10s',
        description: 'Maximum wait of a call, up to `25s`; `0s` rejects it at once.',
      },
      queue: {
        type: 'integer',
        minimum: 0,
        maximum: 10_000,
        default: 100,
        description: 'Maximum number of waiting calls per process.',
      },
    },
  },
} as const satisfies Schema);

/** Throws an {@link OptionError} for invalid limits. */
export function checkProviderLimits(providers: Readonly<Record<string, ProviderLimit>> = {}): void {
  for (const [name, { wait, rpm, tpm, concurrency }] of Object.entries(providers)) {
    const place = `/providers/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    if (parseDuration(wait) > LONGEST_WAIT_MS)
      throw new OptionError(`${place}/wait`, 'is over 25s', 'A call that waits longer is given up by then.');
    if (rpm === undefined && tpm === undefined && concurrency === undefined)
      throw new OptionError(place, 'limits nothing', 'Set `rpm`, `tpm` or `concurrency`.');
  }
}

/** Dependencies of a queue. */
interface Parts {
  /** Store counters, and local counters of this process. */
  readonly leases: Leases;
  readonly local: Leases;
  readonly onStoreFailure: 'degrade' | 'closed' | 'open';
  estimate(call: Call): Metered;
}

/** Waiting call. */
interface Waiter {
  readonly call: Call;
  settle(result: ProviderPlace | undefined): void;
  fail(error: unknown): void;
}

/** Reached limit, and the delay before the next attempt. */
interface Full {
  readonly limit: string;
  readonly againMs: number;
}

/** Throws an {@link OptionError} for limits of an unknown provider. */
export function assertKnownProviders({ models }: Pick<PluginApi, 'models'>, names: readonly string[]): void {
  const known = [...new Set(OPERATIONS.flatMap((operation) => [...models.offers(operation).keys()]))];
  const wrong = names.find((name) => !known.includes(name));
  if (wrong === undefined) return;
  throw new OptionError(
    `/providers/${wrong.replaceAll('~', '~0').replaceAll('/', '~1')}`,
    'is no provider',
    `These limits would have no effect. Providers: ${known.slice(0, 20).join(', ')}.`,
  );
}

const OPERATIONS = Object.freeze(['chat', 'embeddings', 'speech'] as const);

/** Returns the estimated prompt tokens plus the requested output limit. */
export function wantedTokens(call: Call, estimate: (call: Call) => Metered): number {
  const { max_completion_tokens: most, max_tokens } = call.request as Partial<ChatRequest>;
  return (estimate(call).units['prompt_tokens'] ?? 0) + Math.max(most ?? 0, max_tokens ?? 0);
}

/** Limits of one provider, and its waiting calls. */
export class ProviderQueue {
  size = 0;
  readonly #parts: Parts;
  readonly #provider: string;
  readonly #limit: ProviderLimit;
  readonly #waitMs: number;
  /** By account, in the order of their turns. */
  readonly #waiting = new Map<string, Waiter[]>();
  #timer: NodeJS.Timeout | undefined;
  #isServing = false;
  #attempts = 0;
  /** Last reached limit. */
  #full: Full = { limit: '', againMs: 0 };

  constructor(parts: Parts, provider: string, limit: ProviderLimit) {
    this.#parts = parts;
    this.#provider = provider;
    this.#limit = limit;
    this.#waitMs = parseDuration(limit.wait);
  }

  async take(call: Call): Promise<ProviderPlace | undefined> {
    // Keep FIFO order.
    if (this.size === 0) {
      const taken = await this.#tryTake(call);
      if (!taken || !('limit' in taken)) return taken;
      this.#full = taken;
    }
    if (this.#waitMs === 0 || this.size >= this.#limit.queue) throw this.#refusal();
    return this.#wait(call);
  }

  /** Returns a place and unused tokens, and serves waiting calls. */
  async giveBack({ leases, place, tokens }: ProviderPlace, outcome: Outcome | undefined): Promise<void> {
    const now = steadyNow();
    const { usage, sent = false, target } = outcome ?? {};
    const { amount = 0, endsAt = 0 } = tokens ?? {};
    const known = usage ? usage.prompt_tokens + usage.completion_tokens : sent ? amount : 0;
    const delta = (target?.provider === this.#provider ? known : 0) - amount;
    const work: Promise<unknown>[] = [];
    if (place && !leases.keep(place)) work.push(leases.release(place));
    if (amount > 0 && delta !== 0 && (delta > 0 || now < endsAt) && !leases.adjust(this.#keyOf('tpm'), delta, now))
      work.push(leases.counters.adjust(this.#keyOf('tpm'), MINUTE_MS, delta, now));
    // A failed release is harmless: places and windows expire.
    await Promise.allSettled(work);
    if (this.size > 0) void this.#serve();
  }

  #keyOf(what: 'rpm' | 'tpm' | 'calls'): string {
    return `${what}:everyone:${this.#provider}`;
  }

  /**
   * Takes the capacity of an attempt, or returns the reached limit. Undefined if nothing is counted because the store
   * is unavailable.
   */
  async #tryTake(call: Call): Promise<ProviderPlace | Full | undefined> {
    const { leases, local, onStoreFailure } = this.#parts;
    try {
      return await this.#takeFrom(leases, call);
    } catch (error) {
      if (!isStoreFailure(error) || onStoreFailure === 'closed') throw error;
      return onStoreFailure === 'degrade' ? this.#takeFrom(local, call) : undefined;
    }
  }

  async #takeFrom(leases: Leases, call: Call): Promise<ProviderPlace | Full> {
    const { rpm, tpm, concurrency } = this.#limit;
    const now = steadyNow();
    const amount = tpm === undefined ? 0 : Math.min(wantedTokens(call, this.#parts.estimate), tpm);
    const slots = concurrency === undefined ? [] : [{ key: this.#keyOf('calls'), limit: concurrency }];
    // A call may retry the same provider.
    this.#attempts += 1;
    const { places, full } = await leases.enter(slots, `${call.id}.${this.#attempts}`, now);
    if (full) return { limit: `${concurrency} requests at once`, againMs: LOOK_AGAIN_MS };
    const [place] = places;
    const windows = [
      ...(rpm === undefined ? [] : [{ key: this.#keyOf('rpm'), windowMs: MINUTE_MS, limit: rpm, amount: 1 }]),
      ...(tpm === undefined || amount === 0
        ? []
        : [{ key: this.#keyOf('tpm'), windowMs: MINUTE_MS, limit: tpm, amount }]),
    ];
    const release = async (): Promise<void> => {
      if (place) await leases.release(place).catch(() => undefined);
    };
    try {
      const { refused, states } = windows.length === 0 ? NOTHING : await leases.take(windows, now);
      const refusing = refused === undefined ? undefined : windows[refused];
      const resetMs = states[refused ?? windows.length - 1]?.resetMs ?? MINUTE_MS;
      if (!refusing) return { provider: this.#provider, leases, place, tokens: { amount, endsAt: now + resetMs } };
      await release();
      const unit = refusing.key.startsWith('rpm') ? 'requests' : 'tokens';
      return { limit: `${refusing.limit} ${unit} a minute`, againMs: resetMs };
    } catch (error) {
      await release();
      throw error;
    }
  }

  #wait(call: Call): Promise<ProviderPlace | undefined> {
    const { account } = call.principal;
    const { signal } = call;
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.size -= 1;
        clearTimeout(timer);
        signal.removeEventListener('abort', onAbort);
        const left = (this.#waiting.get(account) ?? []).filter((each) => each !== waiter);
        if (left.length === 0) this.#waiting.delete(account);
        else this.#waiting.set(account, left);
      };
      const fail = (error: unknown): void => {
        leave();
        reject(error);
      };
      const waiter: Waiter = {
        call,
        settle(hold) {
          leave();
          resolve(hold);
        },
        fail,
      };
      const onAbort = (): void => fail(signal.reason);
      const timer = setTimeout(() => fail(this.#refusal()), this.#waitMs);
      signal.addEventListener('abort', onAbort, { once: true });
      this.size += 1;
      this.#waiting.set(account, [...(this.#waiting.get(account) ?? []), waiter]);
      this.#schedule(this.#full.againMs);
    });
  }

  #schedule(afterMs: number): void {
    this.#timer ??= setTimeout(() => void this.#serve(), Math.min(Math.max(afterMs, 1), LOOK_AGAIN_MS)).unref();
  }

  /** Serves waiting calls, one per account in turn, until a limit is reached. */
  async #serve(): Promise<void> {
    if (this.#isServing) return;
    this.#isServing = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    try {
      for (let next = this.#next(); next; next = this.#next()) {
        const { waiter, account } = next;
        let taken: ProviderPlace | Full | undefined;
        try {
          taken = await this.#tryTake(waiter.call);
        } catch (error) {
          waiter.fail(error);
          continue;
        }
        if (taken && 'limit' in taken) {
          this.#full = taken;
          this.#schedule(taken.againMs);
          return;
        }
        if (!this.#waiting.get(account)?.includes(waiter)) {
          // The call stopped waiting in the meantime.
          if (taken) await this.giveBack(taken, undefined);
          continue;
        }
        waiter.settle(taken);
        const rest = this.#waiting.get(account);
        this.#waiting.delete(account);
        if (rest) this.#waiting.set(account, rest);
      }
    } finally {
      this.#isServing = false;
    }
  }

  #next(): { readonly account: string; readonly waiter: Waiter } | undefined {
    for (const [account, [waiter]] of this.#waiting) if (waiter) return { account, waiter };
    return undefined;
  }

  #refusal(): GatewayError {
    const { limit, againMs } = this.#full;
    const seconds = Math.max(1, Math.ceil(againMs / 1000));
    return new GatewayError(
      'upstream_rate_limited',
      `The provider "${this.#provider}" has reached the operator's limit of ${limit} for all callers together. Try again in ${seconds} s.`,
      { retryAfterMs: againMs, refusedBy: `limit of ${limit} at the provider ${this.#provider}` },
    );
  }
}

const NOTHING: { readonly refused: undefined; readonly states: readonly WindowState[] } = Object.freeze({
  refused: undefined,
  states: [],
});
