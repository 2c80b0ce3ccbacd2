import { type RouteContext, toGatewayError } from '../../../core/index.ts';
import { startDeadline, untilAborted } from './deadline.ts';
import { openEventStream } from './event-stream.ts';
import type { Emit } from './trace.ts';

/**
 * Runs one request under one deadline and answers it: as JSON, or with `stream` as events that end with `result` or
 * `error`. What fails before the first agent has answered gets its HTTP status either way.
 */
export async function answerInTime(
  ctx: RouteContext,
  options: {
    readonly timeoutMs: number;
    readonly stream: boolean;
    /** What is told of an error that ends an open stream; the error itself unless set. */
    readonly tell?: (error: unknown) => unknown;
  },
  work: (signal: AbortSignal, emit: Emit) => Promise<object>,
): Promise<void> {
  const deadline = startDeadline(ctx.state.signal, options.timeoutMs);
  const stream = options.stream ? openEventStream(ctx) : undefined;
  const emit: Emit = (event, data) => stream?.send(event, data, isHeld(event, data));
  try {
    const result = await untilAborted(work(deadline.signal, emit), deadline.signal);
    if (stream) stream.send('result', result);
    else ctx.body = result;
  } catch (error) {
    if (!stream?.opened()) throw error;
    const told = options.tell ? options.tell(error) : error;
    stream.send('error', toGatewayError(told).toBody(ctx.state.requestId));
  } finally {
    deadline.stop();
    stream?.end();
  }
}

/** Events that are held until one agent has answered: a call that fails at once gets its status. */
function isHeld(event: string, data: object): boolean {
  return event === 'agent.started' || (event === 'agent.finished' && 'status' in data && data.status !== 'ok');
}
