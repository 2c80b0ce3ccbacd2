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
