import { expect } from 'chai';
import { readApiKeys } from '../../plugins/providers/kit/index.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { fine, fineStream, type RoutingRig, refusal, startRoutingRig } from '../support/gateways/routing-rig.ts';
import { completion } from '../support/vendors/openai-vendor.ts';
import {
  respondWith,
  type Script,
  type ScriptedUpstream,
  startScriptedUpstream,
  type Wire,
} from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';

const SECRETS = { one: 'sk-pool-one-0123456789', two: 'sk-pool-two-0123456789', three: 'sk-pool-three-012345678' };
const POOL = [
  { name: 'one', key: SECRETS.one },
  { name: 'two', key: SECRETS.two },
  { name: 'three', key: SECRETS.three, weight: 0 },
];

/** Name of the key in a request. */
const keyOf = ({ headers }: { readonly headers: Readonly<Record<string, string>> }): string =>
  Object.entries(SECRETS).find(([, secret]) => headers['authorization'] === `Bearer ${secret}`)?.[0] ?? 'none';

/** Refuses requests with these keys and responds normally to the others. */
const refusing =
  (refused: Readonly<Record<string, Buffer>>, good: Script | Buffer = fine): Script =>
  (wire: Wire) => {
    const script = refused[keyOf(wire.request)] ?? good;
    return typeof script === 'function' ? script(wire) : wire.send(script);
  };

describe('a provider with several keys', () => {
  let rig: RoutingRig;
  let admin: Record<string, string>;
  const keysSince = (count: number): readonly string[] =>
    (rig.vendors['a']?.requests ?? []).slice(count).map((request) => keyOf(request));

  beforeEach(async () => {
    rig = await startRoutingRig(
      { pair: ['a/m', 'b/m'] },
      { a: { apiKey: undefined, apiKeys: POOL } },
      { policies: { metrics: { auth: 'none' } } },
    );
    const words = ['keys', 'create', '--user', 'root', '--admin'];
    const { api_key: key } = await rig.gateway.command<{ api_key: string }>(...words);
    admin = { authorization: `Bearer ${key}` };
  });
  afterEach(() => rig.stop());

  const session = (id: string) => ({ 'x-session-id': id });

  it('keeps a conversation on one key, distributes many over all, and does not use reserves (E69)', async () => {
    for (let n = 0; n < 12; n++) await rig.send('a/m', {}, session(`s${n}`));
    const first = keysSince(0);
    expect(new Set(first)).to.deep.equal(new Set(['one', 'two']));
    for (let n = 0; n < 12; n++) await rig.send('a/m', { stream: n % 2 === 1 }, session(`s${n}`));
    expect(keysSince(12)).to.deep.equal(first);
  });

  it('recognizes a conversation without a session by its beginning', async () => {
    const turns = [
      { role: 'system', content: 'You are brief.' },
      { role: 'user', content: 'What is a toll?' },
    ];
    await rig.send('a/m', { messages: turns });
    for (let n = 0; n < 5; n++)
      await rig.send('a/m', {
        messages: [...turns, { role: 'assistant', content: 'A fee.' }, { role: 'user', content: `And ${n}?` }],
      });
    expect(new Set(keysSince(0)).size).to.equal(1);
  });

  for (const stream of [false, true])
    for (const status of [401, 403, 429])
      it(`continues with the next key after ${status}, and pauses only the first (${stream ? 'stream' : 'whole'})`, async () => {
        const good = stream ? fineStream : fine;
        rig.vendors['a']?.script(refusing({ one: refusal(status, { 'retry-after': '60' }) }, good));
        const requests = [];
        for (let n = 0; n < 8; n++) requests.push(await rig.send('pair', { stream }, session(`s${n}`)));
        expect(requests.map(({ by }) => by)).to.deep.equal(Array(8).fill('a'));
        expect(keysSince(0).filter((key) => key === 'one')).to.have.length(1);
        expect(requests.filter(({ attempts }) => attempts === '2')).to.have.length(1);
        const { data } = (await (await rig.gateway.get('/api/core/admin/targets', admin)).json()) as {
          data: { target: string; state: string; key?: string }[];
        };
        const states = Object.fromEntries(data.map(({ target, state }) => [target, state]));
        expect(states).to.deep.include({ 'a#one/m': 'open', 'a#two/m': 'closed', 'a/m': 'closed' });
        const metrics = await (await rig.gateway.get('/metrics')).text();
        expect(metrics).to.include('tollgate_provider_key_state{provider="a",key="one"} 2');
        expect(metrics).to.include('tollgate_provider_key_state{provider="a",key="two"} 0');
        expect(metrics).to.include('tollgate_target_state{provider="a",model="m"} 0');
        const failure = status === 429 ? 'rate_limit' : status === 403 ? 'permission' : 'authentication';
        expect(metrics).to.include(
          `tollgate_provider_key_attempts_total{provider="a",key="one",failure="${failure}"} 1`,
        );
      });

  it('skips its target while all keys are paused', async () => {
    const waits = { one: refusal(429, { 'retry-after': '60' }), two: refusal(429, { 'retry-after-ms': '700' }) };
    rig.vendors['a']?.script(refusing({ ...waits, three: refusal(401) }));
    expect(await rig.send('pair')).to.include({ by: 'b', attempts: '4' });
    const until = performance.now() + 700;
    expect(await rig.send('pair')).to.include({ by: 'b', attempts: '1' });
    while (performance.now() < until) await new Promise((resolve) => setImmediate(resolve));
    rig.vendors['a']?.script(fine);
    const before = rig.countOf('a');
    expect(await rig.send('pair')).to.include({ by: 'a', attempts: '1' });
    expect(keysSince(before)).to.deep.equal(['two']);
  });

  it('does not attribute a vendor’s failure to a key, nor try another one', async () => {
    rig.vendors['a']?.script(refusal(500));
    expect(await rig.send('pair')).to.include({ by: 'b', attempts: '2' });
    rig.vendors['a']?.script(refusal(400));
    expect(await rig.send('a/m')).to.include({ status: 400, attempts: null });
    expect(rig.countOf('a')).to.equal(2);
  });

  it('writes the names of keys to records and logs, and never the keys', async () => {
    rig.vendors['a']?.script(refusing({ one: respondWith(401, { error: { message: `bad key ${SECRETS.one}` } }) }));
    for (let n = 0; n < 6; n++) await rig.send('a/m', {}, session(`s${n}`));
    const calls = await eventually(async () => {
      const text = await (await rig.gateway.get('/api/core/admin/calls', admin)).text();
      expect(JSON.parse(text).data).to.have.length(6);
      return text;
    });
    const rows = (JSON.parse(calls) as { data: { attempts: { key: string; class?: string }[] }[] }).data;
    const attempts = rows.flatMap((row) => row.attempts.map(({ key, class: failure }) => `${key} ${failure ?? 'ok'}`));
    expect(new Set(attempts)).to.deep.equal(new Set(['one authentication', 'two ok']));
    expect(rig.gateway.logText()).to.include('"key":"one"').and.include('"next":"next key"');
    for (const secret of Object.values(SECRETS)) expect(rig.gateway.logText() + calls).not.to.include(secret);
  });
});

describe('the keys of a list', () => {
  for (const [what, config, message] of [
    ['stand next to an apiKey', { apiKey: 'x', apiKeys: POOL }, 'cannot be combined with `apiKey`'],
    ['have one name twice', { apiKeys: [POOL[0], { ...POOL[1], name: 'one' }] }, 'repeats the name "one"'],
    ['are all reserves', { apiKeys: [POOL[2]] }, 'no key with a weight'],
  ] as const)
    it(`are refused if they ${what}`, () => {
      expect(() => readApiKeys(config as Parameters<typeof readApiKeys>[0])).to.throw(message);
    });
});

describe('keys that sign', () => {
  const plugin = `
export default {
  name: 'signer', kind: 'provider', apiVersion: 1,
  configSchema: { type: 'object', properties: { baseUrl: { type: 'string', format: 'url' } } },
  setup(api, { baseUrl }) {
    const by = (name) => ({
      header: 'x-signed', value: undefined, required: false, headers: ({ method }) => ({ 'x-signed': name + ' ' + method }),
    });
    const keys = ['one', 'two'].map((name, at) => ({ name, weight: 1 - at, credential: by(name) }));
    api.provider({
      specVersion: 1, vendor: 'signer', baseUrl, anyModel: true, credential: keys[0].credential, keys,
      chat: {
        request: (input, call) => ({ path: '/chat', body: { model: call.model } }),
        response: (body) => body,
        stream: () => { throw new Error('not here'); },
      },
      error: (status) => ({ class: status === 403 ? 'authentication' : 'upstream_error', message: 'no' }),
    });
  },
};`;
  let vendor: ScriptedUpstream;
  let gateway: TestGateway;
  afterEach(async () => {
    await gateway.stop();
    await vendor.close();
  });

  it('sign each attempt with its own key', async () => {
    vendor = await startScriptedUpstream(respondWith(403, {}));
    vendor.script(respondWith(403, {}), respondWith(200, completion()));
    gateway = await startGateway(
      { providers: { signer: { plugin: './signer.mjs', baseUrl: `${vendor.url}/v1` } } },
      { files: { 'signer.mjs': plugin } },
    );
    const body = { model: 'signer/m', messages: [{ role: 'user', content: 'hi' }] };
    expect((await gateway.post('/v1/chat/completions', body)).status).to.equal(200);
    expect(vendor.requests.map(({ headers }) => headers['x-signed'])).to.deep.equal(['one POST', 'two POST']);
  });
});
