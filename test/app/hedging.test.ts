import { expect } from 'chai';
import { startGateway } from '../support/gateways/gateway.ts';
import { fine, fineStream, hung, type RoutingRig, refusal, startRoutingRig } from '../support/gateways/routing-rig.ts';
import { MINI_FILES } from '../support/plugins/mini-dialect.ts';
import { pluginFile } from '../support/plugins/plugin-file.ts';
import type { Script } from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';

/** Hedges without a limit. */
const AT_ONCE = { after: '10ms', maxExtra: '100%' };
const two = (name: string, hedge: object = AT_ONCE) => ({ targets: [`a/${name}`, `b/${name}`], hedge });
const MODELS = {
  ...Object.fromEntries(['slow', 'first', 'broken', 'left', 'held', 'shown'].map((name) => [name, two(name)])),
  plain: { targets: ['a/plain', 'b/plain'] },
  rare: two('rare', { after: '10ms', maxExtra: '10%' }),
  usual: two('usual', {}),
  alone: { targets: ['a/alone'], hedge: AT_ONCE },
  three: { targets: ['a/three', 'b/three', 'c/three'], hedge: AT_ONCE },
};

/** Cost in micro-dollars of a full response, and of the prompt of an abandoned attempt. */
const RESPONSE = 70;
const PROMPT = 5;

describe('a second target next to a slow one', () => {
  let rig: RoutingRig;
  before(async () => {
    rig = await startRoutingRig(MODELS);
  });
  after(() => rig?.stop());
  beforeEach(() => {
    for (const vendor of Object.values(rig.vendors)) vendor.script(fine);
  });

  const money = async (): Promise<Record<'spent' | 'held', number>> => {
    const { spent, held } = (await (await rig.gateway.get('/api/core/balance')).json()) as Record<string, string>;
    return { spent: Math.round(Number(spent) * 1e6), held: Math.round(Number(held) * 1e6) };
  };
  const charged = async (before: { readonly spent: number }, amount: number): Promise<void> =>
    eventually(async () => {
      expect(await money()).to.deep.equal({ spent: before.spent + amount, held: 0 });
    });
  /** Responds after the other vendor has received the request too. */
  const afterOther = (other: string, then: Script | Buffer): Script => {
    const request = rig.vendors[other]?.request(rig.countOf(other));
    return async (wire) => {
      await request;
      await (typeof then === 'function' ? then(wire) : wire.send(then));
    };
  };

  for (const stream of [false, true]) {
    const [kind, good] = stream ? ['stream', fineStream] : ['response', fine];
    it(`sends its ${kind} if it is faster; the first one is cancelled and charged for its prompt`, async () => {
      const before = await money();
      rig.vendors['a']?.script(hung);
      rig.vendors['b']?.script(good);
      const begun = rig.countOf('a');
      const response = await rig.send('slow', { stream });
      expect(response).to.include({ status: 200, by: 'b', attempts: '2' });
      expect(response.text).to.include(stream ? 'hi' : 'fine');
      await rig.vendors['a']?.requests[begun]?.closed;
      await charged(before, RESPONSE + PROMPT);
    });

    it(`is cancelled when the first one’s ${kind} arrives after all`, async () => {
      const before = await money();
      rig.vendors['a']?.script(afterOther('b', good));
      rig.vendors['b']?.script(hung);
      const begun = rig.countOf('b');
      expect(await rig.send('first', { stream })).to.include({ status: 200, by: 'a', attempts: '2' });
      await rig.vendors['b']?.requests[begun]?.closed;
      await charged(before, RESPONSE + PROMPT);
    });

    it(`is awaited when the first ${kind} fails, and vice versa`, async () => {
      const before = await money();
      rig.vendors['a']?.script(afterOther('b', refusal(500)));
      rig.vendors['b']?.script(async (wire) => {
        await eventually(async () => {
          expect(rig.gateway.logText()).to.include('"next":"wait"');
        });
        await (typeof good === 'function' ? good(wire) : wire.send(good));
      });
      expect(await rig.send('broken', { stream })).to.include({ status: 200, by: 'b', attempts: '2' });
      await charged(before, RESPONSE);
    });

    it(`and the first one may both fail: a third sends the ${kind}, or the caller gets an error free of charge`, async () => {
      const before = await money();
      rig.vendors['a']?.script(afterOther('b', refusal(500)));
      rig.vendors['b']?.script(refusal(500));
      rig.vendors['c']?.script(good);
      expect(await rig.send('three', { stream })).to.include({ status: 200, by: 'c', attempts: '3' });
      await charged(before, RESPONSE);
      rig.vendors['a']?.script(afterOther('b', refusal(500)));
      expect(await rig.send('broken', { stream })).to.include({ status: 503 });
      await charged(before, RESPONSE);
    });

    it(`is cancelled with the first one when the caller of a ${kind} disconnects; both are charged for their prompts`, async () => {
      const before = await money();
      rig.vendors['a']?.script(hung);
      rig.vendors['b']?.script(hung);
      const begun = { a: rig.countOf('a'), b: rig.countOf('b') };
      const caller = new AbortController();
      const body = { model: 'left', stream, max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] };
      const headers = { authorization: `Bearer ${rig.gateway.key}`, 'content-type': 'application/json' };
      const init = { method: 'POST', headers, body: JSON.stringify(body), signal: caller.signal };
      const left = fetch(`${rig.gateway.url}/v1/chat/completions`, init).catch(() => undefined);
      await rig.vendors['b']?.request(begun.b);
      caller.abort();
      await left;
      for (const name of ['a', 'b'] as const) await rig.vendors[name]?.requests[begun[name]]?.closed;
      await charged(before, 2 * PROMPT);
    });
  }

  it('is included in the reservation', async () => {
    const heldBy = async (model: string): Promise<number> => {
      const seen: number[] = [];
      rig.vendors['a']?.script(async (wire) => {
        seen.push((await money()).held);
        await wire.send(fine);
      });
      expect((await rig.send(model)).status).to.equal(200);
      return seen[0] ?? 0;
    };
    const once = await heldBy('plain');
    expect(once).to.be.greaterThan(0);
    expect(await heldBy('held')).to.equal(2 * once);
  });

  it('is used for no more than the configured share of calls @slow', async () => {
    rig.vendors['a']?.script(async (wire) => {
      await wire.pause(150);
      await wire.send(fine);
    });
    const before = rig.countOf('b');
    for (let n = 0; n < 20; n++) expect((await rig.send('rare')).status).to.equal(200);
    expect(rig.countOf('b') - before, 'one, and a tenth of twenty').to.equal(3);
  });

  it('is not used if there is no other target, nor without a known latency, nor with hedging disabled', async () => {
    const slowly: Script = async (wire) => {
      await wire.pause(50);
      await wire.send(fine);
    };
    rig.vendors['a']?.script(slowly);
    for (const model of ['alone', 'usual', 'plain'])
      expect(await rig.send(model)).to.include({ status: 200, by: 'a', attempts: '1' });
  });

  it('is used when a call takes longer than the 95th percentile', async () => {
    for (let n = 0; n < 20; n++) expect((await rig.send('usual')).by).to.equal('a');
    rig.vendors['a']?.script(hung);
    expect(await rig.send('usual')).to.include({ status: 200, by: 'b', attempts: '2' });
  });

  it('does not count the first one as failed', async () => {
    rig.vendors['a']?.script(hung);
    for (let n = 0; n < 5; n++) expect((await rig.send('shown')).attempts).to.equal('2');
    const text = await (await fetch(`${rig.gateway.url}/metrics`)).text();
    expect(text).not.to.match(/tollgate_target_failures_total\{provider="a",model="shown"/);
    const line = rig.gateway.logs.find((each) => each['target'] === 'a/shown' && each['beside'] !== undefined);
    expect(line).to.include({ level: 'info', beside: 'b/shown', after_ms: 10, won: 'b/shown' });
  });
});

/** Slow vendor with its own tools. */
const VENDOR = pluginFile({
  name: 'vendor',
  kind: 'provider',
  setup: `
    const none = () => { throw new Error('not translated'); };
    const response = (body, call) => ({ id: call.id, object: 'chat.completion', created: call.created, model: call.model,
      choices: [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } });
    api.provider({
      specVersion: 1, vendor: 'vendor', baseUrl: 'http://127.0.0.1:1', anyModel: true,
      chat: { request: none, response, stream: none },
      native: () => ({ mini: { path: '/native' } }),
      error: () => ({ class: 'upstream_error', message: 'no' }),
      transport: async () => {
        await new Promise((resolve) => setTimeout(resolve, 100));
        return { status: 200, headers: { 'content-type': 'application/json' },
          body: (async function* () { yield Buffer.from('{"vendor":true}'); })() };
      },
    });`,
});

describe('a call with a vendor’s server tools', () => {
  it('is never sent to two targets at the same time, unlike one without them', async () => {
    const gateway = await startGateway(
      {
        dialects: { mini: { plugin: './mini.mjs' } },
        providers: { one: { plugin: './vendor.mjs' }, two: { plugin: './vendor.mjs' } },
        models: { pair: { targets: ['one/x', 'two/x'], hedge: AT_ONCE } },
        plans: { searching: { serverTools: ['web_search'] } },
        defaultPlan: 'searching',
        billing: 'track',
      },
      { files: { ...MINI_FILES, 'vendor.mjs': VENDOR } },
    );
    try {
      const attempts = async (tools: readonly string[]): Promise<string | null> => {
        const response = await gateway.post('/mini/chat', { m: 'pair', say: 'hi', tools });
        expect(response.status, await response.text()).to.equal(200);
        return response.headers.get('x-tollgate-attempts');
      };
      expect(await attempts([])).to.equal('2');
      expect(await attempts(['web_search'])).to.equal('1');
    } finally {
      await gateway.stop();
    }
  });
});
