import { expect } from 'chai';
import type { JsonObject } from '../../contract/index.ts';
import { postMessages, receiveMessage } from '../support/clients/post-messages.ts';
import { readSse } from '../support/formats/codec.ts';
import { type IngressRig, startIngressRig } from '../support/gateways/ingress-rig.ts';
import { partOf } from '../support/generated-cases.ts';
import { apisOf, createOpenaiRules } from '../support/vendors/openai-rules.ts';
import { responsesEvents, sendEvents } from '../support/vendors/responses-wire.ts';

/**
 * Models that support tools with reasoning only through the Responses API; those of the second list also support
 * `none`.
 */
const WITHOUT_NONE = ['gpt-6-astra', 'gpt-6.1-sol'];
const WITH_NONE = ['gpt-6-sol', 'gpt-6-luna', 'gpt-6.1-terra', 'gpt-5.6-sol', 'gpt-5.5', 'gpt-5.4-mini'];
const ONLY_RESPONSES = ['gpt-5-pro', 'gpt-5.5-pro', 'o3-pro', 'gpt-5.3-codex', 'gpt-5.3-codex-spark'];
const EFFORTS = [undefined, 'none', 'low', 'high'] as const;
type Effort = (typeof EFFORTS)[number];

const SCHEMA = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const QUESTION = 'How warm is it in Oslo?';
const RESULT = '12 degrees';
const RESPONSE = 'It is 12 degrees.';
const SUMMARY = 'I look it up.';

/** Content of one response, as a client reads it. */
interface Turn {
  readonly text: string;
  readonly thought: string;
  readonly call: { readonly id: string; readonly name: string; readonly city: unknown } | undefined;
  /** Message that the client sends back. */
  readonly message: unknown;
}

/** Client format, and a client that runs a tool loop in it. */
interface Way {
  readonly name: string;
  first(model: string, effort: Effort, tools: boolean): JsonObject;
  /** Next request. A client that does not store reasoning sends back only text and calls. */
  next(body: JsonObject, turn: Turn, keepsReasoning: boolean): JsonObject;
  send(rig: IngressRig, body: JsonObject, stream: boolean): Promise<Turn>;
}

// biome-ignore lint/suspicious/noExplicitAny: responses of three formats, of which each client looks at a few leaves
type Received = any;

async function bodyOf(response: Response): Promise<Received> {
  const text = await response.text();
  expect(response.status, text).to.equal(200);
  return JSON.parse(text);
}

async function eventsOf(response: Response): Promise<readonly Received[]> {
  const bytes = Buffer.from(await response.arrayBuffer());
  expect(response.status, bytes.toString()).to.equal(200);
  const events = readSse(bytes).filter(({ data }) => data !== '[DONE]');
  return events.map(({ data }) => JSON.parse(data) as unknown);
}

const CHAT: Way = {
  name: 'chat completions',
  first: (model, effort, tools) => ({
    model,
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: QUESTION },
    ],
    ...(tools && { tools: [{ type: 'function', function: { name: 'weather', parameters: SCHEMA } }] }),
    ...(effort && { reasoning_effort: effort }),
  }),
  next(body, { message, call }, keepsReasoning) {
    const { reasoning_details, reasoning_content, order, ...plain } = message as JsonObject;
    const back = keepsReasoning ? message : plain;
    const result = { role: 'tool', tool_call_id: call?.id, content: RESULT };
    return { ...body, messages: [...(body['messages'] as unknown[]), back, result] };
  },
  async send(rig, body, stream) {
    const response = await rig.gateway.post('/v1/chat/completions', { ...body, stream });
    const message = stream ? joined(await eventsOf(response)) : (await bodyOf(response)).choices[0].message;
    const [call] = message.tool_calls ?? [];
    return {
      text: message.content ?? '',
      thought: message.reasoning_content ?? '',
      call: call && { id: call.id, name: call.function.name, city: JSON.parse(call.function.arguments).city },
      message,
    };
  },
};

/** Message of a stream, combined as SDKs do. */
function joined(chunks: readonly Received[]): Received {
  const message: Received = { role: 'assistant', content: null };
  for (const { choices } of chunks)
    for (const { delta } of choices) {
      if (delta.content) message.content = (message.content ?? '') + delta.content;
      if (delta.reasoning_content)
        message.reasoning_content = (message.reasoning_content ?? '') + delta.reasoning_content;
      if (delta.reasoning_details)
        message.reasoning_details = [...(message.reasoning_details ?? []), ...delta.reasoning_details];
      for (const { index, ...call } of delta.tool_calls ?? []) {
        message.tool_calls ??= [];
        const known = message.tool_calls[index];
        if (known) known.function.arguments += call.function.arguments;
        else message.tool_calls[index] = call;
      }
    }
  return message;
}

const MESSAGES: Way = {
  name: 'Messages',
  first: (model, effort, tools) => ({
    model,
    system: 'Be brief.',
    messages: [{ role: 'user', content: QUESTION }],
    tools: tools ? [{ name: 'weather', input_schema: SCHEMA }] : [],
    thinking: effort === 'none' ? { type: 'disabled' } : { type: 'adaptive', display: 'summarized' },
    ...(effort && effort !== 'none' && { output_config: { effort } }),
  }),
  next(body, { message, call }, keepsReasoning) {
    const blocks = (message as readonly JsonObject[]).filter(
      ({ type }) => keepsReasoning || !String(type).endsWith('thinking'),
    );
    const result = { type: 'tool_result', tool_use_id: call?.id, content: RESULT };
    const turns = [
      { role: 'assistant', content: blocks },
      { role: 'user', content: [result] },
    ];
    return { ...body, messages: [...(body['messages'] as unknown[]), ...turns] };
  },
  async send(rig, body, stream) {
    const { content } = await receiveMessage(rig, String(body['model']), { ...body, stream });
    const of = (type: string): Received => content.find((block) => block['type'] === type);
    const call = of('tool_use');
    return {
      text: of('text')?.text ?? '',
      thought: of('thinking')?.thinking ?? '',
      call: call && { id: call.id, name: call.name, city: call.input.city },
      message: content,
    };
  },
};

const GEMINI: Way = {
  name: 'Gemini',
  first: (model, effort, tools) => ({
    model,
    systemInstruction: { parts: [{ text: 'Be brief.' }] },
    contents: [{ role: 'user', parts: [{ text: QUESTION }] }],
    ...(tools && { tools: [{ functionDeclarations: [{ name: 'weather', parameters: SCHEMA }] }] }),
    generationConfig: {
      thinkingConfig: {
        includeThoughts: true,
        ...(effort === 'none' ? { thinkingBudget: 0 } : effort && { thinkingLevel: effort }),
      },
    },
  }),
  next(body, { message, call }, keepsReasoning) {
    const parts = (message as readonly JsonObject[]).filter(({ thought }) => keepsReasoning || thought !== true);
    const result = { functionResponse: { id: call?.id, name: 'weather', response: { output: RESULT } } };
    const turns = [
      { role: 'model', parts },
      { role: 'user', parts: [result] },
    ];
    return { ...body, contents: [...(body['contents'] as unknown[]), ...turns] };
  },
  async send(rig, { model, ...body }, stream) {
    const way = stream ? 'streamGenerateContent?alt=sse' : 'generateContent';
    const response = await rig.gateway.post(`/v1beta/models/${String(model)}:${way}`, body);
    const responses: readonly Received[] = stream ? await eventsOf(response) : [await bodyOf(response)];
    const parts: Received[] = responses.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? []);
    const text = (isThought: boolean): string =>
      parts.flatMap((part) => ((part.thought ?? false) === isThought ? (part.text ?? '') : [])).join('');
    const call = parts.find((part) => part.functionCall)?.functionCall;
    return {
      text: text(false),
      thought: text(true),
      call: call && { id: call.id, name: call.name, city: call.args.city },
      message: parts,
    };
  },
};

const WAYS = [CHAT, MESSAGES, GEMINI] as const;
const STREAMS = [false, true] as const;
const RUNS = STREAMS.flatMap((stream) => EFFORTS.map((effort) => [effort, stream] as const));

describe('E13: the API of OpenAI is chosen by the request and its model', () => {
  let rig: IngressRig;
  before(async () => {
    rig = await startIngressRig({ plans: { all: { serverTools: ['web_search'] } }, defaultPlan: 'all' });
    rig.script('openai', createOpenaiRules());
  });
  after(() => rig.stop());

  /** Requests that the vendor receives while `work` runs. */
  async function sentDuring(work: () => Promise<unknown>) {
    const before = rig.sent('openai').length;
    await work();
    return rig.sent('openai').slice(before);
  }

  async function runLoop(way: Way, model: string, effort: Effort, stream: boolean, keepsReasoning: boolean) {
    const label = `${model}, effort ${effort}, ${stream ? 'streamed' : 'at once'}`;
    let summary = '';
    const sent = await sentDuring(async () => {
      const body = way.first(`openai/${model}`, effort, true);
      const first = await way.send(rig, body, stream);
      expect(first.call, label).to.include({ name: 'weather', city: 'Oslo' });
      summary = first.thought;
      const second = await way.send(rig, way.next(body, first, keepsReasoning), stream);
      expect(second.text, label).to.equal(RESPONSE);
    });
    return { label, summary, sent, wires: apisOf(sent) };
  }

  for (const way of WAYS)
    for (const [at, model] of [...WITH_NONE, ...WITHOUT_NONE].entries())
      it(`a client of ${way.name} completes a tool loop on ${model} with every effort`, async () => {
        for (const [effort, stream] of partOf(RUNS, at)) {
          const { label, summary, sent, wires } = await runLoop(way, model, effort, stream, true);
          const isOnChat = effort === 'none' && WITH_NONE.includes(model);
          expect(wires, label).to.deep.equal(isOnChat ? ['chat', 'chat'] : ['responses', 'responses']);
          if (isOnChat) continue;
          // Messages clients that disable thinking get none, even from a model that always reasons.
          const isHidden = way === MESSAGES && effort === 'none';
          expect(summary, label).to.equal(isHidden ? '' : SUMMARY);
          const body = sent[1]?.json() as { input: readonly JsonObject[]; store: unknown; reasoning?: JsonObject };
          expect(body.store, label).to.equal(false);
          const types = body.input.map(({ type, role }) => String(role ?? type));
          expect(types, label).to.deep.equal([
            ...['developer', 'user', ...(isHidden ? [] : ['reasoning']), 'function_call', 'function_call_output'],
          ]);
        }
      });

  for (const [at, way] of WAYS.entries())
    it(`a client of ${way.name} that stores no reasoning completes a tool loop all the same`, async () => {
      for (const model of partOf(['gpt-6-sol', 'gpt-6-astra', 'gpt-5.3-codex'], at))
        for (const stream of STREAMS) {
          const { sent } = await runLoop(way, model, 'low', stream, false);
          expect(sent.map(({ body }) => body.includes('gAAAA'))).to.deep.equal([false, false]);
        }
    });

  it('a client of Gemini that hides thinking sends the reasoning back with its calls', async () => {
    const body: JsonObject = { ...GEMINI.first('openai/gpt-6-sol', undefined, true), generationConfig: {} };
    for (const stream of STREAMS) {
      const sent = await sentDuring(async () => {
        const first = await GEMINI.send(rig, body, stream);
        expect([first.thought, first.call?.city]).to.deep.equal(['', 'Oslo']);
        const second = await GEMINI.send(rig, GEMINI.next(body, first, false), stream);
        expect(second.text).to.equal(RESPONSE);
      });
      const { input } = (sent[1]?.json() ?? { input: [] }) as { readonly input: readonly JsonObject[] };
      expect(input.map(({ type }) => type)).to.include.members(['reasoning', 'function_call']);
    }
  });

  for (const [at, way] of WAYS.entries())
    it(`a client of ${way.name} gets responses and tool calls from models that only the Responses API has`, async () => {
      for (const model of partOf(ONLY_RESPONSES, at))
        for (const stream of STREAMS) {
          const { wires } = await runLoop(way, model, undefined, stream, true);
          expect(wires).to.deep.equal(['responses', 'responses']);
        }
      for (const model of partOf([...ONLY_RESPONSES, 'o3-deep-research', 'o4-mini-deep-research'], at))
        for (const stream of STREAMS) {
          const turn = await way.send(rig, way.first(`openai/${model}`, 'high', false), stream);
          expect(turn.text, model).to.equal(RESPONSE);
        }
    });

  it('a client of completions gets text from every model, with and without a stream', async () => {
    for (const model of [...WITH_NONE, ...WITHOUT_NONE, ...ONLY_RESPONSES, 'o3-deep-research'])
      for (const stream of STREAMS) {
        const response = await rig.gateway.post('/v1/completions', {
          ...{ model: `openai/${model}`, prompt: QUESTION, max_tokens: 5, stream },
        });
        const texts: readonly Received[] = stream ? await eventsOf(response) : [await bodyOf(response)];
        const text = texts.flatMap(({ choices }) => choices.map((choice: Received) => choice.text)).join('');
        expect(text, model).to.equal(RESPONSE);
      }
  });

  const TOOLS = [{ type: 'function', function: { name: 'weather', parameters: SCHEMA } }];
  const chat = (body: object) =>
    rig.gateway.post('/v1/chat/completions', { messages: [{ role: 'user', content: QUESTION }], ...body });

  const CHOICES: readonly {
    readonly title: string;
    readonly body: JsonObject;
    readonly wire: 'chat' | 'responses';
    readonly dropped?: string;
  }[] = [
    { title: 'without tools stays on chat completions', body: { model: 'gpt-6-astra', n: 2 }, wire: 'chat' },
    {
      title: 'with tools and without reasoning keeps what only chat completions have',
      body: { model: 'gpt-6-sol', tools: TOOLS, reasoning_effort: 'none', n: 2, seed: 7, stop: 'x' },
      wire: 'chat',
    },
    {
      title: 'with tools, several choices and no effort of its own goes without reasoning',
      body: { model: 'gpt-6-sol', tools: TOOLS, n: 2 },
      wire: 'chat',
    },
    {
      title: 'with tools and reasoning gets back the names of wishes that the Responses API does not have',
      body: { model: 'gpt-6-sol', tools: TOOLS, seed: 7, stop: 'x', presence_penalty: 1, logit_bias: { 1: 1 } },
      wire: 'responses',
      dropped: 'seed, stop, presence_penalty, logit_bias',
    },
    {
      title: 'with the greatest effort goes by the Responses API, which alone has that',
      body: { model: 'gpt-6-astra', reasoning_effort: 'max' },
      wire: 'responses',
    },
    {
      title: 'with functions of the old form and reasoning goes by the Responses API',
      body: { model: 'gpt-6-sol', functions: [{ name: 'weather', parameters: SCHEMA }], reasoning_effort: 'low' },
      wire: 'responses',
    },
    {
      title: 'never brings the vendor names of what lies in the operator’s account',
      body: { model: 'gpt-5-pro', previous_response_id: 'resp_1', conversation: 'conv_1', store: true },
      wire: 'responses',
      dropped: 'previous_response_id, conversation, store',
    },
  ];
  for (const { title, body, wire, dropped } of CHOICES)
    it(`a request ${title}`, async () => {
      const [request] = await sentDuring(async () => {
        const response = await chat({ ...body, model: `openai/${body['model']}` });
        expect(response.status, await response.clone().text()).to.equal(200);
        expect(response.headers.get('x-tollgate-dropped') ?? undefined).to.equal(dropped);
        expect(response.headers.get('x-tollgate-lane')).to.equal(wire === 'chat' ? 'native' : 'translated');
      });
      expect(apisOf(request ? [request] : [])).to.deep.equal([wire]);
      if (wire === 'responses') expect(request?.json()).to.include({ store: false });
    });

  it('a request for reasoning with tools and several choices is refused, because no API supports both', async () => {
    const sent = await sentDuring(async () => {
      const response = await chat({ model: 'openai/gpt-6-sol', tools: TOOLS, reasoning_effort: 'low', n: 2 });
      expect(response.status).to.equal(400);
      const { error } = (await response.json()) as Received;
      expect(error).to.include({ param: 'n', code: 'invalid_request' });
    });
    expect(sent).to.deep.equal([]);
  });

  it('a response by the Responses API has its usage, including cached and reasoning tokens, in every format', async () => {
    const model = 'openai/gpt-6-sol';
    for (const stream of STREAMS) {
      const response = await chat({ model, tools: TOOLS, stream, stream_options: { include_usage: true } });
      const bodies: readonly Received[] = stream ? await eventsOf(response) : [await bodyOf(response)];
      const { usage } = bodies.findLast((body) => body.usage) ?? expect.fail('no usage');
      expect(usage).to.include({ prompt_tokens: 20, completion_tokens: 5, total_tokens: 25 });
      expect(usage.prompt_tokens_details).to.include({ cached_tokens: 0 });
      expect(usage.completion_tokens_details).to.include({ reasoning_tokens: 2 });
      const message = await receiveMessage(rig, model, { stream });
      expect(message.usage).to.include({ output_tokens: 5 });
    }
  });

  it('a rejection by the Responses API has the vendor’s message, in the caller’s format', async () => {
    const response = await chat({ model: 'openai/gpt-6-unknown', tools: TOOLS });
    expect(response.status).to.equal(404);
    expect(await response.text()).to.contain('does not exist');
    const messages = await postMessages(rig, 'openai/gpt-6-unknown');
    expect(messages.status).to.equal(404);
    expect(await messages.json()).to.have.nested.property('error.type', 'not_found_error');
  });

  it('a chat requests no prompt cache lifetime without a published price, in either API', async () => {
    const weather = { type: 'function', function: { name: 'weather', parameters: SCHEMA } };
    const messages = [{ role: 'user', content: QUESTION }];
    for (const tools of [undefined, [weather]])
      for (const [ttl, kept] of [
        ['30m', { mode: 'explicit', ttl: '30m' }],
        ['12h', { mode: 'explicit' }],
      ] as const) {
        const body = { model: 'openai/gpt-6-sol', messages, tools, prompt_cache_options: { mode: 'explicit', ttl } };
        const response = await rig.gateway.post('/v1/chat/completions', body);
        expect(response.status, await response.text()).to.equal(200);
        expect(apisOf(rig.sent('openai').slice(-1))).to.deep.equal([tools ? 'responses' : 'chat']);
        expect(rig.lastBody('openai')['prompt_cache_options']).to.deep.equal(kept);
        expect(response.headers.get('x-tollgate-dropped') ?? '').to.equal(ttl === '30m' ? '' : 'prompt_cache_options');
      }
  });

  it('a limit below the minimum of the Responses API is raised to it', async () => {
    const [request] = await sentDuring(() => chat({ model: 'openai/gpt-5-pro', max_tokens: 5 }));
    expect(request?.json()).to.include({ max_output_tokens: 16 });
  });

  it('a caller’s reasoning is sent back only for the caller’s own account', async () => {
    const body = CHAT.first('openai/gpt-6-sol', 'low', true);
    for (const way of WAYS) {
      const turn = await way.send(rig, way.first('openai/gpt-6-sol', 'low', true), false);
      const text = JSON.stringify(turn.message);
      const plain = text + Buffer.from(text, 'base64').toString();
      expect(plain, way.name).not.to.match(/"gAAAA/);
    }
    const turn = await CHAT.send(rig, body, false);
    const forged = JSON.parse(
      JSON.stringify(turn.message).replace(/"tg1\.[^"]*"/, '"tg1.openai.forged.gAAAA0"'),
    ) as object;
    const next = CHAT.next(body, { ...turn, message: forged }, true);
    const [request] = await sentDuring(() => CHAT.send(rig, next, false));
    expect(String(request?.body)).not.to.contain('gAAAA');
  });
});

describe('a failing stream of the Responses API', () => {
  let rig: IngressRig;
  before(async () => {
    rig = await startIngressRig();
  });
  after(() => rig.stop());

  const SAID = { pieces: [{ text: 'It is' }] };
  const failure = { code: 'server_is_overloaded', message: 'Come again.' };
  const send = (events: readonly JsonObject[]) => {
    rig.script('openai', sendEvents(events));
    return postMessages(rig, 'openai/gpt-5-pro', { stream: true });
  };

  it('is an error for clients of another format when it ends before its response is complete', async () => {
    const response = await send(responsesEvents(SAID).slice(0, -1));
    expect(await response.text()).to.match(/event: error/);
  });

  it('is an error of the vendor’s class when the response has failed', async () => {
    const [created] = responsesEvents(SAID);
    const failed = {
      type: 'response.failed',
      response: { ...(created?.['response'] as object), status: 'failed', error: failure },
    };
    const response = await send([created ?? {}, failed]);
    expect(response.status, await response.clone().text()).to.equal(529);
  });

  it('ignores unknown events', async () => {
    const events = responsesEvents(SAID);
    const response = await send([...events.slice(0, 2), { type: 'response.something.new', x: 1 }, ...events.slice(2)]);
    expect(await response.text())
      .to.contain('message_stop')
      .and.not.to.match(/event: error/);
  });
});
