import { expect } from 'chai';
import type { GatewaySettings, Principal } from '../../contract/index.ts';
import { type AccountRecord, accountKey, createPlanFinder } from '../../contract/plans.ts';
import { createRecordBook } from '../../core/plugins/instance-store.ts';
import { openMemory } from '../../plugins/stores/memory/index.ts';
import { codeOf } from '../support/errors.ts';

const PLANS = { free: { rpm: 1 }, pro: { rpm: 9 } } as const;
const CALLER: Principal = { credential: 'key', userId: 'ann', account: 'ann' };

describe('the plan of a caller', () => {
  /**
   * Finds the plan of a caller with these plans of key and account, twice: first the account is read, then it is
   * cached.
   */
  async function find(key: string | undefined, account: string | undefined, defaultPlan?: string) {
    const store = await openMemory();
    const shared = store.keyv<AccountRecord>('accounts');
    if (account !== undefined) await shared.set(accountKey('ann'), { plan: account });
    const settings = { plans: PLANS, defaultPlan } as unknown as GatewaySettings;
    const findPlan = createPlanFinder({
      settings,
      stores: { shared: (() => shared) as never },
      books: { records: createRecordBook(store) },
    });
    const principal = { ...CALLER, ...(key !== undefined && { plan: key }) };
    const first = await findPlan(principal);
    expect(await findPlan(principal)).to.equal(first);
    return first?.name;
  }

  const FOUND: readonly (readonly [...Parameters<typeof find>, string | undefined])[] = [
    ['pro', 'free', 'free', 'pro'],
    [undefined, 'pro', 'free', 'pro'],
    [undefined, undefined, 'free', 'free'],
    ['gone', 'pro', undefined, 'pro'],
    ['gone', undefined, 'free', 'free'],
    [undefined, 'gone', 'free', 'free'],
    [undefined, undefined, undefined, undefined],
  ];
  for (const [key, account, otherwise, name] of FOUND)
    it(`is ${name} with ${key} of the key, ${account} of the account and ${otherwise} by default`, async () => {
      expect(await find(key, account, otherwise)).to.equal(name);
    });

  it('D46 a caller whose plan is no longer configured is refused if no other plan applies', async () => {
    expect(await codeOf(find('gone', undefined))).to.equal('permission_denied');
    expect(await codeOf(find(undefined, 'gone'))).to.equal('permission_denied');
  });
});
