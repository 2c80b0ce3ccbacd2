import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { AccountBalance, CallFacts, Reservation, ReserveResult, Settlement, Store } from '../../contract/index.ts';
import { findRunner, type WithRunner } from './runner.ts';
import { testBooks } from './store-books.ts';
import { testBudgets } from './store-budgets.ts';
import { testCalls } from './store-calls.ts';
import { testCounters } from './store-counters.ts';
import { testDocuments } from './store-documents.ts';
import { testStored } from './store-kept.ts';
import { testLedger } from './store-ledger.ts';
import { testProcesses } from './store-processes.ts';
import { testRename } from './store-rename.ts';
import { testReports } from './store-reports.ts';
import { testSets } from './store-sets.ts';

/** Options of {@link testStore}. */
export interface StoreKit extends WithRunner {
  /** Name for the title. */
  readonly name: string;
  /** Called once before the tests, and for each further simulated process of the gateway. */
  readonly open: () => Promise<Store>;
  /** True if data persists when the store is opened again, as on a disk or server. */
  readonly keeps?: boolean;
  /** True if several processes may open it at once. */
  readonly shared?: boolean;
  /**
   * Module whose default export opens the same store, for a process that is killed. A function if it is known only when
   * tests run.
   */
  readonly module?: URL | (() => URL);
}

/** Opened store, and unused names: the store under test may hold the data of other runs. */
export interface StoreUnderTest {
  readonly store: Store;
  name(word: string): string;
}

/**
 * Runs the tests that every store must pass. `open` is called once before them, and that store is closed after them.
 * Some tests open further stores.
 *
 * ```ts
 * import { testStore } from 'tollgate/conformance';
 * testStore({ name: 'my store', open: () => openMyStore({ url: process.env.MY_STORE }) });
 * ```
 */
export function testStore(kit: StoreKit): void {
  const { name, open } = kit;
  const { describe, it, before, after } = findRunner(kit.runner);
  let store: Store | undefined;
  const subject: StoreUnderTest = {
    get store() {
      if (!store) throw new Error('the store did not open');
      return store;
    },
    name: (word) => `${word}-${randomUUID()}`,
  };

  describe(`${name}: what every store promises`, () => {
    before(async () => {
      store = await open();
    });
    after(() => store?.close());

    it('names its kind in a word that holds no address', () => {
      assert.match(subject.store.kind, /^[a-z][a-z0-9-]{0,40}$/);
    });
    it('says that it is well', () => subject.store.health());

    testDocuments(subject);
    testLedger(subject);
    testBudgets(subject);
    testBooks(subject);
    testCalls(subject);
    testReports(subject);
    testRename(subject);
    testSets(subject);
    testStored(subject);
    testCounters(subject);
    testProcesses(kit, subject);

    describe('closing', () => {
      it('is done once, however often it is asked for, and then every operation is refused', async () => {
        const other = await open();
        await Promise.all([other.close(), other.close()]);
        await other.close();
        await rejectsUnavailable(other.health());
        await rejectsUnavailable(other.ledger.balance('a'));
        await rejectsUnavailable(other.sets.add('s', 'm'));
        await rejectsUnavailable(other.counters.next('n'));
        await rejectsUnavailable(other.keyv('closed').get('k'));
        await rejectsUnavailable(other.keyv('closed').set('k', 1));
      });
    });
  });
}

/** Asserts that a promise rejects with `store_unavailable`. */
export async function rejectsUnavailable(promise: Promise<unknown>): Promise<void> {
  await assert.rejects(promise, (error: { code?: unknown }) => {
    assert.equal(error.code, 'store_unavailable', String(error));
    return true;
  });
}

export const FACTS: CallFacts = Object.freeze({
  requestId: 'req_1',
  userId: 'ann',
  key: '-',
  tags: [],
  operation: 'chat',
  provider: 'echo',
  model: 'echo-1',
  stream: false,
  outcome: 'ok',
  attempts: [{ target: 'echo/echo-1', status: 200, ms: 12 }],
  startedAt: 1,
  durationMs: 12,
  units: { prompt_tokens: 3, completion_tokens: 5 },
  estimated: false,
  priced: true,
});

const DAY_MS = 86_400_000;

/** Noon (UTC) of tomorrow: a fixed hour, for whole days, and in the future, so that nothing is purged as expired. */
export const NOW = (Math.floor(Date.now() / DAY_MS) + 1) * DAY_MS + DAY_MS / 2;

/** Edges of a report: the days before, of and after {@link NOW}. */
export const DAYS: readonly number[] = [-1, 0, 1, 2].map((day) => NOW - DAY_MS / 2 + day * DAY_MS);

/** Budget that only this test uses. */
export function budget(id: string, limit = Number.POSITIVE_INFINITY): { readonly id: string; readonly limit: number } {
  return { id, limit };
}

/** Reservation with default values. */
export function reservation(fields: Partial<Reservation> & Pick<Reservation, 'account' | 'requestId'>): Reservation {
  return { amount: 10, floor: 0, expiresAt: NOW + 60_000, facts: FACTS, now: NOW, ...fields };
}

/** Outcome of a reservation, for tests that need nothing else. */
export async function outcomeOf(result: Promise<ReserveResult>): Promise<ReserveResult['outcome']> {
  return (await result).outcome;
}

/** Settlement with default values. */
export function settlement(fields: Partial<Settlement> & Pick<Settlement, 'account' | 'requestId'>): Settlement {
  return { amount: 10, facts: FACTS, now: NOW, ...fields };
}

/** Sums of an account that every change of the ledger moves. */
export function sums({ balance, held, spent }: AccountBalance): Pick<AccountBalance, 'balance' | 'held' | 'spent'> {
  return { balance, held, spent };
}
