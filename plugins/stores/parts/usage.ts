import type { UsageFacts } from '../../../core/index.ts';

/** What one settled call adds to its usage row. */
export interface UsageCounts {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly characters: number;
}

/** The numbers of a call's facts; absent ones count as 0. */
export function countUsage(facts: UsageFacts): UsageCounts {
  return {
    promptTokens: facts.tokens?.prompt_tokens ?? 0,
    completionTokens: facts.tokens?.completion_tokens ?? 0,
    characters: facts.characters ?? 0,
  };
}

/** The reason that a charge shows in the books: `chat openai/gpt-5`. */
export function chargeReason(facts: UsageFacts): string {
  const what = `${facts.operation} ${facts.provider}/${facts.model}`;
  return facts.outcome === EXPIRED ? `${what} (not settled in time: charged at its estimate)` : what;
}

/** The outcome of a reservation that the sweeper settled. */
export const EXPIRED = 'expired';

/** The facts a reservation is settled with when nobody else did: nothing is known but what was planned. */
export function expiredFacts(facts: UsageFacts): UsageFacts {
  return { ...facts, outcome: EXPIRED, estimated: true };
}

let lastDay = { number: -1, text: '' };

/** `YYYY-MM-DD` of a Unix time in milliseconds, UTC. Remembers the last day: every call of a day asks for the same. */
export function dayOf(time: number): string {
  const number = Math.floor(time / 86_400_000);
  if (number !== lastDay.number) lastDay = { number, text: new Date(time).toISOString().slice(0, 10) };
  return lastDay.text;
}
