import { toGatewayError } from './errors.ts';
import type { JsonObject } from './json.ts';
import type { RouteContext } from './route.ts';
import { createSseWriter, type SseWriter, type SseWriterOptions } from './sse-writer.ts';

/**
 * Opens the event stream of a route. Its head is sent by `start()` or the first write; until then, an error has its status. While
 * the route is silent, keep-alives are sent after each `server.sseKeepAlive`, also as the first bytes, so that proxies keep the
 * connection. `ctx.set` has no effect after the start.
 */
export function openEventStream(
  ctx: RouteContext,
  options: Omit<SseWriterOptions, 'keepAliveMs' | 'signal' | 'onStart'> = {},
): SseWriter {
  const { signal, sseKeepAliveMs } = ctx.state;
  return createSseWriter(ctx.res, {
    ...options,
    signal,
    ...(sseKeepAliveMs !== undefined && { keepAliveMs: sseKeepAliveMs }),
    onStart() {
      ctx.status = 200;
      ctx.respond = false;
    },
  });
}

/**
 * Responds with events as they arrive, in a stream that is open while the provider is silent. `call` sets the headers and returns the
 * frames. An error before the head has its status; a later one is the last event.
 */
export async function sendEvents(ctx: RouteContext, call: () => Promise<AsyncIterable<string>>): Promise<void> {
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

/** Yields the frames of events for {@link sendEvents}, with their `type` as the name of the event. */
export async function* framesOf(events: AsyncIterable<JsonObject> | readonly JsonObject[]): AsyncGenerator<string> {
  for await (const event of events) yield frameOf(event);
}

function frameOf(event: JsonObject): string {
  const type = typeof event['type'] === 'string' && /^[\w.]+$/.test(event['type']) ? `event: ${event['type']}\n` : '';
  return `${type}data: ${JSON.stringify(event)}\n\n`;
}
