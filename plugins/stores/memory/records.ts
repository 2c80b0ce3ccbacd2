import type { CallFacts, CallPage, CallQuery, CallRow, ReportQuery, ReportRow } from '../../../core/index.ts';
import { callCursor, cleanFilter, matchesCall, readCallSpan } from '../kit/call-filter.ts';
import { dimensionsOf, hourOf, negated, nextHour, sumsOf } from '../kit/call-rows.ts';
import { cleanFacts, factText } from '../kit/facts.ts';
import { createReport, findSpan } from '../kit/report.ts';
import { Rollup } from './rollup.ts';

/** How many records are kept; the oldest beyond that go. */
const MAX_RECORDS = 50_000;
/** How many go at once. */
const FORGOTTEN = 1000;

/** What of a call its record is made of. */
export interface Ended {
  readonly account: string;
  readonly id: string;
  readonly facts: CallFacts;
  readonly cost: number;
  readonly at: number;
}

/** The records of calls in this process, and the rollup that outlives them. */
export interface CallRecords {
  add(call: Ended): void;
  /** Replaces what was told of a call by what it came to. */
  correct(before: Ended, after: Ended): void;
  calls(query: CallQuery): CallPage;
  report(query: ReportQuery): readonly ReportRow[];
  forget(before: number): number;
}

export function createCallRecords(): CallRecords {
  return new Records();
}

class Records implements CallRecords {
  /** Oldest first; those of one moment by their tie. */
  #rows: CallRow[] = [];
  readonly #rollup = new Rollup();
  #wholeBefore = 0;

  add(call: Ended): void {
    const facts = cleanFacts(call.facts);
    const account = factText(call.account);
    const row = { ...facts, id: factText(call.id), account, cost: call.cost, at: call.at };
    const place = this.#placeOf(row);
    if (place === this.#rows.length) this.#rows.push(row);
    else this.#rows.splice(place, 0, row);
    this.#rollup.add(call.at, dimensionsOf(account, facts), sumsOf(facts, call.cost));
    if (this.#rows.length > MAX_RECORDS + FORGOTTEN) this.#forgetOldest();
  }

  correct(before: Ended, after: Ended): void {
    const [old, facts] = [cleanFacts(before.facts), cleanFacts(after.facts)];
    const account = factText(before.account);
    const { at } = before;
    this.#rollup.add(at, dimensionsOf(account, old), negated(sumsOf(old, before.cost)));
    this.#rollup.add(at, dimensionsOf(account, facts), sumsOf(facts, after.cost));
    const row = { ...facts, id: factText(before.id), account, cost: after.cost, at };
    const place = this.#placeOf(row) - 1;
    const known = this.#rows[place];
    if (known && compareCalls(known, row) === 0) this.#rows[place] = row;
  }

  calls(query: CallQuery): CallPage {
    const { from, to, limit, before } = readCallSpan(query);
    const filter = cleanFilter(query);
    const found: CallRow[] = [];
    for (let place = this.#rows.length - 1; place >= 0 && found.length <= limit; place--) {
      const row = this.#rows[place];
      if (!row || row.at < from) break;
      const isNext = before === undefined || row.at < before.at || (row.at === before.at && tieOf(row) < before.tie);
      if (row.at < to && isNext && matchesCall(filter, row)) found.push(row);
    }
    const calls = found.slice(0, limit);
    const last = calls.at(-1);
    return { calls, ...(last && found.length > limit && { next: callCursor({ at: last.at, tie: tieOf(last) }) }) };
  }

  report(query: ReportQuery): readonly ReportRow[] {
    const report = createReport(query, Math.max(this.#wholeBefore, this.#rollup.daysBefore));
    const hours = report.spans.filter(({ of }) => of === 'hours');
    const calls = report.spans.filter(({ of }) => of === 'calls');
    if (hours.length > 0)
      for (const [hour, { dimensions, sums }] of this.#rollup) {
        const span = report.takes(dimensions) ? findSpan(hours, hour) : undefined;
        if (span) report.add(span.interval, dimensions, undefined, sums);
      }
    if (calls.length > 0)
      for (const row of this.#rows) {
        const span = findSpan(calls, row.at);
        if (span && matchesCall(report.filter, row))
          report.add(span.interval, dimensionsOf(row.account, row), row.session, sumsOf(row, row.cost));
      }
    return report.rows();
  }

  forget(before: number): number {
    const whole = hourOf(before);
    const kept = this.#rows.filter(({ at }) => at >= whole);
    const forgotten = this.#rows.length - kept.length;
    if (forgotten > 0) this.#rows = kept;
    this.#wholeBefore = Math.max(this.#wholeBefore, whole);
    return forgotten;
  }

  #forgetOldest(): void {
    const last = this.#rows.splice(0, FORGOTTEN).at(-1);
    if (last) this.#wholeBefore = Math.max(this.#wholeBefore, nextHour(last.at + 1));
  }

  /** Where a row goes: behind all that are older. Almost always the end. */
  #placeOf(row: CallRow): number {
    let place = this.#rows.length;
    for (let before = this.#rows[place - 1]; before && compareCalls(before, row) > 0; before = this.#rows[place - 1])
      place -= 1;
    return place;
  }
}

function tieOf({ id, account }: CallRow): string {
  return JSON.stringify([id, account]);
}

function compareCalls(a: CallRow, b: CallRow): number {
  if (a.at !== b.at) return a.at - b.at;
  const [left, right] = [tieOf(a), tieOf(b)];
  return left < right ? -1 : Number(left > right);
}
