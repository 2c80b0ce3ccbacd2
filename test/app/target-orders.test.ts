import path from 'node:path';
import { expect } from 'chai';
import { loadConfig } from '../../config/load-config.ts';
import { useTempFolder } from '../support/folders.ts';
import { fine, type RoutingRig, refusal, startRoutingRig } from '../support/gateways/routing-rig.ts';
import { delta } from '../support/vendors/openai-vendor.ts';
import { chunk, SSE_HEAD } from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';

interface Row {
  readonly target: string;
  readonly state: string;
}

/** Creates an operator of a gateway for the routes of targets. */
async function operate({ gateway }: RoutingRig) {
  const words = ['keys', 'create', '--user', 'root', '--admin'];
  const { api_key: key } = await gateway.command<{ api_key: string }>(...words);
  const headers = { authorization: `Bearer ${key}` };
  const order = async (target: string, word: string) => {
    const url = `/api/core/admin/targets/${encodeURIComponent(target)}/${word}`;
    const response = await gateway.post(url, undefined, headers);
    // biome-ignore lint/suspicious/noExplicitAny: of every shape
    return { status: response.status, body: (await response.json()) as any };
  };
  const list = async () => {
    const response = await gateway.get('/api/core/admin/targets', headers);
    return (await response.json()) as { data: Row[]; drained: string[] };
  };
  const stateOf = async (target: string) => (await list()).data.find((row) => row.target === target)?.state;
  return { headers, order, list, stateOf };
}

describe('operators’ commands for targets', () => {
  const folder = useTempFolder('target-orders');
  let rig: RoutingRig;
  let operator: Awaited<ReturnType<typeof operate>>;
  before(async () => {
    rig = await startRoutingRig({ pair: ['a/m', 'b/m'], nick: 'c/m' }, {}, { store: `sqlite:${folder}/data` });
    operator = await operate(rig);
  });
  after(() => rig?.stop());

  it('drain a target: running calls end, new ones go to the next target, also after a reload, until it is undrained', async () => {
    const { gateway, vendors } = rig;
    let goOn = (): void => {};
    const held = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    vendors['a']?.script(async (wire) => {
      await wire.send(SSE_HEAD);
      await wire.send(chunk(`data: ${delta('one')}\n\n`));
      await held;
      await wire.send(chunk(`data: ${delta(' two', 'stop')}\n\ndata: [DONE]\n\n`));
      await wire.send('0\r\n\r\n');
    }, fine);
    const running = rig.send('pair', { stream: true });
    await eventually(async () => expect(rig.countOf('a')).to.equal(1));
    expect(await operator.order('a/m', 'drain')).to.deep.include({
      ...{ status: 200, body: { object: 'target', target: 'a/m', drained: true } },
    });
    expect(await rig.send('pair')).to.include({ status: 200, by: 'b', attempts: '1' });
    goOn();
    expect((await running).text).to.include(' two');
    expect(await operator.list()).to.have.deep.property('drained', ['a/m']);
    expect(await operator.stateOf('a/m')).to.equal('drained');
    const metrics = await (await gateway.get('/metrics', operator.headers)).text();
    expect(metrics)
      .to.include('tollgate_target_state{provider="a",model="m"} 3')
      .and.to.include('tollgate_alias_targets_available{alias="pair"} 1');
    const configPath = path.join(gateway.folder, 'tollgate.config.json');
    await gateway.use(await loadConfig({ cwd: gateway.folder, env: {}, configPath }));
    expect(await rig.send('pair')).to.include({ by: 'b', attempts: '1' });
    expect(await operator.order('a/m', 'undrain')).to.have.nested.property('body.drained', false);
    expect(await rig.send('pair')).to.include({ by: 'a', attempts: '1' });
    const audit = await gateway.command<{ data: object[] }>('audit', '--subject', 'a/m');
    expect(audit.data.map((entry) => (entry as { action: string }).action)).to.deep.equal([
      'target.undrain',
      'target.drain',
    ]);
  });

  it('refuse a call whose targets are all drained, with an explanation, without calling any of them', async () => {
    const before = rig.countOf('c');
    await operator.order('c', 'drain');
    for (const model of ['nick', 'c/other']) {
      const { status, text } = await rig.send(model);
      expect([status, JSON.parse(text).error.code]).to.deep.equal([503, 'provider_unavailable']);
      expect(text).to.include('An operator drained all targets of this model');
    }
    expect(rig.countOf('c')).to.equal(before);
    expect(await operator.stateOf('c/m'), 'a configured target without calls').to.equal('drained');
    const { status, body } = await operator.order('c/m', 'undrain');
    expect([status, body.error.message]).to.deep.equal([
      409,
      'The whole provider "c" is drained. Undrain the provider.',
    ]);
    await operator.order('c', 'undrain');
    expect(await rig.send('nick')).to.include({ status: 200, by: 'c' });
  });

  it('reset the health of an unhealthy target: the next call goes there', async () => {
    rig.vendors['a']?.script(refusal(429, { 'retry-after': '200' }), fine);
    expect(await rig.send('pair')).to.include({ by: 'b', attempts: '2' });
    expect(await operator.stateOf('a/m')).to.equal('open');
    expect(await rig.send('pair')).to.include({ by: 'b', attempts: '1' });
    expect(await operator.order('a/m', 'reset')).to.have.property('status', 200);
    expect(await operator.stateOf('a/m')).to.equal('closed');
    expect(await rig.send('pair')).to.include({ by: 'a', attempts: '1' });
  });

  it('apply to the other gateways on the store, also from the command line, and to one that starts later @slow', async () => {
    const config = { store: `sqlite:${folder}/data` };
    const urls = Object.fromEntries(Object.entries(rig.vendors).map(([name, { url }]) => [name, { baseUrl: url }]));
    const headers = { authorization: `Bearer ${rig.gateway.key}` };
    const start = () => startRoutingRig({ pair: ['a/m', 'b/m'] }, urls, config);
    const two = await start();
    try {
      rig.vendors['a']?.script(refusal(429, { 'retry-after': '200' }), fine);
      expect(await two.send('pair', {}, headers)).to.include({ by: 'b', attempts: '2' });
      await rig.gateway.command('target', 'reset', 'a');
      await eventually(async () => expect(await two.send('pair', {}, headers)).to.include({ by: 'a' }));
      await rig.gateway.command('target', 'drain', 'a/m');
      await eventually(async () => expect(await two.send('pair', {}, headers)).to.include({ by: 'b' }));
      const three = await start();
      try {
        expect(await three.send('pair', {}, headers), 'its first call').to.include({ by: 'b', attempts: '1' });
      } finally {
        await three.stop();
      }
    } finally {
      await two.stop();
      await operator.order('a/m', 'undrain');
    }
  });

  it('are refused for an unknown target, with a suggestion', async () => {
    for (const [name, words] of [
      ['pair', 'It is an alias; use one of its targets, a/m, b/m.'],
      ['nowhere/m', 'List them with "tollgate models providers"'],
      ['nowhere', 'Target or provider "nowhere" not found'],
      ['x'.repeat(400), 'Target or provider'],
    ] as const) {
      const { status, body } = await operator.order(name, 'drain');
      expect([status, body.error.code], name).to.deep.equal([404, 'not_found']);
      expect(body.error.message).to.include(words);
    }
    expect((await operator.list()).drained).to.deep.equal([]);
  });
});
