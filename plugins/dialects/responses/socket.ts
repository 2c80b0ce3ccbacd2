import { randomUUID } from 'node:crypto';
import { GatewayError, isObject, type JsonObject, readArray, readString } from '../../../contract/index.ts';
import { inputItems } from '../../formats/openai-responses/tables.ts';
import type { Item, ResponsesBody } from '../../formats/openai-responses/types.ts';
import { responseObject } from '../../formats/openai-responses/write-response.ts';
import type { ConnectionMemory, DialectConnection, DialectSocket, SocketRequest } from './socket-session.ts';
import { isReference } from './store.ts';

/** Websocket request with the earlier conversation before it. */
interface Turn {
  readonly body: ResponsesBody;
  /** Response of this websocket that it continues. */
  readonly continued: string | undefined;
  /** Maps a path in `body` to the client's message. */
  place(param: string): string;
}

interface StoredInput {
  /** Complete input of the response and the response, after the one in `earlier`. */
  readonly items: readonly Item[];
  /** Earlier response that the store holds. */
  readonly earlier: string | undefined;
  readonly bytes: number;
  /** Sizes by turn; responses that continue one another share turns. */
  readonly turns: readonly { readonly bytes: number }[];
}

/** Recent responses of one websocket: clients that store nothing send only new items. */
interface SocketHistory {
  /** Leaves responses of other connections for the store to look up. */
  continue(body: ResponsesBody): Turn;
  keep(id: string, turn: Turn, output: readonly Item[]): void;
  /** Removes a failed turn: a client that continues it must send everything again. */
  forget(id: string | undefined): void;
}

const MAX_RESPONSES = 8;
const MAX_BYTES = 16 * 1024 * 1024;

export function createSocketHistory(memory?: ConnectionMemory, maxBytes = MAX_BYTES): SocketHistory {
  const stored = new Map<string, StoredInput>();
  let sum = 0;

  function forget(id: string | undefined): void {
    const entry = id === undefined ? undefined : stored.get(id);
    if (id === undefined || !entry) return;
    sum -= entry.bytes;
    stored.delete(id);
  }

  /** Bytes in memory: each turn counts once, however many responses follow it. */
  function heldBytes(): number {
    const turns = new Set([...stored.values()].flatMap((entry) => entry.turns));
    return [...turns].reduce((total, { bytes }) => total + bytes, 0);
  }

  function hasRoom(): boolean {
    return stored.size <= MAX_RESPONSES && sum <= maxBytes && (memory?.resize(heldBytes()) ?? true);
  }

  return {
    continue(body) {
      const id = body.previous_response_id ?? undefined;
      const before = id === undefined ? undefined : stored.get(id);
      const own = inputItems(body.input).map((item) => (isReference(item) ? (findItem(stored, item) ?? item) : item));
      if (before) return { ...continueAfter(before, body, own), continued: id };
      const input = Array.isArray(body.input) ? { input: own } : {};
      return { body: { ...body, ...input }, continued: undefined, place: (param) => param };
    },
    keep(id, { body, continued }, output) {
      const before = continued === undefined ? undefined : stored.get(continued);
      const input = inputItems(body.input);
      const fresh = [...input.slice(before?.items.length ?? 0), ...output];
      const freshBytes = Buffer.byteLength(JSON.stringify(fresh));
      const bytes = (before?.bytes ?? 0) + freshBytes;
      forget(id);
      if (id === '' || bytes > maxBytes) return;
      const turns = [...(before?.turns ?? []), { bytes: freshBytes }];
      stored.set(id, { items: [...input, ...output], earlier: body.previous_response_id ?? undefined, bytes, turns });
      sum += bytes;
      while (!hasRoom()) {
        const [oldest] = stored.keys();
        if (oldest === undefined) break;
        forget(oldest);
      }
    },
    forget(id) {
      forget(id);
      memory?.resize(heldBytes());
    },
  };
}

function continueAfter(
  { items, earlier }: StoredInput,
  { previous_response_id: _, ...rest }: ResponsesBody,
  own: readonly Item[],
): Pick<Turn, 'body' | 'place'> {
  const before = earlier === undefined ? {} : { previous_response_id: earlier };
  return {
    body: { ...rest, ...before, input: [...items, ...own] } as ResponsesBody,
    place: (param) => placeBefore(param, items.length),
  };
}

function findItem(stored: ReadonlyMap<string, StoredInput>, reference: Item): Item | undefined {
  for (const { items } of stored.values())
    for (const item of items) if (!isReference(item) && item['id'] === reference['id']) return item;
  return undefined;
}

/** Maps a path such as `input[7].content` of the whole conversation to the client's message. */
function placeBefore(param: string, offset: number): string {
  const [, index, rest = ''] = /^input\[(\d+)\](.*)$/.exec(param) ?? [];
  if (index === undefined) return param;
  const own = Number(index) - offset;
  return own < 0 ? 'previous_response_id' : `input[${own}]${rest}`;
}

/** Minimum interval of requests that call no model. */
const PREWARM_MS = 1000;
const NO_USAGE = Object.freeze({ prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 });
/** Error code by which Codex detects an expired websocket and opens another. */
const TOO_OLD = 'websocket_connection_limit_reached';

/** Websocket of this format: Codex and OpenAI's SDKs send `response.create` and receive the events of the stream. */
export const socket: DialectSocket<ResponsesBody> = { path: '/v1/responses', connect };

function connect(memory?: ConnectionMemory): DialectConnection<ResponsesBody> {
  const history = createSocketHistory(memory);
  let prewarmedAt = Number.NEGATIVE_INFINITY;
  /** Running request, and its output so far. */
  let turn: Turn | undefined;
  let items: Item[] = [];

  /**
   * Returns `created` and `completed` immediately, for a client that opens a conversation before the user has sent
   * anything.
   */
  function prewarm(body: ResponsesBody): SocketRequest<ResponsesBody> {
    const waitMs = prewarmedAt + PREWARM_MS - performance.now();
    if (waitMs > 0)
      throw new GatewayError(
        'rate_limited',
        'Too many requests with `generate: false`. Send at most one per second on a websocket.',
        {
          retryAfterMs: waitMs,
        },
      );
    const prewarmed = history.continue(body);
    prewarmedAt = performance.now();
    const id = `resp_${randomUUID().replaceAll('-', '')}`;
    const context = { input: { body }, created: Math.floor(Date.now() / 1000) };
    const response = (status: 'in_progress' | 'completed') =>
      responseObject(context, {
        id,
        model: body.model,
        status,
        output: [],
        ...(status === 'completed' && { usage: NO_USAGE }),
      });
    history.keep(id, prewarmed, []);
    return {
      events: [
        { type: 'response.created', sequence_number: 0, response: response('in_progress') },
        { type: 'response.completed', sequence_number: 1, response: response('completed') },
      ],
    };
  }

  return {
    read(message) {
      turn = undefined;
      items = [];
      const body = readCreate(message);
      if (!body) return undefined;
      if (message['generate'] === false) return prewarm(body);
      turn = history.continue(body);
      return { body: turn.body };
    },
    event(event) {
      const { type, item, response } = event;
      if (type === 'response.output_item.done' && isObject(item)) items.push(item);
      if (!turn || !isObject(response)) return event;
      if (type === 'response.failed') history.forget(turn.continued);
      if (type === 'response.completed' || type === 'response.incomplete')
        history.keep(readString(response['id']) ?? '', turn, outputOf(response, items));
      return turn.continued === undefined
        ? event
        : { ...event, response: { ...response, previous_response_id: turn.continued } };
    },
    refuse(status, body, headers) {
      history.forget(turn?.continued);
      return { type: 'error', status, error: errorOf(body, turn), headers };
    },
  };
}

/** Body of a `response.create`; undefined for a notification. */
function readCreate(message: JsonObject): ResponsesBody | undefined {
  const { type, event_id: _id, stream: _stream, generate: _generate, ...body } = message;
  if (type === 'response.processed') return undefined;
  if (type !== 'response.create') throw refusal('type', '`type` must be `response.create`.');
  if (body['background'] === true)
    throw refusal('background', 'Background responses are not supported. Remove `background`.');
  if (body['stream_id'] !== undefined)
    throw refusal('stream_id', 'A websocket sends one response at a time. Remove `stream_id`.');
  const { model, input } = body;
  if (typeof model !== 'string') throw refusal('model', '`model` must be a string.');
  if (input !== undefined && input !== null && typeof input !== 'string' && !isItems(input))
    throw refusal('input', '`input` must be a text or a list of items.');
  return { ...body, model, input: input ?? null, stream: true };
}

function isItems(input: unknown): input is readonly Item[] {
  return Array.isArray(input) && input.every(isObject);
}

/** Items of a response; some vendors send them only in their own events. */
function outputOf(response: JsonObject, items: readonly Item[]): readonly Item[] {
  const output = readArray(response['output']).filter(isObject);
  return output.length > 0 ? output : items;
}

function refusal(param: string, message: string): GatewayError {
  return new GatewayError('invalid_request', message, { param });
}

/** Error with the path in the client's message. */
function errorOf(body: unknown, turn: Turn | undefined): object {
  const error = isObject(body) && isObject(body['error']) ? body['error'] : {};
  const text = readString(error['message']) ?? 'The request was rejected.';
  const place = readString(error['param']);
  const param = place === undefined || !turn ? place : turn.place(place);
  const message = place === undefined || param === undefined ? text : text.replaceAll(place, param);
  const code = message.startsWith(TOO_OLD) ? TOO_OLD : (error['code'] ?? null);
  return { type: error['type'] ?? 'api_error', code, message, param: param ?? null };
}
