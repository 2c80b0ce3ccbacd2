import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import type { TestServer } from '../support/processes/server-process.ts';
import { REDIS_SERVER, sendToRedis, startRedisServer } from '../support/stores/redis-server.ts';
import { eventually } from '../support/wait.ts';

/** Together they exceed the server's memory. */
const REQUESTS = 160;
const WORDS = 'every word of it is said again. '.repeat(20_000);

describe('the stored responses of one account', function () {
  this.timeout(900_000);
  let redis: TestServer;
  let gateway: TestGateway;
  before(async function () {
    if (!REDIS_SERVER) this.skip();
    redis = await startRedisServer();
    await sendToRedis(redis.port, 'CONFIG', 'SET', 'maxmemory', '100mb');
    await sendToRedis(redis.port, 'CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
    gateway = await startGateway({ store: { url: redis.url, timeout: '1s' } });
  });
  after(async () => {
    await gateway?.stop();
    await redis?.close();
  });

  it('do not fill a Redis of 100 MB that evicts nothing: idempotency keys with large responses leave room for others (E29)', async () => {
    const make = async (user: string) =>
      (await gateway.command<{ api_key: string }>('keys', 'create', '--user', user)).api_key;
    const [greedy, other] = [await make('greedy'), await make('other')];
    const chat = (key: string, content: string, headers: Record<string, string> = {}): Promise<Response> =>
      gateway.post(
        '/v1/chat/completions',
        { model: 'echo/echo', messages: [{ role: 'user', content }] },
        { authorization: `Bearer ${key}`, ...headers },
      );
    for (let at = 0; at < REQUESTS; at += 1) {
      // On a busy machine the store may time out; the call is then repeated. The store is never full.
      await eventually(async () => {
        const response = await chat(greedy, WORDS, { 'idempotency-key': `large-${at}` });
        const text = await response.text();
        expect(response.status, `request ${at}: ${text.slice(0, 500)}`).to.equal(200);
      });
    }
    const replay = async (key: string, content: string, id: string): Promise<void> =>
      eventually(async () => {
        const response = await chat(key, content, { 'idempotency-key': id });
        await response.arrayBuffer();
        expect([response.status, response.headers.get('idempotency-replayed')]).to.deep.equal([200, 'true']);
      });
    await replay(other, 'hello', 'small');
    await replay(greedy, WORDS, `large-${REQUESTS - 1}`);
    expect(await sendToRedis(redis.port, 'INFO', 'errorstats'), 'writes without room').to.not.include('errorstat_OOM');
    const used = Number(/used_memory:(\d+)/.exec(await sendToRedis(redis.port, 'INFO', 'memory'))?.[1]);
    expect(used).to.be.below(70_000_000);
    const shown = await gateway.command<{ kept_bytes: number }>('accounts', 'show', 'greedy');
    expect(shown.kept_bytes).to.be.within(20_000_000, 34_000_000);
    const metrics = await (await gateway.get('/metrics')).text();
    expect(metrics).to.match(/kept_dropped\S* [1-9]\d*/);
  });
});
