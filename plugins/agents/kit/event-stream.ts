import type { RouteContext } from '../../../core/index.ts';

/** Server-sent events of one answer. */
export interface EventStream {
  /** Whether the head is out: from then on errors are events. */
  readonly opened: () => boolean;
  /** Sends an event; `hold` keeps it until one without `hold` opens the stream, so that early errors get a status. */
  send(event: string, data: object, hold?: boolean): void;
  end(): void;
}

const KEEP_ALIVE_MS = 15_000;

/** Opens an event stream on a Koa answer; a comment every 15 s of silence, nothing after the end. */
export function openEventStream(ctx: RouteContext): EventStream {
  const held: string[] = [];
  let timer: NodeJS.Timeout | undefined;
  const open = () => {
    ctx.respond = false;
    ctx.res.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
    });
    timer = setInterval(() => write(': keep-alive\n\n'), KEEP_ALIVE_MS);
    ctx.res.once('close', () => clearInterval(timer));
  };
  const write = (text: string) => {
    if (!ctx.res.writableEnded && !ctx.res.destroyed) ctx.res.write(text);
  };
  return {
    opened: () => timer !== undefined,
    send(event, data, hold = false) {
      held.push(`event: ${event}\ndata: ${JSON.stringify({ type: event, ...data })}\n\n`);
      if (hold && timer === undefined) return;
      if (timer === undefined) open();
      for (const text of held.splice(0)) write(text);
      timer?.refresh();
    },
    end() {
      clearInterval(timer);
      if (timer !== undefined && !ctx.res.writableEnded) ctx.res.end();
    },
  };
}
