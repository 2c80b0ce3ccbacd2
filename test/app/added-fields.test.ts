import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import {
  respondWith,
  type ScriptedUpstream,
  sse,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';

type Body = Readonly<Record<string, unknown>>;

const MESSAGES = [{ role: 'user', content: 'Hi' }];
const NOW = { type: 'function', function: { name: 'now', parameters: { type: 'object', properties: {} } } };
const UNVERIFIED =
  'Your organization must be verified to generate reasoning summaries. Please go to: https://platform.openai.com/settings/organization/general and click on Verify Organization.';

const rejects = (error: Body, status = 400) =>
  respondWith(status, { error: { type: 'invalid_request_error', param: null, code: null, ...error } });
const noSummary = rejects({ message: UNVERIFIED, param: 'reasoning.summary', code: 'unsupported_value' });

const RESPONSE = {
  ...{ id: 'resp_1', object: 'response', created_at: 1, status: 'completed', model: 'gpt-6-sol' },
  output: [
    {
      ...{ id: 'msg_1', type: 'message', role: 'assistant', status: 'completed' },
      content: [{ type: 'output_text', text: 'Hello', annotations: [] }],
    },
  ],
  usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
};
const whole = respondWith(200, RESPONSE);
const streamed = sse(
  { type: 'response.created', response: { ...RESPONSE, status: 'in_progress', output: [] } },
  { type: 'response.output_text.delta', item_id: 'msg_1', output_index: 0, content_index: 0, delta: 'Hello' },
  { type: 'response.completed', response: RESPONSE },
);
const chatStream = sse(
  {
    ...{ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm' },
    choices: [{ index: 0, delta: { role: 'assistant', content: 'Hello' }, finish_reason: null }],
  },
  {
    ...{ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm' },
    choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
  },
  '[DONE]',
);

describe('G20: a field that the gateway adds and its vendor rejects', () => {
  let upstream: ScriptedUpstream;
  let gateway: TestGateway;

  beforeEach(async () => {
    upstream = await startScriptedUpstream();
    gateway = await startGateway({
      providers: {
        openai: { baseUrl: upstream.url, apiKey: 'sk-openai-key' },
        local: { plugin: 'openai-compatible', baseUrl: upstream.url, apiKey: 'sk-local-key', models: ['*'] },
      },
    });
  });
  afterEach(async () => {
    await gateway.stop();
    await upstream.close();
  });

  const sent = (): readonly Body[] => upstream.requests.map((request) => request.json() as Body);
  const send = (body: Body) => gateway.post('/v1/chat/completions', { messages: MESSAGES, ...body });
  const withTool = (more: Body = {}) => send({ model: 'openai/gpt-6-sol', tools: [NOW], ...more });
  const fields = (name: string) => sent().map((body) => body[name]);
  const warnings = () => gateway.logs.filter(({ msg }) => String(msg).includes('fields that the gateway adds'));

  it('G20: is omitted in a second attempt, and in later calls from the start @slow', async () => {
    upstream.script(noSummary, whole);
    const first = await withTool();
    expect(first.status, await first.text()).to.equal(200);
    expect(first.headers.get('x-tollgate-attempts')).to.equal('2');
    const second = await withTool({ reasoning_effort: 'low' });
    expect(second.headers.get('x-tollgate-attempts')).to.equal('1');
    expect(fields('reasoning')).to.deep.equal([{ summary: 'auto' }, undefined, { effort: 'low' }]);
  });

  it('G20: is reported to the operator once', async () => {
    upstream.script(noSummary, whole);
    for (let call = 0; call < 3; call += 1) await withTool();
    expect(warnings()).to.have.length(1);
    expect(warnings()[0]).to.include({ level: 'warn', target: 'openai/gpt-6-sol' });
    expect(warnings()[0]?.['fields']).to.deep.equal(['reasoning.summary']);
    const failed = gateway.logs.find(({ msg }) => msg === 'an attempt failed');
    expect(failed).to.include({ target: 'openai/gpt-6-sol', status: 400, next: 'retry' });
  });

  it('G20: is omitted in a stream', async () => {
    upstream.script(noSummary, streamed);
    const text = await (await withTool({ stream: true })).text();
    expect(text).to.contain('Hello').and.not.contain('error');
    expect(fields('reasoning')).to.deep.equal([{ summary: 'auto' }, undefined]);
  });

  for (const [dialect, path, body] of [
    [
      'Messages',
      '/v1/messages',
      {
        model: 'openai/gpt-6-sol',
        max_tokens: 64,
        messages: MESSAGES,
        tools: [{ name: 'now', input_schema: { type: 'object' } }],
      },
    ],
    [
      'Gemini',
      '/v1beta/models/openai/gpt-6-sol:generateContent',
      { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }], tools: [{ functionDeclarations: [{ name: 'now' }] }] },
    ],
    ['Ollama', '/api/chat', { model: 'openai/gpt-6-sol', messages: MESSAGES, tools: [NOW], stream: false }],
  ] as const)
    it(`G20: is omitted for a client of ${dialect}`, async () => {
      upstream.script(noSummary, whole);
      const response = await gateway.post(path, body);
      expect(response.status, await response.text()).to.equal(200);
      expect(fields('reasoning')).to.deep.equal([{ summary: 'auto' }, undefined]);
    });

  it('G20: is omitted if the message quotes its name', async () => {
    upstream.script(
      rejects({ message: "Unsupported value: 'reasoning.summary' is not supported.", param: undefined }),
      whole,
    );
    expect((await withTool()).status).to.equal(200);
  });

  it('G20: is omitted if it is `include`', async () => {
    upstream.script(
      rejects({ message: 'Encrypted content is not supported with this model.', param: 'include' }),
      whole,
    );
    expect((await withTool()).status).to.equal(200);
    expect(fields('include')).to.deep.equal([['reasoning.encrypted_content'], undefined]);
  });

  it('G20: is not omitted if the caller sent it', async () => {
    upstream.script(noSummary, whole);
    const response = await gateway.post('/v1/responses', {
      ...{ model: 'openai/gpt-6-sol', input: 'Hi', reasoning: { summary: 'auto' } },
    });
    expect(response.status).to.equal(400);
    expect(sent()).to.have.length(1);
    await withTool();
    expect(fields('reasoning')).to.deep.equal([{ summary: 'auto' }, { summary: 'auto' }]);
  });

  for (const [title, error] of [
    ['another field', { message: 'Invalid value.', param: 'tools[0].function.name' }],
    ['another field in `param` and this one in the message', { message: "Use 'reasoning.summary'.", param: 'text' }],
    ['no field', { message: UNVERIFIED }],
  ] as const)
    it(`G20: is sent once if the error names ${title}`, async () => {
      upstream.script(rejects(error), whole);
      expect((await withTool()).status).to.equal(400);
      expect(sent()).to.have.length(1);
    });

  it('G20: is sent again in later calls if the vendor rejects the request without it, too', async () => {
    upstream.script(noSummary, rejects({ message: 'Invalid value.', param: 'tools' }), whole);
    expect((await withTool()).status).to.equal(400);
    expect((await withTool()).status).to.equal(200);
    expect(fields('reasoning')).to.deep.equal([{ summary: 'auto' }, undefined, { summary: 'auto' }]);
    expect(warnings()).to.deep.equal([]);
  });

  it('G20: is still sent to other targets', async () => {
    upstream.script(noSummary, whole);
    await withTool();
    await withTool({ model: 'openai/gpt-6-luna' });
    expect(fields('reasoning')).to.deep.equal([{ summary: 'auto' }, undefined, { summary: 'auto' }]);
  });

  describe('in `stream_options`', () => {
    const stream = (more: Body = {}) => send({ model: 'local/m', stream: true, ...more });

    for (const [title, rejected] of [
      ['`param`', rejects({ message: 'Not supported.', param: 'stream_options' })],
      ['a message', rejects({ message: 'Unrecognized request argument supplied: stream_options' })],
      ['a message with its full name', rejects({ message: 'Unknown name "stream_options.include_usage"' })],
      [
        'the location of a 422',
        respondWith(422, { detail: [{ loc: ['body', 'stream_options'], msg: 'Extra inputs' }] }),
      ],
    ] as const)
      it(`G20: is omitted if ${title} names it, and the usage is estimated`, async () => {
        upstream.script(rejected, chatStream);
        const text = await (await stream()).text();
        expect(text).to.contain('Hello').and.not.contain('error');
        await (await stream()).text();
        expect(fields('stream_options')).to.deep.equal([{ include_usage: true }, undefined, undefined]);
      });

    it('G20: is not omitted if the caller sent it', async () => {
      upstream.script(rejects({ message: 'Not supported.', param: 'stream_options' }), chatStream);
      expect((await stream({ stream_options: { include_usage: true } })).status).to.equal(400);
      expect(sent()).to.have.length(1);
    });

    it('G20: is omitted next to an option of the caller, which is sent', async () => {
      upstream.script(rejects({ message: 'Not supported.', param: 'stream_options.include_usage' }), chatStream);
      expect((await stream({ stream_options: { include_obfuscation: false } })).status).to.equal(200);
      expect(fields('stream_options')).to.deep.equal([
        { include_obfuscation: false, include_usage: true },
        { include_obfuscation: false },
      ]);
    });

    it('G20: is not omitted if the vendor rejects all options, and the caller sent one', async () => {
      upstream.script(rejects({ message: 'Not supported.', param: 'stream_options' }), chatStream);
      expect((await stream({ stream_options: { include_obfuscation: false } })).status).to.equal(400);
      expect(sent()).to.have.length(1);
    });
  });

  for (const [title, more] of [
    ['an alias', {}],
    ['a hedged alias', { hedge: { after: '10s' } }],
  ] as const)
    it(`G20: is omitted at the same target of ${title}, before the next target is tried`, async () => {
      await gateway.stop();
      gateway = await startGateway({
        providers: {
          local: { plugin: 'openai-compatible', baseUrl: upstream.url, apiKey: 'sk-local-key', models: ['*'] },
        },
        models: { pair: { targets: ['local/a', 'local/b'], ...more } },
      });
      upstream.script(rejects({ message: 'Not supported.', param: 'stream_options' }), chatStream);
      const response = await send({ model: 'pair', stream: true });
      expect(response.headers.get('x-tollgate-model')).to.equal('a');
      expect(fields('model')).to.deep.equal(['a', 'a']);
    });
});

/** Thoughts that the gateway requests for a caller who sent an effort. */
describe('G20: a request for thoughts that the gateway adds and its vendor rejects', () => {
  let upstream: ScriptedUpstream;
  let gateway: TestGateway;

  before(async () => {
    upstream = await startScriptedUpstream();
  });
  beforeEach(async () => {
    const own = { baseUrl: upstream.url, apiKey: 'k' };
    gateway = await startGateway({
      providers: { gemini: own, anthropic: own },
    });
  });
  afterEach(() => gateway.stop());
  after(() => upstream.close());

  const EFFORT = { messages: MESSAGES, reasoning_effort: 'high' };

  /** Model, errors of its vendor, a response, and the thinking of the first and the second request. */
  const VENDORS: Readonly<
    Record<
      string,
      { model: string; errors: readonly Body[]; said: Body; read: (body: Body) => unknown; first: Body; then: Body }
    >
  > = {
    gemini: {
      model: 'gemini/gemini-3-pro',
      errors: [
        {
          error: {
            ...{ code: 400, status: 'INVALID_ARGUMENT' },
            message:
              'Invalid JSON payload received. Unknown name "includeThoughts" at \'generation_config.thinking_config\': Cannot find field.',
          },
        },
        {
          error: {
            ...{ code: 400, status: 'INVALID_ARGUMENT' },
            message:
              'Unable to submit request because thinking_config.include_thoughts is not supported by this model.',
          },
        },
      ],
      said: {
        candidates: [{ content: { role: 'model', parts: [{ text: 'Hello' }] }, finishReason: 'STOP', index: 0 }],
        usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 },
      },
      read: ({ generationConfig }) => (generationConfig as Body)['thinkingConfig'],
      first: { thinkingLevel: 'high', includeThoughts: true },
      then: { thinkingLevel: 'high' },
    },
    anthropic: {
      model: 'anthropic/claude-opus-4-6',
      errors: [
        'thinking.adaptive.display: Extra inputs are not permitted',
        'thinking.display: Extra inputs are not permitted',
      ].map((message) => ({ type: 'error', error: { type: 'invalid_request_error', message } })),
      said: {
        ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-opus-4-6', stop_reason: 'end_turn' },
        content: [{ type: 'text', text: 'Hello' }],
        usage: { input_tokens: 3, output_tokens: 2 },
      },
      read: ({ thinking }) => thinking,
      first: { type: 'adaptive', display: 'summarized' },
      then: { type: 'adaptive' },
    },
  };

  for (const [vendor, { model, errors, said, read, first, then }] of Object.entries(VENDORS)) {
    for (const [index, error] of errors.entries())
      it(`is omitted in a second attempt at ${vendor}, and in later calls from the start (error ${index + 1})`, async () => {
        const from = upstream.requests.length;
        upstream.script(respondWith(400, error), respondWith(200, said));
        for (const attempts of ['2', '1']) {
          const response = await gateway.post('/v1/chat/completions', { ...EFFORT, model });
          expect(response.status, await response.text()).to.equal(200);
          expect(response.headers.get('x-tollgate-attempts')).to.equal(attempts);
        }
        const sent = upstream.requests.slice(from).map((request) => read(request.json() as Body));
        expect(sent).to.deep.equal([first, then, then]);
        expect(gateway.logs.filter(({ msg }) => String(msg).includes('fields that the gateway adds'))).to.have.length(
          1,
        );
      });

    it(`is omitted if the rejection is the first event of a stream of ${vendor} with status 200`, async () => {
      const from = upstream.requests.length;
      const event = { ...errors[0] };
      const named = vendor === 'anthropic' ? `event: error\ndata: ${JSON.stringify(event)}\n\n` : undefined;
      const broken = named ? respondWith(200, named, { 'content-type': 'text/event-stream' }) : sse(event);
      upstream.script(broken, respondWith(200, said));
      const response = await gateway.post('/v1/chat/completions', { ...EFFORT, model, stream: true });
      expect(await response.text()).to.contain('Hello');
      expect(upstream.requests.slice(from).map((request) => read(request.json() as Body))).to.deep.equal([first, then]);
    });

    it(`is not omitted if a caller of ${vendor} sent it`, async () => {
      const from = upstream.requests.length;
      upstream.script(respondWith(400, errors[0]), respondWith(200, said));
      const [path, body] =
        vendor === 'anthropic'
          ? ['/v1/chat/completions', { ...EFFORT, model, thinking: first }]
          : ['/v1/chat/completions', { messages: MESSAGES, model, thinking_config: first }];
      expect((await gateway.post(path, body)).status).to.equal(400);
      expect(upstream.requests).to.have.length(from + 1);
    });
  }

  it('is sent to others of the same provider', async () => {
    const { errors = [], said = {} } = VENDORS['anthropic'] ?? {};
    const from = upstream.requests.length;
    upstream.script(respondWith(400, errors[0]), respondWith(200, said));
    for (const model of ['anthropic/claude-opus-4-6', 'anthropic/claude-sonnet-4-6'])
      await (await gateway.post('/v1/chat/completions', { ...EFFORT, model })).text();
    expect(upstream.requests.slice(from).map((request) => (request.json() as Body)['thinking'])).to.deep.equal([
      { type: 'adaptive', display: 'summarized' },
      { type: 'adaptive' },
      { type: 'adaptive', display: 'summarized' },
    ]);
  });
});
