import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { completion, usageOf } from '../support/vendors/openai-vendor.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers are looked into, whatever their shape
type Loose = any;

const SECRET = 'operators-own-secret-0001';
const LEAKED = 'tg_AbCdEf123456_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa';

describe('the texts of calls', () => {
  let gateway: TestGateway | undefined;
  let upstream: ScriptedUpstream;
  before(async () => {
    upstream = await startScriptedUpstream();
  });
  afterEach(async () => {
    await gateway?.stop();
    gateway = undefined;
  });
  after(() => upstream?.close());

  let admin = '';
  const start = async (calls: object | undefined): Promise<TestGateway> => {
    const started = await startGateway({
      providers: {
        echo: {},
        vendor: { plugin: 'openai-compatible', apiKey: SECRET, baseUrl: `${upstream.url}/v1`, models: ['*'] },
      },
      ...(calls && { calls }),
    });
    admin = (await started.command<Loose>('keys', 'create', '--user', 'root', '--admin')).api_key;
    return started;
  };
  const asAdmin = async (running: TestGateway, path: string): Promise<Loose> =>
    (await running.get(path, { authorization: `Bearer ${admin}` })).json();
  /** Bodies of the newest call, as shown to operators. */
  const bodiesOfNewest = async (running: TestGateway): Promise<Loose> =>
    eventually(async () => {
      const { data } = await asAdmin(running, '/api/core/admin/calls?limit=1');
      expect(data).to.have.length(1);
      return (await asAdmin(running, `/api/core/admin/calls/${data[0].id}`)).bodies;
    });
  const chat = (content: string, rest: object = {}) => ({
    ...{ model: 'echo/echo', messages: [{ role: 'user', content }] },
    ...rest,
  });

  it('are stored only if enabled', async () => {
    gateway = await start(undefined);
    await (await gateway.post('/v1/chat/completions', chat('a private word'))).text();
    expect(await bodiesOfNewest(gateway)).to.equal(null);
  });

  it('are stored, with and without a stream, and shown only to operators', async () => {
    gateway = await start({ bodies: 'on' });
    for (const stream of [false, true]) {
      const words = `hello ${stream ? 'stream' : 'whole'}`;
      await (await gateway.post('/v1/chat/completions', chat(words, { stream }))).text();
      const bodies = await eventually(async () => {
        const found = await bodiesOfNewest(gateway as TestGateway);
        expect(JSON.stringify(found?.request), 'request').to.include(words);
        return found;
      });
      expect(bodies.request).to.include({ isCut: false });
      expect(JSON.stringify(bodies.response.value)).to.include(words);
    }
    const { data } = await gateway.command<Loose>('calls');
    const shown = await gateway.command<Loose>('calls', 'show', data[0].id);
    expect(JSON.stringify(shown.bodies)).to.include('hello stream');
    expect(await (await gateway.get('/api/core/calls')).text()).not.to.include('hello');
    expect((await gateway.get(`/api/core/admin/calls/${data[0].id}`)).status).to.equal(403);
  });

  it('are stored for the named keys, and for no other', async () => {
    gateway = await start({ bodies: 'keys', bodyKeys: ['AAAAAAAAAAAA'] });
    await (await gateway.post('/v1/chat/completions', chat('not meant'))).text();
    expect(await bodiesOfNewest(gateway)).to.equal(null);
  });

  it('contain no secret of the configuration, no credential, and nothing that the operator removes', async () => {
    gateway = await start({ bodies: 'on', redact: ['email', 'card \\d{4}'] });
    const said = `${SECRET} ${encodeURIComponent(SECRET)} ${LEAKED} sk-live-0123456789 ann@mail.example card 1234 fine`;
    upstream.script(respondWith(200, completion(said, { usage: usageOf(3, 2) })));
    await (await gateway.post('/v1/chat/completions', chat(said, { model: 'vendor/m' }))).text();
    const text = await eventually(async () => {
      const kept = JSON.stringify(await bodiesOfNewest(gateway as TestGateway));
      expect(kept).to.include('fine');
      return kept;
    });
    for (const hidden of [SECRET, LEAKED, 'sk-live', 'ann@mail', 'card 1234']) expect(text).not.to.include(hidden);
    expect(text.match(/fine/g)).to.have.length.of.at.least(2);
  });

  it('are truncated at their limit, never inside a secret', async () => {
    gateway = await start({ bodies: 'on', maxBody: 2000 });
    const words = `${'x'.repeat(1990)} ${LEAKED} ${'y'.repeat(20_000)}`;
    await (await gateway.post('/v1/chat/completions', chat(words))).text();
    const bodies = await eventually(async () => {
      const found = await bodiesOfNewest(gateway as TestGateway);
      expect(found).not.to.equal(null);
      return found;
    });
    expect(bodies.request.isCut).to.equal(true);
    expect(JSON.stringify(bodies)).to.have.length.below(6000);
    expect(JSON.stringify(bodies)).not.to.include(LEAKED.slice(0, 12));
  });

  it('are stored with the reason of a failure', async () => {
    gateway = await start({ bodies: 'on' });
    upstream.script(
      respondWith(400, { error: { message: 'the temperature is too hot', type: 'invalid_request_error' } }),
    );
    await (await gateway.post('/v1/chat/completions', chat('hi', { model: 'vendor/m' }))).text();
    const bodies = await eventually(async () => {
      const found = await bodiesOfNewest(gateway as TestGateway);
      expect(found?.error).not.to.equal(undefined);
      return found;
    });
    expect(bodies.error.code).to.be.a('string');
    expect(bodies.response).to.equal(null);
  });

  const WRONG: readonly (readonly [calls: object, message: RegExp])[] = [
    [{ bodies: 'keys' }, /calls\.bodies.*no keys are set/],
    [{ bodies: 'on', bodyKeys: ['AAAAAAAAAAAA'] }, /calls\.bodyKeys.*has no effect/],
    [{ bodies: 'on', redact: ['('] }, /calls\.redact\[0\].*is not a regular expression/],
    [{ bodies: 'on', redact: ['x*'] }, /calls\.redact\[0\].*matches empty text/],
    [{ bodies: 'on', maxBody: '2mb' }, /calls\.maxBody.*up to 1mb/],
    [{ bodies: 'on', keepBodies: '0s' }, /calls\.keepBodies.*is too short/],
    [{ bodies: 'sometimes' }, /calls\.bodies/],
  ];
  for (const [calls, message] of WRONG)
    it(`cannot be stored with calls: ${JSON.stringify(calls)}, and the gateway does not start`, async () => {
      const error = await start(calls).then(
        async (running) => {
          await running.stop();
          return 'it started';
        },
        (thrown: Error) => thrown.message,
      );
      expect(error).to.match(message);
    });
});
