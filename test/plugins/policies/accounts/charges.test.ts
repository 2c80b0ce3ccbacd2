import { expect } from 'chai';
import fc from 'fast-check';
import { GatewayError, isGatewayError, type Principal } from '../../../../contract/index.ts';
import { keyBudgetId } from '../../../../plugins/policies/kit/index.ts';
import { openMemory } from '../../../../plugins/stores/memory/index.ts';
import { generatedCases } from '../../../support/generated-cases.ts';
import { type CallEnd, type ChargingProcess, makeFailing, type StoreFailure, startCharging } from './charged-calls.ts';

const SLOTS = 4;
const HOUR_MS = 3_600_000;

/** Event at a gateway, its callers, its provider or its store. */
type Step =
  | { readonly do: 'call'; readonly slot: number; readonly estimate: number; readonly user: number }
  | { readonly do: 'end'; readonly slot: number; readonly how: 'answered' | 'refused'; readonly share: number }
  | { readonly do: 'store'; readonly failure: StoreFailure }
  | { readonly do: 'sweep' }
  | { readonly do: 'crash' };

const slot = fc.nat(SLOTS - 1);
const STEPS: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constant('call' as const),
        slot,
        estimate: fc.integer({ min: 0, max: 60 }),
        user: fc.nat(1),
      }),
    },
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constant('end' as const),
        slot,
        how: fc.constantFrom('answered' as const, 'answered' as const, 'refused' as const),
        share: fc.integer({ min: 0, max: 150 }),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant('store' as const),
        failure: fc.constantFrom<StoreFailure>('none', 'none', 'refuses', 'loses responses'),
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('sweep' as const) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('crash' as const) }) },
  ),
  { minLength: 5, maxLength: 60 },
);

const USERS: readonly Principal[] = ['ann', 'bob'].map((account) => ({
  credential: 'key',
  userId: account,
  account,
  keyId: `key-${account}`,
  budget: 150,
}));
const CREDIT = 200;

interface Running {
  readonly user: Principal;
  readonly estimate: number;
  readonly finish: (end: CallEnd) => Promise<void>;
  swept: boolean;
}

interface Totals {
  /** Minimum charge. */
  least: number;
  /** Maximum charge. It includes interrupted or refused calls whose operation in the store has an unknown outcome. */
  most: number;
}

/** Runs steps on the plugin and the model, then restores the store, ends the process and sweeps. */
async function run(steps: readonly Step[], billing: 'track' | 'enforce') {
  const store = await openMemory();
  const failing = makeFailing(store.ledger);
  const running = new Map<number, Running>();
  const totals = new Map(USERS.map(({ account }): [string, Totals] => [account, { least: 0, most: 0 }]));
  /** Costs above the estimate, by which a call in flight may exceed an account's credit. */
  let overruns = 0;
  let doubts = new Map<string, number>();
  let gateway: ChargingProcess = await startCharging(store, failing.ledger, billing);
  for (const { account } of USERS) await store.ledger.credit(account, 'first', CREDIT, 'test', Date.now());

  const owe = ({ account }: Principal, least: number, most = least): void => {
    const total = totals.get(account);
    if (!total) return;
    total.least += least;
    total.most += most;
  };

  for (const step of steps) {
    const known = 'slot' in step ? running.get(step.slot) : undefined;
    if (step.do === 'store') failing.failure = step.failure;
    else if (step.do === 'call' && !known) {
      const user = USERS[step.user] as Principal;
      try {
        const finish = await gateway.admit(`r${Math.random()}`, step.estimate, user);
        running.set(step.slot, { user, estimate: step.estimate, finish, swept: false });
      } catch (error) {
        const code = isGatewayError(error) ? error.code : String(error);
        expect(code).to.be.oneOf(['insufficient_balance', 'rate_limited', 'store_unavailable']);
        // Not charged, unless the process crashes or the sweeper runs before the store recovers.
        if (failing.failure === 'loses responses')
          doubts.set(user.account, (doubts.get(user.account) ?? 0) + step.estimate);
      }
    } else if (step.do === 'end' && known) {
      running.delete(step.slot);
      const cost = step.how === 'answered' ? Math.ceil((known.estimate * step.share) / 100) : undefined;
      const before = failing.failure;
      await known.finish({ sent: cost !== undefined, cost });
      if (known.swept) {
        correct(known, cost ?? 0, before === 'refuses');
        continue;
      }
      if (before === 'refuses') {
        // The settlement is pending. If the process crashes or the sweeper runs first, the estimate is charged.
        waiting(known, cost ?? 0);
      } else {
        owe(known.user, cost ?? 0);
        overruns += Math.max(0, (cost ?? 0) - known.estimate);
      }
    } else if (step.do === 'sweep') {
      await store.ledger.sweep(Date.now() + HOUR_MS);
      for (const call of running.values()) {
        if (!call.swept) owe(call.user, call.estimate);
        call.swept = true;
      }
      spendDoubts();
    } else if (step.do === 'crash') {
      for (const call of running.values()) if (!call.swept) owe(call.user, call.estimate);
      running.clear();
      spendDoubts();
      gateway = await startCharging(store, failing.ledger, billing);
    }
  }

  function waiting({ user, estimate }: Running, cost: number): void {
    owe(user, Math.min(estimate, cost), Math.max(estimate, cost));
    overruns += Math.max(0, cost - estimate);
  }
  /** A charge by the sweeper is corrected when the call ends, unless the process crashes with a pending settlement. */
  function correct({ user, estimate }: Running, cost: number, isWaiting: boolean): void {
    const change = cost - estimate;
    owe(user, isWaiting ? Math.min(0, change) : change, isWaiting ? Math.max(0, change) : change);
    overruns += Math.max(0, change);
  }
  function spendDoubts(): void {
    for (const [account, amount] of doubts) {
      const total = totals.get(account);
      if (total) total.most += amount;
    }
    doubts = new Map();
  }

  failing.failure = 'none';
  for (const call of running.values()) {
    await call.finish({ sent: false, cost: undefined });
    if (call.swept) correct(call, 0, false);
  }
  await gateway.close();
  const heldAfterClose = await Promise.all(USERS.map(({ account }) => store.ledger.balance(account)));
  await store.ledger.sweep(Date.now() + HOUR_MS);
  return { store, totals, overruns, heldAfterClose };
}

describe('the accounts policy', () => {
  for (const billing of ['enforce', 'track'] as const) {
    it(`keeps exact books with billing ${billing}, whatever fails, crashes or is swept`, async () => {
      await fc.assert(
        fc.asyncProperty(STEPS, async (steps) => {
          const { store, totals, overruns } = await run(steps, billing);
          for (const { account, keyId = '' } of USERS) {
            const { balance, held, spent, credited } = await store.ledger.balance(account);
            const entries = await store.ledger.entries(account, { limit: 100 });
            expect(held, 'nothing is held past its expiry').to.equal(0);
            expect(
              entries.reduce((sum, { amount }) => sum + amount, 0),
              'the sum of the entries',
            ).to.equal(balance);
            expect(credited - spent).to.equal(balance);
            expect(
              new Set(entries.map(({ kind, ref, reason }) => `${kind} ${ref} ${reason}`)).size,
              'no call twice',
            ).to.equal(entries.length);
            const { least, most } = totals.get(account) as Totals;
            expect(spent).to.be.within(least, most);
            expect((await store.ledger.budgets([keyBudgetId(keyId)]))[0]?.spent).to.equal(spent);
            expect(spent, 'the budget, and what calls in flight cost more than was reserved').to.be.at.most(
              150 + overruns,
            );
            if (billing === 'enforce') expect(spent).to.be.at.most(CREDIT + overruns);
          }
          await store.close();
        }),
        { numRuns: generatedCases(300) },
      );
    });
  }

  it('charges exactly the usage without crashes', async () => {
    const calm = STEPS.map((steps) => steps.filter((step) => step.do === 'call' || step.do === 'end'));
    await fc.assert(
      fc.asyncProperty(calm, async (steps) => {
        const { store, totals, heldAfterClose } = await run(steps, 'track');
        expect(heldAfterClose.map(({ held }) => held)).to.deep.equal([0, 0]);
        for (const { account } of USERS) {
          const { least, most } = totals.get(account) as Totals;
          const { spent } = await store.ledger.balance(account);
          expect([least, most]).to.deep.equal([spent, spent]);
        }
        await store.close();
      }),
      { numRuns: generatedCases(200) },
    );
  });

  it('charges the usage, and no refused call, when the store fails intermittently', async () => {
    const shaky = STEPS.map((steps) => steps.filter((step) => step.do !== 'crash' && step.do !== 'sweep'));
    await fc.assert(
      fc.asyncProperty(shaky, async (steps) => {
        const { store, heldAfterClose } = await run(steps, 'track');
        expect(
          heldAfterClose.map(({ held }) => held),
          'the sweeper has nothing to do',
        ).to.deep.equal([0, 0]);
        await store.close();
      }),
      { numRuns: generatedCases(200) },
    );
  });

  describe('with limits that refuse', () => {
    const [ann] = USERS.map(({ budget: _, ...user }) => user) as [Principal];
    const tooMany = () => new GatewayError('rate_limited', 'Too many.', { retryAfterMs: 60_000 });
    const refusedBy = (work: Promise<unknown>) =>
      work.then(
        () => 'admitted',
        (error: unknown) => (isGatewayError(error) ? error.code : String(error)),
      );

    for (const billing of ['track', 'enforce'] as const) {
      it(`holds and charges nothing for a refused call, with billing ${billing}`, async () => {
        const store = await openMemory();
        await store.ledger.credit('ann', 'first', CREDIT, 'test', Date.now());
        const gateway = await startCharging(store, store.ledger, billing, tooMany);
        expect(await refusedBy(gateway.admit('r1', 50, ann))).to.equal('rate_limited');
        await gateway.close();
        expect(await store.ledger.balance('ann')).to.include({ held: 0, spent: 0 });
        await store.close();
      });
    }

    it('writes nothing to the ledger for a caller’s repeated requests', async () => {
      const store = await openMemory();
      let reservations = 0;
      const reserve = store.ledger.reserve;
      const counting = {
        ...store.ledger,
        reserve: (...given: Parameters<typeof reserve>) => {
          reservations += 1;
          return reserve(...given);
        },
      };
      const gateway = await startCharging(store, counting, 'track', tooMany);
      for (let n = 0; n < 20; n++) expect(await refusedBy(gateway.admit(`r${n}`, 50, ann))).to.equal('rate_limited');
      expect(reservations).to.equal(0);
      await gateway.close();
      await store.close();
    });
  });
});
