import { expect } from 'chai';
import { type IngressRig, startIngressRig } from '../support/gateways/ingress-rig.ts';
import { chunk, LAST_CHUNK, respondWith, SSE_HEAD } from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';

const MODEL = 'gemini/gemini-3.8-flash';
const HI = [{ role: 'user', content: 'Hi' }];
const IMAGE = { inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } };
/** Contains an image, which Messages cannot represent. */
const DRAWN = {
  candidates: [{ content: { role: 'model', parts: [{ text: 'Here.' }, IMAGE] }, index: 0, finishReason: 'STOP' }],
  usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 9, totalTokenCount: 12 },
};

describe('the loss in a translation', () => {
  let rig: IngressRig;
  beforeEach(async () => {
    const broken = { plugin: 'openai-compatible', unknownFields: 'drop', baseUrl: 'http://127.0.0.1:9', models: ['m'] };
    rig = await startIngressRig({ models: { any: ['broken/m', MODEL] }, providers: { broken } });
  });
  afterEach(() => rig.stop());

  const draw = (stream: boolean): void => {
    const whole = respondWith(200, DRAWN);
    rig.script('gemini', async (to) => {
      if (!stream) return to.send(whole);
      for (const part of [SSE_HEAD, chunk(`data: ${JSON.stringify(DRAWN)}\n\n`), LAST_CHUNK]) await to.send(part);
    });
  };

  /** Sends a request; returns the header, the line of the access log and the record of the call. */
  const send = async (path: string, body: object) => {
    const response = await rig.gateway.post(path, body);
    expect(response.status, await response.text()).to.equal(200);
    const id = response.headers.get('x-request-id');
    return eventually(async () => {
      const list = await (await rig.gateway.get(`/api/core/calls?request=${id}`)).json();
      const [record] = (list as { readonly data: readonly Record<string, unknown>[] }).data;
      const line = rig.gateway.logs.find((each) => each['request_id'] === id && each['msg'] === 'request');
      if (!record || !line) throw new Error('not written yet');
      return { header: response.headers.get('x-tollgate-dropped'), record, line };
    });
  };

  const counted = async (): Promise<readonly string[]> =>
    (await (await rig.gateway.get('/metrics')).text())
      .split('\n')
      .filter((line) => line.startsWith('tollgate_dropped_fields_total{'))
      .map((line) => line.slice('tollgate_dropped_fields_total'.length));

  for (const stream of [false, true]) {
    const how = stream ? ' of a stream' : '';

    it(`is reported for a request${how} in the header, the log, the record of the call and a metric (E21)`, async () => {
      draw(stream);
      const body = { model: MODEL, messages: HI, stream, verbosity: 'low', extra_body: { shape_of_mine: 1 } };
      const { header, record, line } = await send('/v1/chat/completions', body);
      const names = ['extra_body.shape_of_mine', 'verbosity'];
      expect(header?.split(', ').sort()).to.deep.equal(names);
      expect(record).to.deep.include({ dropped: names, left_out: null });
      expect(String(line['dropped']).split(', ').sort()).to.deep.equal(names);
      expect([...(await counted())].sort()).to.deep.equal([
        '{provider="gemini",part="request",field="shape_of_mine"} 1',
        '{provider="gemini",part="request",field="verbosity"} 1',
      ]);
    });

    it(`is reported for a response${how} whose format cannot represent it in the log, the record of the call and a metric (E21)`, async () => {
      draw(stream);
      const body = { model: MODEL, max_tokens: 100, messages: HI, stream };
      const { header, record, line } = await send('/v1/messages', body);
      expect(header).to.equal(stream ? null : 'images');
      expect(record).to.deep.include({ dropped: null, left_out: ['images'], outcome: 'ok' });
      expect(line).to.include({ left_out: 'images' });
      expect(await counted()).to.deep.equal(['{provider="gemini",part="response",field="images"} 1']);
    });
  }

  it('is not reported without a loss', async () => {
    draw(false);
    const { header, record, line } = await send('/v1/chat/completions', { model: MODEL, messages: HI });
    expect(header).to.equal(null);
    expect(record).to.include({ dropped: null, left_out: null });
    expect(line).not.to.have.any.keys('dropped', 'left_out');
    expect(await counted()).to.deep.equal([]);
  });

  it('is that of the responding target, not of one before it', async () => {
    draw(false);
    // The first target cannot represent `top_k` and is unreachable; Google's can.
    const body = { model: 'any', messages: HI, top_k: 3 };
    const { header, record } = await send('/v1/chat/completions', body);
    expect(header).to.equal(null);
    expect(record).to.include({ provider: 'gemini', dropped: null });
  });

  it('is counted under one name for made-up fields after the first hundred, and under their own for fields of chats', async () => {
    draw(false);
    for (let round = 0; round < 5; round++) {
      const names = Array.from({ length: 28 }, (_, at) => [`made_up_${round}_${at}`, 1]);
      await send('/v1/chat/completions', { model: MODEL, messages: HI, extra_body: Object.fromEntries(names) });
    }
    await send('/v1/chat/completions', { model: MODEL, messages: HI, verbosity: 'low' });
    const lines = await counted();
    expect(lines).to.include('{provider="gemini",part="request",field="_other"} 40');
    expect(lines).to.include('{provider="gemini",part="request",field="verbosity"} 1');
    expect(lines).to.have.length(102);
  });
});
