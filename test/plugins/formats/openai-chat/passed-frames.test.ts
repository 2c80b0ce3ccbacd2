/** Reading of a stream by the pattern of an earlier frame, and the choice of frames that a caller gets unchanged. */
import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import fc from 'fast-check';
import { createEventReader } from '../../../../contract/event-reader.ts';
import type { ChatChunk, ChatCodec, SseEvent, StreamProgress } from '../../../../contract/index.ts';
import { CALL } from '../../../conformance/provider-subject.ts';
import { corpusText } from '../../../support/corpus.ts';
import { generatedCases } from '../../../support/generated-cases.ts';
import { loadProviders } from '../../../support/plugins/all-providers.ts';

const FIXTURES = new URL('../../../fixtures/', import.meta.url);
const CORPUS = 'vercel-ai/packages/openai/src/chat/__fixtures__/';
/** Providers whose vendor has OpenAI's chat completions, so that its frames may pass. */
const PROVIDERS = (await loadProviders()).filter(({ provider }) => provider.native?.('m', true)['chat'] !== undefined);
const codecOf = (name: string): ChatCodec => {
  const codec = PROVIDERS.find((each) => each.name === name)?.provider.chat;
  if (!codec) throw new Error(`no chat at ${name}`);
  return codec;
};

interface Read {
  readonly chunks: readonly (readonly ChatChunk[])[];
  readonly progress: readonly (StreamProgress | undefined)[];
  readonly complete: boolean | undefined;
  readonly error: string | undefined;
  /** Data of the frames that a caller of the format gets. */
  readonly sent: readonly string[];
}

/** Details repeat the reasoning in the canonical form; the dialect seals them. */
const withoutDetails = (name: string, value: unknown): unknown => (name === 'reasoning_details' ? undefined : value);

/** Reads events as core does. A named event is parsed, since the pattern is for events without a name. */
function read(codec: ChatCodec, events: readonly SseEvent[], isParsed: boolean): Read {
  const decoder = codec.stream({ ...CALL, stream: true });
  const chunks: (readonly ChatChunk[])[] = [];
  const progress: (StreamProgress | undefined)[] = [];
  const sent: string[] = [];
  const take = (read: readonly ChatChunk[]): void => {
    chunks.push(read);
    const original = decoder.original?.();
    if (original) sent.push(original.data);
    else for (const chunk of read) sent.push(JSON.stringify(chunk, withoutDetails));
  };
  try {
    for (const event of events) {
      take(decoder.push(isParsed ? { ...event, event: event.event ?? 'message' } : event));
      progress.push(decoder.progress?.());
    }
    const end = decoder.end();
    take(end.chunks);
    return { chunks, progress, complete: end.complete, error: undefined, sent };
  } catch (error) {
    return { chunks, progress, complete: undefined, error: String(error), sent };
  }
}

/** Content of a stream, as a client combines it. */
function combined(chunks: readonly ChatChunk[]): object {
  const choices = new Map<number, Record<string, unknown>>();
  let usage: unknown;
  for (const chunk of chunks) {
    usage = chunk.usage ?? usage;
    for (const { index, delta, finish_reason: reason, logprobs } of chunk.choices) {
      const choice = choices.get(index) ?? { text: '', thinking: '', refusal: '', calls: '', logs: [], reason: null };
      choices.set(index, {
        text: `${choice['text']}${delta.content ?? ''}`,
        thinking: `${choice['thinking']}${delta.reasoning_content ?? ''}`,
        refusal: `${choice['refusal']}${delta.refusal ?? ''}`,
        calls: `${choice['calls']}${(delta.tool_calls ?? []).map(callText).join('')}`,
        logs: [...(choice['logs'] as unknown[]), ...(logprobs ? [logprobs] : [])],
        reason: reason ?? choice['reason'],
      });
    }
  }
  return { choices: [...choices], usage };
}

const callText = ({
  index,
  id = '',
  function: called,
}: NonNullable<ChatChunk['choices'][0]['delta']['tool_calls']>[0]) =>
  `${id === '' ? '' : `[${index} ${id} ${called?.name}]`}${called?.arguments ?? ''}`;

const eventsOf = (bytes: Uint8Array, cuts: readonly number[] = []): readonly SseEvent[] => {
  const reader = createEventReader();
  const ends = [...new Set(cuts.map((cut) => cut % bytes.length)), bytes.length].sort((a, b) => a - b);
  const events = ends.flatMap((end, at) => [...reader.push(bytes.subarray(at === 0 ? 0 : ends[at - 1], end))]);
  return [...events, ...reader.end()];
};

/** Asserts that a stream is read the same by patterns and by parsing, and says the same to a caller of the format. */
function assertSame(codec: ChatCodec, events: readonly SseEvent[]): Read {
  const quick = read(codec, events, false);
  const { sent: _written, ...parsed } = read(codec, events, true);
  const { sent, ...found } = quick;
  expect(found).to.deep.equal(parsed);
  if (quick.error !== undefined) return quick;
  const again = read(
    codecOf('openai'),
    sent.map((data) => ({ data })),
    true,
  );
  expect(again.error).to.equal(undefined);
  expect(combined(again.chunks.flat())).to.deep.equal(combined(quick.chunks.flat()));
  return quick;
}

describe('frames of a stream in OpenAI’s format', () => {
  for (const { name, provider } of PROVIDERS)
    for (const file of readdirSync(new URL(`${name}/`, FIXTURES)).filter((each) => each.endsWith('.sse')))
      it(`are read the same by patterns and by parsing: ${name}/${file}`, () => {
        const bytes = readFileSync(new URL(`${name}/${file}`, FIXTURES));
        assertSame(provider.chat as ChatCodec, eventsOf(bytes));
        const words = Array.from({ length: 20 }, (_, at) => bytes.toString().replaceAll('Hel', `Hel${at}`));
        assertSame(provider.chat as ChatCodec, eventsOf(Buffer.from(words.join('').replaceAll('data: [DONE]', ':'))));
      });

  for (const [name, file] of [
    ['openai', 'openai-text.chunks.txt'],
    ['azure', 'azure-model-router.1.chunks.txt'],
  ] as const)
    it(`are read the same by patterns and by parsing: ${file}`, () => {
      const data = corpusText(CORPUS + file)
        .trim()
        .split('\n');
      const { sent } = assertSame(
        codecOf(name),
        [...data, '[DONE]'].map((each) => ({ data: each })),
      );
      // Azure's first frame has no choices; its data is added to the second one.
      const own = name === 'azure' ? data.slice(2) : data;
      expect(sent.slice(-own.length)).to.deep.equal(own);
    });

  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 12 }),
    fc.constantFrom(
      '"',
      '\\',
      '\n',
      '","finish_reason":"stop"',
      '<think>',
      '</think>',
      'é',
      '🌍',
      '\u2028',
      '\u0000',
      '',
    ),
  );
  const extra = fc.dictionary(
    fc.constantFrom('z', 'usage', 'obfuscation', 'service_tier', 'x'),
    fc.oneof(text, fc.constant(null)),
    {
      maxKeys: 2,
    },
  );
  const call = fc.record({
    index: fc.nat(2),
    id: fc.option(fc.constantFrom('a', 'b', ''), { nil: undefined }),
    type: fc.option(fc.constant('function'), { nil: undefined }),
    function: fc.record({ name: fc.option(fc.constantFrom('f', ''), { nil: undefined }), arguments: text }),
  });
  const delta = fc.oneof(
    { weight: 6, arbitrary: fc.record({ content: text }) },
    fc.record({ role: fc.constant('assistant'), content: text }),
    fc.record({ content: text, refusal: fc.constant(null), x: text }),
    fc.record({ reasoning_content: text }),
    fc.record({ reasoning: text, content: fc.constantFrom(null, '', 'a') }),
    fc.record({ tool_calls: fc.array(call, { maxLength: 2 }) }),
    fc.constant({}),
  );
  const frame = fc
    .record({
      delta,
      index: fc.oneof({ weight: 5, arbitrary: fc.constant(0) }, fc.nat(1)),
      reason: fc.oneof({ weight: 12, arbitrary: fc.constant(null) }, fc.constantFrom('stop', 'length', 'eos', 'odd')),
      top: fc.oneof({ weight: 4, arbitrary: fc.constant({}) }, extra),
      of: fc.oneof({ weight: 4, arbitrary: fc.constant({}) }, extra),
    })
    .map(({ delta: said, index, reason, top, of }) => ({
      ...{ id: 'c-1', object: 'chat.completion.chunk', created: 1_790_000_000, model: 'm-1' },
      choices: [{ index, delta: said, logprobs: null, finish_reason: reason, ...of }],
      ...top,
    }));
  /** Layouts of the same JSON. */
  const layout = fc.constantFrom(
    (json: string) => json,
    (json: string) =>
      json.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`),
    (json: string) => `${json} `,
    (json: string) => json.replace('"content":"', '"content" : "'),
    (json: string) => json.replace('"content":', '"content":"no","content":'),
  );
  const damage = fc.constantFrom(
    ...Array.from({ length: 30 }, () => (json: string) => json),
    (json: string) => json.slice(0, -1),
    (json: string) => json.replace('"content":"', '"content":"\u0001'),
    (json: string) => json.replace('"content":"', '"content":""'),
    (json: string) => json.replace('"content":"', '"content":"\\x'),
  );
  const stream = fc
    .tuple(fc.array(fc.tuple(frame, damage), { maxLength: 24 }), layout)
    .map(([frames, lay]) => frames.map(([each, spoil]) => spoil(lay(JSON.stringify(each)))));

  for (const name of ['openai', 'openai-compatible', 'xai'])
    it(`are read the same by patterns and by parsing, wherever bytes are cut: ${name}`, () => {
      let passed = 0;
      fc.assert(
        fc.property(
          stream,
          fc.array(fc.nat(5000), { maxLength: 6 }),
          fc.constantFrom('\n', '\r\n', '\r'),
          (data, cuts, end) => {
            const bytes = Buffer.from([...data, '[DONE]'].map((each) => `data: ${each}${end}${end}`).join(''));
            const { sent } = assertSame(codecOf(name), eventsOf(bytes, cuts));
            passed += sent.filter((each) => data.includes(each.trim())).length;
          },
        ),
        { numRuns: generatedCases(400) },
      );
      expect(passed).to.be.greaterThan(generatedCases(300));
    });
});
