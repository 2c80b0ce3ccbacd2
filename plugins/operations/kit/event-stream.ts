import { createEventReader } from '../../../contract/event-reader.ts';
import {
  type AttemptResponse,
  createSseWriter,
  GatewayError,
  isObject,
  type JsonObject,
  parseJson,
  type RouteContext,
  StreamFailure,
  toGatewayError,
} from '../../../contract/index.ts';

/** Maximum length of an event: a complete image in base64. */
const MAX_EVENT_LENGTH = 32 * 1024 * 1024;

/** Returns true if a vendor responds with a stream; those without streaming return a complete response. */
export function isEventStream({ headers }: Pick<AttemptResponse, 'headers'>): boolean {
  return /^text\/event-stream/i.test(headers['content-type'] ?? '');
}

/** Complete response of a vendor as JSON; undefined if invalid. */
export async function readWhole(response: Pick<AttemptResponse, 'readAll'>): Promise<unknown> {
  return parseJson((await response.readAll()).toString('utf8'));
}

/**
 * Yields the events of a vendor's stream as JSON, up to `[DONE]`. Invalid JSON or an error event is the vendor's
 * failure. An operation reports its own end marker with `reportProgress`, and stops reading.
 */
export async function* readEvents(
  response: Pick<AttemptResponse, 'body' | 'reportProgress'>,
): AsyncGenerator<JsonObject> {
  const reader = createEventReader({ maxEventLength: MAX_EVENT_LENGTH });
  for await (const bytes of response.body)
    for (const { data } of reader.push(bytes)) {
      response.reportProgress?.(data === '[DONE]' ? 'complete' : 'open');
      if (data === '[DONE]') return;
      yield eventOf(data);
    }
  for (const { data } of reader.end()) if (data !== '[DONE]') yield eventOf(data);
}

function eventOf(data: string): JsonObject {
  const event = parseJson(data);
  if (!isObject(event)) throw failed('The provider sent an event that is not a JSON object.');
  if (event['type'] === 'error' || isObject(event['error']))
    throw failed('The provider ended the stream with an error.');
  return event;
}

function failed(message: string): StreamFailure {
  return new StreamFailure({ class: 'upstream_error', message });
}

/** Sends events as they arrive. An error before the first event is thrown; a later one is sent as the last event. */
export async function sendEvents(ctx: RouteContext, events: AsyncIterable<JsonObject>): Promise<void> {
  const { signal, requestId } = ctx.state;
  const iterator = events[Symbol.asyncIterator]();
  let step = await iterator.next();
  ctx.respond = false;
  ctx.status = 200;
  const writer = createSseWriter(ctx.res, { signal });
  writer.start();
  try {
    for (; !step.done && !writer.closed; step = await iterator.next())
      if (!writer.write(frameOf(step.value))) await writer.drained();
  } catch (error) {
    if (!signal.aborted) writer.write(`data: ${JSON.stringify(toGatewayError(error).toBody(requestId))}\n\n`);
  } finally {
    writer.end();
    await iterator.return?.();
  }
}

function frameOf(event: JsonObject): string {
  const type = typeof event['type'] === 'string' && /^[\w.]+$/.test(event['type']) ? `event: ${event['type']}\n` : '';
  return `${type}data: ${JSON.stringify(event)}\n\n`;
}

/** Error for a form without its file. */
export function missingFile(field: string): GatewayError {
  return new GatewayError('invalid_request', `The form must have a non-empty file \`${field}\`.`, { param: field });
}
