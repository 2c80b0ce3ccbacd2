import type { ChatRequest } from '../../contract/chat.ts';
import type { Timeouts } from '../../contract/provider.ts';

/** The clocks of one attempt. */
export type Clocks = Partial<Timeouts>;

/** Until something of the response is there, in milliseconds, unless provider or alias say otherwise. */
const DEFAULTS = Object.freeze({
  /** To the first token of a stream. */
  firstTokenMs: 30_000,
  /** To a whole response, which comes when the model has written all of it. */
  firstByteMs: 120_000,
});

/** A model that was asked to think is silent for longer. */
const THINKING = 4;

/** The share of the time that a target gets while another one waits, and when its last attempt failed beside. */
const ANOTHER_WAITS = 1 / 2;
const ANOTHER_WAITS_AND_DOUBTFUL = 1 / 6;

const THINKS: ReadonlySet<unknown> = new Set(['medium', 'high', 'xhigh', 'max']);

export interface ClockFacts {
  readonly stream: boolean;
  readonly request: object;
  /** Whether another target could take over now. */
  readonly anotherWaits: boolean;
  readonly isDoubtful: boolean;
}

/** The clocks of an attempt: the alias's over the provider's over the defaults. Only defaults become shorter. */
export function clocksFor(provider: Clocks = {}, alias: Clocks = {}, facts: ClockFacts): Clocks {
  const set = { ...provider, ...alias };
  const share = !facts.anotherWaits ? 1 : facts.isDoubtful ? ANOTHER_WAITS_AND_DOUBTFUL : ANOTHER_WAITS;
  const firstByteMs = set.firstByteMs ?? DEFAULTS.firstByteMs * share;
  if (!facts.stream) return { ...set, firstByteMs };
  const { reasoning_effort: effort } = facts.request as Partial<ChatRequest>;
  const patience = THINKS.has(effort) ? THINKING : 1;
  // Who waits longer for the first byte, as for a model that is loaded first, waits as long for the first token.
  const firstTokenMs = set.firstTokenMs ?? Math.max(DEFAULTS.firstTokenMs * patience * share, set.firstByteMs ?? 0);
  return { ...set, firstTokenMs, firstByteMs: Math.min(firstByteMs, firstTokenMs) };
}
