import { setImmediate, setTimeout as wait } from 'node:timers/promises';
import type { CallFilter, CallRow, Ledger } from '../../../contract/index.ts';
import { listCalls } from './calls-query.ts';

export interface FollowOptions {
  readonly filter: CallFilter;
  /** Number of latest calls sent first. */
  readonly recent?: number;
  /** Event id of the last call that was sent, to resume after it. */
  readonly lastId?: string | undefined;
  readonly signal: AbortSignal;
  readonly now?: () => number;
}

/**
 * Shortest pause between reads: fast enough for a person. With a slow or large store, reads take a fiftieth of the
 * time.
 */
const SHORTEST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 1000;
const SHARE = 50;

/** Pause after a read of this duration. */
export function pauseAfter(lookMs: number): number {
  return Math.min(LONGEST_PAUSE_MS, Math.max(SHORTEST_PAUSE_MS, lookMs * SHARE));
}

/** Overlap of reads: another node, or a store that was unavailable, may write a call slightly after later ones. */
const OVERLAP_MS = 10_000;
const PAGE = 500;
/** Longest duration of one read, with pauses for other work. */
const LOOK_MS = 1000;
/** Maximum calls of one read. */
const MAX_LOOK = 20_000;

/**
 * Result of one read: new calls in the order of settlement, and whether some were dropped because there were too many.
 */
export interface Followed {
  readonly calls: readonly CallRow[];
  readonly isCut: boolean;
}

/** Yields calls as they are settled, each once, until the signal fires. The first read is yielded even if empty. */
export async function* followCalls(
  ledger: Pick<Ledger, 'calls'>,
  { filter, recent = 0, lastId, signal, now = Date.now }: FollowOptions,
): AsyncGenerator<Followed, void, undefined> {
  const reported = new Map<string, number>();
  let mark = timeOfEvent(lastId) ?? now();
  const first = recent > 0 ? (await listCalls(ledger, { filter, limit: recent }, LOOK_MS)).calls : [];
  let look = await lookSince(ledger, filter, mark - OVERLAP_MS);
  const fresh = firstToTell(look.calls, recent > 0 ? first : undefined, lastId);
  for (const { id, at } of look.calls) reported.set(id, at);
  yield { calls: [...first.toReversed(), ...fresh], isCut: look.isCut && lastId !== undefined };
  while (await waitFor(pauseAfter(look.tookMs), signal)) {
    for (const at of reported.values()) mark = Math.max(mark, at);
    for (const [id, at] of reported) if (at < mark - OVERLAP_MS) reported.delete(id);
    look = await lookSince(ledger, filter, mark - OVERLAP_MS);
    const { isCut } = look;
    const found = look.calls.filter(({ id }) => !reported.has(id));
    for (const { id, at } of found) reported.set(id, at);
    if (found.length > 0 || isCut) yield { calls: found, isCut };
  }
}

/** Resolves with true if the time passed without the signal. */
function waitFor(ms: number, signal: AbortSignal): Promise<boolean> {
  return wait(ms, true, { signal }).catch(() => false);
}

/** Calls since a time, in the order of settlement. */
async function lookSince(
  ledger: Pick<Ledger, 'calls'>,
  filter: CallFilter,
  from: number,
): Promise<Followed & { readonly tookMs: number }> {
  const calls: CallRow[] = [];
  const began = performance.now();
  const until = began + LOOK_MS;
  let after: string | undefined;
  do {
    const page = await ledger.calls({ ...filter, from, limit: PAGE, ...(after !== undefined && { after }) });
    calls.push(...page.calls);
    after = page.next;
    await setImmediate();
  } while (after !== undefined && calls.length < MAX_LOOK && performance.now() < until);
  return { calls: calls.reverse(), isCut: after !== undefined, tookMs: performance.now() - began };
}

/**
 * Calls of the first read that were settled after the last known call, whether sent before or among the recent ones.
 */
function firstToTell(
  calls: readonly CallRow[],
  recent: readonly CallRow[] | undefined,
  lastId: string | undefined,
): readonly CallRow[] {
  if (!recent && lastId === undefined) return [];
  const known = recent?.[0]?.id ?? lastId?.split('@', 1)[0];
  const place = calls.findIndex(({ id }) => id === known);
  const shown = new Set(recent?.map(({ id }) => id));
  const time = recent?.[0]?.at ?? timeOfEvent(lastId) ?? 0;
  return place === -1
    ? calls.filter(({ id, at }) => at > time && !shown.has(id))
    : calls.slice(place + 1).filter(({ id }) => !shown.has(id));
}

/** Event id of a call, which includes the time of settlement, so that a returning reader can resume. */
export function eventId({ id, at }: CallRow): string {
  return `${id}@${at}`;
}

function timeOfEvent(id: string | undefined): number | undefined {
  const at = Number(/^[\w-]{1,64}@(\d{1,15})$/.exec(id ?? '')?.[1]);
  return Number.isSafeInteger(at) ? at : undefined;
}
