import { expect } from 'chai';
import { postMessages, receiveMessage } from '../support/clients/post-messages.ts';
import { readMessagesStream } from '../support/formats/messages-grammar.ts';
import {
  CUTS,
  cutScript,
  type IngressRig,
  MODEL_OF,
  type Piece,
  type Said,
  sayScript,
  startIngressRig,
  WIRES,
  type Wire,
} from '../support/gateways/ingress-rig.ts';
import { answer, chunk, LAST_CHUNK, SSE_HEAD } from '../support/vendors/scripted-upstream.ts';
import { streamText } from '../support/vendors/vendor-wires.ts';

const FORMS = [
  ['whole', false],
  ['as a stream', true],
] as const;
const call = (id: string, text: string): Piece => ({ call: 'look', id, arguments: text });
const ALL: Said = {
  pieces: [{ reasoning: 'Hm, so.' }, { text: 'Looking é.' }, call('call00001', '{"at":"x"}'), call('call00002', '{}')],
  usage: { prompt: 30, completion: 9, cached: 10 },
};

/** Vendors whose model ends a turn with calls by `stop`; Gemini always does. */
const OPENAI_LIKE = WIRES.filter((wire) => wire !== 'anthropic' && wire !== 'gemini');

describe('POST /v1/messages', () => {
  let rig: IngressRig;
  before(async () => {
    rig = await startIngressRig({ models: { fallback: [MODEL_OF.anthropic, MODEL_OF.openai] } });
  });
  after(() => rig.stop());

  for (const wire of WIRES)
    for (const [form, stream] of FORMS)
      for (const cut of CUTS)
        it(`G01-G06, G09-G12: what ${wire} says ${form}, ${cut} bytes at a time, comes in blocks one after the other`, async () => {
          rig.say(wire, ALL, cut);
          const { content, stop, usage, firstUsage } = await receiveMessage(rig, MODEL_OF[wire], { stream });
          expect(content.map(({ type }) => type)).to.deep.equal(['thinking', 'text', 'tool_use', 'tool_use']);
          expect(content[0]).to.include({ thinking: 'Hm, so.' });
          expect(content[1]).to.deep.equal({ type: 'text', text: 'Looking é.' });
          expect(content.slice(2).map(({ input }) => input)).to.deep.equal([{ at: 'x' }, {}]);
          expect(stop).to.deep.equal({ stop_reason: 'tool_use', stop_sequence: null });
          expect(usage).to.include({ input_tokens: 20, cache_read_input_tokens: 10, output_tokens: 9 });
          if (firstUsage) expect(firstUsage['input_tokens']).to.be.above(0);
        });

  for (const wire of OPENAI_LIKE)
    for (const [form, stream] of FORMS)
      it(`G07, G08: a call that ${wire} ends with stop is tool_use ${form}, and its first block`, async () => {
        rig.say(wire, { pieces: [call('call00001', '{}')], finish: 'stop' });
        const { content, stop } = await receiveMessage(rig, MODEL_OF[wire], { stream });
        expect(content.map(({ type }) => type)).to.deep.equal(['tool_use']);
        expect(stop).to.include({ stop_reason: 'tool_use' });
      });

  for (const [form, stream] of FORMS) {
    it(`G13: stop sequences are sent on, and the one that Anthropic tells comes back ${form}`, async () => {
      for (const wire of ['anthropic', 'openai'] as const) {
        rig.say(wire, { pieces: [{ text: 'a' }], stopSequence: 'END' });
        const { stop } = await receiveMessage(rig, MODEL_OF[wire === 'openai' ? 'mistral' : wire], {
          ...{ stream, stop_sequences: ['END'] },
          ...(wire === 'openai' && { model: 'openai/gpt-4o' }),
        });
        const told = wire === 'anthropic';
        expect(stop).to.deep.equal({
          stop_reason: told ? 'stop_sequence' : 'end_turn',
          stop_sequence: told ? 'END' : null,
        });
        const { stop: openai, stop_sequences: anthropic } = rig.lastBody(wire);
        expect([openai ?? anthropic].flat()).to.deep.equal(['END']);
      }
    });

    it(`G32: a limit amid a call is max_tokens ${form}, with the input as it is`, async () => {
      rig.say('openai', { pieces: [call('a', '{"at":"/tmp/x')], finish: 'length' });
      const { content, stop } = await receiveMessage(rig, MODEL_OF.openai, { stream });
      expect(stop).to.include({ stop_reason: 'max_tokens' });
      expect(content[0]?.['input']).to.deep.equal(stream ? '{"at":"/tmp/x' : { at: '/tmp/x' });
    });

    it(`G20: an overloaded vendor is replaced by the next target ${form}`, async () => {
      const full = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } };
      rig.script('anthropic', answer(529, full));
      rig.say('openai', { pieces: [{ text: 'from the other one' }] });
      const { content, headers } = await receiveMessage(rig, 'fallback', { stream });
      expect(content).to.deep.equal([{ type: 'text', text: 'from the other one' }]);
      expect(headers.get('x-tollgate-provider')).to.equal('openai');
    });

    it(`G28, E38: signed thinking comes ${form} with its signature sealed, and goes back to Anthropic as it was`, async () => {
      const said: Said = { pieces: [{ reasoning: '', signature: 'Eq+/=' }, call('toolu_1', '{"at":"x"}')] };
      rig.say('anthropic', said);
      const { content } = await receiveMessage(rig, MODEL_OF.anthropic, { stream });
      expect(content[0]).to.include({ type: 'thinking', thinking: '' });
      expect(content[0]?.['signature']).to.match(/^tg1\.anthropic\.[\w-]+\.Eq\+\/=$/);
      const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: 'ok' };
      await receiveMessage(rig, MODEL_OF.anthropic, {
        ...{ stream, thinking: { type: 'enabled', budget_tokens: 1024 }, max_tokens: 2000 },
        messages: [
          { role: 'user', content: 'Hi' },
          { role: 'assistant', content: [...content, { type: 'redacted_thinking', data: 'Em' }] as never },
          { role: 'user', content: [result] },
        ],
      });
      const { messages, thinking } = rig.lastBody<{ messages: { content: object[] }[]; thinking: object }>('anthropic');
      expect(messages[1]?.content).to.deep.equal([
        { type: 'thinking', thinking: '', signature: 'Eq+/=' },
        { type: 'tool_use', id: 'toolu_1', name: 'look', input: { at: 'x' } },
        { type: 'redacted_thinking', data: 'Em' },
      ]);
      expect(thinking).to.deep.equal({ type: 'enabled', budget_tokens: 1024 });
    });
  }

  for (const [name, model, script, status, type, words] of [
    ['an unknown model', 'nobody/nothing', undefined, 404, 'not_found_error', /./],
    ['a model that the vendor does not know', MODEL_OF.openai, [404, {}], 404, 'not_found_error', /./],
    ['a vendor that fails', MODEL_OF.openai, [500, {}], 503, 'api_error', /./],
    ['a bad key of the operator’s', MODEL_OF.anthropic, [401, {}], 503, 'api_error', /./],
    ['a rate limit of the vendor’s', MODEL_OF.mistral, [429, {}], 429, 'rate_limit_error', /./],
    [
      'G18: a context that is full at OpenAI',
      MODEL_OF.openai,
      [
        400,
        {
          error: {
            message:
              "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
            type: 'invalid_request_error',
            code: 'context_length_exceeded',
          },
        },
      ],
      ...[400, 'invalid_request_error', /^prompt is too long: 130000 tokens > 128000 maximum$/],
    ],
    [
      'G18: a context that is full at Gemini',
      MODEL_OF.gemini,
      [
        400,
        {
          error: {
            code: 400,
            message: 'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
            status: 'INVALID_ARGUMENT',
          },
        },
      ],
      ...[400, 'invalid_request_error', /^prompt is too long: 1200000 tokens > 1048576 maximum$/],
    ],
  ] as readonly (readonly [string, string, readonly [number, object] | undefined, number, string, RegExp])[]) {
    it(`G14: ${name} is told as ${type}, before a stream too`, async () => {
      if (script) for (const wire of WIRES) rig.script(wire, answer(...script));
      for (const stream of [false, true]) {
        const response = await postMessages(rig, model, { stream });
        const body = (await response.json()) as { error: { message: string } };
        expect(response.status).to.equal(status);
        expect(body).to.have.all.keys('type', 'error', 'request_id');
        expect(body).to.deep.include({ type: 'error', request_id: response.headers.get('x-request-id') });
        expect(body.error).to.have.all.keys('type', 'message');
        expect(body.error).to.include({ type });
        expect(body.error.message).to.match(words);
      }
    });
  }

  for (const wire of WIRES)
    it(`G15: a stream that ${wire} breaks off ends with an error event, and nothing after it`, async () => {
      rig.script(wire, cutScript(wire, { pieces: [{ text: 'half a response' }] }, 5));
      const response = await postMessages(rig, MODEL_OF[wire], { stream: true });
      const { error, content } = readMessagesStream(await response.text());
      expect(error?.['error']).to.include({ type: 'api_error' });
      expect(content.map(({ type }) => type)).to.deep.equal(['text']);
    });

  it('G19: a context that is full amid a stream is an error event with the words that clients know', async () => {
    const event = {
      type: 'error',
      error: { type: 'invalid_request_error', message: 'prompt is too long: 9 tokens > 8 maximum' },
    };
    let hasBegun = (): void => {};
    const begun = new Promise<void>((resolve) => {
      hasBegun = resolve;
    });
    rig.script('anthropic', async (wire) => {
      await wire.send(SSE_HEAD);
      await wire.send(
        chunk(streamText('anthropic', { pieces: [{ text: 'half' }] }).split('event: content_block_stop')[0] ?? ''),
      );
      await begun;
      await wire.send(chunk(`event: error\ndata: ${JSON.stringify(event)}\n\n`));
      await wire.send(LAST_CHUNK);
    });
    const response = await postMessages(rig, MODEL_OF.anthropic, { stream: true });
    hasBegun();
    const { error } = readMessagesStream(await response.text());
    expect(error?.['error']).to.deep.equal(event.error);
  });

  it('G23: Claude Code’s attribution goes to no other vendor', async () => {
    const attribution = 'x-anthropic-billing-header: cc_version=2.1.0; cch=00000;';
    rig.say('openai', { pieces: [{ text: 'a' }] });
    for (const system of [
      `${attribution}\nBe kind.`,
      [
        { type: 'text', text: attribution },
        { type: 'text', text: 'Be kind.' },
      ],
    ]) {
      await receiveMessage(rig, MODEL_OF.openai, { system });
      const sent = JSON.stringify(rig.lastBody('openai'));
      expect(sent).to.include('Be kind.').and.not.to.include('billing');
    }
  });

  it('G24: betas and their fields go to Anthropic, and to nobody else', async () => {
    const betas = { 'anthropic-beta': 'context-management-2025-06-27,interleaved-thinking-2025-05-14' };
    const context_management = { edits: [{ type: 'clear_tool_uses_20250919' }] };
    rig.say('anthropic', { pieces: [{ text: 'a' }] });
    await receiveMessage(rig, MODEL_OF.anthropic, { context_management }, betas);
    expect(rig.sent('anthropic').at(-1)?.headers).to.include({ 'anthropic-version': '2023-06-01', ...betas });
    expect(rig.lastBody('anthropic')).to.deep.include({ context_management });
    rig.say('openai', { pieces: [{ text: 'a' }] });
    await receiveMessage(rig, MODEL_OF.openai, {}, betas);
    const sent = rig.sent('openai').at(-1);
    expect(JSON.stringify(sent?.headers)).not.to.include('anthropic');
  });

  it('G25: cache_control goes to Anthropic with its ttl', async () => {
    const cache_control = { type: 'ephemeral', ttl: '1h' };
    const cached = { type: 'text', text: 'Be kind.', cache_control };
    rig.say('anthropic', { pieces: [{ text: 'a' }] });
    await receiveMessage(rig, MODEL_OF.anthropic, {
      system: [cached],
      messages: [{ role: 'user', content: [{ ...cached, text: 'Hi' }] }],
    });
    const { system, messages } = rig.lastBody<{ system: object[]; messages: { content: object[] }[] }>('anthropic');
    expect([system[0], messages[0]?.content[0]]).to.deep.equal([cached, { ...cached, text: 'Hi' }]);
  });

  it('G26: ids that the format does not take come out valid, and call and result are a pair when they come back', async () => {
    rig.say('openai', { pieces: [call('functions.look:0', '{}'), call('functions.look:1', '{}')] });
    const { content } = await receiveMessage(rig, MODEL_OF.openai);
    const ids = content.map(({ id }) => String(id));
    expect(new Set(ids)).to.have.property('size', 2);
    for (const id of ids) expect(id).to.match(/^[A-Za-z0-9_-]{1,64}$/);
    const results = ids.map((id) => ({ type: 'tool_result', tool_use_id: id, content: 'ok' }));
    const history = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: content as never },
      { role: 'user', content: results },
    ];
    for (const wire of ['anthropic', 'openai'] as const) {
      rig.say(wire, { pieces: [{ text: 'done' }] });
      await receiveMessage(rig, MODEL_OF[wire], { messages: history });
      const sent = [...JSON.stringify(rig.lastBody(wire)).matchAll(/"(?:id|tool_call_id|tool_use_id)":"([^"]+)"/g)];
      const [first, second, ...answered] = sent.map(([, id]) => id);
      expect(answered).to.deep.equal([first, second]);
    }
  });

  it('G27: thinking of another vendor is left out where it would be refused, and kept where it is wanted', async () => {
    const messages = [
      { role: 'user', content: 'Hi' },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'unsigned thought', signature: '' },
          { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} },
        ],
      },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'ok' }] },
    ];
    for (const wire of ['anthropic', 'deepseek'] as const) {
      rig.say(wire, { pieces: [{ text: 'a' }] });
      const { headers } = await receiveMessage(rig, MODEL_OF[wire], { messages });
      const sent = JSON.stringify(rig.lastBody(wire));
      if (wire === 'deepseek') expect(sent).to.include('unsigned thought');
      else expect(sent).not.to.include('unsigned thought');
      if (wire === 'anthropic') expect(headers.get('x-tollgate-dropped')).to.include('reasoning');
    }
  });

  it('G30: a history with calls and no tools has tools at Anthropic', async () => {
    rig.say('anthropic', { pieces: [{ text: 'a' }] });
    const messages = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'Bash', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'ok' }] },
    ];
    await receiveMessage(rig, MODEL_OF.anthropic, { messages, tools: null });
    expect(rig.lastBody<{ tools: object[] }>('anthropic').tools[0]).to.include({ name: 'Bash' });
  });

  it('G31: an image in a result of a tool stays an image at Anthropic', async () => {
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } };
    rig.say('anthropic', { pieces: [{ text: 'a' }] });
    const messages = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: [image], is_error: true }] },
    ];
    await receiveMessage(rig, MODEL_OF.anthropic, { messages });
    const sent = rig.lastBody<{ messages: { content: object[] }[] }>('anthropic').messages[2]?.content[0];
    expect(sent).to.deep.include({ content: [image], is_error: true });
  });
});

describe('a stream of POST /v1/messages', () => {
  it('G33: is bridged by ping events while the vendor is silent, before its first byte too', async () => {
    const rig = await startIngressRig({ server: { port: 0, sseKeepAlive: '50ms', drainTimeout: '2s' } });
    let speak = (): void => {};
    const spoken = new Promise<void>((resolve) => {
      speak = resolve;
    });
    rig.script('anthropic', async (wire) => {
      await spoken;
      await sayScript('anthropic', { pieces: [{ text: 'a' }] })(wire);
    });
    const response = await postMessages(rig, MODEL_OF.anthropic, { stream: true });
    const parts: Uint8Array[] = [];
    for await (const part of response.body ?? []) {
      parts.push(part as Uint8Array);
      speak();
    }
    await rig.stop();
    const text = Buffer.concat(parts).toString();
    expect(text).to.match(/^event: ping\ndata: \{"type":"ping"\}\n\n/);
    expect(readMessagesStream(text).delta).to.include({ stop_reason: 'end_turn' });
  });
});

describe('policies on POST /v1/messages', () => {
  const plugin = (body: string): string =>
    `export default { name: 'mask', kind: 'policy', apiVersion: 1, setup(api) { ${body} } };\n`;
  const start = (body: string): Promise<IngressRig> =>
    startIngressRig({ plugins: ['./mask.mjs'] }, { files: { 'mask.mjs': plugin(body) } });
  const MASK = `
    const mask = (text) => typeof text === 'string' ? text.replaceAll('secret', '******') : text;
    api.hook('receive', (call, response) => ({ ...response, choices: response.choices.map((choice) => ({ ...choice, message: { ...choice.message, content: mask(choice.message.content) } })) }));
    api.hook('stream', () => {
      let held = '';
      const chunkOf = (chunk, content) => ({ ...chunk, choices: [{ index: 0, delta: { content }, finish_reason: null }] });
      let last;
      return {
        push(chunk) { const text = chunk.choices[0]?.delta.content; if (typeof text !== 'string' || text === '') return [chunk]; held += text; last = chunk; return []; },
        end: () => last ? [chunkOf(last, mask(held))] : [],
      };
    });`;

  for (const wire of ['anthropic', 'openai'] as readonly Wire[])
    for (const [form, stream] of FORMS)
      it(`G17: see and change what ${wire} says ${form}, as on every way in`, async () => {
        const rig = await start(MASK);
        rig.say(wire, { pieces: [{ text: 'the secret word' }] });
        const { content, stop } = await receiveMessage(rig, MODEL_OF[wire], { stream });
        await rig.stop();
        expect(content).to.deep.equal([{ type: 'text', text: 'the ****** word' }]);
        expect(stop).to.include({ stop_reason: 'end_turn' });
      });

  it('G16: that refuse a stream at its end are an error event, nothing after it, and the call is billed', async () => {
    const rig = await start(`
      api.hook('stream', () => ({ push: (chunk) => [chunk], end() { throw new Error('refused'); } }));`);
    rig.script('openai', async (wire) => {
      const piece = (delta: object, finish_reason: string | null, more: object = {}) =>
        `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'gpt-5', choices: [{ index: 0, delta, finish_reason }], ...more })}\n\n`;
      const usage = { prompt_tokens: 1000, completion_tokens: 500, total_tokens: 1500 };
      await wire.send(SSE_HEAD);
      await wire.send(chunk(piece({ role: 'assistant', content: 'a' }, null)));
      await wire.send(chunk(piece({}, 'stop', { usage })));
      await wire.send(chunk('data: [DONE]\n\n'));
      await wire.send(LAST_CHUNK);
    });
    const text = await (await postMessages(rig, MODEL_OF.openai, { stream: true })).text();
    const { error } = readMessagesStream(text);
    expect(error?.['error']).to.include({ type: 'api_error' });
    const usage = (await (await rig.gateway.get('/api/core/usage')).json()) as object;
    await rig.stop();
    expect(JSON.stringify(usage)).to.include('500');
  });
});
