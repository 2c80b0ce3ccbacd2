import type { Target, Units } from '../contract/call.ts';
import type { Usage } from '../contract/chat.ts';
import type { Metered } from '../contract/operation.ts';
import type { Timeouts } from '../contract/provider.ts';
import type { Lane } from './ingress.ts';
import type { RunningAttempt } from './routing/health-book.ts';

/** What came of a call so far; core fills it in as the call goes on. */
export interface CallRecord {
  /** The target that was tried last, or is owed what was metered. */
  target: Target | undefined;
  attempts: number;
  /** The attempt that nothing is known of yet, or whose stream goes on: the end of the call says how its target does. */
  running: RunningAttempt | undefined;
  /** The status of the last attempt; undefined when its provider sent none. */
  status: number | undefined;
  /** The targets that were sent the call and did not refuse it: what they did is owed even when no response came. */
  readonly sentTo: Target[];
  usage: Usage | undefined;
  /** The service tier that the last attempt was sent with, where it is not the standard one. */
  serviceTier: string | undefined;
  metered: Metered | undefined;
  /** What is owed to targets that were asked at the same time and left when another one responded. */
  beside: Metered | undefined;
  /** What a kept response has saved. */
  saved: number | undefined;
  firstByteMs: number | undefined;
  /** Of a stream: when its first and its last content came. */
  firstTokenMs: number | undefined;
  lastTokenMs: number | undefined;
  upstreamMs: number;
  /** Ends the attempts in place of the call's signal: a stream reads on for what it owes after its caller has left. */
  attemptSignal: AbortSignal | undefined;
  /** The clocks of the attempt that runs. */
  clocks: Partial<Timeouts> | undefined;
  /** How the last attempt was sent, and its response goes out. */
  lane: Lane | undefined;
  /** Providers that could not be sent this request at all. */
  readonly skipped: string[];
}

/** Of a call of which nothing has come yet. */
export function newRecord(): CallRecord {
  return {
    target: undefined,
    attempts: 0,
    running: undefined,
    status: undefined,
    sentTo: [],
    usage: undefined,
    serviceTier: undefined,
    metered: undefined,
    beside: undefined,
    saved: undefined,
    firstByteMs: undefined,
    firstTokenMs: undefined,
    lastTokenMs: undefined,
    upstreamMs: 0,
    attemptSignal: undefined,
    clocks: undefined,
    lane: undefined,
    skipped: [],
  };
}

/** The record of an attempt after those that ran before it or at the same time: what they did is not forgotten. */
export function joinRecords(before: readonly CallRecord[], last: CallRecord): CallRecord {
  const all = [...before, last];
  return Object.assign(last, {
    attempts: all.reduce((sum, { attempts }) => sum + attempts, 0),
    upstreamMs: last.upstreamMs + (before[0]?.upstreamMs ?? 0),
    sentTo: all.flatMap(({ sentTo }) => sentTo),
    skipped: all.flatMap(({ skipped }) => skipped),
    firstByteMs: last.firstByteMs ?? all.find(({ firstByteMs }) => firstByteMs !== undefined)?.firstByteMs,
    target: last.target ?? all.findLast(({ target }) => target)?.target,
    beside: all.reduce<Metered | undefined>((sum, { beside }) => addMetered(sum, beside), undefined),
  });
}

/** All that a call owes; undefined while nothing was metered. */
export function owedBy({ metered, beside }: Pick<CallRecord, 'metered' | 'beside'>): Metered | undefined {
  return addMetered(metered, beside);
}

/** The cost of both is not known when that of one is not. */
export function addMetered(one: Metered | undefined, other: Metered | undefined): Metered | undefined {
  if (!one || !other) return one ?? other;
  const units: Record<string, number> = { ...one.units };
  for (const [unit, amount] of Object.entries(other.units)) units[unit] = (units[unit] ?? 0) + amount;
  const cost = one.cost === undefined || other.cost === undefined ? undefined : one.cost + other.cost;
  return { units, cost, estimated: one.estimated === true || other.estimated === true };
}

/** Tokens among units as OpenAI counts them; undefined when there are none. */
export function usageOfUnits(units: Units): Usage | undefined {
  const { prompt_tokens, completion_tokens = 0 } = units;
  if (prompt_tokens === undefined) return undefined;
  return { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
}
