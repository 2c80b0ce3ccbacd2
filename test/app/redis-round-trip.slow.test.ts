import { mock } from 'node:test';
import { expect } from 'chai';
import { settledBooks } from '../support/clients/books.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { describeWith, type TestServer } from '../support/processes/server-process.ts';
import { REDIS_SERVER, startRedisServer } from '../support/stores/redis-server.ts';
import { startTcpProxy, type TcpProxy } from '../support/stores/tcp-proxy.ts';

describeWith('a call on redis', { 'redis-server': REDIS_SERVER }, () => {
  let redis: TestServer;
  let wire: TcpProxy;
  let gateway: TestGateway;

  before(async () => {
    redis = await startRedisServer();
    wire = await startTcpProxy(redis.port);
    // The background work of a gateway shares the connection, and its data would count as a round. Held responses must
    // not exceed the store's time limit either, so no timer of the gateway runs.
    mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
    gateway = await startGateway({
      store: `redis://127.0.0.1:${wire.port}`,
      billing: 'track',
      plans: { metered: { rpm: 1000, tpm: 1_000_000 } },
      defaultPlan: 'metered',
      // With `open`, a store failure would still give a response; here each wait must be visible.
      policies: { limits: { onStoreFailure: 'closed' } },
    });
  });
  after(async () => {
    mock.reset();
    mock.timers.reset();
    wire?.heal();
    await gateway?.stop();
    await wire?.close();
    await redis?.close();
  });

  it('needs one round trip each for its requests, its tokens and its money, and waits for none at settlement', async () => {
    const send = (): Promise<Response> =>
      gateway.post('/v1/chat/completions', { model: 'echo/echo', messages: [{ role: 'user', content: 'Hi' }] });
    // From here on the key is cached, and nothing of this call is in flight.
    expect((await send()).status).to.equal(200);
    await settledBooks(gateway.url, gateway.key);
    // No cached read becomes old while the call waits.
    const now = performance.now();
    mock.method(performance, 'now', () => now);
    const sent = wire.holdReplies((text) => countScripts(text) === 1);
    const response = send();
    await sent;
    for (const scripts of [2, 3]) {
      wire.passRound();
      await wire.untilSent((text) => countScripts(text) === scripts);
    }
    wire.passRound();
    expect((await response).status).to.equal(200);
  });
});

function countScripts(sent: string): number {
  return sent.split('EVALSHA').length - 1;
}
