import { expect } from 'chai';
import type { Principal } from '../../../../../contract/index.ts';
import { RefusalCount } from '../../../../../plugins/policies/accounts/holds/money.ts';

const caller = (userId: string): Principal => ({ credential: 'key', userId, account: userId });

describe('the records of refused calls', () => {
  it('are sixty of one caller in a minute, whatever others do', () => {
    const count = new RefusalCount();
    const now = 1_000_000;
    const admitted = Array.from({ length: 70 }, () => count.admit(caller('ann'), now)).filter(Boolean);
    expect(admitted.length).to.equal(60);
    expect(count.admit(caller('bob'), now)).to.equal(true);
    expect(count.admit(caller('ann'), now + 60_000)).to.equal(true);
  });
});
