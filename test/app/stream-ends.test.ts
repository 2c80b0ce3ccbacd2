/**
 * The wire format declares the end of a stream, not the vendor's socket. Every wire format × client format runs before
 * a vendor that never closes.
 */
import { existsSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { createEventReader } from '../../contract/event-reader.ts';
import type { CodecCall, StreamProgress } from '../../contract/index.ts';
import { CLAUDE } from '../../plugins/formats/bedrock/claude.ts';
import { settledBooks } from '../support/clients/books.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { loadNetworkProviders } from '../support/plugins/all-providers.ts';
import { AMAZON_HEAD, amazonStream } from '../support/vendors/amazon-frames.ts';
import { delta, openAiVendor, tokenPrices } from '../support/vendors/openai-vendor.ts';
import { responsesEvents } from '../support/vendors/responses-wire.ts';
import {
  chunk,
  type Script,
  type ScriptedUpstream,
  SSE_HEAD,
  startScriptedUpstream,
  type Wire,
} from '../support/vendors/scripted-upstream.ts';
import { until } from '../support/wait.ts';

const FIXTURES = new URL('../fixtures/', import.meta.url);
const PROVIDERS = await loadNetworkProviders();
const USER = [{ role: 'user', content: 'Hi' }];

/** Client format: its streamed request, and the end of a complete stream. */
interface WayIn {
  readonly name: string;
  readonly path: (model: string) => string;
  readonly body: (model: string) => object;
  readonly end: RegExp;
}

const WAYS: readonly WayIn[] = [
  {
    name: 'chat',
    path: () => '/v1/chat/completions',
    body: (model) => ({ model, messages: USER, stream: true }),
    end: /"finish_reason":"\w+"[\s\S]*\ndata: \[DONE\]\n\n$/,
  },
  {
    name: 'Messages',
    path: () => '/v1/messages',
    body: (model) => ({ model, max_tokens: 100, messages: USER, stream: true }),
    end: /"stop_reason":"\w+"[\s\S]*event: message_stop\ndata: .*\n\n$/,
  },
  {
    name: 'Responses',
    path: () => '/v1/responses',
    body: (model) => ({ model, input: 'Hi', stream: true }),
    end: /event: response\.(?:completed|incomplete)\ndata: .*\n\n$/,
  },
  {
    name: 'Gemini',
    path: (model) => `/v1beta/models/${model}:streamGenerateContent?alt=sse`,
    body: () => ({ contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] }),
    end: /"finishReason":"\w+".*\r?\n\r?\n$/,
  },
  {
    name: 'Interactions',
    path: () => '/v1beta/interactions',
    body: (model) => ({ model, input: 'Hi', stream: true, store: false }),
    end: /"event_type":"interaction\.completed"[\s\S]*data: \[DONE\]\n\n$/,
  },
  {
    name: 'completions',
    path: () => '/v1/completions',
    body: (model) => ({ model, prompt: 'Hi', stream: true }),
    end: /\ndata: \[DONE\]\n\n$/,
  },
  {
    name: 'Ollama',
    path: () => '/api/chat',
    body: (model) => ({ model, messages: USER, stream: true }),
    end: /"done":true.*\n$/,
  },
];

/** Stream of a vendor, and its progress as declared by the wire format. */
interface WireCase {
  readonly name: string;
  readonly model: string;
  readonly head: string;
  readonly bytes: Uint8Array;
  readonly progress: StreamProgress;
}

const call = (model: string): CodecCall => ({ model, stream: true, created: 1, id: 'c' });

const OF_PROVIDERS: readonly WireCase[] = PROVIDERS.flatMap(({ name, provider }) => {
  const file = new URL(`${name}/stream.sse`, FIXTURES);
  if (!existsSync(file) || !provider.chat) return [];
  const bytes = readFileSync(file);
  const isFramed = provider.chat.reader !== undefined;
  const decoder = provider.chat.stream(call('some-model'));
  for (const event of createEventReader().push(bytes)) decoder.push(event);
  return [
    {
      ...{ name, model: `${name}/some-model`, head: isFramed ? AMAZON_HEAD : SSE_HEAD },
      bytes: isFramed ? amazonStream(bytes.toString()) : bytes,
      progress: decoder.progress?.() ?? 'open',
    },
  ];
});

const ANTHROPIC = readFileSync(new URL('anthropic/stream.sse', FIXTURES));
const inFrames = [...ANTHROPIC.toString().matchAll(/^data: (.+)$/gm)]
  .map(([, data = '']) => `event: chunk\ndata: ${JSON.stringify({ bytes: Buffer.from(data).toString('base64') })}\n`)
  .join('\n');

const CASES: readonly WireCase[] = [
  ...OF_PROVIDERS,
  {
    ...{ name: 'Claude at Bedrock', model: 'bedrock/anthropic.claude-x', head: AMAZON_HEAD },
    ...{ bytes: amazonStream(inFrames), progress: 'complete' },
  },
  {
    ...{ name: 'Claude at Vertex', model: 'vertex/claude-x', head: SSE_HEAD },
    ...{ bytes: ANTHROPIC, progress: 'complete' },
  },
];

/** Google's finish reason is not an end marker: some models repeat it in every event. */
const ENDING: ReadonlySet<string> = new Set(['gemini', 'vertex']);

const RESPONSES = responsesEvents({ pieces: [{ text: 'Grüß Gott' }] })
  .map((event) => `event: ${String(event['type'])}\ndata: ${JSON.stringify(event)}\n\n`)
  .join('');

describe('a stream whose vendor never closes its socket', () => {
  let upstream: ScriptedUpstream;
  let gateway: TestGateway;
  /** Connections of the vendor by request, each with how it was closed. */
  let wires: Wire[] = [];

  before(async () => {
    upstream = await startScriptedUpstream();
    const entries = PROVIDERS.map(({ name }) => [name, { apiKey: 'k', baseUrl: `${upstream.url}/v1`, models: ['*'] }]);
    gateway = await startGateway({
      providers: {
        ...Object.fromEntries(entries),
        counted: openAiVendor(upstream, { prices: tokenPrices(1, 2) }),
        messages: { plugin: 'anthropic', apiKey: 'k', baseUrl: upstream.url, models: ['*'], prices: tokenPrices(1, 2) },
      },
      plans: { searching: { serverTools: ['web_search'] } },
      defaultPlan: 'searching',
    });
  });
  after(async () => {
    await gateway.stop();
    await upstream.close();
  });
  beforeEach(() => {
    wires = [];
  });

  const holding =
    (head: string, bytes: Uint8Array | string, meanwhile?: (wire: Wire) => Promise<void>): Script =>
    async (wire) => {
      wires.push(wire);
      const isResponses = /\/responses$/.test(wire.request.path);
      await wire.send(isResponses ? SSE_HEAD : head);
      await wire.send(chunk(isResponses ? RESPONSES : bytes));
      await meanwhile?.(wire);
      await wire.hang();
    };

  const send = async (way: WayIn, model: string): Promise<string> => {
    const response = await gateway.post(way.path(model), way.body(model));
    return response.text();
  };

  for (const { name, model, head, bytes, progress } of CASES)
    it(`G10: ends for every client format when the wire format declares it: ${name}`, async () => {
      expect(progress).to.equal(ENDING.has(name) ? 'ending' : 'complete');
      upstream.script(holding(head, bytes));
      const texts = await Promise.all(WAYS.map((way) => send(way, model)));
      for (const [at, way] of WAYS.entries()) {
        expect(texts[at], way.name).to.match(way.end);
        expect(texts[at], way.name).not.to.match(/"error":\s*\{|event: error/);
      }
      expect(wires).to.have.lengthOf(WAYS.length);
    });

  it('G10: is declared complete at the end of every event format of Claude at Bedrock', () => {
    const decoder = CLAUDE.stream(call('anthropic.claude-x'));
    for (const event of createEventReader().push(Buffer.from(`${inFrames}\n`))) decoder.push(event);
    expect(decoder.progress?.()).to.equal('complete');
  });

  const usage = { usage: { prompt_tokens: 50, completion_tokens: 10, total_tokens: 60 } };
  const said = [delta('hello'), delta('', 'stop')].map((data) => `data: ${data}\n\n`).join('');
  const counted = `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [], ...usage })}\n\n`;
  const pings = async (wire: Wire): Promise<void> => {
    while (!wire.isGone) {
      await wire.send(chunk(': ping\n\n'));
      await wire.pause(20);
    }
  };

  for (const [title, bytes, cost] of [
    ['with [DONE], comments behind it', `${said}${counted}data: [DONE]\n\n`, 70],
    ['without [DONE], comments behind the usage', `${said}${counted}`, 70],
    [
      'with [DONE] and an error behind it',
      `${said}${counted}data: [DONE]\n\ndata: {"error":{"message":"late"}}\n\n`,
      70,
    ],
  ] as const)
    it(`G10: ${title}: ends as a success, is charged by its usage, and releases its reservation`, async () => {
      upstream.script(holding(SSE_HEAD, bytes, pings));
      const { url, key } = gateway;
      const before = await settledBooks(url, key);
      const [chat] = WAYS;
      const text = await send(chat as WayIn, 'counted/m');
      expect(text).to.match(/"content":"hello"[\s\S]*"finish_reason":"stop"[\s\S]*\ndata: \[DONE\]\n\n$/);
      expect(text).not.to.include('error');
      expect((await settledBooks(url, key)).spent - before.spent).to.equal(cost);
      expect(await outcomes('counted')).to.deep.equal(['ok']);
      await until('the connection is closed', () => wires.every(({ isGone }) => isGone));
    });

  it('G10: native Messages: ends at message_stop, and gets one if the vendor sends none @slow', async () => {
    const cut = ANTHROPIC.toString().replace(/event: message_stop[\s\S]*$/, '');
    for (const bytes of [ANTHROPIC, cut]) {
      upstream.script(holding(SSE_HEAD, bytes));
      const [, messages] = WAYS;
      const text = await send(messages as WayIn, 'messages/claude-x');
      expect(text).to.match(/event: message_stop\ndata: .*\n\n$/);
      expect(text.match(/event: message_stop/g)).to.have.lengthOf(1);
      expect(text).not.to.include('event: error');
    }
    expect(await outcomes('messages')).to.deep.equal(['ok']);
  });

  it('G10: waits for a choice that begins after the end of another one @slow', async () => {
    const of = (index: number, content: string, reason: string | null = null) =>
      `data: ${JSON.stringify({ id: 'c', model: 'm', created: 1, choices: [{ index, delta: { content }, finish_reason: reason }] })}\n\n`;
    upstream.script(holding(SSE_HEAD, of(0, 'one', 'stop') + of(1, 'two') + of(1, '', 'stop')));
    const text = await (
      await gateway.post('/v1/chat/completions', { model: 'counted/m', n: 2, messages: USER, stream: true })
    ).text();
    expect(text).to.match(/"one"[\s\S]*"two"[\s\S]*\[DONE\]\n\n$/);
  });

  /** Statuses of the calls of a provider. */
  async function outcomes(provider: string): Promise<readonly string[]> {
    const metrics = await (await gateway.get('/metrics')).text();
    const lines = metrics.match(/^tollgate_calls_total\{.*$/gm) ?? [];
    const own = lines.filter((line) => line.includes(`provider="${provider}"`));
    return [...new Set(own.map((line) => /status="(\w+)"/.exec(line)?.[1] ?? ''))];
  }
});
