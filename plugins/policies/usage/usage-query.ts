import type { CallFilter, Ledger } from '../../../core/index.ts';
import { type By, isTimeUnit, readBy } from './dimensions.ts';
import { pageOf, readCursor, type Sort, sortRows } from './pages.ts';
import { cutRange, type Range, readRange, readZone } from './range.ts';
import { dimensionsOf, makeReport, type UsageReport, type UsageRow } from './report.ts';
import { readChoice, readFilter, readLimit, type Words, wrongWord } from './words.ts';

/** A report as it was asked for. */
export interface UsageQuery {
  readonly range: Range;
  readonly by: readonly By[];
  readonly filter: CallFilter;
  readonly sort: Sort;
  readonly limit: number;
  readonly after: ReturnType<typeof readCursor> | undefined;
  readonly format: 'json' | 'csv';
}

const DEFAULT_LIMIT = 100;

/** Reads a report's words; throws a 400 that names the wrong one. */
export function readUsageQuery(words: Words, now: number): UsageQuery {
  if (words['by'] !== undefined && words['group_by'] !== undefined)
    throw wrongWord('group_by', 'is the older name of "by"; give one of them.');
  const param = words['group_by'] === undefined ? 'by' : 'group_by';
  const by = readBy(words[param] ?? 'day', param);
  const after = words['after'] === undefined ? undefined : readCursor(words['after'], by);
  const { from, to, last, period, tz } = words;
  const format = readChoice(words, 'format', ['json', 'csv']);
  const paging = ['limit', 'after'].find((word) => words[word] !== undefined);
  if (format === 'csv' && paging !== undefined) throw wrongWord(paging, 'is for pages; a report as CSV has all rows.');
  return {
    range: after
      ? { from: after.from, to: after.to, zone: readZone(tz) }
      : readRange({ from, to, last, period, tz }, now),
    by,
    filter: readFilter(words),
    sort: readChoice(words, 'sort', ['name', 'cost']),
    limit: readLimit(words['limit'], DEFAULT_LIMIT),
    after,
    format,
  };
}

/** A report with one page of its rows. */
export interface UsagePage extends UsageReport {
  readonly page: readonly UsageRow[];
  readonly next?: string;
}

/** Asks the store; the totals are of all rows, on every page. */
export async function runUsageQuery(ledger: Pick<Ledger, 'report'>, query: UsageQuery): Promise<UsagePage> {
  const { range, by, filter, sort } = query;
  const { edges, names } = cutRange(range, by.find(isTimeUnit));
  const found = await ledger.report({ ...filter, edges, by: dimensionsOf(by) });
  const report = makeReport(found, by, names);
  const rows = sortRows(report.rows, by, sort);
  const { rows: page, next } = pageOf(rows, query, range);
  return { ...report, rows, page, ...(next !== undefined && { next }) };
}
