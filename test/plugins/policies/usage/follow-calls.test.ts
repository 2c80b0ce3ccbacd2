import { expect } from 'chai';
import type { CallRow } from '../../../../contract/index.ts';
import { followCalls, pauseAfter } from '../../../../plugins/policies/usage/follow-calls.ts';

describe('following calls', () => {
  it('polls often if that is cheap, and uses at most a fiftieth of the time of a slow store', () => {
    expect([0, 1, 4, 10, 20, 900].map(pauseAfter)).to.deep.equal([200, 200, 200, 500, 1000, 1000]);
  });

  it('sends a call with the next poll after it was written', async () => {
    const rows: CallRow[] = [];
    let looks = 0;
    const ledger = {
      calls: async () => {
        looks += 1;
        return { calls: rows };
      },
    };
    const ended = new AbortController();
    const reported = followCalls(ledger, { filter: {}, signal: ended.signal });
    await reported.next();
    rows.push({ id: 'a', at: Date.now() } as CallRow);
    const { value } = await reported.next();
    expect([value?.calls.map(({ id }) => id), looks]).to.deep.equal([['a'], 2]);
    ended.abort();
    expect((await reported.next()).done).to.equal(true);
  });
});
