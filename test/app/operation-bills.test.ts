import { expect } from 'chai';
import type { JsonObject } from '../../contract/index.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import {
  respondWith,
  type Script,
  type ScriptedUpstream,
  sse,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';

/** Response of an operation other than chat, and the expected charge: the counterparts of E3 to E7. */
interface Case {
  readonly title: string;
  readonly path: string;
  readonly request: JsonObject;
  readonly said: JsonObject;
  readonly usd: string;
  readonly parts: readonly string[];
}

const embedded = { object: 'list', data: [{ object: 'embedding', index: 0, embedding: [1] }], model: 'm' };
const ranked = { results: [{ index: 0, relevance_score: 1 }] };
const judged = { id: 'm', model: 'm', results: [{ flagged: false, categories: {}, category_scores: {} }] };
const made = { created: 1, data: [{ b64_json: 'iVBORw0KGgo=' }] };
const input = 'Hello there';
const documents = { query: 'q', documents: ['a'] };

/**
 * 10^10 ticks are one dollar: https://docs.x.ai/developers/cost-tracking.
 * https://openrouter.ai/docs/api/api-reference/embeddings
 */
const CASES: readonly Case[] = [
  {
    title: 'embeddings of OpenRouter, which tells its own sum (E5)',
    path: '/v1/embeddings',
    request: { model: 'openrouter/openai/text-embedding-3-small', input },
    said: { ...embedded, usage: { prompt_tokens: 2, total_tokens: 2, cost: 0.00004 } },
    ...{ usd: '0.00004', parts: ['vendor_charge'] },
  },
  {
    title: 'embeddings of OpenRouter by a key of the operator’s own at the vendor behind it (E5)',
    path: '/v1/embeddings',
    request: { model: 'openrouter/openai/text-embedding-3-small', input },
    said: {
      ...embedded,
      usage: { prompt_tokens: 2, cost: 0.00001, is_byok: true, cost_details: { upstream_inference_cost: 0.0002 } },
    },
    ...{ usd: '0.00021', parts: ['vendor_charge'] },
  },
  {
    title: 'an image of xAI, which tells its own sum, in ticks (E5)',
    path: '/v1/images/generations',
    request: { model: 'xai/grok-imagine-image', prompt: 'a cat' },
    said: { ...made, usage: { cost_in_usd_ticks: 200_000_000 } },
    ...{ usd: '0.02', parts: ['vendor_charge'] },
  },
  {
    title: 'an order of a relay, which tells its own sum (E5)',
    path: '/v1/rerank',
    request: { model: 'relay/m', ...documents },
    said: { ...ranked, usage: { cost: 0.001 } },
    ...{ usd: '0.001', parts: ['vendor_charge'] },
  },
  {
    title: 'a moderation of a relay, which tells its own sum (E5)',
    path: '/v1/moderations',
    request: { model: 'relay/m', input },
    said: { ...judged, usage: { cost: 0.003 } },
    ...{ usd: '0.003', parts: ['vendor_charge'] },
  },
  {
    title: 'the operator’s own price, whatever a relay says',
    path: '/v1/embeddings',
    request: { model: 'priced/m', input },
    said: { ...embedded, usage: { prompt_tokens: 1000, total_tokens: 1000, cost: 9 } },
    ...{ usd: '0.001', parts: ['input_tokens'] },
  },
  {
    title: 'a cost of zero next to a response, which is not a count (E7)',
    path: '/v1/embeddings',
    request: { model: 'openai/text-embedding-3-small', input },
    said: { ...embedded, usage: { prompt_tokens: 0, total_tokens: 0, cost: 0 } },
    ...{ usd: '0.00000006', parts: ['input_tokens'] },
  },
  {
    title: 'the words that a model wrote next to an image, at their own price (E5)',
    path: '/v1/images/generations',
    request: { model: 'openai/gpt-image-2', prompt: 'a cat' },
    said: {
      ...made,
      usage: {
        ...{ input_tokens: 100, output_tokens: 1000, total_tokens: 1100 },
        input_tokens_details: { text_tokens: 100, image_tokens: 0 },
        output_tokens_details: { text_tokens: 200, image_tokens: 800 },
      },
    },
    // 100 at 5, 200 at 10 and 800 at 30 dollars per million.
    ...{ usd: '0.0265', parts: ['image_output_tokens', 'input_tokens', 'output_tokens'] },
  },
  {
    title: 'what a moderation is made of, which is free',
    path: '/v1/moderations',
    request: { model: 'openai/omni-moderation-latest', input },
    said: { ...judged, usage: { prompt_tokens: 10 } },
    ...{ usd: '0.00', parts: ['input_tokens'] },
  },
];

describe('usage in the response of an operation is charged', () => {
  let vendor: ScriptedUpstream;
  let gateway: TestGateway;
  let said: Uint8Array | Script = respondWith(200, {});

  before(async () => {
    vendor = await startScriptedUpstream((wire) => (typeof said === 'function' ? said(wire) : wire.send(said)));
    const at = { baseUrl: vendor.url, apiKey: 'k' };
    const relay = { ...at, plugin: 'openai-compatible', models: ['*'] };
    gateway = await startGateway({
      billing: 'track',
      providers: {
        ...{ openai: at, openrouter: { ...at, models: ['*'] }, xai: { ...at, models: ['*'] }, relay },
        priced: { ...relay, prices: { '*': { input: 1, output: 1 } } },
      },
    });
  });
  after(async () => {
    await gateway?.stop();
    await vendor?.close();
  });

  const lastCall = async () => {
    const { data } = await gateway.command<{ data: { cost_usd: string; cost_parts: { unit: string }[] }[] }>(
      'calls',
      '--limit',
      '1',
    );
    return data[0];
  };

  for (const { title, path, request, said: body, usd, parts } of CASES)
    it(title, async () => {
      said = respondWith(200, body);
      const response = await gateway.post(path, request);
      expect(response.status, await response.text()).to.equal(200);
      expect(response.headers.get('x-tollgate-cost-usd')).to.equal(usd);
      const call = await lastCall();
      expect(call?.cost_parts.map(({ unit }) => unit).toSorted()).to.deep.equal(parts);
    });

  it('never falls within a stream of images (E7)', async () => {
    const usage = { input_tokens: 100, output_tokens: 1000, total_tokens: 1100 };
    const completed = (reported: JsonObject) => ({
      type: 'image_generation.completed',
      b64_json: 'iVBORw0KGgo=',
      usage: reported,
    });
    said = sse(completed(usage), completed({ ...usage, output_tokens: 0 }));
    const response = await gateway.post('/v1/images/generations', {
      model: 'openai/gpt-image-2',
      prompt: 'a cat',
      stream: true,
    });
    await response.text();
    expect((await lastCall())?.cost_usd).to.equal('0.0305');
  });
});
