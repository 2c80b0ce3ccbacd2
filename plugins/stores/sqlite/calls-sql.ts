import { ROLLUP_DIMENSIONS, SUM_NAMES } from '../kit/call-rows.ts';
import type { Database } from './driver.ts';

export type CallsSql = ReturnType<typeof prepareCalls>;

const DIMENSIONS = ROLLUP_DIMENSIONS.join(', ');
const SUMS = SUM_NAMES.join(', ');
const ADDED = SUM_NAMES.map((name) => `${name} = ${name} + excluded.${name}`).join(', ');
/** A record is one request: it has no column for that. */
const RECORDED = SUM_NAMES.slice(1);
const marks = (count: number): string => Array.from({ length: count }, () => '?').join(', ');

/** The records of a span by group; `kept` are further columns to group by. */
const sumRecords = (kept: string): string => `SELECT group_id${kept}, count(*) AS requests,
  ${RECORDED.map((name) => `sum(${name}) AS ${name}`).join(', ')} FROM calls WHERE at >= ?1 AND at < ?2
  AND (?3 IS NULL OR session = ?3) AND (?4 IS NULL OR outcome = ?4) GROUP BY group_id${kept}`;

/** The prepared statements of records and their rollup. */
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
    add: database.prepare(`INSERT INTO calls (at, tie, group_id, session, outcome, facts, ${RECORDED.join(', ')})
      VALUES (${marks(RECORDED.length + 6)})`),
    replace: database.prepare(`UPDATE calls SET group_id = ?, session = ?, outcome = ?, facts = ?,
      ${RECORDED.map((name) => `${name} = ?`).join(', ')} WHERE at = ? AND tie = ?`),
    page: database.prepare(`SELECT c.at, c.tie, c.session, c.outcome, c.cost, c.facts,
        ${ROLLUP_DIMENSIONS.map((name) => `g.${name}`).join(', ')}
      FROM (SELECT * FROM calls WHERE at >= ?1 AND at < ?2 AND (at, tie) < (?3, ?4)
        ORDER BY at DESC, tie DESC LIMIT ?5) AS c CROSS JOIN call_groups AS g ON g.id = c.group_id
      WHERE (?6 IS NULL OR g.account = ?6) AND (?7 IS NULL OR g.user = ?7) AND (?8 IS NULL OR g.key = ?8)
        AND (?9 IS NULL OR EXISTS (SELECT 1 FROM json_each(g.tags) WHERE value = ?9))
        AND (?10 IS NULL OR g.provider = ?10) AND (?11 IS NULL OR g.model = ?11) AND (?12 IS NULL OR g.operation = ?12)
        AND (?13 IS NULL OR c.session = ?13) AND (?14 IS NULL OR c.outcome = ?14)
      ORDER BY c.at DESC, c.tie DESC LIMIT ?15`),
    /** The last call that a page looks at. */
    lastOfPage: database.prepare(`SELECT at, tie FROM calls WHERE at >= ? AND at < ? AND (at, tie) < (?, ?)
      ORDER BY at DESC, tie DESC LIMIT 1 OFFSET ?`),
    /** The first hour and the last one that anything was counted in. */
    hours: database.prepare('SELECT (SELECT min(hour) FROM rollup) AS first, (SELECT max(hour) FROM rollup) AS last'),
    sumHours: database.prepare(`SELECT group_id, ${SUM_NAMES.map((name) => `sum(${name}) AS ${name}`).join(', ')}
      FROM rollup WHERE hour >= ? AND hour < ? GROUP BY group_id`),
    sumCalls: database.prepare(sumRecords('')),
    sumSessions: database.prepare(sumRecords(', session')),
    forget: database.prepare(
      'DELETE FROM calls WHERE (at, tie) IN (SELECT at, tie FROM calls WHERE at < ? ORDER BY at, tie LIMIT ?)',
    ),
    wholeBefore: database.prepare("SELECT value FROM marks WHERE name = 'whole_before'"),
    markWhole: database.prepare(`INSERT INTO marks (name, value) VALUES ('whole_before', ?)
      ON CONFLICT DO UPDATE SET value = max(value, excluded.value)`),
  };
}
