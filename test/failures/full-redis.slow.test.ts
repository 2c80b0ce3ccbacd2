import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { describeWith, type TestServer } from '../support/processes/server-process.ts';
import { REDIS_SERVER, sendToRedis, startRedisServer } from '../support/stores/redis-server.ts';
import { eventually } from '../support/wait.ts';

const MB = 1024 * 1024;
const MAXMEMORY = 64 * MB;
/** Response of 512 KB, which takes a third more in the store. */
const LARGE = 'every word of it is said again. '.repeat(16_384);
const GREEDY = ['ann', 'bob', 'cid', 'dan', 'eve', 'fay'];
/** Concurrent requests and total requests per account: together three times the server's memory. */
const LANES = 4;
const EACH = 48;

interface Reported {
  readonly status: number;
  readonly code: string;
  readonly isReplayed: boolean;
}

describeWith('a Redis that evicts nothing and has little memory', { 'redis-server': REDIS_SERVER }, () => {
  let redis: TestServer;
  let gateway: TestGateway;
  before(async () => {
    redis = await startRedisServer();
    await sendToRedis(redis.port, 'CONFIG', 'SET', 'maxmemory', String(MAXMEMORY));
    await sendToRedis(redis.port, 'CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
    // Maximum store timeout, for a busy machine. This test is about memory, not latency.
    gateway = await startGateway({ store: { url: redis.url, timeout: '1s' }, policies: { overload: false } });
  });
  after(async () => {
    await gateway?.stop();
    await redis?.close();
  });

  const makeKey = async (user: string): Promise<string> =>
    (await gateway.command<{ api_key: string }>('keys', 'create', '--user', user)).api_key;
  const chat = async (key: string, content: string, idempotencyKey?: string): Promise<Reported> => {
    const response = await gateway.post(
      '/v1/chat/completions',
      { model: 'echo/echo', messages: [{ role: 'user', content }] },
      { authorization: `Bearer ${key}`, ...(idempotencyKey && { 'idempotency-key': idempotencyKey }) },
    );
    const { error } = (await response.json()) as { error?: { code?: string } };
    const isReplayed = response.headers.get('idempotency-replayed') === 'true';
    return { status: response.status, code: error?.code ?? '', isReplayed };
  };
  const memory = async (name: string): Promise<number> =>
    Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(await sendToRedis(redis.port, 'INFO', 'memory'))?.[1]);
  /** Number of writes that Redis rejected for lack of memory, independent of other failures. */
  const refusedWrites = async (): Promise<number> =>
    Number(/errorstat_OOM:count=(\d+)/.exec(await sendToRedis(redis.port, 'INFO', 'errorstats'))?.[1] ?? 0);

  it('E29: is not filled by six accounts that store three times as much concurrently, and others continue', async function () {
    this.timeout(600_000);
    const other = await makeKey('other');
    const keys = await Promise.all(GREEDY.map(makeKey));
    const reported = new Map<string, number>();
    let most = 0;
    const greedy = keys.flatMap((key, account) =>
      Array.from({ length: LANES }, async (_, lane) => {
        for (let at = lane; at < EACH; at += LANES) {
          const { status, code } = await chat(key, LARGE, `large-${account}-${at}`);
          const word = `${status} ${code}`.trim();
          reported.set(word, (reported.get(word) ?? 0) + 1);
          most = Math.max(most, await memory('used_memory'));
        }
      }),
    );
    let isOver = false;
    const all = Promise.all(greedy).finally(() => {
      isOver = true;
    });
    const others: Reported[] = [];
    for (let at = 0; !isOver; at += 1) others.push(await chat(other, 'hello', `small-${at}`));
    await all;
    expect(await refusedWrites(), `writes without room; responses to the greedy: ${[...reported].join('; ')}`).to.equal(
      0,
    );
    expect(most).to.be.within(MAXMEMORY / 4, MAXMEMORY);
    // On a busy machine the store may time out, which is reported as `store_unavailable`.
    expect(others.filter(({ status, code }) => status !== 200 && code !== 'store_unavailable')).to.deep.equal([]);
    expect(others.filter(({ status }) => status === 200).length).to.be.above(others.length / 2);
    await eventually(async () => expect(await chat(other, 'hello', 'small')).to.include({ status: 200 }));
    await eventually(async () => expect(await chat(other, 'hello', 'small')).to.include({ isReplayed: true }));
    // The outcome of each request is stored, even if its response did not fit.
    for (const [account, key] of keys.entries())
      await eventually(async () => {
        const { isReplayed, code } = await chat(key, LARGE, `large-${account}-${EACH}`);
        expect(isReplayed || code === 'conflict').to.equal(true);
      });
    expect(await refusedWrites()).to.equal(0);
    const log = gateway.logText();
    expect(log.includes('could not be stored') && log.includes('OOM'), 'no result was lost for want of room').to.equal(
      false,
    );
  });

  it('E55: that is full all the same is reported, and calls continue when it has memory again', async function () {
    this.timeout(900_000);
    const key = await makeKey('late');
    await eventually(async () => expect((await chat(key, 'hello')).status).to.equal(200));
    await sendToRedis(redis.port, 'CONFIG', 'SET', 'maxmemory', '1mb');
    await eventually(async () =>
      expect(await chat(key, 'hello')).to.include({ status: 503, code: 'store_unavailable' }),
    );
    await eventually(async () => {
      const response = await fetch(`${gateway.url}/readyz`);
      const { checks } = (await response.json()) as { checks: { store_problem?: string } };
      expect(response.status).to.equal(503);
      expect(checks.store_problem).to.match(/redis store is full: it reached its maxmemory/);
    });
    expect(await refusedWrites()).to.be.above(0);
    expect((await fetch(`${gateway.url}/livez`)).status).to.equal(200);
    expect((await gateway.get('/v1/models')).status, 'what only reads goes on').to.equal(200);
    await sendToRedis(redis.port, 'CONFIG', 'SET', 'maxmemory', String(MAXMEMORY));
    await eventually(async () => expect((await chat(key, 'hello')).status).to.equal(200));
    await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).to.equal(200));
  });
});
