import type { AuditChange, AuditEntry, AuditPage, AuditQuery } from '../../contract/audit.ts';
import { GatewayError, isGatewayError } from '../../contract/errors.ts';
import { isObject } from '../../contract/json.ts';
import type { Log } from '../../contract/plugin.ts';
import { cpuBudget } from '../../contract/units.ts';
import type { InstanceStore } from './instance-store.ts';

/** What operators changed: entries are added and read; nothing alters one, and only age removes them. */
export interface AuditLog {
  /** Resolves when the entry is in the store; throws `store_unavailable` otherwise. */
  add(change: AuditChange): Promise<void>;
  list(query: AuditQuery): Promise<AuditPage>;
}

export interface AuditParts {
  readonly store: Pick<InstanceStore, 'keyv' | 'sets' | 'counters'>;
  readonly keepForMs: number;
  readonly log: Log;
}

const DAY_MS = 86_400_000;
/** The days that have entries, and under each of them the ids of that day: sets are read in ascending order only. */
const DAYS = 'audit-days';
const PAGE = 1000;
/** How many ids a span of a long day may hold. */
const SPAN_PAGE = 250;
/** How much longer the next span of a long day is after one with few entries, and how much shorter where one has too many. */
const SPAN_GROWS = 4;
const SPAN_SHRINKS = 16;
const MAX_DAYS = 10_000;
/** How many entries one search looks at, and how much CPU it takes for that. */
const MAX_SCANNED = 5000;
const MOST_CPU_MS = 25;
const AT_ONCE = 50;
/** What `before` and `after` may have together, as JSON. */
const MAX_SHOWN_CHARS = 64 * 1024;
/** Time in base 36, nine places last until the year 5188; then a number that grows. */
const ID = /^[0-9a-z]{9}-[0-9a-z]{1,12}$/;

export function createAuditLog(parts: AuditParts): AuditLog {
  const { store, keepForMs, log } = parts;
  /** The day that is in the set of days, as far as this process knows; the old ones were forgotten then. */
  let today = '';

  return {
    async add(change) {
      const at = Date.now();
      const day = dayOf(at);
      try {
        const id = `${timePart(at)}-${(await store.counters.next('audit')).toString(36).padStart(6, '0')}`;
        const entry = { id, at, ...bound(change) };
        // The entry first, then its id: what is listed is there.
        const isWritten = await store.keyv<AuditEntry>('audit').set(id, entry, keepForMs);
        if (!isWritten) throw unavailable(undefined);
        if (today !== day) await store.sets.add(DAYS, day);
        await store.sets.add(idsOf(day), id);
      } catch (error) {
        const { actor, action, subject } = change;
        log.error(
          { err: error, actor, action, subject },
          'a change is missing in the audit log: the store rejected the entry',
        );
        throw isGatewayError(error) ? error : unavailable(error);
      }
      if (today === day) return;
      today = day;
      await forgetDays(store, dayOf(at - keepForMs - DAY_MS)).catch((error: unknown) =>
        log.warn({ err: error }, 'old ids of the audit log could not be removed; retried on the next day'),
      );
    },

    list: (query) => findEntries(store, query),
  };
}

/** Walks back from the newest day until the page is full or enough was looked at. */
async function findEntries(store: AuditParts['store'], query: AuditQuery): Promise<AuditPage> {
  const { from = 0, to = Infinity, limit, after } = query;
  if (after !== undefined && !ID.test(after))
    throw new GatewayError(
      'invalid_request',
      '"after" must be an id of the audit log, from "next" of the previous page.',
      {
        param: 'after',
      },
    );
  const [lowest, highest] = [timePart(Math.max(from, 0)), to === Infinity ? '~' : timePart(Math.max(to, 0))];
  const days = await store.sets.list(DAYS, { limit: MAX_DAYS });
  const entries: AuditEntry[] = [];
  let scanned = 0;
  let last: string | undefined;
  const isSpent = cpuBudget(MOST_CPU_MS);
  for (const day of days.toReversed()) {
    if (day < dayOf(from) || (to !== Infinity && day > dayOf(to))) continue;
    const before = after === undefined || highest < after ? highest : after;
    for await (const batch of newestIds(store, day, lowest, before)) {
      // What is only shown is never cut; what is looked for is.
      if (last !== undefined && scanned >= limit && isSpent()) return { entries, next: last };
      const found = await Promise.all(batch.map((id) => store.keyv<AuditEntry>('audit').get(id)));
      for (const [index, entry] of found.entries()) {
        if (last !== undefined && (entries.length === limit || scanned === MAX_SCANNED)) return { entries, next: last };
        last = batch[index];
        scanned += 1;
        if (isObject(entry) && matches(entry, query)) entries.push(entry);
      }
    }
  }
  return { entries };
}

function matches({ actor, action, subject }: AuditEntry, wanted: AuditQuery): boolean {
  const who: readonly unknown[] = [actor.userId, actor.keyId, actor.via];
  return (
    (wanted.subject === undefined || subject === wanted.subject) &&
    (wanted.actor === undefined || who.includes(wanted.actor)) &&
    (wanted.action === undefined || action === wanted.action || action.startsWith(`${wanted.action}.`))
  );
}

/**
 * The ids of a day from `lowest` to before `before`, the newest first. Sets are read upwards, so a day with many is read in spans of time
 * that hold a few: a page reads not much more than it shows, however long the day's list is and however dense at any moment.
 */
async function* newestIds({ sets }: AuditParts['store'], day: string, lowest: string, before: string) {
  const startMs = Date.parse(day);
  let spanMs = DAY_MS;
  let endMs = Math.min(startMs + DAY_MS, before === '~' ? Infinity : Number.parseInt(before.slice(0, 9), 36) + 1);
  while (endMs > startMs) {
    const fromMs = Math.max(endMs - spanMs, startMs);
    const [from, end] = [timePart(fromMs), timePart(endMs)];
    const page = await sets.list(idsOf(day), { limit: SPAN_PAGE, after: from });
    const isMore = page.length === SPAN_PAGE && (page.at(-1) ?? '') < end;
    if (isMore && endMs - fromMs > 1) {
      spanMs = Math.ceil((endMs - fromMs) / SPAN_SHRINKS);
      continue;
    }
    const ids = isMore ? await listIds({ sets }, day, from, end) : page;
    const fitting = ids.filter((id) => id >= lowest && id < before && id < end);
    for (let at = fitting.length; at > 0; at -= AT_ONCE)
      yield fitting.slice(Math.max(at - AT_ONCE, 0), at).toReversed();
    if (fitting.length < SPAN_PAGE / SPAN_GROWS) spanMs *= SPAN_GROWS;
    endMs = fromMs;
  }
}

async function listIds({ sets }: Pick<AuditParts['store'], 'sets'>, day: string, from = '', end = '~') {
  const ids: string[] = [];
  for (;;) {
    const after = ids.at(-1) ?? from;
    const page = await sets.list(idsOf(day), { limit: PAGE, ...(after !== '' && { after }) });
    ids.push(...page.filter((id) => id < end));
    if (page.length < PAGE || (page.at(-1) ?? '') >= end) return ids;
  }
}

/** The entries of these days have gone by their age; their ids go now. */
async function forgetDays(store: AuditParts['store'], before: string): Promise<void> {
  for (const day of await store.sets.list(DAYS, { limit: MAX_DAYS })) {
    if (day >= before) return;
    for (const id of await listIds(store, day)) await store.sets.remove(idsOf(day), id);
    await store.sets.remove(DAYS, day);
  }
}

/** What is too large to keep is said to be so. */
function bound(change: AuditChange): AuditChange {
  const { before, after, ...rest } = change;
  const chars = JSON.stringify([before, after]).length;
  if (chars <= MAX_SHOWN_CHARS) return change;
  return { ...rest, after: { too_large: chars } };
}

function timePart(unixMs: number): string {
  return Math.trunc(unixMs).toString(36).padStart(9, '0');
}

/** UTC. */
function dayOf(unixMs: number): string {
  return new Date(Math.max(unixMs, 0)).toISOString().slice(0, 10);
}

function idsOf(day: string): string {
  return `audit-of.${day}`;
}

function unavailable(cause: unknown): GatewayError {
  return new GatewayError(
    'store_unavailable',
    'The store does not respond, so this change has no audit log entry and may have been made. Check the object before you try again.',
    { retryAfterMs: 1000, cause },
  );
}
