import type { CallPage, CallQuery, CallRow, ReportQuery, ReportRow } from '../../../contract/index.ts';
import {
  type CallCursor,
  callCursor,
  chooseIndex,
  cleanFilter,
  createCallTest,
  indexedBy,
  MOST_LOOKED_AT,
  matchesCall,
  readCallSpan,
} from '../kit/call-filter.ts';
import { type Dimensions, dimensionsOf, hourOf, negated, nextHour, type Sums, sumsOf } from '../kit/call-rows.ts';
import { factText } from '../kit/facts.ts';
import type { CallRecord } from '../kit/ledger.ts';
import type { RenamedCall, Renaming } from '../kit/rename.ts';
import { createReport, findSpan } from '../kit/report.ts';
import { PIECE_MS, Turns } from '../kit/turns.ts';

/** Maximum number of hourly groups; beyond it, the hours of the oldest days are merged. */
const MAX_GROUPS = 100_000;
/** Number of additional groups before the next attempt, if an attempt could not reduce them. */
const LOOK_AGAIN = 1000;
const DAY_MS = 86_400_000;

interface Group {
  readonly dimensions: Dimensions;
  sums: Sums;
}

/** Sums of calls by hour and dimensions. They outlive the records, and add up to the total spend. */
export class Rollup {
  readonly #hours = new Map<number, Map<string, Group>>();
  readonly #maxGroups: number;
  #groups = 0;
  #mergeAbove: number;
  /** Days before this time are merged: the first hour of a day has all of its sums. */
  #daysBefore = 0;

  constructor(maxGroups = MAX_GROUPS) {
    this.#maxGroups = maxGroups;
    this.#mergeAbove = maxGroups;
  }

  get daysBefore(): number {
    return this.#daysBefore;
  }

  get size(): number {
    return this.#groups;
  }

  /** Adds the sums of one call; negative sums subtract. */
  add(at: number, dimensions: Dimensions, sums: Sums): void {
    const hour = at < this.#daysBefore ? dayOf(at) : hourOf(at);
    const groups = this.#hours.get(hour) ?? new Map<string, Group>();
    this.#hours.set(hour, groups);
    // Texts of records contain no NUL.
    const key = dimensions.join('\0');
    const group = groups.get(key);
    if (group) {
      group.sums = group.sums.map((sum, index) => sum + (sums[index] ?? 0));
      if (group.sums[0] === 0 && groups.delete(key)) this.#groups -= 1;
      return;
    }
    groups.set(key, { dimensions, sums });
    this.#groups += 1;
    if (this.#groups > this.#mergeAbove) this.#joinDays(at);
  }

  /** Moves the sums of a person to an id. */
  rename({ dimensions: rename }: Pick<Renaming, 'dimensions'>): void {
    for (const [hour, groups] of this.#hours)
      for (const [key, { dimensions, sums }] of groups) {
        const renamed = rename(dimensions);
        if (!renamed) continue;
        groups.delete(key);
        this.#groups -= 1;
        this.add(hour, renamed, sums);
      }
  }

  /** All groups, by hour. */
  *[Symbol.iterator](): Generator<readonly [hour: number, group: Group]> {
    for (const [hour, groups] of this.#hours) for (const group of groups.values()) yield [hour, group];
  }

  /** Merges the hours of the oldest days, until there are few enough groups or only today is left. */
  #joinDays(now: number): void {
    while (this.#groups > this.#maxGroups) {
      const open = [...this.#hours.keys()].filter((hour) => hour >= this.#daysBefore);
      const day = dayOf(open.reduce((oldest, hour) => Math.min(oldest, hour), now));
      if (day >= dayOf(now)) break;
      this.#daysBefore = day + DAY_MS;
      for (const hour of open) if (dayOf(hour) === day && hour !== day) this.#moveToDay(hour);
    }
    this.#mergeAbove = Math.max(this.#maxGroups, this.#groups + LOOK_AGAIN);
  }

  #moveToDay(hour: number): void {
    const groups = this.#hours.get(hour);
    this.#hours.delete(hour);
    this.#groups -= groups?.size ?? 0;
    for (const { dimensions, sums } of groups?.values() ?? []) this.add(hour, dimensions, sums);
  }
}

function dayOf(at: number): number {
  return Math.floor(at / DAY_MS) * DAY_MS;
}

/** Maximum number of records; the oldest ones beyond it are deleted. */
const MAX_RECORDS = 50_000;
/** Number of records deleted at once. */
const FORGOTTEN = 1000;
/** Number of report rows between two reads of the clock. */
const LOOK_AT_CLOCK = 256;

/** Call records in this process, and the rollup that outlives them. */
export interface CallRecords {
  /** Adds the record of a call, or replaces its earlier record, even if that was deleted. */
  write(account: string, id: string, record: CallRecord): void;
  /** Replaces records by those of the same calls under other names. */
  replace(renamed: readonly RenamedCall[]): void;
  /** Moves the sums of a person to an id. */
  renameSums(renaming: Renaming): void;
  calls(query: CallQuery): CallPage;
  report(query: ReportQuery): Promise<readonly ReportRow[]>;
  forget(before: number): number;
}

export function createCallRecords(): CallRecords {
  return new Records();
}

class Records implements CallRecords {
  /** Oldest first; rows of the same millisecond by their tie. */
  #rows: CallRow[] = [];
  /** Same rows in the same order, by {@link indexedBy}. */
  readonly #indexes = new Map<string, CallRow[]>();
  readonly #rollup = new Rollup();
  readonly #turns = new Turns();
  #completeBefore = 0;

  write(accountName: string, id: string, { facts, cost, at, countedAt, before }: CallRecord): void {
    const account = factText(accountName);
    const row = { ...facts, id, account, cost, at, countedAt };
    if (before) {
      this.#rollup.add(countedAt, dimensionsOf(account, before.facts), negated(sumsOf(before.facts, before.cost)));
      const known = remove(this.#rows, row);
      if (known) for (const [name, value] of indexedBy(known)) remove(this.#indexes.get(keyOf(name, value)) ?? [], row);
      if (known) this.#add(row);
    } else this.#add(row);
    this.#rollup.add(countedAt, dimensionsOf(account, facts), sumsOf(facts, cost));
    if (this.#rows.length > MAX_RECORDS + FORGOTTEN) this.#forgetOldest();
  }

  replace(renamed: readonly RenamedCall[]): void {
    for (const { before, after } of renamed) {
      if (!remove(this.#rows, before)) continue;
      for (const [name, value] of indexedBy(before)) remove(this.#indexes.get(keyOf(name, value)) ?? [], before);
      this.#add(after);
    }
    for (const [key, rows] of this.#indexes) if (rows.length === 0) this.#indexes.delete(key);
  }

  renameSums(renaming: Renaming): void {
    this.#rollup.rename(renaming);
  }

  #add(row: CallRow): void {
    insert(this.#rows, row);
    for (const [name, value] of indexedBy(row)) this.#index(row, name, value);
  }

  calls(query: CallQuery): CallPage {
    const { from, to, limit, before } = readCallSpan(query);
    const filter = cleanFilter(query);
    const test = createCallTest(query);
    const index = chooseIndex(filter);
    const rows = index ? (this.#indexes.get(keyOf(index.name, index.value)) ?? []) : this.#rows;
    const end = before && before.at < to ? { at: before.at, tie: before.tie } : { at: to, tie: '' };
    const calls: CallRow[] = [];
    let last: CallRow | undefined;
    for (let place = placeBefore(rows, end), looked = 0; place > 0; place--, looked++) {
      const row = rows[place - 1];
      if (!row || row.at < from) break;
      const isWanted = matchesCall(filter, row) && test?.(row) !== false;
      if (last && (looked === MOST_LOOKED_AT || (isWanted && calls.length === limit)))
        return { calls, next: callCursor({ at: last.at, tie: tieOf(last) }) };
      if (isWanted) calls.push(row);
      last = row;
    }
    return { calls };
  }

  async report(query: ReportQuery): Promise<readonly ReportRow[]> {
    const report = createReport(query, Math.max(this.#completeBefore, this.#rollup.daysBefore));
    const hours = report.spans.filter(({ of }) => of === 'hours');
    const calls = report.spans.filter(({ of }) => of === 'calls');
    // Copies are cheap. They make the report a snapshot, although calls arrive between its pieces.
    const groups = hours.length > 0 ? [...this.#rollup] : [];
    const rows = calls.length > 0 ? [...this.#rows] : [];
    await this.#inPieces(groups, ([hour, { dimensions, sums }]) => {
      const span = report.takes(dimensions) ? findSpan(hours, hour) : undefined;
      if (span) report.add(span.interval, dimensions, undefined, sums);
    });
    await this.#inPieces(rows, (row) => {
      const span = findSpan(calls, row.countedAt);
      if (span && matchesCall(report.filter, row))
        report.add(span.interval, dimensionsOf(row.account, row), row.session, sumsOf(row, row.cost));
    });
    return report.rows();
  }

  forget(before: number): number {
    const whole = hourOf(before);
    const forgotten = placeBefore(this.#rows, { at: whole, tie: '' });
    if (forgotten > 0) this.#drop(forgotten);
    this.#completeBefore = Math.max(this.#completeBefore, whole);
    return forgotten;
  }

  #index(row: CallRow, name: string, value: string): void {
    const key = keyOf(name, value);
    const rows = this.#indexes.get(key);
    if (rows) insert(rows, row);
    else this.#indexes.set(key, [row]);
  }

  #forgetOldest(): void {
    const last = this.#drop(FORGOTTEN).at(-1);
    if (last) this.#completeBefore = Math.max(this.#completeBefore, nextHour(last.at + 1));
  }

  /** Drops the oldest rows, which are also the oldest of each index. */
  #drop(count: number): readonly CallRow[] {
    const dropped = this.#rows.splice(0, count);
    const counts = new Map<string, number>();
    for (const row of dropped)
      for (const [name, value] of indexedBy(row)) {
        const key = keyOf(name, value);
        counts.set(key, (counts.get(key) ?? 0) + 1);
      }
    for (const [key, gone] of counts) {
      const rows = this.#indexes.get(key) ?? [];
      rows.splice(0, gone);
      if (rows.length === 0) this.#indexes.delete(key);
    }
    return dropped;
  }

  /** Processes all items, and yields to other work between pieces. */
  async #inPieces<T>(each: readonly T[], work: (one: T) => void): Promise<void> {
    let until = performance.now() + PIECE_MS;
    for (const [at, one] of each.entries()) {
      if (at % LOOK_AT_CLOCK === 0 && performance.now() > until) {
        await this.#turns.next();
        until = performance.now() + PIECE_MS;
      }
      work(one);
    }
  }
}

/** Texts of records contain no NUL. */
function keyOf(name: string, value: string): string {
  return `${name}\0${value}`;
}

/** Number of rows before this position in time order. */
function placeBefore(rows: readonly CallRow[], place: CallCursor): number {
  let [low, high] = [0, rows.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const row = rows[middle];
    if (row && comparePlaces(row, place) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

function insert(rows: CallRow[], row: CallRow): void {
  const newest = rows.at(-1);
  // The end, in almost all cases.
  if (!newest || newest.at < row.at) rows.push(row);
  else rows.splice(placeBefore(rows, placeOf(row)), 0, row);
}

/** Removes the row at the position of this one. */
function remove(rows: CallRow[], { id, account, at }: CallRow): CallRow | undefined {
  const tie = tieOf({ id, account });
  const place = placeBefore(rows, { at, tie });
  const known = rows[place];
  return known && comparePlaces(known, { at, tie }) === 0 ? rows.splice(place, 1)[0] : undefined;
}

function placeOf(row: CallRow): CallCursor {
  return { at: row.at, tie: tieOf(row) };
}

function tieOf({ id, account }: Pick<CallRow, 'id' | 'account'>): string {
  return JSON.stringify([id, account]);
}

function comparePlaces(row: CallRow, { at, tie }: CallCursor): number {
  if (row.at !== at) return row.at - at;
  const own = tieOf(row);
  return own < tie ? -1 : Number(own > tie);
}
