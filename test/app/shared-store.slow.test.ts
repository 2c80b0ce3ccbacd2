import { expect } from 'chai';
import { readBooks, settledBooks } from '../support/clients/books.ts';
import { type GatewayProcess, type Installation, installGateway } from '../support/gateways/gateway-process.ts';
import { describeWith, type TestServer } from '../support/processes/server-process.ts';
import { REDIS_SERVER, startRedisServer } from '../support/stores/redis-server.ts';
import { completion, openAiVendor, tokenPrices, usageOf } from '../support/vendors/openai-vendor.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';

const OK = respondWith(200, completion('x', { usage: usageOf(4, 6) }));
/** Reservation and cost of one call, in micro-dollars: 4 for the prompt, 6 for the output. */
const COST = 10;

describeWith('two gateways on one redis', { 'redis-server': REDIS_SERVER }, () => {
  let redis: TestServer;
  let provider: ScriptedUpstream;
  let installation: Installation;
  let gateways: readonly GatewayProcess[];

  before(async () => {
    [redis, provider] = await Promise.all([startRedisServer(), startScriptedUpstream()]);
    installation = await installGateway({
      // A busy test machine must not cause refusals.
      store: { url: redis.url, timeout: '1s' },
      billing: 'enforce',
      providers: {
        one: openAiVendor(provider, { prices: tokenPrices(1, 1) }),
      },
      plans: { slots: { concurrency: 3 }, ten: { rpm: 10 } },
      policies: { limits: { leaseFor: '2s' } },
    });
    gateways = await Promise.all([installation.start(), installation.start()]);
  });
  after(async () => {
    await installation?.remove();
    await Promise.all([provider?.close(), redis?.close()]);
  });
  beforeEach(() => provider.script(OK));

  const createKey = async (user: string, ...options: readonly string[]): Promise<string> =>
    (await installation.command('keys', 'create', '--user', user, ...options)).api_key;
  /**
   * Status of a call through the n-th gateway, round robin. After a store timeout, which decides nothing, the call is
   * repeated.
   */
  const send = async (n: number, key: string, signal?: AbortSignal): Promise<number> => {
    const status = await sendOnce(n, key, signal);
    return status === 503 ? send(n, key, signal) : status;
  };
  const sendOnce = async (n: number, key: string, signal?: AbortSignal): Promise<number> => {
    const response = await fetch(`${gateways[n % gateways.length]?.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'one/m', max_tokens: 6, messages: [{ role: 'user', content: '' }] }),
      ...(signal && { signal }),
    });
    await response.text();
    return response.status;
  };
  const fifty = (key: string): Promise<number[]> => Promise.all(Array.from({ length: 50 }, (_, n) => send(n, key)));
  const count = (statuses: readonly number[], status: number): number =>
    statuses.filter((one) => one === status).length;

  /** 402, or 429 while running calls hold the rest. */
  const countRefused = (statuses: readonly number[]): number => count(statuses, 402) + count(statuses, 429);

  it('spend a balance for ten calls exactly, when fifty come at once', async () => {
    await installation.command('accounts', 'credit', 'ten-calls', String((10 * COST) / 1_000_000));
    const key = await createKey('ten-calls');
    // Running calls hold their reservations: none of the ten ends before all fifty were sent.
    let go = (): void => undefined;
    const gate = new Promise<void>((resolve) => {
      go = resolve;
    });
    provider.script(async (wire) => {
      await gate;
      await wire.send(OK);
    });
    const refused: number[] = [];
    const pending = Array.from({ length: 50 }, (_, n) =>
      send(n, key).then((status) => {
        if (status !== 200) refused.push(status);
        if (refused.length === 40) go();
        return status;
      }),
    );
    const statuses = await Promise.all(pending);
    expect({ admitted: count(statuses, 200), refused: countRefused(statuses) }).to.deep.equal({
      admitted: 10,
      refused: 40,
    });
    const books = await settledBooks(gateways[0]?.url ?? '', key);
    expect(books).to.include({ balance: 0, spent: 10 * COST });
    expect(await readBooks(gateways[1]?.url ?? '', key), 'on the other gateway').to.deep.equal(books);
  });

  it('spend the budget of a key exactly, when fifty arrive concurrently', async () => {
    await installation.command('accounts', 'credit', 'budget', '1');
    const key = await createKey('budget', '--budget', String((10 * COST) / 1_000_000));
    const statuses = await fifty(key);
    expect({ admitted: count(statuses, 200), refused: countRefused(statuses) }).to.deep.equal({
      admitted: 10,
      refused: 40,
    });
    expect(await settledBooks(gateways[0]?.url ?? '', key)).to.include({ spent: 10 * COST });
  });

  it('admit a limit of ten exactly, when fifty arrive concurrently', async () => {
    await installation.command('accounts', 'credit', 'limit', '1');
    const key = await createKey('limit', '--plan', 'ten');
    const statuses = await fifty(key);
    expect({ admitted: count(statuses, 200), refused: count(statuses, 429) }).to.deep.equal({
      admitted: 10,
      refused: 40,
    });
  });

  it('share the concurrent calls of a plan, renew them during long calls, and free those of a killed gateway', async () => {
    await installation.command('accounts', 'credit', 'slots', '1');
    const key = await createKey('slots', '--plan', 'slots');
    const doomed = await installation.start();
    provider.script((wire) => wire.hang());
    const stop = new AbortController();
    const hang = async (url: string): Promise<void> => {
      const seen = provider.requests.length;
      void fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'one/m', max_tokens: 6, messages: [{ role: 'user', content: '' }] }),
        signal: stop.signal,
      }).catch(() => undefined);
      await provider.request(seen);
    };
    for (const gateway of [gateways[0], gateways[1], doomed]) await hang(gateway?.url ?? '');
    expect([await send(0, key), await send(1, key)], 'all places are taken').to.deep.equal([429, 429]);
    await doomed.kill();
    provider.script(OK);
    // Its slot is released when its lease expires; by then the other calls have renewed theirs.
    await eventually(async () => expect(await send(0, key)).to.equal(200));
    const seen = provider.requests.length;
    provider.script((wire) => wire.hang());
    // The slot of the previous call is released concurrently with its response, possibly a moment later.
    let last: Promise<unknown> | undefined;
    await eventually(async () => {
      last = send(1, key, stop.signal).catch(() => undefined);
      expect(await Promise.race([last, provider.request(seen).then(() => 'sent')])).to.equal('sent');
    });
    expect(await send(0, key), 'the others still have theirs').to.equal(429);
    stop.abort();
    await last;
  });

  it('refuse on both a key that was revoked on one of them', async () => {
    await installation.command('accounts', 'credit', 'revoked', '1');
    const key = await createKey('revoked');
    expect([await send(0, key), await send(1, key)]).to.deep.equal([200, 200]);
    await installation.command('keys', 'revoke', key);
    await eventually(async () => expect([await send(0, key), await send(1, key)]).to.deep.equal([401, 401]));
  });
});
