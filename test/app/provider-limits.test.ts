import { expect } from 'chai';
import { useTempFolder } from '../support/folders.ts';
import { fine, fineStream, hung, type RoutingRig, refusal, startRoutingRig } from '../support/gateways/routing-rig.ts';
import type { Wire } from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';

const open = (limits: object, more: object = {}): Promise<RoutingRig> =>
  startRoutingRig({ pair: ['a/m', 'b/m'] }, {}, { policies: { limits: { providers: { a: limits } } }, ...more });

const as = (key: string) => ({ authorization: `Bearer ${key}` });

describe('the limits of a provider over all callers', () => {
  const rigs: RoutingRig[] = [];
  const start = async (limits: object, more?: object): Promise<RoutingRig> => {
    const rig = await open(limits, more);
    rigs.push(rig);
    return rig;
  };
  const newKey = async (rig: RoutingRig, user: string): Promise<Record<string, string>> =>
    as((await rig.gateway.command<{ api_key: string }>('keys', 'create', '--user', user)).api_key);
  const waiting = async (rig: RoutingRig): Promise<number> => {
    const text = await (await rig.gateway.get('/metrics')).text();
    return Number(/^tollgate_provider_limits_waiting (\d+)$/m.exec(text)?.[1]);
  };
  afterEach(async () => {
    for (const rig of rigs.splice(0)) await rig.stop();
  });

  for (const stream of [false, true])
    it(`refuse the next call with 429, or route it to another target (${stream ? 'stream' : 'whole'})`, async () => {
      const rig = await start({ rpm: 2, wait: '0s' });
      for (const vendor of ['a', 'b']) rig.vendors[vendor]?.script(stream ? fineStream : fine);
      const ann = await newKey(rig, 'ann');
      expect((await rig.send('a/m', { stream })).status).to.equal(200);
      expect((await rig.send('a/m', { stream }, ann)).status).to.equal(200);
      const body = { model: 'a/m', messages: [{ role: 'user', content: 'hi' }], stream };
      const refused = await rig.gateway.post('/v1/chat/completions', body, await newKey(rig, 'bob'));
      expect(refused.status).to.equal(429);
      expect(Number(refused.headers.get('retry-after'))).to.be.within(1, 60);
      expect(await refused.text())
        .to.include('upstream_rate_limited')
        .and.include('limit of 2 requests a minute for all callers together');
      expect(await rig.send('pair', { stream }, ann)).to.include({ status: 200, by: 'b', attempts: '1' });
      expect(rig.countOf('a')).to.equal(2);
    });

  it('count tokens: reserved but unused ones are released', async () => {
    // Each call uses 60 tokens and reserves about 1,000.
    const rig = await start({ tpm: 1200, wait: '0s' });
    for (let n = 0; n < 3; n++) expect((await rig.send('a/m', { max_tokens: 1000 })).status, `call ${n}`).to.equal(200);
    const refused = await rig.send('a/m', { max_tokens: 1050 });
    expect(refused).to.include({ status: 429 });
    expect(refused.text).to.include('1200 tokens a minute');
  });

  it('queue calls, taking turns between accounts', async () => {
    const rig = await start({ concurrency: 1 });
    const [ann, bob] = [await newKey(rig, 'ann'), await newKey(rig, 'bob')];
    let release: () => void = () => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    rig.vendors['a']?.script(async (wire: Wire) => {
      await held;
      await wire.send(fine as Buffer);
    }, fine);
    const send = (content: string, key: Record<string, string>) =>
      rig.send('a/m', { messages: [{ role: 'user', content }] }, key);
    const all = [send('ann 1', ann)];
    await rig.vendors['a']?.request(0);
    for (const [at, content] of ['ann 2', 'ann 3', 'bob 1'].entries()) {
      all.push(send(content, content.startsWith('ann') ? ann : bob));
      await eventually(async () => expect(await waiting(rig)).to.equal(at + 1));
    }
    release();
    expect((await Promise.all(all)).map(({ status }) => status)).to.deep.equal([200, 200, 200, 200]);
    const order = (rig.vendors['a']?.requests ?? []).map(
      (request) => (request.json() as { messages: { content: string }[] }).messages[0]?.content,
    );
    expect(order).to.deep.equal(['ann 1', 'ann 2', 'bob 1', 'ann 3']);
  });

  it('report the wait of a call, and limit the queue', async () => {
    const rig = await start({ concurrency: 1, queue: 1 });
    let release: () => void = () => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    rig.vendors['a']?.script(async (wire: Wire) => {
      await held;
      await wire.send(fine as Buffer);
    }, fine);
    const body = { model: 'a/m', messages: [{ role: 'user', content: 'hi' }] };
    const first = rig.send('a/m');
    await rig.vendors['a']?.request(0);
    const second = rig.gateway.post('/v1/chat/completions', body);
    await eventually(async () => expect(await waiting(rig)).to.equal(1));
    expect(await rig.send('a/m')).to.include({ status: 429 });
    expect(await rig.send('pair')).to.include({ status: 200, by: 'b' });
    release();
    expect((await first).status).to.equal(200);
    expect(Number((await second).headers.get('x-tollgate-queued-ms'))).to.be.greaterThan(0);
  });

  it('drop callers who disconnected, and release the tokens of a failed attempt @slow', async () => {
    const rig = await start({ concurrency: 1 });
    rig.vendors['a']?.script(hung, refusal(500), fine);
    const callers = [new AbortController(), new AbortController()];
    const leave = (at: number) => callers[at]?.abort();
    const sent = callers.map((caller) =>
      fetch(`${rig.gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { ...as(rig.gateway.key), 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'a/m', messages: [{ role: 'user', content: 'hi' }] }),
        signal: caller.signal,
      }).catch(() => undefined),
    );
    await rig.vendors['a']?.request(0);
    await eventually(async () => expect(await waiting(rig)).to.equal(1));
    leave(1);
    leave(0);
    await Promise.all(sent);
    await eventually(async () => expect(await waiting(rig)).to.equal(0));
    rig.vendors['b']?.script(hung);
    const failed = rig.send('pair');
    await rig.vendors['b']?.request(0);
    // Its call continues at another provider and no longer occupies a place at this one.
    expect(await rig.send('a/m')).to.include({ status: 200, by: 'a' });
    rig.vendors['b']?.script(fine);
    await rig.stop();
    rigs.splice(0);
    await failed.catch(() => undefined);
  });
});

describe('two gateways on one store', () => {
  const folder = useTempFolder('provider-limits');
  const rigs: RoutingRig[] = [];
  after(() => Promise.all(rigs.map((rig) => rig.stop())));

  it('hold their callers together to the limit of a provider', async () => {
    const store = { store: `sqlite:${folder}/data` };
    for (let n = 0; n < 2; n++) rigs.push(await open({ rpm: 3, wait: '0s' }, store));
    const [one, two] = rigs as [RoutingRig, RoutingRig];
    const headers = as(one.gateway.key);
    const requests = [];
    for (const rig of [one, two, one, two, one]) requests.push((await rig.send('a/m', {}, headers)).status);
    expect(requests).to.deep.equal([200, 200, 200, 429, 429]);
  });
});

describe('invalid limits of a provider', () => {
  for (const [what, providers, message] of [
    ['name none', { missing: { rpm: 1 } }, /is no provider/],
    ['wait longer than a hook may take', { a: { rpm: 1, wait: '1m' } }, /is over 25s/],
    ['limit nothing', { a: { wait: '1s' } }, /limits nothing/],
  ] as const)
    it(`are refused at start if they ${what}`, async () => {
      const started = startRoutingRig({}, {}, { policies: { limits: { providers } } });
      const error = await started.then(
        async (rig) => {
          await rig.stop();
          return undefined;
        },
        (thrown: unknown) => thrown,
      );
      expect(String(error)).to.match(message);
    });
});
