import type { Ledger } from '../../../core/index.ts';
import { storeKey } from '../kit/key.ts';
import type { LedgerAlone } from './ledger-alone.ts';
import { type LedgerTables, SWEEP_BATCH } from './ledger-tables.ts';
import type { Presence } from './presence.ts';
import type { Writer } from './writer.ts';

/**
 * Money in SQLite: while one process is alone with the store it decides in memory and in a journal; as soon as another
 * one comes, every change is one part of a transaction of the {@link Writer}. Nobody waits for a settlement or a release, and
 * a crash before it leaves a hold for the sweeper: they ride with the next reservation. Without `alone` all is done in the
 * tables; what a journal holds is still read by {@link LedgerAlone.moveIn}.
 */
export function createSqliteLedger(
  writer: Writer,
  presence: Presence,
  tables: LedgerTables,
  alone: LedgerAlone | undefined,
): Ledger {
  const inMode = <T>(aloneDoes: (own: LedgerAlone) => Promise<T>, togetherDo: () => Promise<T>): Promise<T> =>
    presence.run((mode) => (alone && mode === 'alone' ? aloneDoes(alone) : togetherDo()));
  const read = <T>(query: () => T): Promise<T> =>
    inMode(
      (own) => own.read(query),
      () => writer.readLatest(query),
    );
  const change = <T>(how: () => T): Promise<T> =>
    inMode(
      (own) => own.change(how),
      () => writer.write(how),
    );

  const ledger: Ledger = {
    reserve: (reservation) =>
      inMode(
        (own) => own.reserve(reservation, () => ledger.reserve(reservation)),
        () => writer.write(() => tables.reserve(reservation)),
      ),
    settle: (settlement) =>
      inMode(
        (own) => own.settle(settlement, () => ledger.settle(settlement)),
        () => {
          const { account, requestId, amount, usage, now } = settlement;
          return writer.write(() => tables.settle(storeKey(account), storeKey(requestId), amount, usage, now), 'later');
        },
      ),
    release: (account, requestId) =>
      inMode(
        (own) => own.release(account, requestId, () => ledger.release(account, requestId)),
        () => writer.write(() => tables.release(storeKey(account), storeKey(requestId)), 'later'),
      ),
    credit: (account, id, amount, reason, now) =>
      change(() => tables.credit(storeKey(account), storeKey(id), amount, reason, now)),
    balance: (account) => read(() => tables.balance(storeKey(account))),
    purse: (account, id) => read(() => tables.purse(storeKey(account), storeKey(id))),
    entries: (account, page) => read(() => tables.entries(account, page)),
    usage: (account, from, to) => read(() => tables.usage(storeKey(account), from, to)),
    sweep: async (now) => {
      let total = 0;
      for (let settled = SWEEP_BATCH; settled === SWEEP_BATCH; total += settled) {
        settled = await change(() => tables.sweepSome(now));
      }
      return total;
    },
  };
  return ledger;
}
