import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Store } from '../../contract/index.ts';
import { findRunner } from './runner.ts';
import { NOW, reservation, type StoreKit, type StoreUnderTest, settlement, sums } from './store.ts';

/** Time limit for a process to write. */
const PROCESS_MS = 60_000;

/** Tests a store on a disk or server across processes: after a restart, concurrently, and after a kill. */
export function testProcesses(
  { open, keeps = false, shared = false, module }: StoreKit,
  subject: StoreUnderTest,
): void {
  const { describe, it } = findRunner();
  const using = async <T>(run: (store: Store) => Promise<T>): Promise<T> => {
    const store = await open();
    try {
      return await run(store);
    } finally {
      await store.close();
    }
  };

  if (keeps)
    describe('the next process', () => {
      it('finds all that was kept before the store was closed', async () => {
        const name = subject.name('kept');
        await using((store) => write(store, name));
        await using((store) => assertWritten(store, name));
      });
    });

  if (shared)
    describe('a concurrent process', () => {
      it('finds at once what this one wrote', () =>
        using(async (one) =>
          using(async (two) => {
            const name = subject.name('shared');
            await write(one, name);
            await assertWritten(two, name);
          }),
        ));
      it('credits nothing twice, and holds no more than there is', () =>
        using(async (one) =>
          using(async (two) => {
            const account = subject.name('account');
            const credited = await Promise.all(
              [one, two].map(({ ledger }) => ledger.credit(account, 'once', 100, 'top-up', NOW)),
            );
            assert.deepEqual(credited.toSorted(), [false, true]);
            const held = await Promise.all(
              Array.from({ length: 40 }, (_, at) =>
                (at % 2 === 0 ? one : two).ledger.reserve(reservation({ account, requestId: `r${at}`, amount: 10 })),
              ),
            );
            assert.equal(held.filter(({ outcome }) => outcome === 'held').length, 10);
            assert.deepEqual(sums(await one.ledger.balance(account)), { balance: 100, held: 100, spent: 0 });
            assert.deepEqual(sums(await two.ledger.balance(account)), { balance: 100, held: 100, spent: 0 });
          }),
        ));
      it('numbers nothing twice', () =>
        using(async (one) =>
          using(async (two) => {
            const counter = subject.name('counter');
            const numbers = await Promise.all(
              Array.from({ length: 40 }, (_, at) => (at % 2 === 0 ? one : two).counters.next(counter)),
            );
            assert.equal(new Set(numbers).size, 40);
          }),
        ));
    });

  if (module)
    describe('a process that was killed', () => {
      it('has kept all that was confirmed as written', async () => {
        const name = subject.name('killed');
        await writeAndBeKilled(typeof module === 'function' ? module() : module, name);
        await using((store) => assertWritten(store, name));
      });
    });
}

/** Writes one item of each kind; `assertWritten` checks them. */
export async function write(store: Store, name: string): Promise<void> {
  await store.ledger.credit(name, 'first', 500, 'top-up', NOW);
  await store.ledger.reserve(reservation({ account: name, requestId: `${name}-1`, amount: 50 }));
  await store.ledger.reserve(reservation({ account: name, requestId: `${name}-2`, amount: 70 }));
  await store.ledger.settle(settlement({ account: name, requestId: `${name}-1`, amount: 30 }));
  await store.keyv('conformance').set(name, { name: 'ü', list: [1, null] });
  await store.sets.add(name, 'member');
  await store.counters.next(name);
  await store.counters.next(name);
}

async function assertWritten(store: Store, name: string): Promise<void> {
  assert.deepEqual(sums(await store.ledger.balance(name)), { balance: 470, held: 70, spent: 30 }, 'the account');
  assert.equal(await store.ledger.credit(name, 'first', 500, 'top-up', NOW), false, 'a credit counts once');
  assert.deepEqual(await store.keyv('conformance').get(name), { name: 'ü', list: [1, null] }, 'the document');
  assert.equal(await store.sets.has(name, 'member'), true, 'the set');
  assert.equal(await store.counters.next(name), 3, 'the counter goes on');
  const { calls } = await store.ledger.calls({ account: name, limit: 10 });
  assert.equal(calls.length, 1, 'the record of the call');
}

/** Starts a process that writes, and kills it once it has reported that. */
async function writeAndBeKilled(module: URL, name: string): Promise<void> {
  const file = new URL(`./store-process${path.extname(fileURLToPath(import.meta.url))}`, import.meta.url);
  const child = fork(fileURLToPath(file), [module.href, name], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const closed = once(child, 'close');
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(new Error('the process did not write in a minute')), PROCESS_MS);
  try {
    const reported = await Promise.race([
      once(child, 'message', { signal: controller.signal }),
      closed.then(([code]) => {
        throw new Error(`the process that opens ${module.href} ended with ${code} before it had written`);
      }),
    ]);
    assert.deepEqual(reported, ['written', undefined]);
  } finally {
    clearTimeout(timer);
    child.kill('SIGKILL');
    await closed;
  }
}
