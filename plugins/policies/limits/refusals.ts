import { GatewayError, type Window, type WindowState } from '../../../contract/index.ts';
import type { Slot as LeasedSlot } from './leases.ts';

/** Who set a limit: the key, or the token that its user made it with, unless a plan is named. */
export interface Origin {
  readonly ofUser?: boolean | undefined;
  readonly plan: string | undefined;
  /** Where the plan limits one provider. */
  readonly provider: string | undefined;
}

/** A window of one minute, with what the call uses of it. */
export interface Limit extends Window, Origin {
  readonly unit: 'requests' | 'tokens';
}

/** A number of calls at once. */
export interface Slot extends LeasedSlot, Origin {}

export const MINUTE_MS = 60_000;

/** How soon a caller who found no free slot may try again: calls end at any time. */
const SLOT_RETRY_MS = 1000;

export function slotRefusal(full: Slot): GatewayError {
  return refusal(`${full.limit} calls at once ${describeOrigin(full)}`, SLOT_RETRY_MS, {
    'x-ratelimit-limit-concurrency': String(full.limit),
    'x-ratelimit-remaining-concurrency': '0',
  });
}

export function windowRefusal(
  windows: readonly Limit[],
  states: readonly WindowState[],
  refused: number,
): GatewayError {
  const window = windows[refused];
  const words = window ? `${window.limit} ${window.unit} a minute ${describeOrigin(window)}` : 'a window';
  return refusal(words, states[refused]?.resetMs ?? MINUTE_MS, rateHeaders(windows, states, refused));
}

function refusal(limit: string, retryAfterMs: number, headers: Record<string, string>): GatewayError {
  return new GatewayError(
    'rate_limited',
    `The limit of ${limit} is reached. Try again in ${Math.max(1, Math.ceil(retryAfterMs / 1000))} s.`,
    { retryAfterMs, headers, refusedBy: `limit of ${limit}` },
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

/** Whose a limit is, in words. */
function describeOrigin({ plan, provider, ofUser }: Origin): string {
  if (ofUser) return 'of this user, over all API keys';
  if (plan === undefined) return 'of this API key';
  return provider === undefined ? `of the plan "${plan}"` : `of the plan "${plan}" at the provider "${provider}"`;
}
