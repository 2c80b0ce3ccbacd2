import { expect } from 'chai';
import fc from 'fast-check';
import type { OpenedChat } from '../../../core/calls/chat.ts';
import { createChatSource } from '../../../core/calls/chat-source.ts';
import type { ChatChunk } from '../../../core/contract/chat.ts';
import type { ChatCodec, CodecCall } from '../../../core/contract/provider.ts';
import { next } from '../../../core/upstream/pull.ts';
import plugin from '../../../plugins/providers/openai-compatible.ts';

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
  { provider: (provider: { chat: ChatCodec }) => void codecs.push(provider.chat) } as never,
  { baseUrl: 'http://127.0.0.1:1/v1' } as never,
);

function open(parts: readonly Buffer[]): OpenedChat {
  const left = [...parts];
  const body = { read: () => left.shift() };
  return {
    codec: codecs[0],
    codecInfo: call,
    upstreamResponse: { headers: { 'content-type': 'text/event-stream' }, body },
  } as unknown as OpenedChat;
}

interface Read {
  readonly text: string;
  readonly finish: string | undefined;
  readonly usage: unknown;
  /** Events that came as bytes. */
  readonly passed: number;
}

/** Reads a whole stream; bytes are allowed after the first batch with a chunk in it. */
async function readAll(parts: readonly Buffer[], allowsBytes = true): Promise<Read> {
  const source = await createChatSource(open(parts));
  let [text, passed, hasBegun] = ['', 0, false];
  let finish: string | undefined;
  let usage: unknown;
  const add = (chunk: ChatChunk): void => {
    usage = chunk.usage ?? usage;
    for (const { delta, finish_reason } of chunk.choices) {
      text += delta.content ?? '';
      finish = finish_reason ?? finish;
    }
  };
  for (let batch = await next(source); batch; batch = await next(source)) {
    if ('bytes' in batch) {
      passed += batch.length;
      for (const line of Buffer.from(batch.bytes).toString().split('\n\n')) if (line) add(JSON.parse(line.slice(6)));
      continue;
    }
    for (const chunk of batch) add(chunk);
    if (batch[0] && !hasBegun && allowsBytes) source.passBytes(batch[0]);
    hasBegun = true;
  }
  return { text, finish, usage, passed };
}

function cut(bytes: Buffer, at: readonly number[]): Buffer[] {
  const ends = [...new Set(at.map((n) => n % bytes.length)), bytes.length].filter((n) => n > 0).sort((a, b) => a - b);
  return ends.map((end, index) => bytes.subarray(index === 0 ? 0 : ends[index - 1], end));
}

describe('the events of an upstream stream', () => {
  it('come as bytes when they are plain text in the usual spelling', async () => {
    const parts = [ROLE, FIRST, event({ content: ' upon “a” time\n' }), STOP, USAGE, DONE].map((text) =>
      Buffer.from(text),
    );
    const { passed, ...rest } = await readAll(parts);
    expect(passed).to.equal(2);
    expect(rest).to.deep.equal({
      text: 'Once upon “a” time\n',
      finish: 'stop',
      usage: { prompt_tokens: 3, completion_tokens: 9, total_tokens: 12 },
    });
  });

  const others: Readonly<Record<string, string>> = {
    'a tool call': event({
      tool_calls: [{ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '' } }],
    }),
    thinking: event({ reasoning_content: 'hm' }),
    'a refusal': event({ content: 'x', refusal: 'no' }),
    'a reason to stop': event({ content: 'x' }, 'length'),
    usage: event({ content: 'x' }, null, { usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } }),
    'another id': event({ content: 'x' }).replace('chatcmpl-1', 'chatcmpl-2'),
    'a field of the vendor’s own': event({ content: 'x' }, null, { padding: 'abc' }),
    'a comment': `: hello\n\n${event({ content: 'x' })}`,
    'a name': `event: message\n${event({ content: 'x' })}`,
    blanks: event({ content: 'x' }).replaceAll('":', '": '),
    'no text': event({ content: '' }),
    'half a surrogate escape': event({ content: 'x' }).replace('"x"', '"\\ud83"'),
    'carriage returns': event({ content: 'x' }).replaceAll('\n', '\r\n'),
  };
  for (const [what, text] of Object.entries(others)) {
    it(`are parsed when there is ${what} in them`, async () => {
      const source = await createChatSource(open([FIRST, text].map((part) => Buffer.from(part))));
      const first = (await next(source)) as readonly ChatChunk[];
      source.passBytes(first[0] as ChatChunk);
      const second = await next(source).catch(() => undefined);
      expect(second && 'bytes' in second).to.not.equal(true);
    });
  }

  it('say the same however the bytes are cut, and whether or not bytes may pass', async () => {
    const texts = fc.array(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 6 }), { maxLength: 12 });
    const cuts = fc.array(fc.nat(3000), { maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(texts, cuts, fc.boolean(), async (words, at, hasCr) => {
        const all = [ROLE, FIRST, ...words.map((content) => event({ content })), STOP, USAGE, DONE].join('');
        const bytes = Buffer.from(hasCr ? all.replaceAll('\n', '\r\n') : all);
        const [passing, parsed] = await Promise.all([readAll(cut(bytes, at)), readAll([bytes], false)]);
        expect({ ...passing, passed: 0 }).to.deep.equal(parsed);
        expect(parsed.text).to.equal(`Once${words.join('')}`);
      }),
      { numRuns: 200 },
    );
  });

  it('are broken off when no reason to stop came', async () => {
    const parts = [ROLE, FIRST, event({ content: ' more' })].map((text) => Buffer.from(text));
    const thrown = await readAll(parts).then(
      () => undefined,
      (error: { code?: string }) => error.code,
    );
    expect(thrown).to.equal('provider_unavailable');
  });
});
