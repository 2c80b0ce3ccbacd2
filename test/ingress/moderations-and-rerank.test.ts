import { expect } from 'chai';
import { moderationsCodec, rerankCodec } from '../../plugins/formats/openai-operations.ts';
import moderations from '../../plugins/operations/moderations.ts';
import rerank from '../../plugins/operations/rerank.ts';
import { testOperation } from '../conformance/index.ts';
import { type IngressRig, startIngressRig } from '../support/gateways/ingress-rig.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';

/** https://platform.openai.com/docs/api-reference/moderations/create, with two categories. */
const MODERATED = {
  id: 'modr-970d409ef3bef3b70c73d8232df86e7d',
  model: 'omni-moderation-latest',
  results: [
    {
      flagged: true,
      categories: { violence: true, sexual: false },
      category_scores: { violence: 0.99, sexual: 0.0001 },
      category_applied_input_types: { violence: ['text'], sexual: ['text'] },
    },
  ],
};
/** https://docs.cohere.com/reference/rerank */
const COHERE = {
  results: [
    { index: 1, relevance_score: 0.999071 },
    { index: 0, relevance_score: 0.32713068 },
  ],
  id: '07734bd2-2473-4f07-94e1-0d9f0e6843cf',
  meta: { api_version: { version: '2' }, billed_units: { search_units: 1 } },
};
/** https://docs.vllm.ai: in the order of the request. */
const UNSORTED = {
  ...{ id: 'rerank-1', model: 'm', usage: { total_tokens: 9 } },
  results: [
    { index: 1, relevance_score: 0.2 },
    { index: 0, relevance_score: 3.5 },
  ],
};
/** https://huggingface.github.io/text-embeddings-inference */
const BARE = [
  { index: 0, score: 0.1 },
  { index: 1, score: 0.9 },
];
/** https://jina.ai/reranker */
const JINA = {
  model: 'jina-reranker-v2-base-multilingual',
  usage: { total_tokens: 815 },
  results: [{ index: 1, document: { text: 'Washington, D.C.' }, relevance_score: 0.8 }],
};
const REQUEST = { query: 'Which is the capital?', documents: ['Carson City', 'Washington, D.C.'] };

testOperation({
  plugin: moderations,
  offer: { codec: moderationsCodec({}) },
  samples: [
    {
      request: { model: 'm', input: ['I want to hit them.'] },
      vendor: MODERATED,
      response: MODERATED,
      units: { prompt_tokens: 5 },
    },
    {
      // https://docs.mistral.ai/api/endpoint/classifiers: no verdict, but usage
      request: { model: 'm', input: 'x' },
      vendor: {
        ...{ id: 'm-1', model: 'mistral-moderation-latest', usage: { prompt_tokens: 9, total_tokens: 9 } },
        results: [{ categories: { violence: false }, category_scores: { violence: 0.1 } }],
      },
      response: {
        ...{ id: 'm-1', model: 'mistral-moderation-latest', usage: { prompt_tokens: 9, total_tokens: 9 } },
        results: [{ flagged: false, categories: { violence: false }, category_scores: { violence: 0.1 } }],
      },
      units: { prompt_tokens: 9 },
    },
  ],
});

testOperation({
  plugin: rerank,
  offer: { codec: rerankCodec({}) },
  samples: [
    {
      request: { model: 'm', ...REQUEST },
      vendor: COHERE,
      response: {
        ...{ id: COHERE.id, model: 'conformance-model', results: COHERE.results },
        meta: { billed_units: { search_units: 1 } },
      },
    },
    {
      request: { model: 'm', ...REQUEST, return_documents: true },
      vendor: JINA,
      response: {
        ...{ id: 'rerank-conformance', model: JINA.model, results: JINA.results, usage: { total_tokens: 815 } },
      },
      units: { prompt_tokens: 815 },
    },
    // The most relevant document is first, and a list alone is a response.
    {
      request: { model: 'm', ...REQUEST },
      vendor: UNSORTED,
      response: { ...UNSORTED, results: UNSORTED.results.toReversed() },
      units: { prompt_tokens: 9 },
    },
    {
      request: { model: 'm', ...REQUEST },
      vendor: BARE,
      response: {
        ...{ id: 'rerank-conformance', model: 'conformance-model' },
        results: [
          { index: 1, relevance_score: 0.9 },
          { index: 0, relevance_score: 0.1 },
        ],
      },
    },
  ],
});

describe('moderations and rerank through a gateway', () => {
  let rig: IngressRig;
  let vendor: ScriptedUpstream;
  let ranked: object = COHERE;
  before(async () => {
    vendor = await startScriptedUpstream(({ send }) => send(respondWith(200, ranked)));
    const server = { plugin: 'openai-compatible', baseUrl: `${vendor.url}/v1`, apiKey: 'k', models: ['*'] };
    const prices = {
      'rerank-v4': { input: 0, output: 0, fees: { search_units: 0.002 } },
      jina: { input: 0.05, output: 0 },
    };
    rig = await startIngressRig({ providers: { server: { ...server, prices } }, models: { ranker: 'server/jina-v2' } });
  });
  after(async () => {
    await rig.stop();
    await vendor.close();
  });

  /** Reranks documents in order; returns the charge. */
  const rank = async (path: string, model: string, more: object = {}) => {
    const response = await rig.gateway.post(path, { model, ...REQUEST, ...more });
    const cost = response.headers.get('x-tollgate-cost-usd');
    return { status: response.status, cost, body: (await response.json()) as Record<string, unknown> };
  };

  it('E73: Cohere’s and Jina’s formats and prices are supported on both routes', async () => {
    ranked = COHERE;
    for (const path of ['/v1/rerank', '/v2/rerank'])
      expect(await rank(path, 'server/rerank-v4', { top_n: 2 })).to.deep.include({ status: 200, cost: '0.002' });
    expect(vendor.requests.at(-1)?.path).to.equal('/v1/rerank');
    expect(vendor.requests.at(-1)?.json()).to.deep.equal({ model: 'rerank-v4', ...REQUEST, top_n: 2 });
    ranked = JINA;
    const { cost, body } = await rank('/v1/rerank', 'ranker', { return_documents: true });
    expect([cost, body['results']]).to.deep.equal(['0.00004075', JINA.results]);
    expect((await rank('/api/core/server/rerank', 'jina-v2')).body['results']).to.deep.equal([
      { index: 1, relevance_score: 0.8 },
    ]);
    expect((await rank('/openai/v1/rerank', 'ranker')).status).to.equal(200);
  });

  it('E73: clients of Cohere’s v2 get their required `meta`, with any vendor', async () => {
    ranked = JINA;
    expect((await rank('/v2/rerank', 'ranker')).body['meta']).to.deep.equal({ api_version: { version: '2' } });
    expect((await rank('/v1/rerank', 'ranker')).body).to.not.have.property('meta');
    ranked = COHERE;
    expect((await rank('/v2/rerank', 'server/rerank-v4')).body['meta']).to.deep.equal({
      billed_units: { search_units: 1 },
    });
  });

  it('G29: documents that a server returns in another order are sorted by relevance', async () => {
    for (const body of [UNSORTED, UNSORTED.results]) {
      ranked = body;
      expect((await rank('/v1/rerank', 'ranker')).body['results']).to.deep.equal(UNSORTED.results.toReversed());
    }
  });

  it('G29: a list alone, as Text Embeddings Inference returns it, is a response', async () => {
    ranked = BARE;
    const { status, body } = await rank('/v2/rerank', 'ranker');
    expect([status, body['results']]).to.deep.equal([
      200,
      [
        { index: 1, relevance_score: 0.9 },
        { index: 0, relevance_score: 0.1 },
      ],
    ]);
  });

  it('G29: documents that are objects with a text reach a server as texts', async () => {
    ranked = JINA;
    const documents = REQUEST.documents.map((text) => ({ text }));
    const { body } = await rank('/v1/rerank', 'ranker', { documents, return_documents: true });
    expect(vendor.requests.at(-1)?.json()).to.deep.include({ documents: REQUEST.documents });
    expect(body['results']).to.deep.equal(JINA.results);
  });

  it('E73: without a price the cost is unknown, and a vendor without usage is estimated', async () => {
    ranked = { results: JINA.results };
    expect((await rank('/v1/rerank', 'server/missing-knows')).cost).to.equal('unknown');
    const response = await rig.gateway.post('/v1/rerank', { model: 'ranker', ...REQUEST });
    expect(Number(response.headers.get('x-tollgate-cost-usd'))).to.be.greaterThan(0);
  });

  it('E73: a result that is not a document of the request is the vendor’s failure', async () => {
    for (const index of [2, -1, 0.5, '1', null]) {
      ranked = { results: [{ index, relevance_score: 1 }] };
      expect((await rank('/v1/rerank', 'ranker')).status, String(index)).to.equal(503);
    }
  });

  it('E73: OpenAI’s SDK requests a moderation, with the default model and free of charge', async () => {
    rig.script('openai', respondWith(200, MODERATED));
    const openai = rig.gateway.openai();
    const { data, response } = await openai.moderations.create({ input: 'I want to hit them.' }).withResponse();
    expect(data).to.deep.equal(MODERATED);
    expect(response.headers.get('x-tollgate-cost-usd')).to.equal('0.00');
    expect(rig.lastBody('openai')).to.deep.equal({ model: 'omni-moderation-latest', input: 'I want to hit them.' });
    expect(rig.sent('openai').at(-1)?.path).to.match(/\/v1\/moderations$/);
    const parts = [{ type: 'image_url' as const, image_url: { url: 'https://example.com/a.png' } }];
    await openai.moderations.create({ model: 'openai/omni-moderation-latest', input: parts });
    expect(rig.lastBody('openai')).to.deep.equal({ model: 'omni-moderation-latest', input: parts });
  });

  it('E73: a field that no vendor supports is dropped and reported', async () => {
    rig.script('openai', respondWith(200, MODERATED));
    const response = await rig.gateway.post('/v1/moderations', { input: 'x', wish: 1 });
    expect(response.headers.get('x-tollgate-dropped')).to.equal('wish');
    expect(rig.lastBody('openai')).to.not.have.property('wish');
  });

  it('E73: invalid requests, vendors without the operation, and vendors’ garbage cause clear errors', async () => {
    const say = async (path: string, body: unknown) => {
      const response = await rig.gateway.post(path, body);
      const { error } = (await response.json()) as { error: { code: string; message: string } };
      return `${response.status} ${error.code} ${error.message}`;
    };
    expect(await say('/v1/moderations', { input: [] })).to.match(/^400 invalid_request .*input/);
    expect(await say('/v1/moderations', { input: [{ type: 'video' }] })).to.match(/^400 .*input\[0\]\.type/);
    expect(await say('/v1/rerank', { model: 'm', query: 'x', documents: [] })).to.match(/^400 .*documents/);
    expect(await say('/v1/rerank', { ...REQUEST, model: 'openai/gpt-5' })).to.match(/^404 /);
    rig.script('mistral', respondWith(200, { results: [{ index: 7, relevance_score: 1 }] }));
    expect(await say('/v1/moderations', { model: 'mistral/mistral-moderation-latest', input: 'x' })).to.match(
      /^503 provider_unavailable/,
    );
  });
});
