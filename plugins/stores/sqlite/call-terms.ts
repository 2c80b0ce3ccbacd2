import type { CallFacts, CallQuery } from '../../../contract/index.ts';
import {
  LAST_PART,
  NotedTerms,
  PART_MS,
  partOf,
  startOfPart,
  termRows,
  type termsOf,
  termsOfQuery,
} from '../kit/call-terms.ts';
import type { Database } from './driver.ts';

/** Time span of records, from `from` (inclusive) to `to` (exclusive). */
export interface Span {
  readonly from: number;
  readonly to: number;
  /** Starts of the parts to read, newest first; absent for all of the span. */
  readonly parts?: readonly number[];
}

/** Limits of a search. */
export interface SearchLimits {
  /** Maximum number of parts that one statement reads. */
  readonly most: number;
  /** Checks that a span has more than this many records: else, all of them are read instead of the parts. */
  hasMore(span: Span, count: number): boolean;
}

/** Records that are read in the time of a part. */
const A_PART = 3;
/** Records that one statement reads, about. */
const A_STATEMENT = 2000;
const MOST_COUNTED = 4000;

/** Parts that one statement reads. */
const PARTS_AT_ONCE = 500;

type Terms = readonly number[];
const NONE: Terms = Object.freeze([]);

/** Terms of the records in the file. */
export class CallTerms {
  readonly #sql: ReturnType<typeof prepareTerms>;
  readonly #noted = new NotedTerms();

  constructor(sql: ReturnType<typeof prepareTerms>) {
    this.#sql = sql;
  }

  /** Returns the terms of a record that this process has not returned for its part, for {@link write}. */
  takeNew(at: number, facts: Parameters<typeof termsOf>[0], cost: number): readonly number[] {
    const news = this.#noted.findNew(at, facts, cost);
    if (news.length === 0) return NONE;
    this.#noted.keep(at, news);
    return termRows(at, news).map(({ term }) => term);
  }

  /** Writes terms inside a transaction. */
  write(at: number, terms: Terms): void {
    if (terms.length === 0) return;
    const { day, part } = partOf(at);
    for (const term of terms) this.#sql.add.run(day, term, part);
  }

  /** Writes the terms of a record inside a transaction. */
  note(at: number, facts: Parameters<typeof termsOf>[0], cost: number): void {
    this.write(at, this.takeNew(at, facts, cost));
  }

  /** Writes the terms of a record from its stored form: a journal of schema 8 has none. */
  notePacked(
    at: number,
    dimensions: readonly string[],
    { outcome, packed, cost }: { readonly outcome: string; readonly packed: string; readonly cost: number },
  ): void {
    const [, , , tags = '[]', operation = '-', provider = '-', model = '-'] = dimensions;
    const facts = JSON.parse(packed) as CallFacts;
    const named = { tags: tags === '[]' ? [] : (JSON.parse(tags) as readonly string[]), operation, provider, model };
    this.note(at, { ...named, ...pick(facts), outcome: outcome as CallFacts['outcome'] }, cost);
  }

  /** Clears the cache after a rollback. */
  clear(): void {
    this.#noted.clear();
  }

  /** Deletes terms of days before a time; returns the number of rows. */
  forget(before: number, most: number): number {
    return Number(this.#sql.forget.run(partOf(before).day, most).changes);
  }

  /** Spans with records that may match a query, newest first. */
  *find(query: CallQuery, { from, to }: Span, limits: SearchLimits): Generator<Span> {
    const lists = termsOfQuery(query);
    if (lists.length === 0 || to <= from) {
      yield { from, to };
      return;
    }
    // Records before have no terms: an earlier version wrote them.
    const whole = Math.min(to, Math.max(from, Number(this.#sql.since.get()?.['value'] ?? 0)));
    yield* this.#days(lists, { from: whole, to }, limits);
    if (whole > from) yield { from, to: whole };
  }

  *#days(lists: readonly Terms[], span: Span, limits: SearchLimits): Generator<Span> {
    const last = partOf(Math.min(span.to - 1, Number.MAX_SAFE_INTEGER - 1));
    const first = partOf(span.from);
    for (let day = this.#dayUntil(last.day); day !== undefined && day >= first.day; day = this.#dayUntil(day - 1)) {
      const lowest = day === first.day ? first.part : 0;
      const highest = day === last.day ? last.part : LAST_PART;
      const counted = lists.map((terms) => ({ terms, count: this.#count(day, terms, lowest, highest) }));
      // The rarest condition decides which parts are looked up.
      const [rarest, ...others] = counted.toSorted((a, b) => a.count - b.count);
      if (rarest === undefined || rarest.count === 0) continue;
      const whole = {
        from: Math.max(span.from, startOfPart(day, lowest)),
        to: Math.min(span.to, startOfPart(day, highest + 1)),
      };
      if (!limits.hasMore(whole, rarest.count * A_PART)) {
        yield whole;
        continue;
      }
      const most = Math.min(limits.most, Math.max(1, Math.floor(A_STATEMENT / this.#density(day))));
      let parts: number[] = [];
      for (const part of this.#partsOf(day, rarest.terms, lowest, highest)) {
        if (!others.every(({ terms }) => this.#has(day, terms, part))) continue;
        parts.push(startOfPart(day, part));
        if (parts.length < most) continue;
        yield around(parts, whole);
        parts = [];
      }
      if (parts.length > 0) yield around(parts, whole);
    }
  }

  /** Average number of records in a part of a day. */
  #density(day: number): number {
    const requests = this.#sql.requests.get(startOfPart(day, 0), startOfPart(day + 1, 0))?.['requests'];
    return Math.max(1, Number(requests ?? 0)) / (LAST_PART + 1);
  }

  #dayUntil(day: number): number | undefined {
    const found = this.#sql.day.get(day)?.['day'];
    return found == null ? undefined : Number(found);
  }

  *#partsOf(day: number, terms: Terms, lowest: number, highest: number): Generator<number> {
    for (let until = highest; ; ) {
      const parts = this.#read(day, terms, lowest, until);
      yield* parts;
      const end = parts.at(-1);
      if (end === undefined || parts.length < PARTS_AT_ONCE) return;
      until = end - 1;
    }
  }

  #count(day: number, terms: Terms, lowest: number, highest: number): number {
    let total = 0;
    for (const term of terms) total += Number(this.#sql.count.get(day, term, lowest, highest)?.['count'] ?? 0);
    return total;
  }

  #read(day: number, terms: Terms, lowest: number, highest: number): readonly number[] {
    const [term = 0] = terms;
    const rows =
      terms.length === 1
        ? this.#sql.parts.all(day, term, lowest, highest)
        : this.#sql.partsOfAny.all(day, JSON.stringify(terms), lowest, highest);
    return rows.map((row) => Number(row['part']));
  }

  #has(day: number, terms: Terms, part: number): boolean {
    return terms.some((term) => this.#sql.has.get(day, term, part) !== undefined);
  }
}

/** Span of these parts, newest first, inside of another. */
function around(parts: readonly number[], { from, to }: Span): Span {
  return {
    from: Math.max(from, parts.at(-1) ?? from),
    to: Math.min(to, (parts[0] ?? to) + PART_MS),
    parts,
  };
}

/** Facts that are terms and are in the packed form. */
function pick({ durationMs, requested, errorCode, endUser, address, attempts }: CallFacts) {
  return {
    durationMs,
    attempts,
    ...(requested !== undefined && { requested }),
    ...(errorCode !== undefined && { errorCode }),
    ...(endUser !== undefined && { endUser }),
    ...(address !== undefined && { address }),
  };
}

/** Prepares statements of terms. */
export function prepareTerms(database: Database) {
  return {
    add: database.prepare('INSERT INTO call_terms (day, term, part) VALUES (?, ?, ?) ON CONFLICT DO NOTHING'),
    day: database.prepare('SELECT max(day) AS day FROM call_terms WHERE day <= ?'),
    count: database.prepare(`SELECT count(*) AS count FROM (SELECT 1 FROM call_terms
      WHERE day = ? AND term = ? AND part >= ? AND part <= ? LIMIT ${MOST_COUNTED})`),
    parts: database.prepare(`SELECT part FROM call_terms WHERE day = ? AND term = ? AND part >= ? AND part <= ?
      ORDER BY part DESC LIMIT ${PARTS_AT_ONCE}`),
    partsOfAny: database.prepare(`SELECT DISTINCT part FROM call_terms
      WHERE day = ? AND term IN (SELECT value FROM json_each(?)) AND part >= ? AND part <= ?
      ORDER BY part DESC LIMIT ${PARTS_AT_ONCE}`),
    has: database.prepare('SELECT 1 AS known FROM call_terms WHERE day = ? AND term = ? AND part = ?'),
    requests: database.prepare('SELECT sum(requests) AS requests FROM hours WHERE hour >= ? AND hour < ?'),
    since: database.prepare("SELECT value FROM marks WHERE name = 'terms_from'"),
    forget: database.prepare(`DELETE FROM call_terms WHERE (day, term, part) IN
      (SELECT day, term, part FROM call_terms WHERE day < ? ORDER BY day, term, part LIMIT ?)`),
  };
}
