import { expect } from 'chai';
import fc from 'fast-check';
import type { AccountBalance, BudgetHold } from '../../../../contract/index.ts';
import { UNKNOWN_FACTS } from '../../../../plugins/policies/kit/index.ts';
import {
  type BudgetRow,
  createBudgetShares,
  createLedgerChanges,
  type LedgerKeys,
  type LedgerTables,
  type RequestRow,
  requestKey,
} from '../../../../plugins/stores/kit/ledger.ts';

const LIMIT = 60;
const PROCESSES = 3;
const TTL_MS = 1000;

/** Ledger of one account in memory, with budgets that have shares. */
function createLedger() {
  let account: AccountBalance | undefined;
  const budgets = new Map<string, BudgetRow>();
  const requests = new Map<string, { readonly row: RequestRow; readonly keys: LedgerKeys }>();
  const clock = { now: 1_000_000 };
  const transact: LedgerTables['transact'] = async (_operation, keys, change) => {
    const request = requests.get(requestKey(keys))?.row;
    const ids = keys.budgets ?? (request && request.state !== 'ended' ? request.budgets : []);
    const made = change({ account, request, budgets: ids.map((id) => budgets.get(id)) }, clock.now);
    account = made.account ?? account;
    for (const row of made.budgets ?? []) budgets.set(row.id, row);
    if (made.request) requests.set(requestKey(keys), { row: made.request, keys });
    return made.result;
  };
  const findExpired = async (now: number): Promise<readonly LedgerKeys[]> =>
    [...requests.values()].flatMap(({ row, keys }) =>
      row.state === 'held' && (row.until ?? 0) < now ? [{ ...keys, budgets: undefined }] : [],
    );
  return {
    ...createLedgerChanges({ transact, findExpired }),
    ...createBudgetShares({ transact }),
    budgets,
    clock,
    spent: () => account?.spent ?? 0,
    held: () => account?.held ?? 0,
  };
}

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('hold'),
      process: fc.nat(PROCESSES - 1),
      amount: fc.integer({ min: 1, max: 2 }),
      isExact: fc.boolean(),
    }),
  },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('end'), which: fc.nat(20), cost: fc.nat(4) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('lease'), process: fc.nat(PROCESSES - 1), part: fc.nat(3) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('wait'), ms: fc.nat(1500) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('recover'), process: fc.nat(PROCESSES - 1) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('sweep') }) },
);

describe('shares of a budget', () => {
  it('never exceed it, and lose or double nothing, whichever process ends them @slow', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 250, size: 'max' }), async (steps) => {
        const ledger = createLedger();
        const request = { id: 'company', limit: LIMIT, ttlMs: TTL_MS };
        const shareId = (process: number): string => `company#${process}`;
        const running: { readonly id: string; readonly amount: number }[] = [];
        for (const [at, each] of steps.entries()) {
          const now = ledger.clock.now;
          if (each.do === 'wait') ledger.clock.now += each.ms;
          else if (each.do === 'sweep') await ledger.sweep(now + 1);
          else if (each.do === 'lease')
            await ledger.shareBudget({ ...request, shareId: shareId(each.process), amount: each.part });
          else if (each.do === 'recover') {
            const { expired } = await ledger.shareBudget({ ...request, shareId: shareId(each.process), amount: 0 });
            for (const id of expired) await ledger.shareBudget({ ...request, shareId: id, amount: 0, ifExpired: true });
          } else if (each.do === 'hold') {
            const hold: BudgetHold = each.isExact
              ? { id: 'company', limit: LIMIT }
              : { id: shareId(each.process), limit: LIMIT, isShare: true };
            const id = `c${at}`;
            const { outcome } = await ledger.reserve({
              ...{ account: 'a', requestId: id, amount: each.amount, floor: Number.NEGATIVE_INFINITY },
              ...{ expiresAt: now + 500, budgets: [hold], facts: UNKNOWN_FACTS, now },
            });
            if (outcome === 'held') running.push({ id, amount: each.amount });
          } else {
            const [call] = running.splice(each.which % Math.max(running.length, 1), 1);
            if (!call) continue;
            const amount = Math.min(each.cost, call.amount);
            await ledger.settle({ account: 'a', requestId: call.id, amount, facts: UNKNOWN_FACTS, now });
          }
          expect(ledger.spent() + ledger.held(), `step ${at}`).to.be.at.most(LIMIT);
          const budget = ledger.budgets.get('company');
          expect((budget?.spent ?? 0) + (budget?.held ?? 0), `budget at step ${at}`).to.be.at.most(LIMIT);
        }
        for (const { id, amount } of running)
          await ledger.settle({
            ...{ account: 'a', requestId: id, amount, facts: UNKNOWN_FACTS, now: ledger.clock.now },
          });
        // One process ends the leases of all, after their time.
        ledger.clock.now += TTL_MS + 1;
        for (let process = 0; process < PROCESSES; process += 1)
          await ledger.shareBudget({ ...request, shareId: shareId(process), amount: 0 });
        const { spent = 0, held = 0 } = ledger.budgets.get('company') ?? {};
        expect({ spent, held }).to.deep.equal({ spent: ledger.spent(), held: 0 });
      }),
      { numRuns: Number(process.env['TOLLGATE_PROPERTY_CASES'] ?? 150) },
    );
  });
});
