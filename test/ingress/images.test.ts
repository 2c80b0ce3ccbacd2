import { expect } from 'chai';
import type OpenAI from 'openai';
import { toFile } from 'openai';
import { imagesCodec } from '../../plugins/formats/openai-operations.ts';
import images from '../../plugins/operations/images.ts';
import { testOperation } from '../conformance/index.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import {
  respondWith,
  type Script,
  type ScriptedUpstream,
  sse,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';

const PNG = 'iVBORw0KGgo=';
/** https://platform.openai.com/docs/api-reference/images/create */
const MADE = {
  created: 1_713_833_628,
  data: [{ b64_json: PNG }],
  usage: {
    ...{ total_tokens: 100, input_tokens: 50, output_tokens: 50 },
    input_tokens_details: { text_tokens: 10, image_tokens: 40 },
  },
};
const EVENTS = [
  { type: 'image_generation.partial_image', b64_json: PNG, partial_image_index: 0 },
  { type: 'image_generation.completed', b64_json: PNG, usage: MADE.usage },
];
/** 10 tokens of text at 5, 40 of images at 10, 50 of the image at 40 dollars per million. */
const COST = '0.00245';

const FILE = { field: 'image', name: 'a.png', contentType: 'image/png', bytes: 8, path: import.meta.filename };

testOperation({
  plugin: images,
  offer: { codec: imagesCodec({}) },
  samples: [
    {
      request: { model: 'm', prompt: 'x' },
      vendor: MADE,
      response: { json: MADE },
      units: { prompt_tokens: 50, completion_tokens: 50 },
    },
    { request: { model: 'm', prompt: 'x', images: [FILE] }, vendor: MADE, response: { json: MADE } },
  ],
});

describe('POST /v1/images/generations and edits', () => {
  let vendor: ScriptedUpstream;
  let gateway: TestGateway;
  let openai: OpenAI;
  let script: Script | Uint8Array = respondWith(200, MADE);

  before(async () => {
    vendor = await startScriptedUpstream((wire) => (typeof script === 'function' ? script(wire) : wire.send(script)));
    const prices = { flux: { input: 0, output: 0, fees: { images: 0.04 } } };
    gateway = await startGateway({
      billing: 'enforce',
      providers: {
        openai: { apiKey: 'k', baseUrl: `${vendor.url}/v1` },
        other: { plugin: 'openai-compatible', apiKey: 'k', baseUrl: `${vendor.url}/v1`, models: ['*'], prices },
      },
      models: { painter: 'openai/gpt-image-1' },
    });
    openai = gateway.openai();
    await gateway.command('accounts', 'credit', 'local', '5.00', '--reason', 'test');
  });
  after(async () => {
    await gateway.stop();
    await vendor.close();
  });

  const balance = async () => {
    const { balance } = (await (await gateway.get('/api/core/balance')).json()) as { balance: string };
    return Number(balance);
  };
  const costOf = (response: Response) => response.headers.get('x-tollgate-cost-usd');
  const image = () => toFile(Buffer.from(PNG, 'base64'), 'a.png', { type: 'image/png' });
  const post = (form: FormData) =>
    fetch(`${gateway.url}/v1/images/edits`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}` },
      body: form,
    });

  it('E73: OpenAI’s SDK gets an image, charged by tokens of text and of images', async () => {
    script = respondWith(200, MADE);
    const body = { model: 'painter', prompt: 'A cute baby sea otter', n: 1, size: '1024x1024' as const };
    const { data, response } = await openai.images.generate({ ...body, quality: 'high' }).withResponse();
    expect(data).to.deep.equal(MADE);
    expect(costOf(response)).to.equal(COST);
    expect(vendor.requests.at(-1)?.json()).to.deep.equal({ ...body, model: 'gpt-image-1', quality: 'high' });
    const wish = await gateway.post('/v1/images/generations', { ...body, wish: 1 });
    expect(wish.headers.get('x-tollgate-dropped')).to.equal('wish');
  });

  it('E73: a stream has partial images, and its cost is charged', async () => {
    const before = await balance();
    script = sse(...EVENTS);
    const seen: object[] = [];
    const stream = await openai.images.generate({ model: 'painter', prompt: 'x', stream: true, partial_images: 1 });
    for await (const event of stream) seen.push(event);
    expect(seen).to.deep.equal(EVENTS);
    expect(before - (await balance())).to.be.closeTo(Number(COST), 1e-9);
  });

  it('E73: an image of a vendor that does not stream is one event, charged once', async () => {
    script = respondWith(200, MADE);
    const before = await balance();
    const events = [];
    const stream = await openai.images.generate({ model: 'painter', prompt: 'x', stream: true });
    for await (const event of stream) events.push(event);
    expect(events).to.deep.equal([
      { type: 'image_generation.completed', created_at: MADE.created, b64_json: PNG, usage: MADE.usage },
    ]);
    expect(before - (await balance())).to.be.closeTo(Number(COST), 1e-9);
  });

  it('E73: a stream without its image ends in an error', async () => {
    script = sse(EVENTS[0] ?? {});
    const response = await gateway.post('/v1/images/generations', { model: 'painter', prompt: 'x', stream: true });
    expect(await response.text()).to.match(/partial_image[\s\S]*data: \{"error":/);
  });

  it('E73: edits are sent with their images and mask, with and without a stream', async () => {
    script = respondWith(200, MADE);
    const both = [await image(), await image()];
    const { data, response } = await openai.images
      .edit({ model: 'painter', prompt: 'Both', image: both, mask: await image(), n: 1, input_fidelity: 'high' })
      .withResponse();
    expect([data, costOf(response)]).to.deep.equal([MADE, COST]);
    const { body = Buffer.alloc(0), headers, path } = vendor.requests.at(-1) ?? {};
    const type = String(headers?.['content-type']);
    const form = await new Response(new Uint8Array(body), { headers: { 'content-type': type } }).formData();
    expect(path).to.equal('/v1/images/edits');
    expect([...form.keys()]).to.deep.equal(['model', 'prompt', 'n', 'input_fidelity', 'image[]', 'image[]', 'mask']);
    expect(form.get('model')).to.equal('gpt-image-1');
    script = sse(...EVENTS);
    const stream = await openai.images.edit({ model: 'painter', prompt: 'x', image: await image(), stream: true });
    let last: object = {};
    for await (const event of stream) last = event;
    expect(last).to.deep.equal(EVENTS[1]);
  });

  it('E73: a vendor with a price per image is charged by it, and one without a price has an unknown cost', async () => {
    script = respondWith(200, {
      created: 1,
      data: [{ url: 'https://example.com/a.png' }, { url: 'https://example.com/b.png' }],
    });
    const send = (model: string) => gateway.post('/v1/images/generations', { model, prompt: 'x', n: 2 });
    expect(costOf(await send('other/flux'))).to.equal('0.08');
    expect(costOf(await send('other/unknown'))).to.not.equal('0.00');
  });

  it('E73: invalid forms and bodies are refused with the place, before any request', async () => {
    const before = vendor.requests.length;
    const say = async (pending: Promise<Response>) => {
      const response = await pending;
      const { error } = (await response.json()) as { error: { param: string | null; message: string } };
      return `${response.status} ${error.param} ${error.message}`;
    };
    const generate = (more: object) =>
      say(gateway.post('/v1/images/generations', { model: 'painter', prompt: 'x', ...more }));
    expect(await generate({ size: 'huge' })).to.match(/^400 size /);
    expect(await generate({ n: 11 })).to.match(/^400 n /);
    expect(await generate({ prompt: '' })).to.match(/^400 prompt /);
    const edit = (fields: Record<string, string | Blob>) => {
      const form = new FormData();
      for (const [name, value] of Object.entries(fields)) form.append(name, value);
      return say(post(form));
    };
    const file = new Blob([Buffer.from(PNG, 'base64')], { type: 'image/png' });
    const fields = { model: 'painter', prompt: 'x' };
    expect(await edit(fields)).to.match(/^400 image /);
    expect(await edit({ ...fields, image: file, other: file })).to.match(/^400 other /);
    expect(await edit({ ...fields, image: file, n: 'many' })).to.match(/^400 n /);
    expect(vendor.requests.length).to.equal(before);
  });

  it('E73: an invalid image is the vendor’s failure, and costs nothing', async () => {
    for (const data of [[], [{}], [null], 'x']) {
      script = respondWith(200, { created: 1, data });
      const response = await gateway.post('/v1/images/generations', { model: 'painter', prompt: 'x' });
      expect(response.status, JSON.stringify(data)).to.equal(503);
    }
  });
});
