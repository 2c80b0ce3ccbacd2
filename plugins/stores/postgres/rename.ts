import type { Ledger } from '../../../contract/index.ts';
import { dimensionsOf, otherFacts, ROLLUP_DIMENSIONS, SUM_NAMES } from '../kit/call-rows.ts';
import { termRows, termsOf } from '../kit/call-terms.ts';
import { digest } from '../kit/check.ts';
import { createRename, type RenamedCall, type Renaming } from '../kit/rename.ts';
import { accountRowId, nextVersion, pack, readAccountRow } from '../kit/versioned-ledger.ts';
import type { Connection } from './connection.ts';

interface Reads extends Pick<Ledger, 'calls' | 'report'> {
  /** Moves all rows of the journal to the tables. */
  drain(): Promise<void>;
}

const RUNNING = `SELECT 1 FROM tollgate.ledger WHERE due IS NOT NULL
  AND ((substr(id, 9)::json ->> 1) = $1 OR row::json -> 'facts' ->> 'userId' = $2) LIMIT 1`;
const REPLACE_CALLS = `UPDATE tollgate.calls AS c SET account = CASE WHEN c.name = $1 THEN $2 ELSE c.account END,
    name = r.name, user_id = r.user_id, tags = r.tags, session = r.session, facts = r.facts
  FROM json_to_recordset($3) AS r (at bigint, ref text, former text, name text, user_id text, tags text, session text, facts text)
  WHERE c.at = r.at AND c.ref = r.ref AND c.name = r.former`;
const ADD_TERMS = `INSERT INTO tollgate.call_terms
  SELECT DISTINCT * FROM json_populate_recordset(NULL::tollgate.call_terms, $1) ON CONFLICT DO NOTHING`;
const REMAINING =
  'SELECT 1 FROM tollgate.calls WHERE user_id = $1 UNION ALL SELECT 1 FROM tollgate.calls WHERE name = $1 LIMIT 1';

const ENTRIES = 'SELECT n, ref, reason FROM tollgate.entries WHERE account = $1 ORDER BY n LIMIT 500';
const RENAME_ENTRIES = `UPDATE tollgate.entries AS e SET account = $2, ref = r.ref, reason = r.reason
  FROM json_to_recordset($3) AS r (n bigint, ref text, reason text) WHERE e.account = $1 AND e.n = r.n`;

const COLUMNS = ROLLUP_DIMENSIONS.map((name) => (name === 'user' ? 'user_id' : name));
const GROUPS = `SELECT DISTINCT id, ${COLUMNS.join(', ')} FROM tollgate.rollup
  WHERE account = $1 OR user_id = $1 OR strpos(tags, $1) > 0`;
/** Rows of the rollup that one statement moves. */
const ROLLUP_ROWS = 2000;
const MOVE_GROUPS = `WITH gone AS (DELETE FROM tollgate.rollup
    WHERE ctid = ANY (ARRAY(SELECT ctid FROM tollgate.rollup WHERE id = ANY ($1::text[]) LIMIT ${ROLLUP_ROWS})) RETURNING *),
  moved AS (SELECT * FROM json_to_recordset($2) AS m (former text, id text, account text, user_id text, tags text))
  INSERT INTO tollgate.rollup AS r (hour, id, ${COLUMNS.join(', ')}, ${SUM_NAMES.join(', ')})
    SELECT g.hour, m.id, ${COLUMNS.map((name) => (['account', 'user_id', 'tags'].includes(name) ? `m.${name}` : `g.${name}`)).join(', ')},
      ${SUM_NAMES.map((name) => `g.${name}`).join(', ')}
    FROM gone AS g JOIN moved AS m ON m.former = g.id ORDER BY g.hour, m.id
  ON CONFLICT (hour, id) DO UPDATE SET ${SUM_NAMES.map((name) => `${name} = r.${name} + excluded.${name}`).join(', ')}
  RETURNING 1`;

const ACCOUNT = 'SELECT id, version, row AS text FROM tollgate.ledger WHERE id = $1';
const RENAME_ACCOUNT = `WITH gone AS (DELETE FROM tollgate.ledger WHERE id = $1 AND version = $2 RETURNING id)
  INSERT INTO tollgate.ledger (id, version, row) SELECT $3, $4, $5 FROM gone RETURNING id`;
const BUDGETS = `SELECT id FROM tollgate.ledger WHERE id > 'budget:' AND id < 'budget;'
  AND (strpos(id, $1) > 0 OR id LIKE 'budget:end-user:%')`;
const DROP_BUDGETS = 'DELETE FROM tollgate.ledger WHERE id = ANY ($1::text[])';
/** Deletes ended requests of the account, and swept ones whose planned facts name the user, page by page. */
const DROP_REQUESTS = `WITH page AS (SELECT id, row FROM tollgate.ledger WHERE id > $1 AND id < 'request;' ORDER BY id LIMIT 10000),
  gone AS (DELETE FROM tollgate.ledger AS l USING page AS p WHERE l.id = p.id AND l.due IS NULL
    AND ((substr(p.id, 9)::json ->> 1) = $2
      OR (p.row LIKE '{"state":"swept"%' AND p.row::json -> 'facts' ->> 'userId' = $3)))
  SELECT max(id) AS last FROM page`;

/**
 * Creates the erasure of names. The account changes in one statement, if its row is still that of the check for running calls: each
 * reservation changes it.
 */
export function createPostgresRename(connection: Connection, reads: Reads): NonNullable<Ledger['rename']> {
  const run = (text: string, values: Parameters<Connection['read']>[2]) => connection.read('', text, values);
  const isRunning = async ({ account, shown }: Renaming): Promise<boolean> =>
    (await run(RUNNING, [account, shown])).length > 0;

  const renameEntries = async ({ id, account, text }: Renaming): Promise<void> => {
    for (;;) {
      const rows = await run(ENTRIES, [account]);
      if (rows.length === 0) return;
      const renamed = rows.map(({ n, ref, reason }) => ({ n, ref: text(String(ref)), reason: text(String(reason)) }));
      await run(RENAME_ENTRIES, [account, id, JSON.stringify(renamed)]);
    }
  };

  const renameSums = async (renaming: Renaming): Promise<void> => {
    const moved = (await run(GROUPS, [renaming.shown])).flatMap(({ id, ...row }) => {
      const dimensions = renaming.dimensions(COLUMNS.map((name) => String(row[name])));
      if (!dimensions) return [];
      const [account, user_id, , tags] = dimensions;
      return [{ former: String(id), id: digest(JSON.stringify(dimensions)), account, user_id, tags }];
    });
    const values = [moved.map(({ former }) => former), JSON.stringify(moved)];
    if (moved.length > 0) while ((await run(MOVE_GROUPS, values)).length > 0);
  };

  const renameRow = async (renaming: Renaming): Promise<boolean> => {
    const { id, account } = renaming;
    const [row] = await run(ACCOUNT, [accountRowId(account)]);
    if (await isRunning(renaming)) return false;
    if (!row) return true;
    const before = readAccountRow({ id: String(row['id']), text: String(row['text']) });
    const { text } = pack(accountRowId(id), { ...before, name: id });
    const values = [accountRowId(account), String(row['version']), accountRowId(id), nextVersion(), text];
    return (await run(RENAME_ACCOUNT, values)).length > 0;
  };

  const dropRows = async ({ account, name, shown, isBudget }: Renaming): Promise<void> => {
    const budgets = (await run(BUDGETS, [name.replaceAll('\0', '')])).map(({ id }) => String(id));
    await run(DROP_BUDGETS, [budgets.filter((id) => isBudget(id.slice('budget:'.length)))]);
    for (let last: string | undefined = 'request:'; last !== undefined; ) {
      const [page] = await run(DROP_REQUESTS, [last, account, shown]);
      last = page?.['last'] == null ? undefined : String(page['last']);
    }
  };

  return createRename({
    ...reads,
    isRunning,
    replaceCalls: async (changes, { shown, id }) => {
      await run(REPLACE_CALLS, [shown, id, JSON.stringify(changes.map(packChange))]);
      await run(ADD_TERMS, [
        JSON.stringify(changes.flatMap(({ after }) => termRows(after.at, termsOf(after, after.cost)))),
      ]);
    },
    async renameAccount(renaming) {
      await renameEntries(renaming);
      await renameSums(renaming);
      if (!(await renameRow(renaming))) return false;
      // Ends of calls that were in the journal.
      await reads.drain();
      await renameEntries(renaming);
      await renameSums(renaming);
      await dropRows(renaming);
      return (await run(REMAINING, [renaming.shown])).length === 0;
    },
  });
}

function packChange({ before, after }: RenamedCall): object {
  const { id: ref, account: name, cost: _cost, at, countedAt: _countedAt, ...facts } = after;
  const [, , , tags] = dimensionsOf(name, after);
  const { userId: user_id, session = null } = facts;
  return { at, ref, former: before.account, name, user_id, tags, session, facts: JSON.stringify(otherFacts(facts)) };
}
