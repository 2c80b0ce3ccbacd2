import { createSseWriter, type RouteContext } from '../../../core/index.ts';

/** Server-sent events of one answer. */
export interface EventStream {
  /** Whether the head is out: from then on errors are events. */
  readonly opened: () => boolean;
  /** Sends an event; `hold` keeps it until one without `hold` opens the stream, so that early errors get a status. */
  send(event: string, data: object, hold?: boolean): void;
  /** Ends the stream, when it was opened; nothing is sent after it. */
  end(): void;
}

/** An event stream on a Koa answer. Each event's data is an object that also holds its `type`. */
export function openEventStream(ctx: RouteContext): EventStream {
  const held: string[] = [];
  let ended = false;
  let writer: ReturnType<typeof createSseWriter> | undefined;
  const open = () => {
    ctx.status = 200;
    ctx.respond = false;
    return createSseWriter(ctx.res, { signal: ctx.state.signal });
  };
  return {
    opened: () => writer !== undefined,
    send(event, data, hold = false) {
      // An agent that does not stop when it is told to may still have something to show.
      if (ended) return;
      held.push(`event: ${event}\ndata: ${JSON.stringify({ type: event, ...data })}\n\n`);
      if (hold && !writer) return;
      writer ??= open();
      for (const frame of held.splice(0)) writer.write(frame);
    },
    end() {
      ended = true;
      writer?.end();
    },
  };
}
