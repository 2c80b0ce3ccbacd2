import { expect } from 'chai';
import { settledBooks } from '../support/books.ts';
import { eventually } from '../support/eventually.ts';
import { type GatewayProcess, type Installation, installGateway } from '../support/gateway-process.ts';
import { INITDB, POSTGRES, startPostgresServer } from '../support/postgres-server.ts';
import { REDIS_SERVER, startRedisServer } from '../support/redis-server.ts';
import { answer, type ScriptedUpstream, startScriptedUpstream } from '../support/scripted-upstream.ts';
import { describeWith, type TestServer } from '../support/server-process.ts';

const OK = answer(200, {
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 4, completion_tokens: 6, total_tokens: 10 },
});
/** What a call reserves and costs, in micro-dollars: 4 for the prompt, 6 to write. */
const COST = 10;
const FOR_TEN = (10 * COST) / 1_000_000;

interface Place {
  readonly store: string;
  readonly needs: Readonly<Record<string, string | undefined>>;
  readonly open?: () => Promise<TestServer>;
}

const PLACES: readonly Place[] = [
  { store: 'sqlite:./data', needs: {} },
  { store: 'redis', needs: { 'redis-server': REDIS_SERVER }, open: () => startRedisServer() },
  { store: 'postgres', needs: { postgres: POSTGRES, initdb: INITDB }, open: startPostgresServer },
];

for (const { store, needs, open } of PLACES)
  describeWith(`the budgets of two gateways on one ${store.split(':')[0]}`, needs, () => {
    let server: TestServer | undefined;
    let provider: ScriptedUpstream;
    let installation: Installation;
    let gateways: readonly GatewayProcess[];
    /** How often the store of a busy machine did not answer in time. */
    let unsure = 0;

    before(async function () {
      this.timeout(60_000);
      [server, provider] = await Promise.all([open?.(), startScriptedUpstream()]);
      installation = await installGateway({
        // A busy test machine is no reason to refuse.
        store: server ? { url: server.url, timeout: '10s' } : store,
        providers: {
          one: {
            plugin: 'openai-compatible',
            baseUrl: provider.url,
            apiKey: 'k',
            models: ['*'],
            prices: { '*': { input: 1, output: 1 } },
          },
        },
        budgets: [
          { name: 'total', amount_usd: FOR_TEN, every: 'total', user: 'in-all' },
          { name: 'month', amount_usd: 1, every: 'month', timezone: 'America/New_York' },
          { name: 'week', amount_usd: FOR_TEN * 2, every: 'week', starts_on: 'sunday', tag: 'team=search' },
        ],
        tags: { team: ['search'] },
      });
      gateways = await Promise.all([installation.start(), installation.start()]);
      provider.script(OK);
    });
    after(async () => {
      await installation?.remove();
      await Promise.all([provider?.close(), server?.close()]);
    });

    const createKey = async (user: string, ...options: readonly string[]): Promise<string> =>
      (await installation.command('keys', 'create', '--user', user, ...options)).api_key;
    /** The status of a call through the n-th gateway, in turn. */
    const ask = async (n: number, key: string): Promise<number> => {
      const response = await fetch(`${gateways[n % gateways.length]?.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'one/m', max_tokens: 6, messages: [{ role: 'user', content: '' }] }),
      });
      await response.text();
      if (response.status !== 503) return response.status;
      // The store did not answer in time: nothing was decided, and what it may have reserved is given back.
      unsure += 1;
      return await ask(n, key);
    };
    /** How many of fifty that come at once are let through; none ends before all have asked. */
    const passed = async (keys: readonly string[], covered: number): Promise<number> => {
      unsure = 0;
      let go = (): void => undefined;
      const gate = new Promise<void>((resolve) => {
        go = resolve;
      });
      provider.script(async (wire) => {
        await gate;
        await wire.send(OK);
      });
      const before = provider.requests.length;
      let refused = 0;
      const calls = Array.from({ length: 50 }, async (_, n) => {
        const status = await ask(n, keys[n % keys.length] ?? '');
        if (status === 402) refused += 1;
        return status;
      });
      await eventually(async () => expect(refused + provider.requests.length - before).to.equal(50));
      go();
      const statuses = await Promise.all(calls);
      expect(statuses.filter((status) => status !== 200 && status !== 402)).to.deep.equal([]);
      provider.script(OK);
      const through = statuses.filter((status) => status === 200).length;
      // What an unsure reservation held while others asked may have refused one of them.
      return unsure === 0 ? through : Math.max(through, covered);
    };
    const spentOf = async (name: string): Promise<unknown> => {
      const listed: readonly Record<string, unknown>[] = await installation.command('budgets', 'list');
      const { spent, held } = listed.find((budget) => budget['name'] === name) ?? {};
      return { spent, held };
    };

    it('let through exactly what one of them covers, when fifty calls come at once', async function () {
      this.timeout(60_000);
      const key = await createKey('in-all');
      expect(await passed([key], 10)).to.equal(10);
      expect((await settledBooks(gateways[0]?.url ?? '', key)).spent).to.be.at.most(10 * COST);
      if (unsure === 0) expect(await spentOf('total')).to.deep.equal({ spent: '0.0001', held: '0.00' });
    });

    it('count the calls of a whole team, whoever of it makes them', async function () {
      this.timeout(60_000);
      const keys = await Promise.all(['ann', 'bob'].map((user) => createKey(user, '--tag', 'team=search')));
      expect(await passed(keys, 20)).to.equal(20);
      if (unsure === 0)
        await eventually(async () => expect(await spentOf('week')).to.deep.equal({ spent: '0.0002', held: '0.00' }));
    });

    it('are raised for both within five seconds', async function () {
      this.timeout(60_000);
      const key = await createKey('in-all');
      while ((await ask(0, key)) === 200);
      expect(await Promise.all([ask(0, key), ask(1, key)])).to.deep.equal([402, 402]);
      await installation.command('budgets', 'raise', 'total', String(FOR_TEN), '--until', '1h');
      const change = Date.now();
      for (const n of [0, 1]) await eventually(async () => expect(await ask(n, key)).to.equal(200));
      expect(Date.now() - change).to.be.below(6000);
    });
  });
