import { expect } from 'chai';
import { fine, fineStream, hung, type RoutingRig, refusal, startRoutingRig } from '../support/gateways/routing-rig.ts';
import { respondWith } from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';

/** Each test has its own models, so that a failure does not open a circuit of the next test. */
const CLOCKS = { timeouts: { firstByte: '150ms', firstToken: '150ms' } };
const MODELS = Object.fromEntries([
  ...['hang', 'limited', 'caller', 'back', 'all', 'stale', 'shown', 'balance', 'minute', 'flagged', 'reasons'].map(
    (name) => [name, [`a/${name}`, `b/${name}`]],
  ),
  ...['hang-stream', 'hang-whole'].map((name) => [name, { targets: [`a/${name}`, `b/${name}`], ...CLOCKS }]),
  ['crowd', { targets: ['a/crowd', 'b/crowd'], timeouts: { firstToken: '4s' } }],
  ['locked', ['c/m', 'b/locked']],
]);

describe('a target that fails', () => {
  let rig: RoutingRig;
  before(async () => {
    rig = await startRoutingRig(MODELS);
  });
  after(() => rig?.stop());
  beforeEach(() => {
    for (const vendor of Object.values(rig.vendors)) vendor.script(fine);
  });

  for (const stream of [false, true])
    it(`that hangs costs the first three ${stream ? 'streams' : 'calls'}, then none @slow`, async () => {
      const model = stream ? 'hang-stream' : 'hang-whole';
      rig.vendors['a']?.script(hung);
      rig.vendors['b']?.script(stream ? fineStream : fine);
      const before = rig.countOf('a');
      const attempts: (string | null)[] = [];
      for (let n = 0; n < 8; n++) {
        const response = await rig.send(model, { stream });
        expect(response.status, response.text).to.equal(200);
        expect(response.by).to.equal('b');
        attempts.push(response.attempts);
      }
      expect(attempts).to.deep.equal(['2', '2', '2', '1', '1', '1', '1', '1']);
      expect(rig.countOf('a') - before).to.equal(3);
    });

  it('that hangs under load is skipped before the first timeout @slow', async () => {
    const streams = { stream: true };
    rig.vendors['a']?.script(fineStream);
    rig.vendors['b']?.script(fineStream);
    // Establishes a short usual latency.
    expect((await rig.send('crowd', streams)).by).to.equal('a');
    rig.vendors['a']?.script(hung);
    const before = rig.countOf('a');
    const early = Promise.all(Array.from({ length: 5 }, () => rig.send('crowd', streams)));
    await rig.vendors['a']?.request(before + 4);
    // Well before the five have waited for 4 s.
    const later: Promise<void>[] = [];
    let atOnce = 0;
    await eventually(async () => {
      const send = async (): Promise<void> => {
        const { by, attempts } = await rig.send('crowd', streams);
        if (by === 'b' && attempts === '1') atOnce += 1;
      };
      later.push(send());
      expect(atOnce).to.be.at.least(3);
    }, 3_500);
    expect((await early).map(({ by }) => by)).to.deep.equal(Array(5).fill('b'));
    await Promise.all(later);
  });

  it('that is over its rate limit is skipped for the reported time, then tried again (G89)', async () => {
    rig.vendors['a']?.script(refusal(429, { 'retry-after-ms': '700' }), fine);
    expect(await rig.send('limited')).to.include({ by: 'b', attempts: '2' });
    const until = performance.now() + 700;
    expect(await rig.send('limited')).to.include({ by: 'b', attempts: '1' });
    while (performance.now() < until) await new Promise((resolve) => setImmediate(resolve));
    expect(await rig.send('limited')).to.include({ by: 'a', attempts: '1' });
  });

  it('does not include one that rejects callers’ requests, nor one whose callers disconnect (G90)', async () => {
    rig.vendors['a']?.script(refusal(404));
    for (let n = 0; n < 5; n++) expect((await rig.send('caller')).by).to.equal('b');
    rig.vendors['a']?.script(refusal(400));
    for (let n = 0; n < 5; n++) expect((await rig.send('caller')).status).to.equal(400);
    rig.vendors['a']?.script(refusal(408));
    for (let n = 0; n < 5; n++) expect((await rig.send('caller')).attempts, 'a slow caller').to.equal('2');
    rig.vendors['a']?.script(hung);
    for (let n = 0; n < 5; n++) {
      const caller = new AbortController();
      const request = rig.vendors['a']?.request(rig.countOf('a'));
      const left = fetch(`${rig.gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${rig.gateway.key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'caller', messages: [{ role: 'user', content: 'x' }] }),
        signal: caller.signal,
      }).catch(() => undefined);
      await request;
      caller.abort();
      await left;
    }
    rig.vendors['a']?.script(fine);
    expect(await rig.send('caller')).to.include({ by: 'a', attempts: '1' });
  });

  for (const [model, status, message, code] of [
    ['balance', 402, 'This request requires more credits, or fewer max_tokens. You can only afford 20.', 402],
    [
      'minute',
      429,
      'Request too large for gpt-x on tokens per min (TPM): Limit 10, Requested 20.',
      'rate_limit_exceeded',
    ],
  ] as const)
    it(`E56: is called again after a ${status} that concerns only that request`, async () => {
      rig.vendors['a']?.script(respondWith(status, { error: { message, code } }));
      for (let n = 0; n < 4; n++) expect(await rig.send(model)).to.include({ status: 200, by: 'b', attempts: '2' });
      const before = rig.countOf('a');
      const direct = await rig.send(`a/${model}`);
      expect(direct.status).to.equal(413);
      expect(rig.countOf('a') - before, 'sent once, since it would fail again').to.equal(1);
      expect(direct.text, 'with what the caller can mend').to.include(message.slice(0, 40));
      rig.vendors['a']?.script(fine);
      expect(await rig.send(model)).to.include({ by: 'a', attempts: '1' });
    });

  for (const [model, what, error] of [
    ['flagged', 'says so', { code: 403, message: 'Your input was flagged' }],
    ['reasons', 'tells the reasons', { code: 403, message: 'No.', metadata: { reasons: ['violence'] } }],
  ] as const)
    it(`E56: is called again after its moderation, which ${what}, stopped one request`, async () => {
      rig.vendors['a']?.script(respondWith(403, { error }));
      for (let n = 0; n < 4; n++) expect((await rig.send(model)).text).to.include('content_filtered');
      rig.vendors['a']?.script(fine);
      expect(await rig.send(model)).to.include({ by: 'a', attempts: '1' });
    });

  it('is tried when all circuits are open and it is the best of them: a call is never refused for that (G91)', async () => {
    rig.vendors['a']?.script(refusal(429, { 'retry-after': '60' }));
    rig.vendors['b']?.script(refusal(500));
    for (let n = 0; n < 4; n++) expect((await rig.send('all')).status).to.be.oneOf([429, 503]);
    rig.vendors['b']?.script(fine);
    expect(await rig.send('all')).to.include({ status: 200, by: 'b', attempts: '1' });
  });

  it('with a refused key is skipped with all of its models', async () => {
    rig.vendors['c']?.script(refusal(401));
    expect(await rig.send('locked')).to.include({ by: 'b', attempts: '2' });
    expect(await rig.send('locked')).to.include({ by: 'b', attempts: '1' });
    // A direct request of its name is sent all the same.
    rig.vendors['c']?.script(fine);
    expect(await rig.send('c/other')).to.include({ status: 200, by: 'c' });
  });

  it('stays known after a reload', async () => {
    rig.vendors['a']?.script(refusal(429, { 'retry-after': '30' }));
    expect(await rig.send('stale')).to.include({ by: 'b', attempts: '2' });
    const { loadConfig } = await import('../../config/load-config.ts');
    const { createSilentLog } = await import('../support/log.ts');
    const configPath = `${rig.gateway.folder}/tollgate.config.json`;
    await rig.gateway.use(
      await loadConfig({ cwd: rig.gateway.folder, env: {}, configPath, log: createSilentLog() } as never),
    );
    expect(await rig.send('stale')).to.include({ by: 'b', attempts: '1' });
  });

  it('that answers 529 is replaced by the next one (G20)', async () => {
    rig.vendors['a']?.script(respondWith(529, { error: { type: 'overloaded_error', message: 'no' } }));
    expect(await rig.send('back')).to.include({ status: 200, by: 'b', attempts: '2' });
  });

  it('is shown in the metrics, with its failures, fallbacks and retries, and in a line of the log', async () => {
    rig.vendors['a']?.script(refusal(429, { 'retry-after': '30' }));
    expect((await rig.send('shown', {}, { 'x-request-id': 'shown-0001' })).by).to.equal('b');
    rig.vendors['b']?.script(refusal(503), fine);
    expect((await rig.send('b/shown')).attempts).to.equal('2');
    const text = await (await fetch(`${rig.gateway.url}/metrics`)).text();
    expect(text).to.match(/tollgate_target_state\{provider="a",model="shown"\} 2/);
    expect(text).to.include('tollgate_target_state{provider="b",model="shown"} 0');
    expect(text).to.match(/tollgate_target_failures_total\{provider="a",model="shown",class="rate_limit"\} \d/);
    expect(text).to.include('tollgate_fallbacks_total{from="a/shown",to="b/shown"} ');
    expect(text).to.match(/tollgate_retries_total\{provider="b",model="shown"\} 1/);
    expect(text).to.match(/tollgate_target_latency_seconds\{provider="b",model="shown",stream="false"\} 0\.\d+/);
    expect(text).to.match(/tollgate_retries_allowed 3/);
    const line = rig.gateway.logs.find((each) => each['request_id'] === 'shown-0001');
    expect(line).to.include({ target: 'a/shown', status: 429, class: 'rate_limit', reason: 'no', next: 'b/shown' });
  });
});
