import { createEventReader } from '../../../contract/event-reader.ts';
import {
  type AttemptResponse,
  GatewayError,
  isObject,
  type JsonObject,
  openEventStream,
  parseJson,
  type RouteContext,
  readObject,
  StreamFailure,
  toGatewayError,
} from '../../../contract/index.ts';

/** Maximum length of an event: a complete image in base64. */
const MAX_EVENT_LENGTH = 32 * 1024 * 1024;

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

/**
 * Responds with the events of a call as they arrive, in a stream that is open while the provider is silent. `call` sets
 * the headers and returns the frames. An error before the head has its status; a later one is the last event.
 */
export async function sendFrames(ctx: RouteContext, call: () => Promise<AsyncIterable<string>>): Promise<void> {
  const { signal, requestId } = ctx.state;
  const writer = openEventStream(ctx);
  let frames: AsyncIterator<string> | undefined;
  try {
    frames = (await call())[Symbol.asyncIterator]();
    let step = await frames.next();
    writer.start();
    for (; !step.done && !writer.closed; step = await frames.next())
      if (!writer.write(step.value)) await writer.drained();
  } catch (error) {
    if (!writer.started) throw error;
    if (!signal.aborted) writer.write(`data: ${JSON.stringify(toGatewayError(error).toBody(requestId))}\n\n`);
  } finally {
    if (writer.started) writer.end();
    await frames?.return?.();
  }
}

/** Sets headers of a response whose stream may have been opened by a keep-alive. */
export function setHeaders(ctx: RouteContext, headers: Readonly<Record<string, string>>): void {
  if (!ctx.headerSent) ctx.set(headers);
}

/** Frames of events, with their type as the name of the event. */
export async function* framesOf(events: AsyncIterable<JsonObject> | readonly unknown[]): AsyncGenerator<string> {
  for await (const event of events) yield frameOf(readObject(event));
}

function frameOf(event: JsonObject): string {
  const type = typeof event['type'] === 'string' && /^[\w.]+$/.test(event['type']) ? `event: ${event['type']}\n` : '';
  return `${type}data: ${JSON.stringify(event)}\n\n`;
}

/** Error for a form without its file. */
export function missingFile(field: string): GatewayError {
  return new GatewayError('invalid_request', `The form must have a non-empty file \`${field}\`.`, { param: field });
}
