import { expect } from 'chai';
import { createEventReader } from '../../../contract/event-reader.ts';
import type { ChatChunk, ChatRequest, ChatResponse, Provider } from '../../../contract/index.ts';
import echo from '../../../plugins/providers/echo/index.ts';
import type { EmbeddingRequest } from '../../../plugins/providers/kit/index.ts';
import { readChunks } from '../../conformance/provider-shape.ts';
import { setUpProvider } from '../../conformance/provider-subject.ts';

const CALL = { model: 'echo', stream: false, created: 1_750_000_000, id: 'chatcmpl-1' };

async function send(
  provider: Provider,
  request: Parameters<NonNullable<Provider['transport']>>[0],
  signal = new AbortController().signal,
) {
  const response = await provider.transport?.(request, signal);
  if (!response) throw new Error('no transport');
  const chunks: Uint8Array[] = [];
  for await (const bytes of response.body) chunks.push(bytes);
  return Buffer.concat(chunks);
}

async function chatWith(fields: object, config: object = {}): Promise<ChatResponse> {
  const provider = setUpProvider(echo, { ...config });
  const request = { model: 'echo', messages: [], ...fields } as ChatRequest;
  const { chat } = provider;
  if (!chat) throw new Error('no chat');
  return chat.response(JSON.parse(String(await send(provider, chat.request(request, CALL)))), CALL);
}

async function stream(fields: object): Promise<readonly ChatChunk[]> {
  const provider = setUpProvider(echo, {});
  const call = { ...CALL, stream: true };
  const { chat } = provider;
  if (!chat) throw new Error('no chat');
  const bytes = await send(provider, chat.request({ model: 'echo', messages: [], ...fields } as ChatRequest, call));
  const decoder = chat.stream(call);
  const chunks = createEventReader()
    .push(bytes)
    .flatMap((event) => [...decoder.push(event)]);
  expect(decoder.end().complete).to.equal(true);
  return chunks;
}

function says(content: unknown) {
  return { messages: [{ role: 'user', content }] };
}

describe('echo', () => {
  it('answers with the last user message', async () => {
    const messages = [
      { role: 'user', content: 'first' },
      { role: 'assistant', content: 'x' },
      { role: 'user', content: 'last' },
      { role: 'assistant', content: 'y' },
    ];
    expect((await chatWith({ messages })).choices[0]?.message.content).to.equal('last');
  });

  for (const [title, content, text] of [
    ['text with its spaces and lines', '  Hello,\n brave\tworld \n', '  Hello,\n brave\tworld \n'],
    [
      'text parts joined',
      [
        { type: 'text', text: 'a' },
        { type: 'image_url', image_url: { url: 'data:,' } },
        { type: 'text', text: 'b' },
      ],
      'ab',
    ],
    ['nothing for nothing', '', ''],
    ['spaces and a byte order mark', ' \ufeff\n', ' \ufeff\n'],
    ['nothing for null', null, ''],
    ['emoji and right-to-left text', '👩‍👩‍👧 שלום', '👩‍👩‍👧 שלום'],
  ] as const) {
    it(`returns ${title}, with and without a stream`, async () => {
      expect((await chatWith(says(content))).choices[0]?.message.content).to.equal(text);
      expect(readChunks(await stream(says(content))).choices[0]?.content).to.equal(text);
    });
  }

  it('streams word by word', async () => {
    const words = (await stream(says('one two three'))).map(({ choices }) => choices[0]?.delta.content);
    expect(words.filter(Boolean)).to.deep.equal(['one', ' two', ' three']);
  });

  it('counts words as tokens, the same with and without a stream', async () => {
    const usage = { prompt_tokens: 3, completion_tokens: 3, total_tokens: 6 };
    expect((await chatWith(says('one two three'))).usage).to.deep.equal(usage);
    expect((await stream(says('one two three'))).at(-1)?.usage).to.deep.equal(usage);
  });

  it('stops at max_tokens and reports it', async () => {
    const { choices } = await chatWith({ ...says('one two three'), max_tokens: 2 });
    expect(choices[0]).to.deep.include({ finish_reason: 'length' });
    expect(choices[0]?.message.content).to.equal('one two');
  });

  it('stops at a stop text', async () => {
    expect(
      (await chatWith({ ...says('one two three'), stop: ['three', ' two'] })).choices[0]?.message.content,
    ).to.equal('one');
  });

  it('returns the requested number of choices', async () => {
    expect((await chatWith({ ...says('x'), n: 3 })).choices.map(({ index }) => index)).to.deep.equal([0, 1, 2]);
    expect(readChunks(await stream({ ...says('x'), n: 2 })).choices).to.have.length(2);
  });

  it('needs no key', () => {
    expect(setUpProvider(echo, {}).credential?.required).to.equal(false);
  });

  it('ends at once when its caller leaves', async () => {
    const provider = setUpProvider(echo, { delay: '1h' });
    const abort = new AbortController();
    const request = provider.chat?.request({ model: 'echo', ...says('a b'), stream: true } as ChatRequest, {
      ...CALL,
      stream: true,
    });
    if (!request) throw new Error('no chat');
    const pending = send(provider, request, abort.signal).catch((error: unknown) => error as Error);
    abort.abort();
    expect(await pending).to.have.property('name', 'AbortError');
  });

  it('has equal embeddings for equal text, near ones for shared words, at unit length', async () => {
    const provider = setUpProvider(echo, {});
    const { embed } = provider;
    if (!embed) throw new Error('no embeddings');
    const input: EmbeddingRequest = {
      model: 'echo-embedding',
      input: ['red apple', 'Red apple!', 'green apple', 'blue sea'],
      dimensions: 256,
    };
    const call = { ...CALL, model: 'echo-embedding' };
    const response = embed.response(JSON.parse(String(await send(provider, embed.request(input, call)))), input, call);
    const [red, same, green, blue] = response.data.map(({ embedding }) => embedding as readonly number[]);
    const near = (a: readonly number[] = [], b: readonly number[] = []) =>
      a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0);
    expect(red).to.deep.equal(same).and.have.length(256);
    expect(near(red, red)).to.be.closeTo(1, 1e-9);
    expect(near(red, green)).to.be.greaterThan(near(red, blue));
  });
});
