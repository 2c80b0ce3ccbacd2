import type { AuditChange, AuditEntry, AuditPage, AuditQuery } from '../../contract/audit.ts';
import { GatewayError, isGatewayError } from '../../contract/errors.ts';
import { isObject } from '../../contract/json.ts';
import type { Log } from '../../contract/plugin.ts';
import { createNameReplacer } from '../../contract/texts.ts';
import { cpuBudget } from '../../contract/units.ts';
import type { InstanceStore } from './instance-store.ts';

/**
 * Audit log of operators' changes: append-only. Entries are removed only by age, and altered only by the erasure of a person: an id
 * replaces the name.
 */
export interface AuditLog {
  /** Resolves when the store has the entry; throws `store_unavailable` otherwise. */
  add(change: AuditChange): Promise<void>;
  list(query: AuditQuery): Promise<AuditPage>;
  /** Replaces the name of a person by an id in all entries; returns the number of changed entries. */
  rename(name: string, id: string): Promise<number>;
}

export interface AuditParts {
  readonly store: Pick<InstanceStore, 'keyv' | 'sets' | 'counters'>;
  readonly keepForMs: number;
  readonly log: Log;
}

const DAY_MS = 86_400_000;
/** Set of days with entries; each day has a set of its ids. Sets can only be read in ascending order. */
const DAYS = 'audit-days';
const PAGE = 1000;
/** Maximum number of ids in a time span of a long day. */
const SPAN_PAGE = 250;
/** Growth factor of the next span of a long day after few entries, and shrink factor after too many. */
const SPAN_GROWS = 4;
const SPAN_SHRINKS = 16;
const MAX_DAYS = 10_000;
/** Limits of one search: entries read, and CPU time. */
const MAX_SCANNED = 5000;
const MOST_CPU_MS = 25;
const AT_ONCE = 50;
/** Maximum total size of `before` and `after`, as JSON. */
const MAX_SHOWN_CHARS = 64 * 1024;
/** Time in base 36, with nine digits until the year 5188, followed by an increasing number. */
const ID = /^[0-9a-z]{9}-[0-9a-z]{1,12}$/;

export function createAuditLog(parts: AuditParts): AuditLog {
  const { store, keepForMs, log } = parts;
  /** Day that this process added to the set of days; it then also deleted expired days. */
  let today = '';

  return {
    async add(change) {
      const at = Date.now();
      const day = dayOf(at);
      try {
        const id = `${timePart(at)}-${(await store.counters.next('audit')).toString(36).padStart(6, '0')}`;
        const entry = { id, at, ...bound(change) };
        // The entry is written before its id, so that listed entries exist.
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

    rename: (name, id) => renameEntries(parts, name, id),
  };
}

/** Replaces a name in the entries of all days. Each keeps its time of expiry. */
async function renameEntries({ store, keepForMs }: AuditParts, name: string, id: string): Promise<number> {
  const replace = replacerOf(name, id);
  const entries = store.keyv<AuditEntry>('audit');
  let count = 0;
  for (const day of await store.sets.list(DAYS, { limit: MAX_DAYS }))
    for (const each of await listIds(store, day)) {
      const entry = await entries.get(each);
      if (!isObject(entry) || !JSON.stringify(entry).includes(JSON.stringify(name).slice(1, -1))) continue;
      const { at } = entry;
      const renamed = { ...(replace(entry) as AuditEntry), id: each };
      if (JSON.stringify(renamed) === JSON.stringify(entry)) continue;
      if (!(await entries.set(each, renamed, Math.max(at + keepForMs - Date.now(), 1)))) throw unavailable(undefined);
      count += 1;
    }
  return count;
}

/** Replaces a name in all texts and field names of a JSON value, but not inside longer words. */
function replacerOf(name: string, id: string): (value: unknown) => unknown {
  const replaceText = createNameReplacer(name, id);
  const replace = (value: unknown): unknown => {
    if (typeof value === 'string') return replaceText(value);
    if (Array.isArray(value)) return value.map(replace);
    if (!isObject(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [replaceText(key), replace(each)]));
  };
  return replace;
}

/** Searches backwards from the newest day until the page is full or the search limit is reached. */
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
      // A page without filters is always complete; only a filtered search may end early.
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
 * Yields the ids of a day from `lowest` to before `before`, newest first. Sets are read in ascending order, so a long day is read
 * in time spans with few ids each. A page thus reads little more than it returns, regardless of the length and density of the day's
 * list.
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

/** Deletes the ids of days whose entries have expired. */
async function forgetDays(store: AuditParts['store'], before: string): Promise<void> {
  for (const day of await store.sets.list(DAYS, { limit: MAX_DAYS })) {
    if (day >= before) return;
    for (const id of await listIds(store, day)) await store.sets.remove(idsOf(day), id);
    await store.sets.remove(DAYS, day);
  }
}

/** Marks values as too large to store. */
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
