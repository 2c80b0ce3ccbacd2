import { type Call, type Counters, GatewayError, type Outcome, type WindowState } from '../../../core/index.ts';
import { steadyNow } from '../../../core/operators.ts';
import type { WriteQueue } from '../kit/write-queue.ts';
import { describeOrigin, type Limit, type Limits, MINUTE_MS, type Slot } from './collect-limits.ts';

/** What a call holds while it runs, to be released or corrected at its end. */
export interface LimitHold {
  readonly counters: Counters;
  readonly tokens: readonly TokenWindow[];
  readonly slots: readonly Slot[];
}

/** A token window as it was when the call reserved its estimate. */
export interface TokenWindow {
  readonly key: string;
  readonly reserved: number;
  /** Unix milliseconds; a later window has nothing of this call. */
  readonly endsAt: number;
}

/** How soon a caller who found no free slot may try again: calls end at any time. */
const SLOT_RETRY_MS = 1000;

/**
 * Reserves a slot of each kind, then its part of all windows, or nothing at all. Throws `rate_limited`, which names the first limit
 * that is reached, or what the store throws.
 */
export async function reserveLimits(
  counters: Counters,
  call: Pick<Call, 'id'>,
  { windows, slots }: Limits,
  leaseMs: number,
): Promise<LimitHold> {
  const now = steadyNow();
  if (slots.length > 0) await reserveSlots(counters, call.id, slots, leaseMs, now);
  if (windows.length === 0) return { counters, tokens: [], slots };
  try {
    const { refused, states } = await counters.take(windows, now);
    if (refused !== undefined) throw windowRefusal(windows, states, refused);
    return { counters, tokens: tokenWindows(windows, states, now), slots };
  } catch (error) {
    if (slots.length > 0) await Promise.allSettled(slots.map(({ key }) => counters.release(key, call.id)));
    throw error;
  }
}

function tokenWindows(windows: readonly Limit[], states: readonly WindowState[], now: number): readonly TokenWindow[] {
  const tokens: TokenWindow[] = [];
  for (const [at, { key, unit, amount }] of windows.entries())
    if (unit === 'tokens') tokens.push({ key, reserved: amount, endsAt: now + (states[at]?.resetMs ?? MINUTE_MS) });
  return tokens;
}

/** Ends the leases, and corrects the token windows from the estimate to what was used. */
export function settleLimits(
  queue: WriteQueue,
  callId: string,
  holds: readonly LimitHold[],
  outcome: Outcome,
  leaseMs: number,
): Promise<void> | undefined {
  const now = Date.now();
  const used = tokensUsed(outcome);
  const work: Promise<void>[] = [];
  for (const { counters, slots, tokens } of holds) {
    for (const { key } of slots)
      work.push(queue.add({ id: callId, until: now + leaseMs, write: () => counters.release(key, callId) }));
    if (used === undefined) continue;
    for (const { key, reserved, endsAt } of tokens) {
      const delta = used - reserved;
      if (delta === 0) continue;
      const write = (): Promise<void> => {
        const at = steadyNow();
        // What was reserved too much in a window that has ended must not be credited to the next.
        return delta > 0 || at < endsAt ? counters.adjust(key, MINUTE_MS, delta, at) : Promise.resolve();
      };
      work.push(queue.add({ id: callId, until: now + MINUTE_MS, write }));
    }
  }
  return work.length > 1 ? Promise.all(work).then(() => undefined) : work[0];
}

/** Undefined when it is not known: then the estimate stays. */
function tokensUsed({ usage, sent }: Outcome): number | undefined {
  if (usage) return usage.prompt_tokens + usage.completion_tokens;
  return sent ? undefined : 0;
}

async function reserveSlots(
  counters: Counters,
  id: string,
  slots: readonly Slot[],
  leaseMs: number,
  now: number,
): Promise<void> {
  const leases = await Promise.allSettled(slots.map(({ key, limit }) => counters.lease(key, id, limit, leaseMs, now)));
  const failed = leases.find((lease) => lease.status === 'rejected');
  const full = slots.find((_, at) => {
    const lease = leases[at];
    return lease?.status === 'fulfilled' && !lease.value;
  });
  if (!failed && !full) return;
  // A lease whose response was lost may have been given: releasing one that was not does no harm.
  await Promise.allSettled(slots.map(({ key }) => counters.release(key, id)));
  if (failed) throw failed.reason;
  if (!full) return;
  const { limit } = full;
  throw refusal(`${limit} calls at once ${describeOrigin(full)}`, SLOT_RETRY_MS, {
    'x-ratelimit-limit-concurrency': String(limit),
    'x-ratelimit-remaining-concurrency': '0',
  });
}

function windowRefusal(windows: readonly Limit[], states: readonly WindowState[], refused: number): GatewayError {
  const window = windows[refused];
  const words = window ? `${window.limit} ${window.unit} a minute ${describeOrigin(window)}` : 'a window';
  return refusal(words, states[refused]?.resetMs ?? MINUTE_MS, rateHeaders(windows, states, refused));
}

function refusal(limit: string, retryAfterMs: number, headers: Record<string, string>): GatewayError {
  return new GatewayError(
    'rate_limited',
    `The limit of ${limit} is reached. Try again in ${Math.max(1, Math.ceil(retryAfterMs / 1000))} s.`,
    { retryAfterMs, headers },
  );
}

/** OpenAI's headers: the window that refused, and of the other unit the one with the least left. */
function rateHeaders(
  windows: readonly Limit[],
  states: readonly WindowState[],
  refused: number,
): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const unit of ['requests', 'tokens'] as const) {
    const own = windows.flatMap((window, at) => {
      const state = states[at];
      return window.unit === unit && state ? [{ window, state, isRefused: at === refused }] : [];
    });
    const shown =
      own.find(({ isRefused }) => isRefused) ?? own.sort((a, b) => a.state.remaining - b.state.remaining)[0];
    if (!shown) continue;
    headers[`x-ratelimit-limit-${unit}`] = String(shown.window.limit);
    headers[`x-ratelimit-remaining-${unit}`] = String(Math.max(0, shown.state.remaining));
    headers[`x-ratelimit-reset-${unit}`] = `${Math.ceil(shown.state.resetMs / 1000)}s`;
  }
  return headers;
}
