import { expect } from 'chai';
import type { CallPage, CallQuery, CallRow } from '../../../../contract/index.ts';
import { findCalls, listCalls, readCallsQuery, tellCovered } from '../../../../plugins/policies/usage/calls-query.ts';
import { FACTS, NOW } from '../../../conformance/store.ts';

/** Ledger that responds at once: `pages` empty pages, then one with a call. */
function createSparse(pages: number) {
  const requests: CallQuery[] = [];
  const row: CallRow = { ...FACTS, id: 'call_1', account: 'a', cost: 1, at: NOW, countedAt: NOW };
  return {
    requests,
    async calls(query: CallQuery): Promise<CallPage> {
      requests.push(query);
      const page = Number(query.after ?? 0);
      return page < pages ? { calls: [], next: String(page + 1), searchedTo: NOW - page } : { calls: [row] };
    },
  };
}

describe('a list of calls', () => {
  it('E27: yields to the event loop between the pages of the store', async () => {
    const ledger = createSparse(20);
    let turns = 0;
    const turn = (): void => {
      turns += 1;
      if (ledger.requests.length < 21) setImmediate(turn);
    };
    setImmediate(turn);
    const { calls, next } = await listCalls(ledger, { filter: {}, limit: 5 }, 60_000);
    expect([calls.length, next]).to.deep.equal([1, undefined]);
    expect(turns).to.be.at.least(20);
  });

  it('E27: ends at its time limit, and its cursor continues there until all is found', async () => {
    const ledger = createSparse(5);
    const found: string[] = [];
    let rounds = 0;
    for (let after: string | undefined; rounds === 0 || after !== undefined; rounds++) {
      const list = await listCalls(ledger, { filter: {}, limit: 5, ...(after !== undefined && { after }) }, 0);
      found.push(...list.calls.map(({ id }) => id));
      after = list.next;
    }
    expect(found).to.deep.equal(['call_1']);
    // Each request read one page of the store, because it had no time for a second one.
    expect(rounds).to.equal(6);
    expect(ledger.requests.map(({ after }) => after)).to.deep.equal([undefined, '1', '2', '3', '4', '5']);
  });

  it('says back to which time it was searched when its time is over, and no such time when all is found', async () => {
    const cut = await listCalls(createSparse(5), { filter: {}, limit: 5, after: '2' }, 0);
    expect(tellCovered(cut)).to.deep.equal({ searched_to: new Date(NOW - 2).toISOString() });
    expect(tellCovered(await findCalls(createSparse(3), { filter: {}, limit: 5 }))).to.deep.equal({});
  });

  it('E27: reads the calls of a request by the store’s index', async () => {
    const ledger = createSparse(0);
    await listCalls(ledger, readCallsQuery({ request: 'req_7' }, NOW));
    expect(ledger.requests).to.deep.equal([{ requestId: 'req_7', limit: 50 }]);
  });
});
