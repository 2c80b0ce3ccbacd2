import type { Ledger } from '../../../core/index.ts';
import { storeKey } from '../kit/key.ts';
import type { Database } from './driver.ts';
import { addCredit, release, reserve, SWEEP_BATCH, settle, sweepSome } from './ledger-changes.ts';
import { readBalance, readBudget, readEntries, readUsage } from './ledger-queries.ts';
import { prepareLedger } from './ledger-sql.ts';
import type { Writer } from './writer.ts';

/** Money in SQLite: each change is part of a transaction of the {@link Writer}, and reads see what is queued there. */
export function createSqliteLedger(database: Database, writer: Writer): Ledger {
  const sql = prepareLedger(database);
  return {
    reserve: (reservation) => writer.write(() => reserve(sql, reservation)),
    settle: ({ account, requestId, amount, usage, now }) =>
      writer.write(() => settle(sql, storeKey(account), storeKey(requestId), amount, usage, now)),
    release: (account, requestId) => writer.write(() => release(sql, storeKey(account), storeKey(requestId))),
    credit: (account, id, amount, reason, now) =>
      writer.write(() => addCredit(sql, storeKey(account), storeKey(id), amount, reason, now)),
    balance: (account) => writer.readLatest(() => readBalance(sql, storeKey(account))),
    budget: (account, id) => writer.readLatest(() => readBudget(sql, storeKey(account), storeKey(id))),
    entries: (account, page) => writer.readLatest(() => readEntries(sql, account, page)),
    usage: (account, from, to) => writer.readLatest(() => readUsage(sql, storeKey(account), from, to)),
    sweep: async (now) => {
      let total = 0;
      for (let settled = SWEEP_BATCH; settled === SWEEP_BATCH; total += settled) {
        settled = await writer.write(() => sweepSome(sql, now));
      }
      return total;
    },
  };
}
