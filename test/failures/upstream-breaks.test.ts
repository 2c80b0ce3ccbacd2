import type net from 'node:net';
import tls from 'node:tls';
import { expect } from 'chai';
import { formsOf, type Heard } from '../support/gateways/failure-forms.ts';
import { type FailureRig, startFailureRig, USAGE_COST } from '../support/gateways/failure-rig.ts';
import { generatedCases, partOf } from '../support/generated-cases.ts';
import { createSelfSigned } from '../support/identity/self-signed.ts';
import { startBlackHole } from '../support/vendors/given-upstream.ts';
import { completion } from '../support/vendors/openai-vendor.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';
import { recordPassed } from './passed-forms.ts';
import { BREAKS } from './upstream-cases.ts';

describe('a provider that breaks its connection', () => {
  let rig: FailureRig;
  before(async () => {
    rig = await startFailureRig();
  });
  after(() => rig?.stop());

  for (const [row, { title, script, stream, isHasty, code, text = '', cost = 0 }] of BREAKS.entries()) {
    it(`${title} is reported as ${code}, and gets the prompt once, in every format`, async () => {
      const model = isHasty ? 'hasty/m' : 'one/m';
      const forms = partOf(formsOf(stream), row);
      // Closes all connections, because a reset on a reused connection would be retried.
      rig.vendor.script(respondWith(200, completion(), { connection: 'close' }));
      await rig.send({ model });
      const mark = await rig.mark();
      const seen = rig.vendor.requests.length;
      const rss = process.memoryUsage().rss;
      rig.vendor.script(script);
      const heard = await Promise.all(forms.map((form) => rig.sendAs(form, model)));
      for (const [at, form] of forms.entries()) rig.expectErrorAs(form, heard[at] as Heard, code, text);
      expect(rig.vendor.requests.length - seen, 'requests').to.equal(forms.length);
      expect(process.memoryUsage().rss - rss).to.be.lessThan(160 << 20);
      await rig.expectOrder(mark, forms.length, cost * forms.length);
      recordPassed(title, forms);
    });
  }

  it('U09: a provider that resets an idle connection gets the call again on a new one, and it is charged once', async () => {
    const mark = await rig.mark();
    rig.vendor.script(respondWith(200, completion()));
    expect((await rig.send()).status).to.equal(200);
    rig.vendor.script((wire) => wire.reset(), respondWith(200, completion()));
    const heard = await rig.send();
    expect(heard.status, heard.text).to.equal(200);
    await rig.expectOrder(mark, 2, 2 * USAGE_COST);
  });

  it('is followed by a gateway that serves the next calls, up to a hundred', async () => {
    await rig.expectOrder(await rig.mark(), 0, 0, generatedCases(100));
  });
});

describe('an unreachable provider', () => {
  let rig: FailureRig;
  let hole: Awaited<ReturnType<typeof startBlackHole>>;
  let untrusted: ScriptedUpstream;
  before(async () => {
    hole = await startBlackHole();
    const { key, cert } = createSelfSigned();
    untrusted = await startScriptedUpstream(respondWith(200, completion()), {
      createServer: (onConnection) => tls.createServer({ key, cert }, onConnection) as net.Server,
    });
    const out = { plugin: 'openai-compatible', apiKey: 'k', models: ['*'], prices: { '*': { input: 1, output: 2 } } };
    rig = await startFailureRig({
      providers: {
        nowhere: { ...out, baseUrl: 'http://tollgate-no-such-host.invalid/v1' },
        untrusted: { ...out, baseUrl: `https://localhost:${untrusted.port}/v1` },
        hole: { ...out, baseUrl: hole.baseUrl, timeouts: { connect: '300ms' } },
      },
      models: Object.fromEntries(
        formsOf(undefined).map((_, at) => [`all-fail-${at}`, [`one/fails-${at}`, `two/fails-${at}`]]),
      ),
    });
  });
  after(async () => {
    await rig?.stop();
    hole?.close();
    await untrusted?.close();
  });

  for (const [title, model, code] of [
    ['U01: a provider that refuses connections', 'dead/m', 'provider_unavailable'],
    ['U02: a provider that has a name that does not resolve', 'nowhere/m', 'provider_unavailable'],
    ['U04: a provider that has a certificate of an unknown authority', 'untrusted/m', 'provider_unavailable'],
    ['U03: a provider that takes a connection and does nothing with it', 'hole/m', 'provider_timeout'],
  ] as const) {
    it(`${title} gets no request, and nothing is charged, in every format`, async () => {
      const mark = await rig.mark();
      const forms = formsOf(undefined);
      const heard = await Promise.all(forms.map((form) => rig.sendAs(form, model)));
      for (const [at, form] of forms.entries()) {
        const error = rig.expectErrorAs(form, heard[at] as Heard, code);
        expect(error.message).not.to.match(/invalid\/|no-such-host|ENOTFOUND|EAI_AGAIN/);
      }
      expect(untrusted.requests, 'requests that were sent all the same').to.have.lengthOf(0);
      await rig.expectOrder(mark, forms.length, 0);
      recordPassed(title, forms);
    });
  }

  it('U01: the next target of an alias responds instead', async () => {
    const mark = await rig.mark();
    rig.second.script(respondWith(200, completion()));
    const heard = await rig.send({ model: 'rescued' });
    expect(heard.status, heard.text).to.equal(200);
    expect(heard.headers['x-tollgate-provider']).to.equal('two');
    await rig.expectOrder(mark, 1, 10 * USAGE_COST);
  });

  it('U54: targets that all fail are one error, in every format @slow', async () => {
    const mark = await rig.mark();
    rig.vendor.script(respondWith(429, { error: { message: 'slow down', type: 'rate_limit_error' } }));
    rig.second.script(respondWith(500, { error: { message: 'no', type: 'server_error' } }));
    const forms = formsOf(undefined);
    for (const [at, form] of forms.entries()) {
      const heard = await rig.sendAs(form, `all-fail-${at}`);
      rig.expectErrorAs(form, heard, 'upstream_rate_limited');
      expect(heard.headers['x-should-retry'], form.name).to.equal('false');
    }
    await rig.expectOrder(mark, forms.length, 0);
    recordPassed('U54', forms);
  });

  it('U54: targets that all fail are one error after one retry, and the caller’s SDK does not retry', async () => {
    const mark = await rig.mark();
    const requests = [rig.vendor.requests.length, rig.second.requests.length];
    rig.vendor.script(respondWith(429, { error: { message: 'slow down', type: 'rate_limit_error' } }));
    rig.second.script(respondWith(500, { error: { message: 'no', type: 'server_error' } }));
    const heard = await rig.send({ model: 'both' });
    rig.expectError(heard, 'upstream_rate_limited', 429);
    expect(heard.headers).to.include({ 'x-should-retry': 'false' });
    // Only a response that reports no work is retried.
    const now = [rig.vendor.requests.length, rig.second.requests.length];
    expect(now).to.deep.equal([(requests[0] ?? 0) + 2, (requests[1] ?? 0) + 1]);
    await rig.expectOrder(mark, 1, 0);
  });
});
