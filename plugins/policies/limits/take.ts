import { type Call, type Counters, GatewayError, type Outcome, type WindowState } from '../../../core/index.ts';
import type { Outbox } from '../kit/outbox.ts';
import { type Limit, type Limits, MINUTE_MS, type Place, whose } from './limits-of.ts';

/** What a call took, and gives back or corrects at its end. */
export interface Taken {
  readonly counters: Counters;
  readonly tokens: readonly TokenWindow[];
  readonly places: readonly Place[];
}

/** A token window as it was when the call took from it. */
export interface TokenWindow {
  readonly key: string;
  readonly taken: number;
  /** Unix milliseconds; a later window has nothing of this call to give back. */
  readonly endsAt: number;
}

/** How soon a caller who found every place taken may try again: calls end at any time. */
const PLACE_RETRY_MS = 1000;

/**
 * Takes a place of each kind, then from all windows, or nothing at all. Throws `rate_limited`, which names the first limit
 * that is reached, or what the store throws.
 */
export async function take(
  counters: Counters,
  call: Pick<Call, 'id'>,
  { windows, places }: Limits,
  leaseMs: number,
): Promise<Taken> {
  const now = Date.now();
  if (places.length > 0) await takePlaces(counters, call.id, places, leaseMs, now);
  if (windows.length === 0) return { counters, tokens: [], places };
  try {
    const { refused, states } = await counters.take(windows, now);
    if (refused !== undefined) throw windowRefusal(windows, states, refused);
    return { counters, tokens: tokenWindows(windows, states, now), places };
  } catch (error) {
    if (places.length > 0) await Promise.allSettled(places.map(({ key }) => counters.release(key, call.id)));
    throw error;
  }
}

function tokenWindows(windows: readonly Limit[], states: readonly WindowState[], now: number): TokenWindow[] {
  const taken: TokenWindow[] = [];
  let at = 0;
  for (const { key, unit, amount } of windows) {
    const endsAt = now + (states[at]?.resetMs ?? MINUTE_MS);
    if (unit === 'tokens') taken.push({ key, taken: amount, endsAt });
    at += 1;
  }
  return taken;
}

/** Ends the leases, and corrects the token windows from the estimate to what was used. */
export function giveBack(
  outbox: Outbox,
  callId: string,
  all: readonly Taken[],
  outcome: Outcome,
  leaseMs: number,
): Promise<void> | undefined {
  const now = Date.now();
  const used = tokensOf(outcome);
  const work: Promise<void>[] = [];
  for (const { counters, places, tokens } of all) {
    for (const { key } of places)
      work.push(outbox.send({ about: callId, until: now + leaseMs, write: () => counters.release(key, callId) }));
    if (used === undefined) continue;
    for (const { key, taken, endsAt } of tokens) {
      const delta = used - taken;
      if (delta === 0) continue;
      const write = (): Promise<void> => {
        const at = Date.now();
        // What was taken too much from a window that has ended must not be given back to the next.
        return delta > 0 || at < endsAt ? counters.adjust(key, MINUTE_MS, delta, at) : Promise.resolve();
      };
      work.push(outbox.send({ about: callId, until: now + MINUTE_MS, write }));
    }
  }
  return work.length > 1 ? Promise.all(work).then(() => undefined) : work[0];
}

/** Undefined when nobody knows: then the estimate stays. */
function tokensOf({ usage, sent }: Outcome): number | undefined {
  if (usage) return usage.prompt_tokens + usage.completion_tokens;
  return sent ? undefined : 0;
}

async function takePlaces(
  counters: Counters,
  id: string,
  places: readonly Place[],
  leaseMs: number,
  now: number,
): Promise<void> {
  const answers = await Promise.allSettled(
    places.map(({ key, limit }) => counters.lease(key, id, limit, leaseMs, now)),
  );
  const failed = answers.find((answer) => answer.status === 'rejected');
  const full = places.find((_, at) => {
    const answer = answers[at];
    return answer?.status === 'fulfilled' && !answer.value;
  });
  if (!failed && !full) return;
  // A lease whose answer was lost may have been given: releasing one that was not does no harm.
  await Promise.allSettled(places.map(({ key }) => counters.release(key, id)));
  if (failed) throw failed.reason;
  if (!full) return;
  const { limit } = full;
  throw refusal(`${limit} calls at once ${whose(full)}`, PLACE_RETRY_MS, {
    'x-ratelimit-limit-concurrency': String(limit),
    'x-ratelimit-remaining-concurrency': '0',
  });
}

function windowRefusal(windows: readonly Limit[], states: readonly WindowState[], refused: number): GatewayError {
  const window = windows[refused];
  const words = window ? `${window.limit} ${window.unit} a minute ${whose(window)}` : 'a window';
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
    const told = own.find(({ isRefused }) => isRefused) ?? own.sort((a, b) => a.state.remaining - b.state.remaining)[0];
    if (!told) continue;
    headers[`x-ratelimit-limit-${unit}`] = String(told.window.limit);
    headers[`x-ratelimit-remaining-${unit}`] = String(Math.max(0, told.state.remaining));
    headers[`x-ratelimit-reset-${unit}`] = `${Math.ceil(told.state.resetMs / 1000)}s`;
  }
  return headers;
}
