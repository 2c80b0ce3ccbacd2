import { expect } from 'chai';
import { readBooks, settledBooks } from '../support/clients/books.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { describeWith, type TestServer } from '../support/processes/server-process.ts';
import { REDIS_SERVER, sendToRedis, startRedisServer } from '../support/stores/redis-server.ts';
import { completion, openAiVendor, tokenPrices, usageOf } from '../support/vendors/openai-vendor.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';

const OK = respondWith(200, completion('x', { usage: usageOf(4, 6) }));

/**
 * Statuses of five concurrent calls while Redis is down, by the policies' `onStoreFailure`. The plan allows three calls
 * a minute.
 */
const MODES: readonly {
  readonly accounts: 'closed' | 'open';
  readonly limits: 'closed' | 'open' | 'degrade';
  readonly statuses: readonly number[];
}[] = [
  { accounts: 'closed', limits: 'degrade', statuses: [429, 429, 503, 503, 503] },
  { accounts: 'open', limits: 'degrade', statuses: [200, 200, 200, 429, 429] },
  { accounts: 'open', limits: 'open', statuses: [200, 200, 200, 200, 200] },
  { accounts: 'open', limits: 'closed', statuses: [503, 503, 503, 503, 503] },
];

describeWith('a gateway whose redis is down', { 'redis-server': REDIS_SERVER }, () => {
  let redis: TestServer;
  let provider: ScriptedUpstream;
  let gateway: TestGateway | undefined;

  beforeEach(async () => {
    [redis, provider] = await Promise.all([startRedisServer(), startScriptedUpstream()]);
  });
  afterEach(async () => {
    await gateway?.stop();
    gateway = undefined;
    await Promise.all([provider?.close(), redis?.close()]);
  });

  const start = async (policies: object, more: object = {}): Promise<TestGateway> => {
    const one = openAiVendor(provider, { prices: tokenPrices(1, 1) });
    gateway = await startGateway({
      store: redis.url,
      providers: { one },
      plans: { three: { rpm: 3, concurrency: 2 } },
      defaultPlan: 'three',
      policies,
      ...more,
    });
    provider.script(OK);
    return gateway;
  };
  const send = (to: TestGateway) =>
    to.post('/v1/chat/completions', { model: 'one/m', max_tokens: 6, messages: [{ role: 'user', content: '' }] });

  for (const { accounts, limits, statuses } of MODES) {
    it(`answers as declared with accounts ${accounts} and limits ${limits}`, async function () {
      this.timeout(900_000);
      const plans = { three: { rpm: 3, concurrency: 10 } };
      /** Statuses of calls sent at the moment Redis is killed. */
      const sendUntilDown = async (): Promise<readonly number[]> => {
        const to = await start(
          { accounts: { onStoreFailure: accounts }, limits: { onStoreFailure: limits } },
          { plans },
        );
        await eventually(async () => expect((await send(to)).status, 'before').to.equal(200));
        const dying = redis.kill();
        const responses = await Promise.all(statuses.map(() => send(to)));
        await dying;
        for (const response of responses) {
          const { error } = (await response.json()) as { error?: { code: string } };
          if (response.status === 503) expect(error?.code).to.equal('store_unavailable');
        }
        return responses.map(({ status }) => status).toSorted();
      };
      // The key and the plan stay cached for two seconds. After that, unknown callers are refused. On a very busy
      // machine all calls may come later; such a run is repeated.
      let got = await sendUntilDown();
      for (let left = 10; left > 0 && got.every((status) => status === 503) && statuses.includes(429); left -= 1) {
        await gateway?.stop();
        await redis.start();
        await sendToRedis(redis.port, 'FLUSHALL');
        got = await sendUntilDown();
      }
      expect(got).to.deep.equal(statuses);
    });
  }

  it('buffers a finished call’s true cost until the store is back', async () => {
    const to = await start({});
    let go = (): void => undefined;
    const gate = new Promise<void>((resolve) => {
      go = resolve;
    });
    provider.script(async (wire) => {
      await gate;
      await wire.send(OK);
    });
    const pending = send(to);
    await provider.request(0);
    await redis.kill();
    go();
    expect((await pending).status).to.equal(200);
    await redis.start();
    const books = await eventually(() => settledBooks(to.url, to.key));
    expect(books).to.include({ spent: 10, held: 0 });
    // Its slot in the plan is free again too.
    await eventually(async () => expect((await send(to)).status).to.equal(200));
  });

  it('charges nothing for calls that were refused, once the store is back', async () => {
    const to = await start({});
    const before = await readBooks(to.url, to.key);
    redis.freeze();
    const statuses = await Promise.all([send(to), send(to)]);
    expect(statuses.map(({ status }) => status)).to.deep.equal([503, 503]);
    redis.thaw();
    await eventually(async () => expect(await settledBooks(to.url, to.key)).to.deep.equal(before));
    expect(provider.requests).to.have.lengthOf(0);
  });
});
