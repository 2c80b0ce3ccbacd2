/** Vendors whose streams start well and then break: health is judged by the end of a stream, not by its first token. */
import { mock } from 'node:test';
import { expect } from 'chai';
import { fineStream, type RigReply, type RoutingRig, startRoutingRig } from '../support/gateways/routing-rig.ts';
import { generatedCases } from '../support/generated-cases.ts';
import { delta } from '../support/vendors/openai-vendor.ts';
import { chunk, LAST_CHUNK, type Script, SSE_HEAD } from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';

const NAMES = ['outage', 'back', 'cut', 'left'];
const MODELS = Object.fromEntries(NAMES.map((name) => [name, [`a/${name}`, `b/${name}`]]));
const STREAM = { stream: true };

/** Sends one delta and ends without a finish reason. */
const broken: Script = async (wire) => {
  await wire.send(SSE_HEAD);
  await wire.send(chunk(`data: ${delta('one word')}\n\n`));
  await wire.send(LAST_CHUNK);
};

/** Sends one delta and then stalls. */
const endless: Script = async (wire) => {
  await wire.send(SSE_HEAD);
  await wire.send(chunk(`data: ${delta('one word')}\n\n`));
  await wire.hang();
};

const isLost = ({ status, text }: RigReply): boolean => status !== 200 || text.includes('"error"');

describe('a vendor whose streams break midway', () => {
  let rig: RoutingRig;
  let passedMs = 0;
  let clock: { mock: { restore(): void } } | undefined;
  before(async () => {
    rig = await startRoutingRig(MODELS);
  });
  after(() => rig?.stop());
  beforeEach(() => {
    const startedAt = performance.now();
    passedMs = 0;
    // The clock advances only when a test moves it.
    clock = mock.method(performance, 'now', () => startedAt + passedMs);
    rig.vendors['b']?.script(fineStream);
  });
  afterEach(() => clock?.mock.restore());

  /** Starts a stream and disconnects after the first delta. */
  const cut = async (model: string): Promise<void> => {
    const caller = new AbortController();
    const response = await fetch(`${rig.gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${rig.gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: 'x' }] }),
      signal: caller.signal,
    });
    expect(response.headers.get('x-tollgate-provider')).to.equal('a');
    await response.body?.getReader().read();
    caller.abort();
  };

  it('E54: fails the first calls, then at most one of a hundred, while another target is healthy', async () => {
    rig.vendors['a']?.script(broken);
    const early: RigReply[] = [];
    const later: RigReply[] = [];
    const seconds = 10 + generatedCases(50);
    for (let second = 0; second < seconds; second++) {
      const round = await Promise.all(Array.from({ length: 5 }, () => rig.send('outage', STREAM)));
      (second < 10 ? early : later).push(...round);
      passedMs += 1_000;
    }
    expect(early.filter(isLost).length, 'in the first ten seconds').to.be.within(3, 7);
    const [least, most] = [Math.floor(later.length / 250), Math.ceil(later.length / 100)];
    expect(later.filter(isLost).length, `of ${later.length} afterwards`).to.be.within(least, most);
    expect(later.filter(isLost).map(({ by }) => by)).to.not.include('b');
  });

  it('E54: gets all calls again after one stream has completed @slow', async () => {
    rig.vendors['a']?.script(broken);
    for (let n = 0; n < 3; n++) expect(isLost(await rig.send('back', STREAM))).to.equal(true);
    expect((await rig.send('back', STREAM)).by).to.equal('b');
    rig.vendors['a']?.script(fineStream);
    passedMs += 5_000;
    const all = await Promise.all(Array.from({ length: 4 }, () => rig.send('back', STREAM)));
    expect(all.filter(({ by }) => by === 'a').length, 'one of four tests it').to.be.within(1, 4);
    await eventually(async () => expect((await rig.send('back', STREAM)).by).to.equal('a'));
  });

  it('E54: does not change its health by a stream that its caller cancelled', async () => {
    rig.vendors['a']?.script(endless);
    for (let n = 0; n < 4; n++) await cut('cut');
    rig.vendors['a']?.script(broken);
    for (let n = 0; n < 2; n++) expect((await rig.send('cut', STREAM)).by).to.equal('a');
    rig.vendors['a']?.script(endless);
    await cut('cut');
    rig.vendors['a']?.script(broken);
    expect((await rig.send('cut', STREAM)).by, 'the third that breaks off').to.equal('a');
    expect((await rig.send('cut', STREAM)).by).to.equal('b');
  });

  it('E59: is probed by the next call if the caller of the probe has left', async () => {
    rig.vendors['a']?.script(broken);
    for (let n = 0; n < 3; n++) await rig.send('left', STREAM);
    rig.vendors['a']?.script(endless);
    passedMs += 5_000;
    await cut('left');
    rig.vendors['a']?.script(fineStream);
    await eventually(async () => expect((await rig.send('left', STREAM)).by).to.equal('a'));
  });
});
