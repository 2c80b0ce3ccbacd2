import { Readable } from 'node:stream';
import { expect } from 'chai';
import fc from 'fast-check';
import type { ChatCodec, CodecCall } from '../../../contract/provider.ts';
import { type OpenedChat, readChunks } from '../../../core/calls/chat-stream.ts';
import plugin from '../../../plugins/providers/openai-compatible.ts';
import { anyText } from '../../support/arbitrary-text.ts';
import { generatedCases } from '../../support/generated-cases.ts';

const HEAD = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1_790_000_000, model: 'm' };
const event = (delta: object, finish: string | null = null, more: object = {}) =>
  `data: ${JSON.stringify({ ...HEAD, choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }], ...more })}\n\n`;
const ROLE = event({ role: 'assistant', content: '' });
const FIRST = event({ content: 'Once' });
const STOP = event({}, 'stop');
const USAGE = `data: ${JSON.stringify({ ...HEAD, choices: [], usage: { prompt_tokens: 3, completion_tokens: 9, total_tokens: 12 } })}\n\n`;
const DONE = 'data: [DONE]\n\n';

const call: CodecCall = { model: 'm', stream: true, created: 1, id: 'call_1' };

const codecs: ChatCodec[] = [];
void plugin.setup(
  { provider: (provider: { chat: ChatCodec }) => void codecs.push(provider.chat), offer: () => {} } as never,
  { baseUrl: 'http://127.0.0.1:1/v1' } as never,
);

function open(parts: readonly Buffer[]): OpenedChat {
  return {
    codec: codecs[0],
    codecCall: call,
    upstreamResponse: {
      headers: { 'content-type': 'text/event-stream' },
      body: Readable.from(parts),
      reportProgress() {},
    },
  } as unknown as OpenedChat;
}

interface Read {
  readonly text: string;
  readonly finish: string | undefined;
  readonly usage: unknown;
}

/** Reads a complete stream. */
async function readAll(parts: readonly Buffer[]): Promise<Read> {
  let text = '';
  let finish: string | undefined;
  let usage: unknown;
  for await (const { chunks: batch } of readChunks(open(parts))) {
    for (const chunk of batch) {
      usage = chunk.usage ?? usage;
      for (const { delta, finish_reason } of chunk.choices) {
        text += delta.content ?? '';
        finish = finish_reason ?? finish;
      }
    }
  }
  return { text, finish, usage };
}

function cut(bytes: Buffer, at: readonly number[]): Buffer[] {
  const ends = [...new Set(at.map((n) => n % bytes.length)), bytes.length].filter((n) => n > 0).sort((a, b) => a - b);
  return ends.map((end, index) => bytes.subarray(index === 0 ? 0 : ends[index - 1], end));
}

describe('the events of an upstream stream', () => {
  it('become chunks, with the usage at the end', async () => {
    const parts = [ROLE, FIRST, event({ content: ' upon “a” time\n' }), STOP, USAGE, DONE];
    expect(await readAll(parts.map((text) => Buffer.from(text)))).to.deep.equal({
      text: 'Once upon “a” time\n',
      finish: 'stop',
      usage: { prompt_tokens: 3, completion_tokens: 9, total_tokens: 12 },
    });
  });

  it('are the same however the bytes are split', async () => {
    const texts = fc.array(anyText({ minLength: 1, maxLength: 6 }), { maxLength: 12 });
    const cuts = fc.array(fc.nat(3000), { maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(texts, cuts, fc.boolean(), async (words, at, hasCr) => {
        const all = [ROLE, FIRST, ...words.map((content) => event({ content })), STOP, USAGE, DONE].join('');
        const bytes = Buffer.from(hasCr ? all.replaceAll('\n', '\r\n') : all);
        const [inPieces, whole] = await Promise.all([readAll(cut(bytes, at)), readAll([bytes])]);
        expect(inPieces).to.deep.equal(whole);
        expect(whole.text).to.equal(`Once${words.join('')}`);
      }),
      { numRuns: generatedCases(200) },
    );
  });

  it('are incomplete without a finish reason', async () => {
    const parts = [ROLE, FIRST, event({ content: ' more' })].map((text) => Buffer.from(text));
    const thrown = await readAll(parts).then(
      () => undefined,
      (error: { code?: string }) => error.code,
    );
    expect(thrown).to.equal('provider_unavailable');
  });
});
