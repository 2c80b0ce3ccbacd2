import { expect } from 'chai';
import { startGateway, type TestGateway } from '../../support/gateways/gateway.ts';
import {
  chunk,
  LAST_CHUNK,
  respondWith,
  type ScriptedUpstream,
  SSE_HEAD,
  startScriptedUpstream,
} from '../../support/vendors/scripted-upstream.ts';

const CALL = { id: 'c1', type: 'function', function: { name: 'sales', arguments: '{"day":"2023-09-29"}' } };
const TOOL = { type: 'function', function: { name: 'sales', strict: true, parameters: { type: 'object' } } };
const USAGE = {
  billed_units: { input_tokens: 1000, output_tokens: 100 },
  tokens: { input_tokens: 5000, output_tokens: 100 },
};

describe('cohere', () => {
  let vendor: ScriptedUpstream;
  let gateway: TestGateway;
  let body: object;

  before(async () => {
    vendor = await startScriptedUpstream((wire) => wire.send(respondWith(200, body)));
    gateway = await startGateway({ providers: { cohere: { baseUrl: vendor.url, apiKey: 'k' } } });
  });
  after(async () => {
    await gateway.stop();
    await vendor.close();
  });

  const sent = () => vendor.requests.at(-1)?.json() as Record<string, unknown>;
  const said = {
    id: 'x',
    finish_reason: 'COMPLETE',
    message: { role: 'assistant', content: [{ type: 'text', text: 'Hi' }] },
    usage: USAGE,
  };

  it('gets a conversation with tools in its own format, with the thought before a call as its plan', async () => {
    body = { ...said, finish_reason: 'TOOL_CALL', message: { role: 'assistant', tool_calls: [CALL] } };
    const response = await gateway.post('/v1/chat/completions', {
      model: 'cohere/command-a-03-2025',
      messages: [
        { role: 'developer', content: 'Be brief.' },
        { role: 'user', content: 'Sales?' },
        { role: 'assistant', content: null, reasoning_content: 'I will look.', tool_calls: [CALL] },
        { role: 'tool', tool_call_id: 'c1', content: '{"total":3}' },
      ],
      tools: [TOOL],
      tool_choice: { type: 'function', function: { name: 'sales' } },
      ...{ max_completion_tokens: 50, top_p: 0.5, stop: 'END', user: 'u' },
    });
    expect(response.status).to.equal(200);
    expect(vendor.requests.at(-1)?.path).to.equal('/v2/chat');
    expect(sent()).to.deep.equal({
      model: 'command-a-03-2025',
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Sales?' },
        { role: 'assistant', tool_calls: [CALL], tool_plan: 'I will look.' },
        { role: 'tool', tool_call_id: 'c1', content: '{"total":3}' },
      ],
      tools: [{ type: 'function', function: { name: 'sales', parameters: { type: 'object' } } }],
      ...{ strict_tools: true, tool_choice: 'REQUIRED', max_tokens: 50, p: 0.5, stop_sequences: ['END'] },
    });
    expect(response.headers.get('x-tollgate-dropped')).to.include('tool_choice').and.include('user');
  });

  it('charges the billed tokens, not all read ones', async () => {
    body = said;
    const response = await gateway.post('/v1/chat/completions', {
      model: 'cohere/command-r-08-2024',
      messages: [{ role: 'user', content: 'Hi' }],
    });
    expect(response.headers.get('x-tollgate-cost-usd')).to.equal('0.00021');
  });

  it('accepts a JSON Schema, documents and thinking if supported', async () => {
    body = said;
    const json_schema = { name: 'p', schema: { type: 'object', properties: { age: { type: 'integer' } } } };
    const messages = [{ role: 'user', content: 'Hi' }];
    await gateway.post('/v1/chat/completions', {
      model: 'cohere/command-a-reasoning-08-2025',
      messages,
      reasoning_effort: 'high',
      response_format: { type: 'json_schema', json_schema },
    });
    expect(sent()).to.deep.include({
      thinking: { type: 'enabled' },
      response_format: { type: 'json_object', json_schema: json_schema.schema },
    });
    const documents = [{ id: 'd', data: { text: 'Penguins.' } }];
    const response = await gateway.post('/v1/chat/completions', {
      model: 'cohere/command-a-03-2025',
      messages,
      documents,
      response_format: { type: 'json_object' },
    });
    expect(sent()).to.deep.include({ documents }).and.not.have.property('response_format');
    expect(response.headers.get('x-tollgate-dropped')).to.include('response_format');
  });

  it('reranks at its own path, and a search has the price of a search', async () => {
    body = { id: 'r', results: [{ index: 1, relevance_score: 0.9 }], meta: { billed_units: { search_units: 1 } } };
    const response = await gateway.post('/v2/rerank', {
      model: 'cohere/rerank-v3.5',
      query: 'capital?',
      documents: ['a', 'b'],
      top_n: 1,
    });
    expect([response.status, vendor.requests.at(-1)?.path]).to.deep.equal([200, '/v2/rerank']);
    expect(response.headers.get('x-tollgate-cost-usd')).to.equal('0.002');
    expect(sent()).to.deep.equal({ model: 'rerank-v3.5', query: 'capital?', documents: ['a', 'b'], top_n: 1 });
  });

  it('creates embeddings with their purpose', async () => {
    body = {
      id: 'e',
      embeddings: {
        float: [
          [1, 0],
          [0, 1],
        ],
      },
      meta: { billed_units: { input_tokens: 1000 } },
    };
    const response = await gateway.post('/v1/embeddings', {
      model: 'cohere/embed-v4.0',
      input: ['a', 'b'],
      dimensions: 256,
      input_type: 'search_query',
      user: 'u',
    });
    expect(sent()).to.deep.equal({
      model: 'embed-v4.0',
      texts: ['a', 'b'],
      input_type: 'search_query',
      embedding_types: ['float'],
      output_dimension: 256,
    });
    const { data, usage } = (await response.json()) as {
      data: { embedding: number[] }[];
      usage: { prompt_tokens: number };
    };
    expect([data.map(({ embedding }) => embedding), usage.prompt_tokens]).to.deep.equal([
      [
        [1, 0],
        [0, 1],
      ],
      1000,
    ]);
    expect([response.headers.get('x-tollgate-cost-usd'), response.headers.get('x-tollgate-dropped')]).to.deep.equal([
      '0.00012',
      'user',
    ]);
    const many = await gateway.post('/v1/embeddings', {
      model: 'cohere/embed-v4.0',
      input: Array.from({ length: 97 }, () => 'a'),
    });
    expect(many.status).to.equal(400);
    body = { id: 'e', embeddings: { float: [[1, 0]] } };
    const short = await gateway.post('/v1/embeddings', { model: 'cohere/embed-v4.0', input: ['a', 'b'] });
    expect(short.status).to.equal(503);
  });
});

describe('perplexity', () => {
  let vendor: ScriptedUpstream;
  let gateway: TestGateway;
  const page = { title: 'Paris', url: 'https://w.example/Paris' };
  const usage = {
    prompt_tokens: 14,
    completion_tokens: 9,
    total_tokens: 23,
    cost: { request_cost: 0.005, total_cost: 0.005023 },
  };

  before(async () => {
    vendor = await startScriptedUpstream(async (wire) => {
      const { stream } = wire.request.json() as { stream?: boolean };
      const head = { id: 'p', model: 'sonar', object: 'chat.completion', created: 1, search_results: [page] };
      if (!stream) {
        const message = { role: 'assistant', content: 'Paris[1].' };
        return wire.send(respondWith(200, { ...head, choices: [{ index: 0, message, finish_reason: 'stop' }], usage }));
      }
      await wire.send(SSE_HEAD);
      const choices = [{ index: 0, delta: { role: 'assistant', content: 'Paris[1].' }, finish_reason: 'stop' }];
      await wire.send(chunk(`data: ${JSON.stringify({ ...head, choices, usage })}\n\ndata: [DONE]\n\n`));
      await wire.send(LAST_CHUNK);
    });
    const plans = { searching: { serverTools: ['web_search'] } };
    const providers = { perplexity: { baseUrl: vendor.url, apiKey: 'k' } };
    gateway = await startGateway({ providers, plans, defaultPlan: 'searching' });
  });
  after(async () => {
    await gateway.stop();
    await vendor.close();
  });

  for (const stream of [false, true])
    it(`charges the reported usage of a ${stream ? 'streamed' : 'JSON'} response, and cites its pages`, async () => {
      const messages = [{ role: 'user', content: 'Capital?' }];
      const response = await gateway.post('/v1/chat/completions', {
        model: 'perplexity/sonar',
        messages,
        stream,
        stream_options: { include_usage: true },
      });
      const text = await response.text();
      expect(text).to.include('"url_citation"').and.include(page.url).and.include('"cost":0.005023');
      if (!stream) expect(response.headers.get('x-tollgate-cost-usd')).to.equal('0.005023');
      const messagesWay = await gateway.post('/v1/messages', {
        model: 'perplexity/sonar',
        messages,
        max_tokens: 50,
        stream,
      });
      expect(await messagesWay.text()).to.include('Paris[1].');
    });

  it('refuses tools, which it does not have', async () => {
    const response = await gateway.post('/v1/chat/completions', {
      model: 'perplexity/sonar',
      messages: [{ role: 'user', content: 'Hi' }],
      tools: [TOOL],
    });
    expect([response.status, ((await response.json()) as { error: { param: string } }).error.param]).to.deep.equal([
      400,
      'tools',
    ]);
  });
});
