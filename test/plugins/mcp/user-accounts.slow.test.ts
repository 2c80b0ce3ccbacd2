import { expect } from 'chai';
import { startAccounts } from './account-rig.ts';
import { textOf } from './mcp-rig.ts';

/** Calls at the same time. */
const LANES = 20;

describe('two users with accounts at one MCP server', () => {
  it('are never mixed in 1,000 interleaved calls, while their tokens are renewed', async () => {
    const rig = await startAccounts(['ann', 'bob']);
    try {
      // Each token ends within the minute in which it is renewed, so that each call renews it.
      rig.accounts.expiresIn = 30;
      await rig.connect('ann');
      await rig.connect('bob');
      const wrong: string[] = [];
      let next = 0;
      const lane = async (): Promise<void> => {
        for (let at = next++; at < 1000; at = next++) {
          const user = at % 2 === 0 ? 'ann' : 'bob';
          const reply = await rig.whoami(user);
          if (textOf(reply) !== user) wrong.push(`${user} got ${JSON.stringify(reply)}`);
        }
      };
      await Promise.all(Array.from({ length: LANES }, lane));
      expect(wrong).to.deep.equal([]);
      expect(rig.accounts.tokens.size, 'renewed').to.be.greaterThan(10);
    } finally {
      await rig.stop();
    }
  });
});
