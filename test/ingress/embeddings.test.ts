/**
 * Known defects of other gateways in embeddings (cases G65 and G66), through a complete gateway and the official SDK.
 */
import { expect } from 'chai';
import { type IngressRig, startIngressRig } from '../support/gateways/ingress-rig.ts';
import { respondWith } from '../support/vendors/scripted-upstream.ts';

const VECTOR = Array.from({ length: 768 }, (_, at) => Math.fround(Math.sin(at)));
const LIST = {
  object: 'list',
  data: [{ object: 'embedding', index: 0, embedding: VECTOR }],
  model: 'vendor-model',
  usage: { prompt_tokens: 3, total_tokens: 3 },
};
/** One model per vendor with embeddings. */
const MODELS = [
  ['openai', 'openai/text-embedding-3-small'],
  ['mistral', 'mistral/mistral-embed'],
] as const;

describe('POST /v1/embeddings', () => {
  let rig: IngressRig;
  before(async () => {
    rig = await startIngressRig();
  });
  after(() => rig.stop());

  for (const [wire, model] of MODELS) {
    it(`G65: numbers of ${wire} are base64 of float32 if the SDK requests it`, async () => {
      rig.script(wire, respondWith(200, LIST));
      const { data } = await rig.gateway.openai().embeddings.create({ model, input: 'x' });
      expect(data[0]?.embedding).to.have.length(768);
      expect([...(data[0]?.embedding ?? [])]).to.deep.equal(VECTOR);
      const raw = await rig.gateway.post('/v1/embeddings', { model, input: 'x', encoding_format: 'base64' });
      const { data: coded } = (await raw.json()) as { data: { embedding: string }[] };
      expect(Buffer.from(coded[0]?.embedding ?? '', 'base64')).to.have.length(768 * 4);
    });

    it(`G65: numbers of ${wire} stay numbers if the client requests them`, async () => {
      rig.script(wire, respondWith(200, LIST));
      const { data } = await rig.gateway.openai().embeddings.create({ model, input: 'x', encoding_format: 'float' });
      expect(data[0]?.embedding).to.deep.equal(VECTOR);
    });
  }

  for (const [server, list] of Object.entries({
    'Text Embeddings Inference': [
      [1, 0],
      [0, 1],
    ],
    'llama.cpp': [
      { index: 1, embedding: [[0, 1]] },
      { index: 0, embedding: [[1, 0]] },
    ],
    'a server of OpenAI’s format without its envelope': [
      { index: 0, embedding: [1, 0] },
      { index: 1, embedding: [0, 1] },
    ],
  }))
    it(`G29: a list alone is a response: ${server}`, async () => {
      rig.script('openai', respondWith(200, list));
      const response = await rig.gateway.post('/v1/embeddings', {
        ...{ model: 'openai/text-embedding-3-small', input: ['x', 'y'] },
      });
      const { data, usage } = (await response.json()) as {
        data: { index: number; embedding: number[] }[];
        usage: unknown;
      };
      expect(response.status).to.equal(200);
      expect(data.toSorted((a, b) => a.index - b.index).map(({ embedding }) => embedding)).to.deep.equal([
        [1, 0],
        [0, 1],
      ]);
      expect(usage).to.deep.equal({ prompt_tokens: 0, total_tokens: 0 });
      // The tokens are estimated.
      expect(Number(response.headers.get('x-tollgate-cost-usd'))).to.be.greaterThan(0);
    });

  it('G66: ids of tokens as input reach the vendor', async () => {
    for (const [input, count] of [
      [[1, 2, 3], 1],
      [[[1, 2], [3]], 2],
    ] as const) {
      const data = Array.from({ length: count }, (_, index) => ({ ...LIST.data[0], index }));
      rig.script('openai', respondWith(200, { ...LIST, data }));
      await rig.gateway
        .openai()
        .embeddings.create({ model: 'openai/text-embedding-3-small', input: input as unknown as number[] });
      expect(rig.lastBody('openai')).to.deep.include({ input });
    }
  });

  it('E73: Cohere’s clients get vectors in their format, from any provider', async () => {
    rig.script('openai', respondWith(200, { ...LIST, data: [1, 0].map((index) => ({ ...LIST.data[0], index })) }));
    const body = { model: 'openai/text-embedding-3-small', texts: ['x', 'y'], output_dimension: 768 };
    const more = { input_type: 'search_query', embedding_types: ['float'] };
    const response = await rig.gateway.post('/v2/embed', { ...body, ...more });
    const { id, ...rest } = (await response.json()) as Record<string, unknown>;
    expect(rest).to.deep.equal({
      ...{ response_type: 'embeddings_by_type', texts: ['x', 'y'], embeddings: { float: [VECTOR, VECTOR] } },
      meta: { api_version: { version: '2' }, billed_units: { input_tokens: 3 } },
    });
    expect(id).to.equal(response.headers.get('x-request-id'));
    expect(rig.lastBody('openai')).to.deep.equal({
      ...{ model: 'text-embedding-3-small', input: ['x', 'y'], dimensions: 768 },
    });
    expect(response.headers.get('x-tollgate-dropped')).to.equal('input_type');
    const bytes = await rig.gateway.post('/v2/embed', { ...body, embedding_types: ['int8'] });
    expect(bytes.status).to.equal(400);
    expect(await bytes.text()).to.include('embedding_types[0]');
  });

  it('E73: a response has an id, without which Mistral’s SDK refuses it', async () => {
    rig.script('mistral', respondWith(200, { ...LIST, id: 'vendors-own' }));
    const response = await rig.gateway.post('/v1/embeddings', { model: 'mistral/mistral-embed', input: 'x' });
    expect(await response.json()).to.include({ id: response.headers.get('x-request-id') });
  });
});
