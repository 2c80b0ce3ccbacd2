import { expect } from 'chai';
import { postMessages, receiveMessage } from '../support/clients/post-messages.ts';
import { readMessagesStream } from '../support/formats/messages-grammar.ts';
import {
  type IngressRig,
  MODEL_OF,
  type Piece,
  type ScriptedOutput,
  sayScript,
  startIngressRig,
  type Wire,
} from '../support/gateways/ingress-rig.ts';
import { chunk, LAST_CHUNK, respondWith, SSE_HEAD } from '../support/vendors/scripted-upstream.ts';
import { streamText } from '../support/vendors/vendor-wires.ts';

const FORMS = [
  ['whole', false],
  ['as a stream', true],
] as const;
const call = (id: string, text: string): Piece => ({ call: 'look', id, arguments: text });
describe('POST /v1/messages', () => {
  let rig: IngressRig;
  before(async () => {
    rig = await startIngressRig({ models: { fallback: [MODEL_OF.anthropic, MODEL_OF.openai] } });
  });
  after(() => rig.stop());

  for (const [form, stream] of FORMS) {
    it(`G20: an overloaded vendor is replaced by the next target ${form}`, async () => {
      const full = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } };
      rig.script('anthropic', respondWith(529, full));
      rig.say('openai', { pieces: [{ text: 'from the other one' }] });
      const { content, headers } = await receiveMessage(rig, 'fallback', { stream });
      expect(content).to.deep.equal([{ type: 'text', text: 'from the other one' }]);
      expect(headers.get('x-tollgate-provider')).to.equal('openai');
    });

    it(`G28, E38: signed thinking is returned ${form} with its signature sealed, and sent back to Anthropic unchanged`, async () => {
      const said: ScriptedOutput = { pieces: [{ reasoning: '', signature: 'Eq+/=' }, call('toolu_1', '{"at":"x"}')] };
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

  it('G14: a rate limit of the vendor’s is reported as rate_limit_error, before a stream too', async () => {
    rig.script('mistral', respondWith(429, {}));
    for (const stream of [false, true]) {
      const response = await postMessages(rig, MODEL_OF.mistral, { stream });
      const body = (await response.json()) as { error: { message: string } };
      expect(response.status).to.equal(429);
      expect(body).to.deep.include({ type: 'error', request_id: response.headers.get('x-request-id') });
      expect(body.error).to.have.all.keys('type', 'message');
      expect(body.error).to.include({ type: 'rate_limit_error' });
    }
  });

  it('G19: a full context in the middle of a stream is an error event with the message that clients recognize', async () => {
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
      it(`G17: see and change the text of ${wire} ${form}, as on every route`, async () => {
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
