import { expect } from 'chai';
import type { Call, Outcome } from '../../../../contract/index.ts';
import { createBudgetTable } from '../../../../plugins/policies/accounts/budgets/budget-table.ts';
import type { CallBudgets } from '../../../../plugins/policies/accounts/budgets/find-budgets.ts';
import { chargeAnswered } from '../../../../plugins/policies/accounts/holds/money.ts';
import { createWriteQueue } from '../../../../plugins/policies/kit/write-queue.ts';
import { openMemory } from '../../../../plugins/stores/memory/index.ts';
import { settledBooks } from '../../../support/clients/books.ts';
import { startGateway, type TestGateway } from '../../../support/gateways/gateway.ts';
import { createSilentLog } from '../../../support/log.ts';
import { eventually } from '../../../support/wait.ts';
import { makeFailing } from './charged-calls.ts';

/** Responds to every user except `through`: for 30,000 nano-dollars to `dear`, free of charge to others. */
const PLUGIN = `export default {
  name: 'canned', kind: 'policy', apiVersion: 1,
  setup(api) {
    api.hook('answer', (call) => {
      const text = call.request.messages[0].content;
      if (text === 'through') return undefined;
      const message = { role: 'assistant', content: 'Until six.', refusal: null };
      return {
        response: {
          id: call.id, object: 'chat.completion', created: 0, model: call.request.model,
          choices: [{ index: 0, message, logprobs: null, finish_reason: 'stop' }],
        },
        ...(text === 'dear' && { cost: 30_000 }),
      };
    });
  },
};`;

describe('the cost returned by an answer hook', () => {
  let gateway: TestGateway;
  before(async () => {
    const files = { 'canned.mjs': PLUGIN };
    const providers = { echo: { prices: { '*': { input: 1, output: 1 } } } };
    gateway = await startGateway({ billing: 'enforce', providers, plugins: ['./canned.mjs'] }, { files });
  });
  after(() => gateway?.stop());

  let users = 0;
  const createKey = async (...options: readonly string[]): Promise<{ key: string; user: string }> => {
    const user = `user-${users++}`;
    const created = await gateway.command<{ api_key: string }>('keys', 'create', '--user', user, ...options);
    return { key: created.api_key, user };
  };
  const chat = async (key: string, content: string, stream = false): Promise<number> => {
    const body = { model: 'echo/echo', max_tokens: 5, stream, messages: [{ role: 'user', content }] };
    const response = await gateway.post('/v1/chat/completions', body, { authorization: `Bearer ${key}` });
    await response.text();
    return response.status;
  };
  const booksWith = (key: string, spent: number) =>
    eventually(async () => {
      const books = await settledBooks(gateway.url, key);
      expect(books).to.include({ spent, balance: -spent });
    });

  for (const stream of [false, true]) {
    it(`is charged once ${stream ? 'on a stream' : 'for a JSON response'}, to the balance, the key's budget and the usage`, async () => {
      const { key, user } = await createKey('--budget', '0.00001');
      expect(await chat(key, 'dear', stream)).to.equal(200);
      await booksWith(key, 30);
      const { data } = (await (
        await gateway.get('/api/core/usage?group_by=provider,model', { authorization: `Bearer ${key}` })
      ).json()) as { data: readonly object[] };
      expect(data).to.have.length(1);
      expect(data[0]).to.include({ provider: 'echo', model: 'echo', requests: 1, cost_usd: '0.00003' });
      const keys = await gateway.command<{ data: readonly object[] }>('keys', 'list', '--user', user);
      expect(keys.data[0]).to.include({ spent_usd: '0.00003' });
      // The charge counts: the next call that is sent exceeds the balance.
      expect(await chat(key, 'through')).to.equal(402);
      await booksWith(key, 30);
    });
  }

  it('is not charged if it returns none', async () => {
    const { key } = await createKey();
    expect(await chat(key, 'cheap')).to.equal(200);
    await booksWith(key, 0);
  });

  it('is charged once also when the store is unavailable at first, or its replies are lost', async () => {
    const store = await openMemory();
    const failing = makeFailing(store.ledger);
    const queue = createWriteQueue({ log: createSilentLog(), otherwise: 'it is lost', firstPauseMs: 5 });
    const principal = { credential: 'key', userId: 'u', account: 'a', keyId: 'k' } as const;
    const reported = {
      targets: [],
      tags: [],
      operation: 'chat',
      request: { model: 'm' },
      requestId: 'req',
      trace: { traceId: '0af7651916cd43dd8448eb211c80319c' },
      stream: false,
      startedAt: 1,
    };
    const budgets = {
      findWithoutTarget: () =>
        createBudgetTable({ shared: [] }).of(principal, undefined).find(Date.now(), { tags: [] }),
    } as unknown as CallBudgets;
    const outcome = {
      status: 'ok',
      sent: false,
      cost: 29.5,
      attempts: [],
      durationMs: 1,
      upstreamMs: 0,
      estimated: false,
    } as Outcome;
    for (const [id, failure] of [
      ['first', 'refuses'],
      ['second', 'loses responses'],
    ] as const) {
      failing.failure = failure;
      const call = { id, principal, state: new Map(), ...reported } as unknown as Call;
      await chargeAnswered(
        { ledger: failing.ledger, queues: { certain: queue, uncertain: queue }, budgets, now: () => Date.now() },
        call,
        outcome,
      );
      failing.failure = 'none';
      await eventually(async () => expect(queue.size).to.equal(0));
    }
    expect(await store.ledger.balance('a')).to.include({ balance: -60, held: 0, spent: 60 });
    expect(await store.ledger.budgets(['key:k'])).to.deep.equal([{ spent: 60, held: 0 }]);
    const { calls } = await store.ledger.calls({ account: 'a', limit: 10 });
    expect(calls.map(({ id, cost }) => [id, cost])).to.have.deep.members([
      ['first', 30],
      ['second', 30],
    ]);
    await queue.close();
    await store.close();
  });
});
