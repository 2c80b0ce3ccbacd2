import { expect } from 'chai';
import fc from 'fast-check';
import type { Counters, Window } from '../../../../../contract/index.ts';
import { type Lease, Leases } from '../../../../../plugins/policies/accounts/holds/leases.ts';
import { createLocalCounters, steadyNow } from '../../../../../plugins/policies/kit/index.ts';
import { openSqlite } from '../../../../../plugins/stores/sqlite/index.ts';
import { useTempFolder } from '../../../../support/folders.ts';
import { generatedCases } from '../../../../support/generated-cases.ts';
import { eventually } from '../../../../support/wait.ts';

const LEASE_MS = 60_000;
const MINUTE_MS = 60_000;
const NOW = 1_800_000_000_000;

/** Store counters that count the operations on windows and leases. */
function countedCounters() {
  const requested = { take: 0, lease: 0 };
  const inner = createLocalCounters();
  const counters: Counters = {
    ...inner,
    take(windows, now) {
      requested.take += 1;
      return inner.take(windows, now);
    },
    lease(...given) {
      requested.lease += 1;
      return inner.lease(...given);
    },
  };
  return { counters, requested };
}

const windowOf = (key: string, limit: number, amount = 1): Window => ({ key, limit, amount, windowMs: MINUTE_MS });

describe('leased parts of limits', () => {
  const folder = useTempFolder('leases');
  const leftIn = async (counters: Counters, key: string, limit: number): Promise<number> =>
    (await counters.take([windowOf(key, limit, 0)], NOW)).states[0]?.remaining ?? -1;

  it('count many calls with few store operations, and the same result', async () => {
    const { counters, requested } = countedCounters();
    const leases = new Leases(counters, LEASE_MS);
    for (let n = 0; n < 1000; n++)
      expect((await leases.take([windowOf('w', 100_000)], NOW)).refused).to.equal(undefined);
    expect(requested.take).to.be.below(5);
    await leases.giveBack();
    expect(await leftIn(counters, 'w', 100_000)).to.equal(99_000);
  });

  it('are not leased from a nearly used limit, nor for a single call', async () => {
    const { counters, requested } = countedCounters();
    const leases = new Leases(counters, LEASE_MS);
    for (let n = 0; n < 199; n++) await leases.take([windowOf('small', 199)], NOW);
    expect(requested.take).to.equal(199);
    expect((await leases.take([windowOf('small', 199)], NOW)).refused).to.equal(0);
    for (let n = 0; n < 5; n++) await leases.take([windowOf('seldom', 10_000)], NOW + n * 2000);
    expect(await leftIn(counters, 'seldom', 10_000)).to.equal(9995);
  });

  it('are over with their window', async () => {
    const { counters, requested } = countedCounters();
    const leases = new Leases(counters, LEASE_MS);
    for (let n = 0; n < 10; n++) await leases.take([windowOf('w', 100_000)], NOW);
    const before = requested.take;
    await leases.take([windowOf('w', 100_000)], NOW + MINUTE_MS + 1);
    expect(requested.take).to.equal(before + 1);
  });

  it('cache a window that refused one request, so that the next needs no store operation', async () => {
    const leases = new Leases(createLocalCounters(), LEASE_MS);
    for (let n = 0; n < 2; n++) await leases.take([windowOf('w', 2)], NOW);
    expect(leases.refused({ key: 'w', limit: 2 }, NOW)).to.equal(undefined);
    await leases.take([windowOf('w', 2)], NOW);
    expect(leases.refused({ key: 'w', limit: 2 }, NOW)).to.include({ remaining: 0 });
  });

  it('keep no place of a call that found another slot full', async () => {
    const counters = createLocalCounters();
    const leases = new Leases(counters, LEASE_MS);
    await counters.lease('full', 'another', 1, LEASE_MS, NOW);
    const slots = [
      { key: 'free', limit: 5 },
      { key: 'full', limit: 1 },
    ];
    expect((await leases.enter(slots, 'call', NOW)).full).to.equal(slots[1]);
    const others = [1, 2, 3, 4, 5].map((n) => counters.lease('free', `other-${n}`, 5, LEASE_MS, NOW));
    expect(await Promise.all(others)).to.deep.equal([true, true, true, true, true]);
  });

  it('admit no more than the limit, in any processes, and return all unused parts', () =>
    fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 3000 }),
        fc.integer({ min: 1, max: 3000 }),
        fc.array(
          fc.record({
            process: fc.nat(2),
            calls: fc.integer({ min: 1, max: 60 }),
            amount: fc.integer({ min: 1, max: 30 }),
            more: fc.integer({ min: -30, max: 10 }),
            both: fc.boolean(),
            isTogether: fc.boolean(),
            returns: fc.boolean(),
          }),
          { maxLength: 40 },
        ),
        async (limit, other, steps) => {
          const { counters } = countedCounters();
          const processes = Array.from({ length: 3 }, () => new Leases(counters, LEASE_MS));
          const used = { a: 0, b: 0 };
          for (const { process, calls, amount, more, both, isTogether, returns } of steps) {
            const leases = processes[process];
            if (!leases) continue;
            const call = async (): Promise<void> => {
              const windows = [windowOf('a', limit, amount), ...(both ? [windowOf('b', other)] : [])];
              if ((await leases.take(windows, NOW)).refused !== undefined) return;
              const delta = Math.max(more, -amount);
              const isLocal = delta !== 0 && leases.adjust('a', delta, NOW);
              used.a += amount + (isLocal ? delta : 0);
              used.b += Number(both);
              expect(used.a).to.be.at.most(limit);
              expect(used.b).to.be.at.most(other);
            };
            const some = Array.from({ length: calls }, () => call);
            if (isTogether) await Promise.all(some.map((each) => each()));
            else for (const each of some) await each();
            if (returns) await leases.giveBack();
          }
          await Promise.all(processes.map((each) => each.giveBack()));
          expect(await leftIn(counters, 'a', limit)).to.equal(limit - used.a);
          expect(await leftIn(counters, 'b', other)).to.equal(other - used.b);
        },
      ),
      { numRuns: generatedCases(300) },
    ));

  it('admit exactly the limit in two processes on one file that continue until both are refused', async () => {
    const stores = await Promise.all([openSqlite({ folder }), openSqlite({ folder })]);
    const processes = stores.map(({ counters }) => new Leases(counters, LEASE_MS));
    let admitted = 0;
    const call = async (leases: Leases): Promise<boolean> => {
      const isAdmitted = (await leases.take([windowOf('shared', 1000)], NOW)).refused === undefined;
      if (isAdmitted) admitted += 1;
      return isAdmitted;
    };
    for (let isOpen = true; isOpen; ) {
      const calls = processes.flatMap((leases) => Array.from({ length: 20 }, () => call(leases)));
      isOpen = (await Promise.all(calls)).includes(true);
    }
    expect(admitted).to.equal(1000);
    await Promise.all(processes.map((each) => each.giveBack()));
    await Promise.all(stores.map((store) => store.close()));
  });

  it('go back by themselves', async () => {
    const { counters } = countedCounters();
    const leases = new Leases(counters, LEASE_MS);
    for (let n = 0; n < 3; n++) await leases.take([windowOf('w', 10_000)], steadyNow());
    const entered = await leases.enter([{ key: 'p', limit: 400 }], 'call', steadyNow());
    for (const place of entered.places) expect(leases.keep(place)).to.equal(true);
    const isFree = async (): Promise<boolean> => {
      const { states } = await counters.take([windowOf('w', 10_000, 0)], steadyNow());
      const isGiven = await counters.lease('p', 'other', 1, LEASE_MS, steadyNow());
      return states[0]?.remaining === 9997 && isGiven;
    };
    expect(await isFree()).to.equal(false);
    await eventually(isFree);
  });

  it('keep slots for the next calls, never more than the limit', async () => {
    const { counters, requested } = countedCounters();
    const processes = [new Leases(counters, LEASE_MS), new Leases(counters, LEASE_MS)] as const;
    const running: [Leases, Lease][] = [];
    let count = 0;
    for (let n = 0; n < 2000; n++) {
      const leases = processes[n % 2 === 0 ? 0 : 1];
      const { places, full } = await leases.enter([{ key: 'p', limit: 300 }], `call ${count++}`, NOW);
      if (!full) for (const place of places) running.push([leases, place]);
      expect(running.length).to.be.at.most(300);
      // The places fill up, then calls end and new ones start.
      for (const [owner, place] of n > 250 ? running.splice(0, 1 + (n % 2)) : [])
        if (!owner.keep(place)) await owner.release(place);
    }
    expect(requested.lease).to.be.below(1000);
    for (const [owner, place] of running) await owner.release(place);
    for (const each of processes) await each.giveBack();
    expect(await counters.lease('p', 'last', 1, LEASE_MS, NOW)).to.equal(true);
  });

  it('are not used for a small limit', async () => {
    const { counters } = countedCounters();
    const leases = new Leases(counters, LEASE_MS);
    const { places } = await leases.enter([{ key: 'p', limit: 10 }], 'call', NOW);
    expect(places.map((place) => leases.keep(place))).to.deep.equal([false]);
  });
});
