import type { IndexedName } from '../kit/call-filter.ts';
import { MONEY_SUMS, ROLLUP_DIMENSIONS, SUM_NAMES } from '../kit/call-rows.ts';
import { PART_MS } from '../kit/call-terms.ts';
import { prepareTerms } from './call-terms.ts';
import type { Database, Statement } from './driver.ts';

export type CallsSql = ReturnType<typeof prepareCalls>;

const DIMENSIONS = ROLLUP_DIMENSIONS.join(', ');
const SUMS = SUM_NAMES.join(', ');
const ADDED = SUM_NAMES.map((name) => `${name} = ${name} + excluded.${name}`).join(', ');
/** Sums of a record. The number of requests is omitted: it is always one. */
const RECORDED = SUM_NAMES.slice(1);
/** Columns of a record other than its position and its sums. Names are numbers of the table `names`. */
const DESCRIBED = Object.freeze([
  'ref',
  'owner',
  'group_id',
  'account',
  'user',
  'key',
  'request',
  'session',
  'outcome',
  'facts',
  'counted_at',
]);
/** Reads sums of money as text: the driver rejects numbers that are not exact. */
const summed = (name: string): string =>
  MONEY_SUMS.has(name) ? `CAST(sum(${name}) AS TEXT) AS ${name}` : `sum(${name}) AS ${name}`;
const marks = (count: number): string => Array.from({ length: count }, () => '?').join(', ');

/** Columns of the names that have an index, called `calls_` plus the column. */
const INDEX_COLUMNS: Readonly<Record<IndexedName, string>> = Object.freeze({
  requestId: 'request',
  session: 'session',
  key: 'key',
  userId: 'user',
  account: 'account',
});

/** Way to the records of a list: an index by a name, the index of calls that did not succeed, or all records by time. */
export type RecordWay = IndexedName | 'failed' | 'all';

/** Names the index of a way, because the planner has no statistics for it. */
function indexed(way: RecordWay): string {
  if (way === 'all') return '';
  return ` INDEXED BY calls_${way === 'failed' ? 'failed' : INDEX_COLUMNS[way]}`;
}

/** Condition on the value of an index. Other ways have no value. */
function wanted(way: RecordWay, value: string): string {
  if (way === 'all') return `${value} IS NULL`;
  return way === 'failed' ? `outcome <> 'ok' AND ${value} IS NULL` : `c.${INDEX_COLUMNS[way]} = ${value}`;
}

/** Selects records by one value of an index, or all records. */
function recordsOf(columns: string, way: RecordWay, value: string): string {
  return `SELECT ${columns} FROM calls AS c${indexed(way)} WHERE ${wanted(way, value)}`;
}

/** Texts of a record with the names that a search may name a part of. */
const SEARCHED = Object.freeze(
  'c.facts g.user g.account g.key g.tags g.model g.provider c.session c.ref c.request'.split(' '),
);

const PAGE_COLUMNS = `c.at, c.n, c.ref, c.counted_at, c.request, c.session, c.outcome, c.cost, c.facts,
  ${ROLLUP_DIMENSIONS.map((name) => `g.${name}`).join(', ')}`;

/** Conditions of a list, ?6 to ?23; an absent one is NULL. */
const CONDITIONS = `(?6 IS NULL OR g.account = ?6) AND (?7 IS NULL OR g.user = ?7) AND (?8 IS NULL OR g.key = ?8)
  AND (?9 IS NULL OR EXISTS (SELECT 1 FROM json_each(g.tags) WHERE value = ?9))
  AND (?10 IS NULL OR g.provider = ?10) AND (?11 IS NULL OR g.model = ?11) AND (?12 IS NULL OR g.operation = ?12)
  AND (?13 IS NULL OR c.session = ?13) AND (?14 IS NULL OR c.outcome = ?14) AND (?15 IS NULL OR c.request = ?15)
  AND (?16 IS NULL OR c.cost >= ?16) AND (?17 IS NULL OR c.facts ->> '$.durationMs' >= ?17)
  AND (?18 IS NULL OR c.facts ->> '$.errorCode' = ?18) AND (?19 IS NULL OR c.facts ->> '$.endUser' = ?19)
  AND (?20 IS NULL OR coalesce(c.facts ->> '$.requested', g.model) = ?20)
  AND (?21 IS NULL OR EXISTS (SELECT 1 FROM json_each(c.facts, '$.attempts') WHERE value ->> '$.status' = ?21))
  AND (?22 IS NULL OR instr(c.facts, ?22) > 0)
  AND (?23 IS NULL OR ${SEARCHED.map((column) => `${column} LIKE ?23 ESCAPE '!'`).join(' OR ')})`;

/** Prepares statements that read records by an index, or all records without one. */
function prepareReads(database: Database, index: RecordWay) {
  // Only one bound per end: with two, the planner may search by the wider one and read all rows between them.
  const newest = 'at >= ?2 AND (at, n) < (?3, ?4) ORDER BY at DESC, n DESC';
  const sums = (kept: string): Statement =>
    database.prepare(`SELECT group_id${kept}, count(*) AS requests,
        ${RECORDED.map(summed).join(', ')}
      FROM (${recordsOf('*', index, '?1')} AND (at, n) > (?2, ?3) AND (at, n) <= (?4, ?5))
      WHERE counted_at >= ?6 AND counted_at < ?7 AND (?8 IS NULL OR session = ?8) AND (?9 IS NULL OR outcome = ?9)
        AND (?10 IS NULL OR request = ?10) GROUP BY group_id${kept}`);
  return {
    /** ?5: maximum number of records to scan; then conditions in addition to the index; ?24: page size. */
    page: database.prepare(`SELECT ${PAGE_COLUMNS}
      FROM (${recordsOf('*', index, '?1')} AND ${newest} LIMIT ?5) AS c CROSS JOIN call_groups AS g ON g.id = c.group_id
      WHERE ${CONDITIONS} ORDER BY c.at DESC, c.n DESC LIMIT ?24`),
    /** ?5: starts of the parts of time to read. A unary plus keeps the other bounds out of the search. */
    parts: database.prepare(`SELECT ${PAGE_COLUMNS}
      FROM json_each(?5) AS s CROSS JOIN calls AS c${indexed(index)} CROSS JOIN call_groups AS g ON g.id = c.group_id
      WHERE ${wanted(index, '?1')} AND c.at >= s.value AND c.at < s.value + ${PART_MS}
        AND +c.at >= ?2 AND (+c.at, +c.n) < (?3, ?4) AND ${CONDITIONS} ORDER BY c.at DESC, c.n DESC LIMIT ?24`),
    /** Position of the record after ?5 others in this order. */
    lastOfPage: database.prepare(`${recordsOf('at, n AS tie', index, '?1')} AND ${newest} LIMIT 1 OFFSET ?5`),
    /** Sums of the records after one position up to another, with and without their sessions. */
    sumCalls: sums(''),
    sumSessions: sums(', session'),
    /** Position of the record after ?5 others that follow that position. */
    endOfPiece: database.prepare(`${recordsOf('at, n AS tie', index, '?1')} AND at < ?2 AND (at, n) > (?3, ?4)
      ORDER BY at, n LIMIT 1 OFFSET ?5`),
  };
}

export type RecordReads = ReturnType<typeof prepareReads>;

/** Prepared statements of records and their rollup. */
export function prepareCalls(database: Database) {
  return {
    addGroup: database.prepare(
      `INSERT INTO call_groups (${DIMENSIONS}) VALUES (${marks(ROLLUP_DIMENSIONS.length)}) ON CONFLICT DO NOTHING`,
    ),
    groupId: database.prepare(
      `SELECT id FROM call_groups WHERE ${ROLLUP_DIMENSIONS.map((name) => `${name} = ?`).join(' AND ')}`,
    ),
    group: database.prepare(`SELECT ${DIMENSIONS} FROM call_groups WHERE id = ?`),
    count: database.prepare(`INSERT INTO rollup (hour, group_id, ${SUMS}) VALUES (${marks(SUM_NAMES.length + 2)})
      ON CONFLICT DO UPDATE SET ${ADDED}`),
    dropEmpty: database.prepare('DELETE FROM rollup WHERE hour = ? AND group_id = ? AND requests = 0'),
    add: database.prepare(`INSERT INTO calls (at, n, ${DESCRIBED.join(', ')}, ${RECORDED.join(', ')})
      VALUES (${marks(2 + DESCRIBED.length + RECORDED.length)})`),
    replace: database.prepare(`UPDATE calls SET
      ${[...DESCRIBED, ...RECORDED].map((name) => `${name} = ?`).join(', ')} WHERE at = ? AND ref = ? AND owner = ?`),
    terms: prepareTerms(database),
    reads: {
      all: prepareReads(database, 'all'),
      failed: prepareReads(database, 'failed'),
      account: prepareReads(database, 'account'),
      userId: prepareReads(database, 'userId'),
      key: prepareReads(database, 'key'),
      session: prepareReads(database, 'session'),
      requestId: prepareReads(database, 'requestId'),
    },
    countHour: database.prepare(`INSERT INTO hours (hour, ${SUMS}) VALUES (${marks(SUM_NAMES.length + 1)})
      ON CONFLICT DO UPDATE SET ${ADDED}`),
    /** Sums of whole hours, over all groups. */
    sumAll: database.prepare(`SELECT ${SUM_NAMES.map(summed).join(', ')} FROM hours WHERE hour >= ? AND hour < ?`),
    sumHours: database.prepare(`SELECT group_id, ${SUM_NAMES.map(summed).join(', ')}
      FROM rollup WHERE (hour, group_id) > (?1, ?2) AND (hour, group_id) <= (?3, ?4) GROUP BY group_id`),
    endOfHours: database.prepare(`SELECT hour AS at, group_id AS tie FROM rollup
      WHERE hour < ?1 AND (hour, group_id) > (?2, ?3) ORDER BY hour, group_id LIMIT 1 OFFSET ?4`),
    forget: database.prepare(
      'DELETE FROM calls WHERE (at, n) IN (SELECT at, n FROM calls WHERE at < ? ORDER BY at, n LIMIT ?)',
    ),
    nameId: database.prepare('SELECT id FROM names WHERE name = ?'),
    addName: database.prepare('INSERT INTO names (name) VALUES (?) ON CONFLICT DO NOTHING'),
    /** Number of records ever written; it becomes the number of the next record. */
    written: database.prepare("SELECT value FROM marks WHERE name = 'calls_written'"),
    markWritten: database.prepare(`INSERT INTO marks (name, value) VALUES ('calls_written', ?)
      ON CONFLICT DO UPDATE SET value = excluded.value`),
    /** Number of erasures of names in this file. */
    renames: database.prepare("SELECT value FROM marks WHERE name = 'renames'"),
    wholeBefore: database.prepare("SELECT value FROM marks WHERE name = 'whole_before'"),
    markWhole: database.prepare(`INSERT INTO marks (name, value) VALUES ('whole_before', ?)
      ON CONFLICT DO UPDATE SET value = max(value, excluded.value)`),
  };
}
