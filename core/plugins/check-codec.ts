import { within } from '../../config/deadline.ts';
import type { ChatChunk, ChatResponse } from '../../contract/chat.ts';
import { isObject } from '../../contract/json.ts';
import {
  type ChatCodec,
  type HttpRequest,
  type Provider,
  type StreamDecoder,
  StreamFailure,
} from '../../contract/provider.ts';
import { isPromise } from './hook-runner.ts';

/**
 * Checks what a third-party provider's codec returns: its types do not bind a plugin in JavaScript. A wrong value fails the attempt, so
 * that the next target serves the call, and the record of the attempt names plugin, member and expectation.
 */
export function checkProviderCodec(owner: string, provider: Provider): Provider {
  const { chat, native } = provider;
  if (!chat) return provider;
  const set: PropertyDescriptorMap = { chat: member(checkCodec(owner, chat)) };
  if (native)
    set['native'] = member((...args: Parameters<typeof native>) => checkRows(owner, native.apply(provider, args)));
  // The methods of a class are not own properties of its objects.
  return Object.defineProperties(isPlain(provider) ? { ...provider } : Object.create(provider), set) as Provider;
}

function member(value: unknown): PropertyDescriptor {
  return { value, enumerable: true, configurable: true, writable: true };
}

function isPlain(value: object): boolean {
  return Object.getPrototypeOf(value) === Object.prototype;
}

function checkCodec<C extends Pick<ChatCodec, 'response' | 'stream'> & Partial<ChatCodec>>(owner: string, codec: C): C {
  const { request, isOriginal, isInOrder, reader } = codec;
  return {
    ...codec,
    ...(request && {
      request(...args: Parameters<ChatCodec['request']>) {
        const sent = request.apply(codec, args);
        const check = (given: HttpRequest): HttpRequest => {
          assertIs({ owner, what: 'chat.request()' }, isObject(given), '', given, 'an HTTP request');
          return given;
        };
        return isPromise(sent) ? within(sent, REQUEST_TIMEOUT_MS, () => late(owner)).then(check) : check(sent);
      },
    }),
    ...(isOriginal && { isOriginal: isOriginal.bind(codec) }),
    ...(isInOrder && { isInOrder: isInOrder.bind(codec) }),
    ...(reader && { reader: reader.bind(codec) }),
    response: (...args: Parameters<ChatCodec['response']>) =>
      checkResponse({ owner, what: 'chat.response()' }, codec.response(...args)),
    stream: (...args: Parameters<ChatCodec['stream']>) => checkDecoder(owner, codec.stream(...args)),
  };
}

/** Time limit of a promise of a request, in milliseconds. */
const REQUEST_TIMEOUT_MS = 10_000;

function late(owner: string): StreamFailure {
  const seconds = REQUEST_TIMEOUT_MS / 1000;
  return new StreamFailure({
    class: 'timeout',
    message: `plugin "${owner}": chat.request() did not finish within ${seconds} s`,
  });
}

type Rows = ReturnType<NonNullable<Provider['native']>>;

function checkRows(owner: string, rows: Rows): Rows {
  const checked = Object.entries(rows).map(([name, row]) =>
    row?.codec ? [name, { ...row, codec: checkCodec(owner, row.codec) }] : [name, row],
  );
  return Object.fromEntries(checked) as Rows;
}

/** Function of a plugin whose result is checked. */
interface Look {
  readonly owner: string;
  readonly what: string;
}

function assertIs(look: Look, isRight: boolean, place: string, value: unknown, expected: string): asserts isRight {
  if (isRight) return;
  const at = place === '' ? '' : ` as ${place}`;
  throw new StreamFailure({
    class: 'upstream_error',
    message: `plugin "${look.owner}": ${look.what} returned ${describe(value)}${at}; expected ${expected}`,
  });
}

function describe(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'object') return 'then' in value ? 'a promise' : 'an object';
  return typeof value === 'string' ? `"${value.slice(0, 40)}"` : `a ${typeof value}`;
}

const FINISH: ReadonlySet<unknown> = new Set(['stop', 'length', 'tool_calls', 'content_filter', 'function_call']);
const FINISHES = [...FINISH].join(', ');

function checkResponse(look: Look, response: ChatResponse): ChatResponse {
  const given: unknown = response;
  assertIs(look, isObject(given) && !('then' in given), '', given, 'a response');
  assertIs(look, typeof given['id'] === 'string', 'id', given['id'], 'a text');
  const choices: unknown = given['choices'];
  assertIs(look, Array.isArray(choices) && choices.length > 0, 'choices', choices, 'a list of choices');
  for (const [index, choice] of choices.entries()) {
    const place = `choices[${index}]`;
    assertIs(look, isObject(choice), place, choice, 'a choice');
    const { message, finish_reason: finish } = choice;
    assertIs(look, isObject(message), `${place}.message`, message, 'a message');
    checkTexts(look, message, `${place}.message`);
    assertIs(look, FINISH.has(finish), `${place}.finish_reason`, finish, `one of ${FINISHES}`);
    checkCalls(look, message['tool_calls'], `${place}.message.tool_calls`, true);
  }
  checkUsage(look, given['usage']);
  checkDropped(look, given['dropped']);
  return response;
}

const TEXTS = Object.freeze(['content', 'refusal', 'reasoning_content'] as const);

function checkTexts(look: Look, fields: Readonly<Record<string, unknown>>, place: string): void {
  for (const name of TEXTS) {
    const value = fields[name];
    assertIs(
      look,
      value === undefined || value === null || typeof value === 'string',
      `${place}.${name}`,
      value,
      'a text or null',
    );
  }
}

/** A whole call has an id, a name and arguments; a part of a streamed one has an index. */
function checkCalls(look: Look, calls: unknown, place: string, isWhole: boolean): void {
  if (calls === undefined || calls === null) return;
  assertIs(look, Array.isArray(calls), place, calls, 'a list of calls');
  for (const [index, call] of calls.entries()) {
    const at = `${place}[${index}]`;
    assertIs(look, isObject(call), at, call, 'a call');
    const called = call['function'];
    // Calls of other types have no function.
    if (called === undefined && call['type'] !== undefined && call['type'] !== 'function') continue;
    if (isWhole) {
      assertIs(look, typeof call['id'] === 'string', `${at}.id`, call['id'], 'a text');
      assertIs(look, isObject(called), `${at}.function`, called, 'a function with name and arguments');
    } else assertIs(look, Number.isSafeInteger(call['index']), `${at}.index`, call['index'], 'the number of the call');
    if (!isObject(called)) continue;
    for (const name of ['name', 'arguments'] as const) {
      const isRight = typeof called[name] === 'string' || (!isWhole && called[name] === undefined);
      assertIs(
        look,
        isRight,
        `${at}.function.${name}`,
        called[name],
        name === 'arguments' ? 'JSON as a text' : 'a text',
      );
    }
  }
}

function checkDropped(look: Look, dropped: unknown): void {
  if (dropped === undefined) return;
  const isRight = Array.isArray(dropped) && dropped.every((name) => typeof name === 'string');
  assertIs(look, isRight, 'dropped', dropped, 'a list of names of fields');
}

function checkUsage(look: Look, usage: unknown): void {
  if (usage === undefined || usage === null) return;
  assertIs(look, isObject(usage), 'usage', usage, 'usage');
  for (const name of ['prompt_tokens', 'completion_tokens'] as const) {
    const count = usage[name];
    assertIs(look, typeof count === 'number' && count >= 0, `usage.${name}`, count, 'a number of tokens');
  }
}

function checkDecoder(owner: string, decoder: StreamDecoder): StreamDecoder {
  const given: unknown = decoder;
  const isDecoder = isObject(given) && typeof given['push'] === 'function' && typeof given['end'] === 'function';
  assertIs({ owner, what: 'chat.stream()' }, isDecoder, '', given, 'an object with push() and end()');
  const [pushed, ended] = [
    { owner, what: 'push() of a stream' },
    { owner, what: 'end() of a stream' },
  ];
  const finished = new Set<unknown>();
  const check = (look: Look, chunks: readonly ChatChunk[], place: string): void => {
    assertIs(look, Array.isArray(chunks), place, chunks, 'a list of chunks');
    for (const [index, chunk] of chunks.entries()) checkChunk(look, chunk, `${place}[${index}]`, finished);
  };
  const { progress, original } = decoder;
  return {
    push(event) {
      const chunks = decoder.push(event);
      check(pushed, chunks, 'chunks');
      return chunks;
    },
    end() {
      const end = decoder.end();
      const result: unknown = end;
      const isRight = isObject(result) && typeof result['complete'] === 'boolean';
      assertIs(ended, isRight, '', result, 'an object with chunks and complete');
      check(ended, end.chunks, 'chunks');
      checkDropped(ended, end.dropped);
      return end;
    },
    progress: progress && (() => progress.call(decoder)),
    original: original && (() => original.call(decoder)),
  };
}

function checkChunk(look: Look, chunk: unknown, place: string, finished: Set<unknown>): void {
  assertIs(look, isObject(chunk), place, chunk, 'a chunk');
  const { choices } = chunk;
  assertIs(look, Array.isArray(choices), `${place}.choices`, choices, 'a list of choices');
  for (const [number, choice] of choices.entries()) {
    const at = `${place}.choices[${number}]`;
    assertIs(look, isObject(choice), at, choice, 'a choice');
    const { delta, index, finish_reason: finish } = choice;
    assertIs(look, isObject(delta), `${at}.delta`, delta, 'a delta');
    checkTexts(look, delta, `${at}.delta`);
    checkCalls(look, delta['tool_calls'], `${at}.delta.tool_calls`, false);
    assertIs(look, finish === null || FINISH.has(finish), `${at}.finish_reason`, finish, `null or one of ${FINISHES}`);
    const hasContent = Boolean(delta['content']) || Boolean(delta['tool_calls']);
    assertIs(
      look,
      !(hasContent && finished.has(index)),
      `${at}.delta`,
      'content',
      'no content after the finish reason',
    );
    if (finish !== null) finished.add(index);
  }
  checkUsage(look, chunk['usage']);
}
