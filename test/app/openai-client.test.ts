import { expect } from 'chai';
import OpenAI, { APIError } from 'openai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import {
  chunk,
  LAST_CHUNK,
  respondWith,
  type ScriptedUpstream,
  SSE_HEAD,
  sse,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';
import { until } from '../support/wait.ts';

const COMPLETION = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1_741_569_952,
  model: 'gpt-5-2025-08-07',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: 'Hello!', refusal: null, annotations: [] },
      logprobs: null,
      finish_reason: 'stop',
    },
  ],
  usage: {
    prompt_tokens: 19,
    completion_tokens: 10,
    total_tokens: 29,
    prompt_tokens_details: { cached_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0 },
  },
};

const piece = (delta: object, finish_reason: string | null = null, rest: object = {}) => ({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1_741_569_952,
  model: 'gpt-5-2025-08-07',
  choices: [{ index: 0, delta, logprobs: null, finish_reason }],
  ...rest,
});
const USAGE = { ...piece({}), choices: [], usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 } };
const MESSAGES = [{ role: 'user' as const, content: 'Hi' }];

describe('the official openai client', () => {
  let upstream: ScriptedUpstream;
  let gateway: TestGateway;
  let client: OpenAI;

  before(async () => {
    upstream = await startScriptedUpstream();
    gateway = await startGateway({
      providers: {
        echo: {},
        openai: { apiKey: 'sk-operator-secret-1234567890', baseUrl: `${upstream.url}/v1` },
        dead: { plugin: 'openai-compatible', baseUrl: 'http://127.0.0.1:9/v1', apiKey: 'x', models: ['*'] },
      },
      models: { fast: ['dead/gone', 'openai/gpt-5'] },
    });
    client = gateway.openai();
  });

  after(async () => {
    await gateway.stop();
    await upstream.close();
  });

  it('gets a chat completion, and the vendor gets the operator’s key, never the caller’s', async () => {
    upstream.script(respondWith(200, COMPLETION));
    const { data, response, request_id } = await client.chat.completions
      .create({ model: 'openai/gpt-5', messages: MESSAGES })
      .withResponse();
    expect(data.choices[0]?.message.content).to.equal('Hello!');
    expect(data.usage?.total_tokens).to.equal(29);
    expect(request_id).to.match(/^req_/);
    expect(response.headers.get('x-tollgate-provider')).to.equal('openai');
    expect(response.headers.get('x-tollgate-attempts')).to.equal('1');
    expect(Number(response.headers.get('x-tollgate-cost-usd'))).to.be.greaterThan(0);
    const sent = upstream.requests.at(-1)!;
    expect(sent.path).to.equal('/v1/chat/completions');
    expect(sent.headers['authorization']).to.equal('Bearer sk-operator-secret-1234567890');
    expect(sent.headers['accept-encoding']).to.equal('identity');
    expect(JSON.stringify(sent.headers) + sent.body.toString()).not.to.include(gateway.key);
    expect(sent.json()).to.include({ model: 'gpt-5' });
  });

  it('accepts a dated variant of a supported model and passes unknown fields on', async () => {
    upstream.script(respondWith(200, COMPLETION));
    await client.chat.completions.create({
      model: 'openai/gpt-5-mini-2026-01-01',
      messages: MESSAGES,
      metadata: { a: 'b' },
    });
    expect(upstream.requests.at(-1)!.json()).to.deep.include({ model: 'gpt-5-mini-2026-01-01', metadata: { a: 'b' } });
  });

  it('streams, with usage only on request', async () => {
    upstream.script(
      sse(
        piece({ role: 'assistant', content: '' }),
        piece({ content: 'Hel' }),
        piece({ content: 'lo' }),
        piece({}, 'stop'),
        USAGE,
        '[DONE]',
      ),
    );
    let text = '';
    let usages = 0;
    for await (const part of await client.chat.completions.create({
      model: 'openai/gpt-4o',
      messages: MESSAGES,
      stream: true,
    })) {
      text += part.choices[0]?.delta.content ?? '';
      if (part.usage) usages += 1;
    }
    expect(text).to.equal('Hello');
    expect(usages).to.equal(0);
    expect((upstream.requests.at(-1)!.json() as { stream_options: object }).stream_options).to.include({
      include_usage: true,
    });

    upstream.script(
      sse(piece({ role: 'assistant', content: '' }), piece({ content: 'Hi' }), piece({}, 'stop'), USAGE, '[DONE]'),
    );
    const parts = [];
    for await (const part of await client.chat.completions.create({
      model: 'openai/gpt-4o',
      messages: MESSAGES,
      stream: true,
      stream_options: { include_usage: true },
    }))
      parts.push(part);
    expect(parts.at(-1)?.choices).to.deep.equal([]);
    expect(parts.at(-1)?.usage?.total_tokens).to.equal(7);
  });

  it('assembles streamed tool calls', async () => {
    const call = (rest: object) => piece({ tool_calls: [{ index: 0, ...rest }] });
    upstream.script(
      sse(
        piece({
          role: 'assistant',
          content: null,
          tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'weather', arguments: '' } }],
        }),
        call({ function: { arguments: '{"city":' } }),
        call({ function: { arguments: '"Paris"}' } }),
        piece({}, 'tool_calls'),
        '[DONE]',
      ),
    );
    const tools = [
      {
        type: 'function' as const,
        function: { name: 'weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
      },
    ];
    const final = await client.chat.completions
      .stream({ model: 'openai/gpt-4o', messages: MESSAGES, tools })
      .finalChatCompletion();
    expect(final.choices[0]?.finish_reason).to.equal('tool_calls');
    const [made] = final.choices[0]?.message.tool_calls ?? [];
    expect(made && 'function' in made && made.function).to.deep.include({
      name: 'weather',
      arguments: '{"city":"Paris"}',
    });
  });

  it('carries a JSON schema to the vendor', async () => {
    upstream.script(respondWith(200, COMPLETION));
    const response_format = {
      type: 'json_schema' as const,
      json_schema: {
        name: 'answer',
        strict: true,
        schema: { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false },
      },
    };
    await client.chat.completions.create({ model: 'openai/gpt-5', messages: MESSAGES, response_format });
    expect(upstream.requests.at(-1)!.json()).to.deep.include({ response_format });
  });

  it('decodes embeddings, which it requests as base64', async () => {
    const { data, usage } = await client.embeddings.create({ model: 'echo/echo', input: ['one', 'two'] });
    expect(data).to.have.length(2);
    expect(data[0]?.embedding.every(Number.isFinite)).to.equal(true);
    expect(data[0]?.embedding).not.to.deep.equal(data[1]?.embedding);
    expect(usage.prompt_tokens).to.equal(2);
  });

  it('lists models of all providers and the aliases, and finds one whose id contains a slash', async () => {
    const ids = (await client.models.list()).data.map(({ id }) => id);
    expect(ids).to.include.members(['fast', 'echo/echo', 'openai/gpt-5']);
    expect((await client.models.retrieve('openai/gpt-5')).id).to.equal('openai/gpt-5');
  });

  it('falls back along an alias before the first byte', async () => {
    upstream.script(respondWith(200, COMPLETION));
    const { response } = await client.chat.completions.create({ model: 'fast', messages: MESSAGES }).withResponse();
    expect(response.headers.get('x-tollgate-provider')).to.equal('openai');
    expect(Number(response.headers.get('x-tollgate-attempts'))).to.be.greaterThan(1);
  });

  it('raises on an interrupted stream, after the text before it', async () => {
    upstream.script(sse(piece({ role: 'assistant', content: 'half an ' }), piece({ content: 'answer' })));
    let text = '';
    try {
      for await (const part of await client.chat.completions.create({
        model: 'openai/gpt-4o',
        messages: MESSAGES,
        stream: true,
      }))
        text += part.choices[0]?.delta.content ?? '';
      expect.fail('a truncated stream must not look like a success');
    } catch (error) {
      expect(error).to.be.instanceOf(APIError);
      expect((error as APIError).code).to.equal('provider_unavailable');
    }
    expect(text).to.equal('half an answer');
  });

  it('fails over on an error in the first event of a stream, and returns a status when no target is left', async () => {
    upstream.script(
      sse({ error: { message: 'The engine is currently overloaded', type: 'server_error', code: 'overloaded' } }),
    );
    const failed = await client.chat.completions
      .create({ model: 'openai/gpt-4o', messages: MESSAGES, stream: true })
      .catch((error: unknown) => error as APIError);
    expect(failed).to.include({ status: 503, code: 'provider_overloaded' });
  });

  const FAILURES: readonly [name: string, upstreamStatus: number, body: object, status: number, code: string][] = [
    [
      'a bad operator key',
      401,
      {
        error: {
          message: 'Incorrect API key provided: sk-oper****7890.',
          type: 'invalid_request_error',
          code: 'invalid_api_key',
        },
      },
      503,
      'provider_auth_failed',
    ],
    [
      'an exhausted quota',
      429,
      { error: { message: 'You exceeded your current quota', type: 'insufficient_quota', code: 'insufficient_quota' } },
      503,
      'provider_quota_exhausted',
    ],
    [
      'a rate limit',
      429,
      { error: { message: 'Rate limit reached', type: 'requests', code: 'rate_limit_exceeded' } },
      429,
      'upstream_rate_limited',
    ],
    [
      'a bad request',
      400,
      { error: { message: 'Invalid value', type: 'invalid_request_error', param: 'messages', code: 'invalid_value' } },
      400,
      'invalid_request',
    ],
    [
      'a model the vendor does not know',
      404,
      { error: { message: 'The model does not exist', type: 'invalid_request_error', code: 'model_not_found' } },
      404,
      'unsupported_model',
    ],
    [
      'too long a prompt',
      400,
      {
        error: {
          message: 'Your input exceeds the context window of this model',
          type: 'invalid_request_error',
          code: 'context_length_exceeded',
        },
      },
      400,
      'context_length_exceeded',
    ],
    ['a server error', 500, { error: { message: 'oops', type: 'server_error' } }, 503, 'provider_unavailable'],
  ];
  for (const [name, upstreamStatus, body, status, code] of FAILURES) {
    it(`maps ${name} to ${status} ${code} and shows no key`, async () => {
      upstream.script(respondWith(upstreamStatus, body));
      const error = await client.chat.completions
        .create({ model: 'openai/gpt-5', messages: MESSAGES })
        .catch((failure: unknown) => failure as APIError);
      expect(error).to.include({ status, code });
      expect(JSON.stringify((error as APIError).error)).not.to.match(/sk-oper|127\.0\.0\.1/);
    });
  }

  it('raises the class of each status for the caller’s own errors', async () => {
    expect(
      await gateway
        .openai('tg_nonsense')
        .models.list()
        .catch((error: unknown) => error),
    ).to.be.instanceOf(OpenAI.AuthenticationError);
    expect(
      await client.chat.completions
        .create({ model: 'openai/gtp-5', messages: MESSAGES })
        .catch((error: unknown) => error),
    ).to.be.instanceOf(OpenAI.NotFoundError);
    const bad = await client.chat.completions
      .create({ model: 'echo/echo', messages: [{ role: 'robot' as 'user', content: 'x' }] })
      .catch((error: unknown) => error as APIError);
    expect(bad).to.be.instanceOf(OpenAI.BadRequestError);
    expect(bad).to.include({ param: 'messages[0].role', code: 'invalid_request' });
  });

  it('cancels the vendor’s call when it aborts a stream', async () => {
    upstream.script(async (wire) => {
      await wire.send(SSE_HEAD);
      await wire.send(chunk(`data: ${JSON.stringify(piece({ role: 'assistant', content: 'a' }))}\n\n`));
      await wire.hang();
    });
    const stream = await client.chat.completions.create({ model: 'openai/gpt-4o', messages: MESSAGES, stream: true });
    for await (const _part of stream) stream.controller.abort();
    await upstream.requests.at(-1)!.closed;
    await until('the log says so', () => gateway.logs.some((line) => line['outcome'] === 'aborted'));
  });

  it('cancels the vendor’s call when it aborts one without a stream', async () => {
    upstream.script((wire) => wire.hang());
    const abort = new AbortController();
    const count = upstream.requests.length;
    const pending = client.chat.completions
      .create({ model: 'openai/gpt-5', messages: MESSAGES }, { signal: abort.signal })
      .catch((error: unknown) => error);
    const request = await upstream.request(count);
    abort.abort();
    await pending;
    await request.closed;
  });

  it('is never redirected anywhere with the operator’s key', async () => {
    const elsewhere = await startScriptedUpstream(respondWith(200, COMPLETION));
    upstream.script(respondWith(307, '', { location: `${elsewhere.url}/v1/chat/completions` }));
    const error = await client.chat.completions
      .create({ model: 'openai/gpt-5', messages: MESSAGES })
      .catch((failure: unknown) => failure as APIError);
    expect(error).to.include({ status: 503, code: 'provider_unavailable' });
    expect(elsewhere.requests).to.have.length(0);
    await elsewhere.close();
  });

  it('accepts a base URL with the provider in the path, with and without /v1', async () => {
    for (const base of ['/api/core/echo', '/api/core/echo/v1', '//api/core/echo/']) {
      const there = new OpenAI({ apiKey: gateway.key, baseURL: gateway.url + base, maxRetries: 0 });
      const { choices } = await there.chat.completions.create({ model: 'echo', messages: MESSAGES });
      expect(choices[0]?.message.content).to.equal('Hi');
    }
  });

  it('never sees the last chunk twice when the vendor ends twice', async () => {
    upstream.script(async (wire) => {
      await wire.send(SSE_HEAD);
      await wire.send(
        chunk(
          `data: ${JSON.stringify(piece({ role: 'assistant', content: 'x' }))}\n\ndata: ${JSON.stringify(piece({}, 'stop'))}\n\ndata: [DONE]\n\ndata: [DONE]\n\n`,
        ),
      );
      await wire.send(LAST_CHUNK);
    });
    const response = await gateway.post('/v1/chat/completions', {
      model: 'openai/gpt-4o',
      stream: true,
      messages: MESSAGES,
    });
    expect((await response.text()).match(/\[DONE\]/g)).to.have.length(1);
  });
});
