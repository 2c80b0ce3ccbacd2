import { randomUUID } from 'node:crypto';
import {
  type ConnectionMemory,
  type DialectConnection,
  type DialectSocket,
  GatewayError,
  isObject,
  type JsonObject,
  readArray,
  readString,
  type SocketRequest,
} from '../../../core/index.ts';
import { writeResponse } from './response.ts';
import { createSocketHistory, type Turn } from './socket-history.ts';
import type { Item, ResponsesBody } from './types.ts';

/** How far apart requests that call no model must be. */
const PREWARM_MS = 1000;
const NO_USAGE = Object.freeze({ prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 });
/** What Codex looks for when a websocket may not live any longer; it opens another one then. */
const TOO_OLD = 'websocket_connection_limit_reached';

/** The websocket of this format: Codex and OpenAI's SDKs send `response.create` and get the events of the stream. */
export const socket: DialectSocket<ResponsesBody> = { path: '/v1/responses', connect };

function connect(memory?: ConnectionMemory): DialectConnection<ResponsesBody> {
  const history = createSocketHistory(memory);
  let prewarmedAt = Number.NEGATIVE_INFINITY;
  /** The request that runs, and what came of it so far. */
  let turn: Turn | undefined;
  let items: Item[] = [];

  /** `created` and `completed` at once: a client that opens the conversation before its user has said something. */
  function prewarm(body: ResponsesBody): SocketRequest<ResponsesBody> {
    const waitMs = prewarmedAt + PREWARM_MS - performance.now();
    if (waitMs > 0)
      throw new GatewayError('rate_limited', '`generate: false` may be sent once a second on a websocket.', {
        retryAfterMs: waitMs,
      });
    const prewarmed = history.continue(body);
    prewarmedAt = performance.now();
    const id = `resp_${randomUUID().replaceAll('-', '')}`;
    const context = { input: { body }, created: Math.floor(Date.now() / 1000) };
    const response = (status: 'in_progress' | 'completed') =>
      writeResponse(context, {
        ...{ id, model: body.model, status, output: [] },
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

/** The body of a `response.create`; undefined for a message that only tells. */
function readCreate(message: JsonObject): ResponsesBody | undefined {
  const { type, event_id: _id, stream: _stream, generate: _generate, ...body } = message;
  if (type === 'response.processed') return undefined;
  if (type !== 'response.create') throw refusal('type', 'A message here is a `response.create`.');
  if (body['background'] === true)
    throw refusal('background', 'Responses in the background are not kept here. Leave `background` out.');
  if (body['stream_id'] !== undefined)
    throw refusal('stream_id', 'One response at a time is sent on a websocket. Leave `stream_id` out.');
  const { model, input } = body;
  if (typeof model !== 'string') throw refusal('model', '`model` must be a string.');
  if (input !== undefined && input !== null && typeof input !== 'string' && !isItems(input))
    throw refusal('input', '`input` must be a text or a list of items.');
  return { ...body, model, input: input ?? null, stream: true };
}

function isItems(input: unknown): input is readonly Item[] {
  return Array.isArray(input) && input.every(isObject);
}

/** The items of a response; some vendors send them in their own events only. */
function outputOf(response: JsonObject, items: readonly Item[]): readonly Item[] {
  const output = readArray(response['output']).filter(isObject);
  return output.length > 0 ? output : items;
}

function refusal(param: string, message: string): GatewayError {
  return new GatewayError('invalid_request', message, { param });
}

/** What was wrong, at its place in the message as the client sent it. */
function errorOf(body: unknown, turn: Turn | undefined): object {
  const error = isObject(body) && isObject(body['error']) ? body['error'] : {};
  const told = readString(error['message']) ?? 'The request was refused.';
  const place = readString(error['param']);
  const param = place === undefined || !turn ? place : turn.place(place);
  const message = place === undefined || param === undefined ? told : told.replaceAll(place, param);
  const code = message.startsWith(TOO_OLD) ? TOO_OLD : (error['code'] ?? null);
  return { type: error['type'] ?? 'api_error', code, message, param: param ?? null };
}
