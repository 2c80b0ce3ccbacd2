import type { Ledger } from '../../../contract/index.ts';
import { dimensionsOf, LONGEST_LAG_MS, packFacts, ROLLUP_DIMENSIONS, SUM_NAMES } from '../kit/call-rows.ts';
import { accountKeyOf, createRename, type Renaming } from '../kit/rename.ts';
import type { Database } from './driver.ts';
import type { CallsTables, Journal } from './journal.ts';
import type { LedgerTables } from './ledger-rows.ts';
import type { Writer } from './writer.ts';

interface Parts {
  readonly ledger: Pick<Ledger, 'calls' | 'report'>;
  readonly tables: LedgerTables;
  readonly writer: Writer;
  readonly journal: Journal;
  readonly calls: CallsTables;
}

/** Entries that one transaction renames. */
const PAGE = 500;

/** Creates the erasure of names. Sums, the account and the names of the tables change in one transaction. */
export function createSqliteRename(database: Database, parts: Parts): NonNullable<Ledger['rename']> {
  const { ledger, tables, writer, journal, calls } = parts;
  const { groups, names, terms } = calls;
  const sql = prepareRename(database);
  const isRunning = ({ account, name }: Renaming): boolean => sql.running.get(account, name) !== undefined;
  let startedAt = 0;

  /** Renames entries of the account from the newest one; returns the number of the next older one, 0 at the end. */
  const renameEntries = ({ id, account, text }: Renaming, first: number): number => {
    let next = first;
    for (const { n, before, ref, reason } of sql.entries.all(first, PAGE)) {
      sql.renameEntry.run(id, text(String(ref)), text(String(reason)), n ?? null, account);
      next = Number(before);
    }
    return next;
  };

  const renameSums = (renaming: Renaming): boolean => {
    const found = sql.groups.all(renaming.shown, renaming.shown).flatMap((row) => {
      const dimensions = ROLLUP_DIMENSIONS.map((name) => String(row[name]));
      const renamed = renaming.dimensions(dimensions);
      return renamed ? [{ former: Number(row['id']), renamed }] : [];
    });
    // The record of a call that ended meanwhile.
    if (found.some(({ former }) => sql.recent.get(startedAt - LONGEST_LAG_MS, former))) return false;
    for (const { former, renamed } of found) {
      sql.moveSums.run(groups.idOf(renamed), former);
      sql.dropSums.run(former);
      sql.dropGroup.run(former);
    }
    return true;
  };

  const renameRows = (renaming: Renaming): boolean => {
    const { id, name, account, shown, isBudget } = renaming;
    tables.flush();
    if (isRunning(renaming) || !renameSums(renaming)) return false;
    for (let next = Number(sql.newest.get(account)?.['n'] ?? 0); next > 0; ) {
      if (sql.entry.get(next, account) === undefined) break;
      next = renameEntries(renaming, next);
    }
    sql.renameAccount.run(id, account);
    for (const { id: budget } of sql.budgets.all(name))
      if (isBudget(String(budget))) sql.dropBudget.run(budget ?? null);
    sql.dropHolds.run(account, name);
    sql.dropEnded.run(account);
    for (const former of [account, shown]) sql.dropName.run(former);
    sql.markRename.run();
    tables.forget();
    groups.clear();
    names.clear();
    terms.clear();
    return true;
  };

  return createRename({
    calls: ledger.calls,
    report: ledger.report,
    isRunning: (renaming) => {
      startedAt = Date.now();
      return writer.readLatest('ledger.rename', () => isRunning(renaming));
    },
    replaceCalls: (changes) =>
      writer.write('ledger.rename', () => {
        for (const { before, after } of changes) {
          const owner = names.idOf(accountKeyOf(after.account));
          const [account, user] = [names.idOf(after.account), names.idOf(after.userId)];
          const group = groups.idOf(dimensionsOf(after.account, after));
          const { id, account: _account, cost: _cost, at, countedAt: _countedAt, ...facts } = after;
          const former = names.idOf(before.account);
          sql.replace.run(owner, account, user, group, after.session ?? null, packFacts(facts), at, id, former);
          terms.note(at, after, after.cost);
        }
      }),
    renameAccount: async (renaming) => {
      const newest = await journal.change('ledger.rename', () => Number(sql.newest.get(renaming.account)?.['n'] ?? 0));
      for (let next = newest; next > 0; )
        next = await writer.write('ledger.rename', () => renameEntries(renaming, next));
      return journal.change('ledger.rename', () => renameRows(renaming));
    },
  });
}

function prepareRename(database: Database) {
  const sums = SUM_NAMES.join(', ');
  const added = SUM_NAMES.map((name) => `${name} = ${name} + excluded.${name}`).join(', ');
  return {
    running: database.prepare(
      "SELECT 1 AS known FROM holds WHERE state = 'held' AND (account = ? OR facts ->> '$.userId' = ?) LIMIT 1",
    ),
    replace: database.prepare(`UPDATE calls SET owner = ?, account = ?, user = ?, group_id = ?, session = ?, facts = ?
      WHERE at = ? AND ref = ? AND account = ?`),
    newest: database.prepare("SELECT last_entry AS n FROM sums WHERE kind = 'account' AND id = ?"),
    entry: database.prepare('SELECT 1 AS known FROM entries WHERE n = ? AND account = ?'),
    entries: database.prepare(`WITH RECURSIVE chain AS (
        SELECT * FROM entries WHERE n = ? UNION ALL SELECT e.* FROM chain JOIN entries AS e ON e.n = chain.before LIMIT ?)
      SELECT n, before, ref, reason FROM chain`),
    renameEntry: database.prepare('UPDATE entries SET account = ?, ref = ?, reason = ? WHERE n = ? AND account = ?'),
    groups: database.prepare(`SELECT id, ${ROLLUP_DIMENSIONS.join(', ')} FROM call_groups
      WHERE account = ?1 OR user = ?1 OR instr(tags, ?2) > 0`),
    recent: database.prepare('SELECT 1 AS known FROM calls WHERE at >= ? AND group_id = ? LIMIT 1'),
    moveSums: database.prepare(`INSERT INTO rollup (hour, group_id, ${sums})
      SELECT hour, ?, ${sums} FROM rollup WHERE group_id = ? ON CONFLICT DO UPDATE SET ${added}`),
    dropSums: database.prepare('DELETE FROM rollup WHERE group_id = ?'),
    dropGroup: database.prepare('DELETE FROM call_groups WHERE id = ?'),
    renameAccount: database.prepare("UPDATE sums SET id = ?, name = NULL WHERE kind = 'account' AND id = ?"),
    budgets: database.prepare(`SELECT id FROM sums WHERE kind = 'budget'
      AND (instr(id, ?) > 0 OR (id >= 'end-user:' AND id < 'end-user;'))`),
    dropBudget: database.prepare("DELETE FROM sums WHERE kind = 'budget' AND id = ?"),
    dropHolds: database.prepare("DELETE FROM holds WHERE account = ? OR facts ->> '$.userId' = ?"),
    dropEnded: database.prepare('DELETE FROM ended WHERE account = ?'),
    dropName: database.prepare('DELETE FROM names WHERE name = ?'),
    markRename: database.prepare(`INSERT INTO marks (name, value) VALUES ('renames', 1)
      ON CONFLICT DO UPDATE SET value = value + 1`),
  };
}
