import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';

const RESETS = { 'x-ratelimit-reset-requests': '1s', 'x-ratelimit-reset-tokens': '6m0s' };

describe('G27: errors of vendors that send the reset of their limits with every response', () => {
  let upstream: ScriptedUpstream;
  let gateway: TestGateway;
  let status: number;

  before(async () => {
    upstream = await startScriptedUpstream((wire) =>
      wire.send(respondWith(status, { error: { message: 'No.', type: 'error' } }, RESETS)),
    );
    const vendor = { plugin: 'openai-compatible', baseUrl: upstream.url, apiKey: 'sk-local-key', models: ['*'] };
    gateway = await startGateway({ providers: { local: vendor } });
  });
  after(async () => {
    await gateway.stop();
    await upstream.close();
  });
  const send = () =>
    gateway.post('/v1/chat/completions', { model: 'local/m', messages: [{ role: 'user', content: 'Hi' }] });

  for (const each of [400, 404, 413, 422])
    it(`tell no time for a retry with ${each}`, async () => {
      status = each;
      const { headers } = await send();
      expect(headers.get('retry-after')).to.equal(null);
      expect(headers.get('retry-after-ms')).to.equal(null);
    });

  for (const each of [401, 403])
    it(`tell clients not to retry with ${each}: the operator’s key or account is rejected`, async () => {
      status = each;
      const { headers } = await send();
      expect(headers.get('retry-after')).to.equal(null);
      expect(headers.get('x-should-retry')).to.equal('false');
    });

  it('tell the time with 429 @slow', async () => {
    status = 429;
    expect((await send()).headers.get('retry-after')).to.equal('1');
  });
});
