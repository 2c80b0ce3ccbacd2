import { expect } from 'chai';
import {
  type BudgetRule,
  type GatewayError,
  isGatewayError,
  type Principal,
  type Store,
} from '../../../../../contract/index.ts';
import { openMemory } from '../../../../../plugins/stores/memory/index.ts';
import { createBudgetNode } from './budget-node.ts';

const MONDAY = Date.parse('2026-11-23T12:00Z');
const HOUR_MS = 3_600_000;
const daily = (rule: Partial<BudgetRule> = {}): BudgetRule => ({
  ...{ name: 'daily', amount: 2_000_000_000, every: 'day', timezone: 'UTC' },
  ...rule,
});
const caller = (principal: Partial<Principal> = {}): { readonly principal: Principal } => ({
  principal: { credential: 'key', userId: 'u', account: 'a', keyId: 'k', ...principal },
});

describe('the budgets of a call', () => {
  let store: Store;
  let now = MONDAY;
  beforeEach(async () => {
    store = await openMemory();
    now = MONDAY;
  });
  afterEach(() => store.close());

  const node = (...rules: readonly BudgetRule[]) => createBudgetNode(store, rules, () => now);
  const refusal = async (call: Promise<unknown>): Promise<GatewayError> => {
    const error = await call.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    if (!isGatewayError(error)) throw error ?? new Error('the call was not refused');
    return error as GatewayError;
  };

  it('reset with the next window, and running calls count in the window of their reservation', async () => {
    const { call } = node(daily());
    const end = await call('a', 2_000_000_000);
    await refusal(call('b', 1));
    now += 12 * HOUR_MS;
    const tomorrow = await call('c', 1_500_000_000);
    await end(2_000_000_000);
    await tomorrow(1_500_000_000);
    await refusal(call('d', 600_000_000));
    expect(await store.ledger.balance('a')).to.include({ spent: 3_500_000_000, held: 0 });
  });

  it('report the time of their reset, and send `retry-after` if it is within a day', async () => {
    const { call } = node(
      daily({ timezone: 'Europe/Berlin' }),
      daily({ name: 'weekly', every: 'week', amount: 3_000_000_000 }),
    );
    await (await call('a', 1_900_000_000))(1_900_000_000);
    const today = await refusal(call('b', 500_000_000));
    expect(today.message).to.equal(
      'The budget "daily" of 2.00 USD a day does not cover the call: 0.10 USD are left, and the call may cost 0.50 USD. It resets at 2026-11-23T23:00:00Z. Ask for fewer tokens with "max_tokens", or wait.',
    );
    expect(today.headers).to.deep.equal({ 'retry-after': String(11 * 3600) });
    now += 12 * HOUR_MS;
    const week = await refusal(call('c', 1_200_000_000));
    expect(week.message).to.include('"weekly" of 3.00 USD a week').and.include('2026-11-30T00:00:00Z');
    expect(week.headers).to.deep.equal({});
  });

  it('send no retry time for a call larger than the budget', async () => {
    const { headers } = await refusal(node(daily()).call('a', 2_000_001_000));
    expect(headers).to.deep.equal({});
  });

  it('count only the calls of the user, the tag and the plan that they name', async () => {
    const { call } = node(daily({ user: 'ann' }), daily({ name: 'team', tag: 'team=search', amount: 1_000_000_000 }));
    await (await call('a', 9_000_000_000))(9_000_000_000);
    await refusal(call('b', 2_000_001_000, caller({ userId: 'ann' })));
    await refusal(call('c', 1_000_001_000, { tags: ['project=x', 'team=search'] }));
    await call('d', 9_000_000_000, { tags: ['team=searching'] });
  });

  it('are shared by a key and its successors, whichever of them a budget names', async () => {
    const { call } = node(daily({ key: 'tg_k1' }));
    await (await call('a', 1_500_000_000, caller({ keyId: 'k1' })))(1_500_000_000);
    await refusal(call('b', 1_000_000_000, caller({ keyId: 'k2', limitsId: 'k1' })));
    const own = { budgets: [daily({ name: 'day' })] };
    const other = node();
    await (await other.call('c', 1_500_000_000, caller({ keyId: 'k5', ...own })))(1_500_000_000);
    await refusal(other.call('d', 1_000_000_000, caller({ keyId: 'k6', limitsId: 'k5', ...own })));
    await other.call('e', 1_000_000_000, caller({ keyId: 'k7', ...own }));
  });

  it('for a provider or a model reserve the cost of one of the targets, and charge its actual cost', async () => {
    const targets = [
      { provider: 'p', model: 'm-large' },
      { provider: 'q', model: 'n' },
    ];
    const { call } = node(
      daily({ name: 'p', provider: 'p' }),
      daily({ name: 'models', model: 'm*' }),
      daily({ name: 'other', provider: 'r', amount: 1 }),
    );
    const end = await call('a', 2_000_000_000, { targets });
    expect((await refusal(call('b', 1, { targets }))).message).to.include('the budget "p"');
    await end(1_500_000_000, targets[1]);
    await (await call('c', 2_000_000_000, { targets }))(400_000_000, targets[0]);
    expect((await refusal(call('d', 1_700_000_000, { targets }))).message).to.include('1.60 USD are left');
    await call('e', 9_000_000_000, { targets: [{ provider: 'q', model: 'n' }] });
  });

  it('warn while a soft limit is passed, in a header', async () => {
    const { call } = node(
      daily({ soft: 1_000_000_000 }),
      daily({ name: 'far', amount: 9_000_000_000, soft: 8_000_000_000 }),
    );
    const headers = new Map<string, string>();
    await (await call('a', 1_200_000_000, { headers }))(1_100_000_000);
    expect(headers).to.deep.equal(new Map());
    await (await call('b', 100_000_000, { headers }))(100_000_000);
    expect([...headers]).to.deep.equal([['x-tollgate-budget-warning', 'daily 1.10/2.00 resets 2026-11-24T00:00:00Z']]);
    headers.clear();
    now += 24 * HOUR_MS;
    await call('c', 1_200_000_000, { headers });
    expect(headers).to.deep.equal(new Map());
  });

  it('notify operators of a soft limit, and of a refusing budget, once per window across all nodes', async () => {
    const rule = daily({ soft: 1_000_000_000 });
    const nodes = [node(rule), node(rule)];
    const reported = () =>
      nodes.flatMap(({ notices }) => notices.map(({ type, used, resets_at }) => [type, used, resets_at]));
    const today = '2026-11-24T00:00:00Z';
    await Promise.all(nodes.map(async ({ call }, at) => (await call(`a${at}`, 600_000_000))(600_000_000)));
    await Promise.all(nodes.map(async ({ call }, at) => (await call(`b${at}`, 100_000_000))(100_000_000)));
    expect(reported()).to.deep.equal([['budget.soft_limit', '1.20', today]]);
    await Promise.all(nodes.map(({ call }, at) => refusal(call(`c${at}`, 1_000_000_000))));
    await Promise.all(nodes.map(({ call }, at) => refusal(call(`d${at}`, 1_000_000_000))));
    expect(reported().map(([type]) => type)).to.have.members(['budget.soft_limit', 'budget.used_up']);
    now += 24 * HOUR_MS;
    await (await nodes[0]?.call('e', 1_100_000_000))?.(1_100_000_000);
    expect(reported().map(([type]) => type)).to.have.members([
      'budget.soft_limit',
      'budget.used_up',
      'budget.soft_limit',
    ]);
  });

  it('do not notify of a soft limit reached only by a reservation', async () => {
    const one = node(daily({ soft: 1_000_000_000 }));
    await (await one.call('a', 1_900_000_000))(10);
    expect(one.notices).to.deep.equal([]);
  });

  it('refuse a model without a known price, as other budgets do', async () => {
    const error = await refusal(node(daily()).call('a', undefined as unknown as number));
    expect(error.code).to.equal('model_not_allowed');
    await node(daily({ user: 'ann' })).call('b', undefined as unknown as number);
  });

  it('refuse a call with more budgets than the ledger supports', async () => {
    const many = Array.from({ length: 31 }, (_, at) => daily({ name: `b${at}` }));
    expect((await refusal(node(...many).call('a', 1))).message).to.match(/^More than 30 budgets count this call/);
    await node(...many.slice(1)).call('b', 1);
  });
});
