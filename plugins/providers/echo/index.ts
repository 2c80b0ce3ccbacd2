import { createHash } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import {
  type HttpRequest,
  isObject,
  parseDuration,
  readString,
  type Transport,
  type TransportResponse,
} from '../../../contract/index.ts';
import { minimalInstance, toUnitLength } from '../kit/index.ts';
import { drop, OPENAI_ONLY, openaiCompatible, refuse } from '../openai-compatible.ts';

const DEFAULT_DIMENSIONS = 64;
const MAX_DIMENSIONS = 4096;
const MAX_CHOICES = 16;
/** Maximum number of words in a response. */
const MAX_OUTPUT = 100_000;

/** Vendor in this process with OpenAI's wire. It waits `delayMs` before every word. */
function echoTransport({ delayMs }: { readonly delayMs: number }): Transport {
  return async (request, signal) => {
    signal.throwIfAborted();
    const body = readBody(request);
    if (request.path === '/models') return json({ object: 'list', data: [{ id: 'echo' }, { id: 'echo-embedding' }] });
    if (request.path === '/embeddings') return embed(body);
    const reply = readChat(body);
    if (body['stream'] !== true) {
      if (delayMs > 0) await wait(delayMs * reply.words.length, undefined, { signal });
      return json(completion(reply));
    }
    return { status: 200, headers: { 'content-type': 'text/event-stream' }, body: stream(reply, delayMs, signal) };
  };
}

interface Reply {
  readonly model: string;
  readonly words: readonly string[];
  readonly finish: 'stop' | 'length';
  readonly choices: number;
  readonly usage: Readonly<Record<'prompt_tokens' | 'completion_tokens' | 'total_tokens', number>>;
}

/** Reads the last user message, cut by `stop` and `max_tokens`; a word counts as a token. */
function readChat(body: Readonly<Record<string, unknown>>): Reply {
  const messages = Array.isArray(body['messages']) ? body['messages'].filter(isObject) : [];
  const last = messages.findLast((message) => message['role'] === 'user');
  const said = formatted(cutAtStop(contentText(last?.['content']), body['stop']), body['response_format']);
  const limit = wholeNumber(body['max_completion_tokens']) ?? wholeNumber(body['max_tokens']) ?? MAX_OUTPUT;
  const words = splitWords(said, Math.min(limit, MAX_OUTPUT));
  const choices = Math.min(Math.max(wholeNumber(body['n']) ?? 1, 1), MAX_CHOICES);
  const prompt = messages.reduce((sum, message) => sum + countWords(contentText(message['content'])), 0);
  const completed = words.length * choices;
  return {
    model: readString(body['model']) ?? 'echo',
    words,
    finish: words.length < countWords(said) ? 'length' : 'stop',
    choices,
    usage: { prompt_tokens: prompt, completion_tokens: completed, total_tokens: prompt + completed },
  };
}

function completion({ words, finish, choices, ...rest }: Reply): object {
  const message = { role: 'assistant', content: words.join(''), refusal: null };
  return {
    object: 'chat.completion',
    model: rest.model,
    choices: Array.from({ length: choices }, (_, index) => ({ index, message, logprobs: null, finish_reason: finish })),
    usage: rest.usage,
  };
}

async function* stream(reply: Reply, delayMs: number, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const { model, words, finish, choices, usage } = reply;
  const all = Array.from({ length: choices }, (_, index) => index);
  const frame = (delta: object, reason: string | null = null) =>
    all.map((index) => event({ model, choices: [{ index, delta, logprobs: null, finish_reason: reason }] })).join('');
  yield bytes(frame({ role: 'assistant', content: '' }));
  for (const content of words) {
    signal.throwIfAborted();
    if (delayMs > 0) await wait(delayMs, undefined, { signal });
    yield bytes(frame({ content }));
  }
  yield bytes(`${frame({}, finish)}${event({ model, choices: [], usage })}data: [DONE]\n\n`);
}

function embed(body: Readonly<Record<string, unknown>>): TransportResponse {
  const { input } = body;
  const inputs: readonly unknown[] = Array.isArray(input) && typeof input[0] !== 'number' ? input : [input];
  const wanted = wholeNumber(body['dimensions']) ?? DEFAULT_DIMENSIONS;
  const dimensions = Math.min(Math.max(wanted, 1), MAX_DIMENSIONS);
  const texts = inputs.map((item) => (typeof item === 'string' ? item : JSON.stringify(item)));
  const tokens = texts.reduce((sum, item) => sum + Math.max(countWords(item), 1), 0);
  return json({
    object: 'list',
    data: texts.map((item, index) => ({ object: 'embedding', index, embedding: embedWords(item, dimensions) })),
    model: readString(body['model']) ?? 'echo-embedding',
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  });
}

/** Puts the words into the requested JSON: an instance of the schema with the words as its texts. */
function formatted(said: string, format: unknown): string {
  if (!isObject(format)) return said;
  if (format['type'] === 'json_object') return JSON.stringify({ message: said });
  const { schema } = isObject(format['json_schema']) ? format['json_schema'] : {};
  return isObject(schema) ? JSON.stringify(minimalInstance(schema, said)) : said;
}

/**
 * Splits a text into its first words, each with the space before it. The last word also has the space after it, and a
 * text of spaces is one word. Joined, they are the text again.
 */
function splitWords(said: string, most: number): readonly string[] {
  const words: string[] = [];
  let chars = 0;
  for (const [word] of said.matchAll(/\s*\S+/g)) {
    if (words.length === most) return words;
    words.push(word);
    chars += word.length;
  }
  const last = words.pop() ?? '';
  return said === '' ? words : [...words, last + said.slice(chars)];
}

/** Counts words without an array: a prompt may have millions. */
function countWords(said: string): number {
  let count = 0;
  let isInWord = false;
  for (let at = 0; at < said.length; at += 1) {
    const isSpace = isWhitespace(said, at);
    if (isInWord && isSpace) count += 1;
    isInWord = !isSpace;
  }
  if (isInWord) count += 1;
  return count === 0 && said !== '' ? 1 : count;
}

function isWhitespace(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code < 0x80 ? code === 0x20 || (code >= 0x09 && code <= 0x0d) : /\s/.test(text.charAt(at));
}

function contentText(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part: unknown) => (isObject(part) ? (readString(part['text']) ?? '') : '')).join('');
}

function cutAtStop(said: string, stop: unknown): string {
  const stops = (Array.isArray(stop) ? stop : [stop]).filter((item): item is string => readString(item) !== undefined);
  return stops.reduce((left, item) => left.split(item, 1)[0] ?? '', said);
}

function wholeNumber(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : undefined;
}

function readBody({ body }: HttpRequest): Readonly<Record<string, unknown>> {
  const value: unknown = body instanceof Uint8Array ? JSON.parse(new TextDecoder().decode(body)) : body;
  return isObject(value) ? value : {};
}

function json(value: object): TransportResponse {
  return { status: 200, headers: { 'content-type': 'application/json' }, body: once(bytes(JSON.stringify(value))) };
}

async function* once(value: Uint8Array): AsyncGenerator<Uint8Array> {
  yield value;
}

function event(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

function bytes(value: string): Uint8Array {
  return new TextEncoder().encode(value);
}

/**
 * Creates a vector by hashing the words of a text: equal for equal texts, nearer for texts with common words. No
 * model is involved.
 */
export function embedWords(text: string, dimensions: number): readonly number[] {
  const vector = new Array<number>(dimensions).fill(0);
  for (const word of text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [text]) {
    const hash = createHash('sha256').update(word).digest();
    for (let at = 0; at < 4; at++) {
      const bits = hash.readUInt32LE(at * 4);
      const slot = bits % dimensions;
      vector[slot] = (vector[slot] ?? 0) + (bits >>> 31 === 0 ? 1 : -1);
    }
  }
  return toUnitLength(vector);
}

/** Returns the last user message, without network or key: for the quickstart and for tests. */
export default openaiCompatible({
  name: 'echo',
  baseUrl: 'http://echo.invalid/v1',
  keyRequired: false,
  models: [
    { id: 'echo', kind: 'chat', contextWindow: 1_000_000, maxOutput: MAX_OUTPUT, price: { input: 0, output: 0 } },
    { id: 'echo-embedding', kind: 'embeddings', contextWindow: 1_000_000, price: { input: 0, output: 0 } },
  ],
  fields: {
    ...OPENAI_ONLY,
    frequency_penalty: drop(),
    function_call: refuse('it does not call tools', 'auto', 'none'),
    functions: drop('it does not call tools'),
    logit_bias: drop(),
    logprobs: drop(undefined, false),
    parallel_tool_calls: drop(),
    presence_penalty: drop(),
    reasoning_effort: drop(),
    seed: drop('its response is fixed'),
    temperature: drop('its response is fixed'),
    tool_choice: refuse('it does not call tools', 'auto', 'none'),
    tools: drop('it does not call tools'),
    top_logprobs: drop(),
    top_p: drop('its response is fixed'),
    user: drop(),
  },
  unknown: 'dropped',
  lacks: {
    'cached tokens': 'it has no prompt cache',
    errors: 'it has no upstream that could fail',
    'log probabilities': 'it predicts no tokens',
    'parallel tool calls': 'it does not call tools',
    'reasoning content': 'it does not reason',
    'reasoning tokens': 'it does not reason',
    'tool calls': 'it does not call tools',
  },
  embeddings: {},
  options: {
    delay: { type: 'string', format: 'duration', description: 'Delay before each word. Default: `0ms`.' },
  },
  configure: ({ delay }) => ({
    transport: echoTransport({ delayMs: typeof delay === 'string' ? parseDuration(delay) : 0 }),
  }),
});
