import { expect } from 'chai';
import { readArray, readObject } from '../../contract/index.ts';
import {
  type IngressRig,
  MODEL_OF,
  type Piece,
  type ScriptedOutput,
  startIngressRig,
  WIRES,
} from '../support/gateways/ingress-rig.ts';
import { sayAnywhere } from '../support/vendors/responses-wire.ts';
import type { Page } from '../support/vendors/vendor-wires.ts';

/** Content of a response, read by this file alone: no reader of the gateway takes part. */
interface Content {
  text: string;
  reasoning: string;
  calls: { name: string; arguments: string }[];
  cites: unknown[];
  /** Tokens with their log probability. */
  tokens: unknown[];
  end: unknown;
  usage: readonly unknown[];
}

type Fields = Readonly<Record<string, unknown>>;

const empty = (): Content => ({ text: '', reasoning: '', calls: [], cites: [], tokens: [], end: undefined, usage: [] });
const str = (value: unknown): string => (typeof value === 'string' ? value : '');
const objects = (value: unknown): readonly Fields[] => readArray(value).map(readObject);

/** Adds a choice of chat completions, whole or a delta. */
function addChat(to: Content, body: Fields): void {
  const usage = readObject(body['usage']);
  if (usage['prompt_tokens'] !== undefined)
    to.usage = [
      usage['prompt_tokens'],
      usage['completion_tokens'],
      readObject(usage['prompt_tokens_details'])['cached_tokens'],
    ];
  for (const choice of objects(body['choices'])) {
    const said = readObject(choice['message'] ?? choice['delta']);
    to.text += str(said['content']);
    to.reasoning += str(said['reasoning_content']);
    to.cites.push(...objects(said['annotations']));
    to.tokens.push(...objects(readObject(choice['logprobs'])['content']));
    to.end = choice['finish_reason'] ?? to.end;
    for (const [at, call] of objects(said['tool_calls']).entries()) {
      const called = readObject(call['function']);
      const place = typeof call['index'] === 'number' ? call['index'] : at;
      to.calls[place] ??= { name: '', arguments: '' };
      const known = to.calls[place];
      known.name ||= str(called['name']);
      known.arguments += str(called['arguments']);
    }
  }
}

function addBlock(to: Content, block: Fields): void {
  if (block['type'] === 'text') to.text += str(block['text']);
  to.cites.push(...objects(block['citations']));
  if (block['type'] === 'thinking') to.reasoning += str(block['thinking']);
  if (block['type'] === 'tool_use')
    to.calls.push({
      name: str(block['name']),
      arguments: Object.keys(readObject(block['input'])).length > 0 ? JSON.stringify(block['input']) : '',
    });
}

function addMessages(to: Content, body: Fields): void {
  const usage = readObject(body['usage']);
  if (usage['output_tokens'] !== undefined && body['type'] !== 'message_start')
    to.usage = [usage['input_tokens'], usage['output_tokens'], usage['cache_read_input_tokens'] ?? 0];
  if (body['type'] === 'message') {
    for (const block of objects(body['content'])) addBlock(to, block);
    to.end = body['stop_reason'];
    return;
  }
  const delta = readObject(body['delta']);
  if (body['type'] === 'content_block_start') addBlock(to, readObject(body['content_block']));
  to.text += str(delta['text']);
  to.reasoning += str(delta['thinking']);
  if (delta['citation'] !== undefined) to.cites.push(delta['citation']);
  const last = to.calls.at(-1);
  if (last) last.arguments += str(delta['partial_json']);
  to.end = delta['stop_reason'] ?? to.end;
}

function addGemini(to: Content, body: Fields): void {
  const usage = readObject(body['usageMetadata']);
  if (usage['totalTokenCount'] !== undefined)
    to.usage = [
      usage['promptTokenCount'],
      usage['candidatesTokenCount'],
      usage['thoughtsTokenCount'],
      usage['cachedContentTokenCount'],
    ];
  for (const candidate of objects(body['candidates'])) {
    to.end = candidate['finishReason'] ?? to.end;
    const { groundingChunks, groundingSupports } = readObject(candidate['groundingMetadata']);
    to.cites.push(...objects(groundingChunks), ...objects(groundingSupports));
    to.tokens.push(...objects(readObject(candidate['logprobsResult'])['chosenCandidates']));
    for (const part of objects(readObject(candidate['content'])['parts'])) {
      if (part['thought'] === true) to.reasoning += str(part['text']);
      else to.text += str(part['text']);
      const call = readObject(part['functionCall']);
      if (call['name'] !== undefined)
        to.calls.push({ name: str(call['name']), arguments: JSON.stringify(call['args'] ?? {}) });
    }
  }
}

function addResponses(to: Content, body: Fields): void {
  const type = str(body['type']);
  if (type === 'response.output_text.delta') {
    to.text += str(body['delta']);
    to.tokens.push(...objects(body['logprobs']));
  }
  if (type === 'response.output_text.annotation.added') to.cites.push(body['annotation']);
  if (/^response\.reasoning(?:_summary)?_text\.delta$/.test(type)) to.reasoning += str(body['delta']);
  if (type === 'response.output_item.done') addCall(to, readObject(body['item']));
  const whole = body['object'] === 'response' ? body : readObject(body['response']);
  if (type !== '' && !/^response\.(?:completed|incomplete|failed)$/.test(type)) return;
  const usage = readObject(whole['usage']);
  to.end = [whole['status'], readObject(whole['incomplete_details'])['reason']];
  to.usage = [
    usage['input_tokens'],
    usage['output_tokens'],
    readObject(usage['input_tokens_details'])['cached_tokens'],
  ];
  if (type !== '') return;
  for (const item of objects(whole['output'])) {
    addCall(to, item);
    for (const part of objects(item['content']))
      if (part['type'] === 'output_text') {
        to.text += str(part['text']);
        to.cites.push(...objects(part['annotations']));
        to.tokens.push(...objects(part['logprobs']));
      } else to.reasoning += str(part['text']);
    for (const part of objects(item['summary'])) to.reasoning += str(part['text']);
  }
}

function addCall(to: Content, item: Fields): void {
  if (item['type'] === 'function_call') to.calls.push({ name: str(item['name']), arguments: str(item['arguments']) });
}

interface Way {
  readonly name: string;
  readonly lacks?: readonly Lack[];
  readonly add: (to: Content, body: Fields) => void;
  request(model: string, stream: boolean): { readonly path: string; readonly body: object };
}

const messages = [{ role: 'user', content: 'Hi' }];
const WAYS: readonly Way[] = [
  {
    name: 'chat',
    add: addChat,
    request: (model, stream) => ({
      path: '/v1/chat/completions',
      body: { model, messages, stream, ...(stream && { stream_options: { include_usage: true } }) },
    }),
  },
  {
    name: 'Messages',
    lacks: ['logprobs'],
    add: addMessages,
    request: (model, stream) => ({ path: '/v1/messages', body: { model, messages, max_tokens: 999, stream } }),
  },
  {
    name: 'Gemini',
    add: addGemini,
    request: (model, stream) => ({
      path: `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
      body: { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] },
    }),
  },
  {
    name: 'Responses',
    add: addResponses,
    request: (model, stream) => ({ path: '/v1/responses', body: { model, input: 'Hi', stream } }),
  },
];

/** Pseudo-random numbers from 0 to 1, the same for each run. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const WORDS = ['Hello', ' ', 'Wörld', '世界', '😀', '"', '\\', '\n', '{"a":1}', 'null', '.', '<b>', '&', '0'];

/** Pages of a text differ by their place, since some vendors report a page once. */
const pageOf = (number: number, place: number): Page => ({
  url: `https://example.org/${place}/${number}`,
  title: `Page ${number}`,
});

function outputFrom(random: () => number): ScriptedOutput {
  const below = (most: number): number => Math.floor(random() * most);
  const words = (): string => `x${Array.from({ length: below(6) }, () => WORDS[below(WORDS.length)]).join('')}x`;
  const pieces: Piece[] = [];
  if (below(3) === 0) pieces.push({ reasoning: words() });
  const isLogged = below(3) === 0;
  const said = (): Piece => ({
    text: words(),
    ...(below(2) === 0 && { cites: Array.from({ length: 1 + below(2) }, (_, at) => pageOf(below(9), at)) }),
    ...(isLogged && { logprobs: true }),
  });
  if (below(4) > 0) pieces.push(said());
  if (below(4) === 0) pieces.push(said());
  const count = below(3);
  for (let at = 0; at < count; at += 1)
    pieces.push({
      call: `tool_${below(3)}`,
      id: `call_${at}${below(1000)}`,
      arguments: JSON.stringify({ q: words() }),
    });
  if (pieces.length === 0) pieces.push(said());
  const prompt = 1 + below(900);
  const usage = { prompt, completion: 1 + below(900), ...(below(2) === 0 && { cached: below(prompt) }) };
  return { pieces, usage, ...(count === 0 && below(4) === 0 && { finish: 'length' as const }) };
}

type Lack = 'logprobs';

interface Vendor {
  readonly name: string;
  readonly model: string;
  /** What the wire cannot say. */
  readonly lacks?: readonly Lack[];
  /** True if each text is a message of its own; a blank line separates them where the format has one message. */
  readonly joins?: boolean;
  say(rig: IngressRig, said: ScriptedOutput, cut: number): void;
}

const VENDORS: readonly Vendor[] = [
  ...WIRES.map((wire) => ({
    ...{ name: wire, model: MODEL_OF[wire] },
    say: (rig: IngressRig, said: ScriptedOutput, cut: number) => rig.say(wire, said, cut),
    lacks: wire === 'anthropic' ? (['logprobs'] as const) : [],
  })),
  {
    ...{ name: 'openai by its Responses API', model: 'openai/gpt-5.3-codex', lacks: ['logprobs'], joins: true },
    say: (rig, said, cut) => sayAnywhere(rig, 'openai', said, cut),
  },
];

/** Cases for each wire and way in. */
const CASES = 120;

describe('a response read whole and as a stream', function () {
  this.timeout(600_000);
  let rig: IngressRig;
  before(async () => {
    rig = await startIngressRig();
  });
  after(() => rig.stop());

  const read = async ({ add, request }: Way, model: string, stream: boolean): Promise<Content> => {
    const { path, body } = request(model, stream);
    const response = await rig.gateway.post(path, body);
    const text = await response.text();
    expect(response.status, text).to.equal(200);
    const content = empty();
    const bodies = stream
      ? [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data = '']) => JSON.parse(data) as Fields)
      : [JSON.parse(text) as Fields];
    for (const each of bodies) add(content, each);
    const calls = content.calls.map((call) => ({ ...call, arguments: JSON.parse(call.arguments || '{}') as unknown }));
    return { ...content, calls: calls as never };
  };

  for (const { name, model, say, joins = false, lacks = [] } of VENDORS)
    for (const way of WAYS) {
      // Its Responses API has a wire of its own.
      if (name === 'openai' && way.name === 'Responses') continue;
      it(`has the same content from ${name} for ${way.name}, in ${CASES} cases (G15)`, async () => {
        const random = randomFrom(42);
        for (let at = 0; at < CASES; at += 1) {
          const said = outputFrom(random);
          say(rig, said, 7 + at);
          const whole = await read(way, model, false);
          const streamed = await read(way, model, true);
          const texts = said.pieces.flatMap((piece) => ('text' in piece ? [piece] : []));
          expect(streamed, JSON.stringify(said)).to.deep.equal(whole);
          const between = joins && way.name !== 'Responses' ? '\n\n' : '';
          expect(whole.text, JSON.stringify(said)).to.equal(texts.map(({ text }) => text).join(between));
          expect(whole.calls.length).to.equal(said.pieces.filter((piece) => 'call' in piece).length);
          const cites = texts.flatMap(({ cites: pages = [] }) => pages);
          for (const { url } of cites) expect(JSON.stringify(whole.cites), JSON.stringify(said)).to.include(url);
          const isLogged = texts.some(({ logprobs }) => logprobs);
          if (isLogged && !lacks.includes('logprobs') && !way.lacks?.includes('logprobs'))
            expect(whole.tokens.length, JSON.stringify(said)).to.be.above(0);
        }
      });
    }
});
