import {
  formatUsd,
  openEventStream,
  type RouteContext,
  type SseWriter,
  toGatewayError,
} from '../../../contract/index.ts';
import { startDeadline, untilAborted } from './deadline.ts';
import type { Emit } from './trace.ts';

/**
 * Runs one request under one deadline and sends its response: as JSON, or with `stream` as events that end with
 * `result` or `error`. Failures before the first agent finishes have an HTTP status in both cases.
 */
export async function respondInTime(
  ctx: RouteContext,
  options: {
    readonly timeoutMs: number;
    readonly stream: boolean;
    /** Converts the error that ends an open stream; default: no change. */
    readonly publicError?: (error: unknown) => unknown;
  },
  work: (signal: AbortSignal, emit: Emit) => Promise<object>,
): Promise<void> {
  const deadline = startDeadline(ctx.state.signal, options.timeoutMs);
  const stream = options.stream ? openAgentEvents(ctx) : undefined;
  const emit: Emit = (event, data) => stream?.send(event, data);
  try {
    const result = await untilAborted(work(deadline.signal, emit), deadline.signal);
    const cost = costOf(ctx.state.outcomes);
    // Stream headers are sent before any cost is known.
    if (stream) stream.send('result', { ...result, cost_usd: cost });
    else {
      ctx.set('x-tollgate-cost-usd', cost);
      ctx.body = result;
    }
  } catch (error) {
    if (!stream?.isOpen()) throw error;
    const shown = options.publicError ? options.publicError(error) : error;
    stream.send('error', toGatewayError(shown).toBody(ctx.state.requestId));
  } finally {
    deadline.stop();
    stream?.end();
  }
}

/** Cost of all calls of a request by the price table; `unknown` if a price is missing. */
function costOf(outcomes: RouteContext['state']['outcomes'] = []): string {
  const costs = outcomes.flatMap(({ outcome }) => (outcome.usage || outcome.cost !== undefined ? [outcome.cost] : []));
  const known = costs.filter((cost) => cost !== undefined);
  return known.length < costs.length ? 'unknown' : formatUsd(known.reduce((sum, cost) => sum + cost, 0));
}

/**
 * Server-sent events on a Koa response; each one's data is an object that also contains its `type`. Headers are sent
 * with the first event that is not held back. Errors have a status before, and are events afterwards.
 */
function openAgentEvents(ctx: RouteContext) {
  const held: string[] = [];
  let ended = false;
  let writer: SseWriter | undefined;
  return {
    isOpen: () => writer !== undefined,
    send(event: string, data: object): void {
      // An agent that does not stop at once may still send events.
      if (ended) return;
      held.push(`event: ${event}\ndata: ${JSON.stringify({ type: event, ...data })}\n\n`);
      if (isHeld(event, data) && !writer) return;
      writer ??= openEventStream(ctx);
      for (const frame of held.splice(0)) writer.write(frame);
    },
    end(): void {
      ended = true;
      writer?.end();
    },
  };
}

/** Events held back until one agent is done, so that an early failure has an HTTP status. */
function isHeld(event: string, data: object): boolean {
  return event === 'agent.started' || (event === 'agent.finished' && 'status' in data && data.status !== 'ok');
}
