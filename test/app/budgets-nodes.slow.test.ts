import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { settledBooks } from '../support/clients/books.ts';
import { type GatewayProcess, type Installation, installGateway } from '../support/gateways/gateway-process.ts';
import { describeWith, pause, type TestServer } from '../support/processes/server-process.ts';
import { INITDB, POSTGRES, startPostgresServer } from '../support/stores/postgres-server.ts';
import { REDIS_SERVER, startRedisServer } from '../support/stores/redis-server.ts';
import { completion, openAiVendor, tokenPrices, usageOf } from '../support/vendors/openai-vendor.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';

const OK = respondWith(200, completion('x', { usage: usageOf(4, 6) }));
/** Reservation and cost of one call, in micro-dollars: 4 for the prompt, 6 for the output. */
const COST = 10;
const FOR_TEN = (10 * COST) / 1_000_000;
/** Statuses of a budget refusal: 402, or 429 while running calls hold the rest. */
const REFUSED: ReadonlySet<number> = new Set([402, 429]);

/** Request that may be sent again. */
interface Reply {
  /** Index of the gateway. */
  readonly n: number;
  readonly key: string;
  /** Idempotency key. */
  readonly id?: string;
}

interface StoreCase {
  readonly store: string;
  readonly needs: Readonly<Record<string, string | undefined>>;
  readonly open?: () => Promise<TestServer>;
}

const PLACES: readonly StoreCase[] = [
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
    /** Number of calls for which the store timed out, because the machine was busy or the test froze the store. */
    let unsure = 0;

    before(async () => {
      [server, provider] = await Promise.all([open?.(), startScriptedUpstream()]);
      installation = await installGateway({
        // A busy test machine must not cause refusals.
        store: server ? { url: server.url, timeout: '10s' } : store,
        providers: {
          one: openAiVendor(provider, { prices: tokenPrices(1, 1) }),
        },
        budgets: [
          { name: 'total', amount_usd: FOR_TEN, every: 'total', user: 'in-all' },
          { name: 'paused', amount_usd: FOR_TEN, every: 'total', user: 'paused' },
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
    /**
     * Sends a call through the n-th gateway, round robin, and returns its status. A store timeout decides nothing, and
     * any reservation is released later. The same request is then sent again under the same idempotency key. A 409 is
     * retried too: the previous attempt still holds the key, because the store did not confirm its release.
     */
    const send = async (n: number, key: string, id?: string): Promise<number> => {
      const response = await fetch(`${gateways[n % gateways.length]?.url}/v1/chat/completions`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          ...(id && { 'idempotency-key': id }),
        },
        body: JSON.stringify({ model: 'one/m', max_tokens: 6, messages: [{ role: 'user', content: '' }] }),
      });
      await response.text();
      if (response.status !== 503 && response.status !== 409) return response.status;
      unsure += 1;
      await pause(Number(response.headers.get('retry-after') ?? 1) * 100);
      return await send(n, key, id);
    };
    /** Sends all requests concurrently and returns the refused ones. No call ends before all of them are decided. */
    const sendAtOnce = async (requests: readonly Reply[]): Promise<readonly Reply[]> => {
      let go = (): void => undefined;
      const gate = new Promise<void>((resolve) => {
        go = resolve;
      });
      provider.script(async (wire) => {
        await gate;
        await wire.send(OK);
      });
      const before = provider.requests.length;
      const refused: Reply[] = [];
      const calls = requests.map(async (response) => {
        const status = await send(response.n, response.key, response.id);
        if (REFUSED.has(status)) refused.push(response);
        return status;
      });
      await eventually(
        async () => expect(refused.length + provider.requests.length - before).to.equal(requests.length),
        120_000,
      );
      go();
      const statuses = await Promise.all(calls);
      expect(statuses.filter((status) => status !== 200 && !REFUSED.has(status))).to.deep.equal([]);
      provider.script(OK);
      return refused;
    };
    /**
     * Number of requests that pass in the end. A reservation with an unknown outcome may refuse another call until it
     * is released, so refused requests are sent once more after that.
     */
    const passed = async (keys: readonly string[], count: number, isNamed = true): Promise<number> => {
      unsure = 0;
      const requests = Array.from({ length: count }, (_, n) => ({
        n,
        key: keys[n % keys.length] ?? '',
        ...(isNamed && { id: randomUUID() }),
      }));
      let refused = await sendAtOnce(requests);
      for (let known = 0; unsure > known; ) {
        known = unsure;
        for (const key of keys) await settledBooks(gateways[0]?.url ?? '', key);
        refused = await sendAtOnce(refused);
      }
      return count - refused.length;
    };
    const spentOf = async (name: string): Promise<unknown> => {
      const listed: { readonly data: readonly Record<string, unknown>[] } = await installation.command(
        'budgets',
        'list',
      );
      const { spent_usd: spent, held_usd: held } = listed.data.find((budget) => budget['name'] === name) ?? {};
      return { spent, held };
    };

    it('admit exactly the calls that one of them covers, when fifty arrive concurrently', async function () {
      this.timeout(900_000);
      const key = await createKey('in-all');
      expect(await passed([key], 50)).to.equal(10);
      await eventually(async () => expect(await spentOf('total')).to.deep.equal({ spent: '0.0001', held: '0.00' }));
    });

    it('count the calls of a whole team, by any of its members', async function () {
      this.timeout(900_000);
      const keys = await Promise.all(['ann', 'bob'].map((user) => createKey(user, '--tag', 'team=search')));
      expect(await passed(keys, 50)).to.equal(20);
      await eventually(async () => expect(await spentOf('week')).to.deep.equal({ spent: '0.0002', held: '0.00' }));
    });

    if (open)
      it('admit exactly the calls that one of them covers, when the store is unavailable for a while', async function () {
        this.timeout(900_000);
        const key = await createKey('paused');
        // Both gateways know the key, so only reservations time out.
        expect([await send(0, key), await send(1, key)]).to.deep.equal([200, 200]);
        server?.freeze();
        // Without idempotency keys: a key that the store does not release stays locked for a minute.
        const through = passed([key], 30, false);
        await eventually(async () => expect(unsure).to.be.above(0), 60_000);
        server?.thaw();
        expect(await through).to.equal(8);
        await eventually(async () => expect(await spentOf('paused')).to.deep.equal({ spent: '0.0001', held: '0.00' }));
      });

    it('are raised for both', async () => {
      const key = await createKey('in-all');
      while ((await send(0, key)) === 200);
      expect(await Promise.all([send(0, key), send(1, key)])).to.deep.equal([402, 402]);
      await installation.command('budgets', 'raise', 'total', String(FOR_TEN), '--until', '1h');
      for (const n of [0, 1]) await eventually(async () => expect(await send(n, key)).to.equal(200));
    });
  });
