import { GatewayError, type Window, type WindowState } from '../../../../contract/index.ts';
import type { Slot as LeasedSlot } from './leases.ts';

/** Origin of a limit: the named plan, else the key, or the token with which the user made it. */
export interface Origin {
  readonly ofUser?: boolean | undefined;
  readonly plan: string | undefined;
  /** Provider, for a plan's limit at one provider. */
  readonly provider: string | undefined;
}

/** Window of one minute, with the amount of the call. */
export interface Limit extends Window, Origin {
  readonly unit: 'requests' | 'tokens';
}

/** Limit of concurrent calls. */
export interface Slot extends LeasedSlot, Origin {}

/** Limits of one origin. Only the amount of the token window differs per call. */
export interface CallerSource {
  readonly requests: Limit | undefined;
  readonly tokens: Omit<Limit, 'amount'> | undefined;
  readonly slot: Slot | undefined;
}

export const MINUTE_MS = 60_000;

/** Retry delay after a full slot: calls end at any time. */
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

/**
 * Returns OpenAI's rate limit headers. They show the window that rejected the call and, for the other unit, the window
 * with the least left.
 */
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

/** Describes the origin of a limit in words. */
function describeOrigin({ plan, provider, ofUser }: Origin): string {
  if (ofUser) return 'of this user, over all API keys';
  if (plan === undefined) return 'of this API key';
  return provider === undefined ? `of the plan "${plan}"` : `of the plan "${plan}" at the provider "${provider}"`;
}
