import type { Log } from '../contract/plugin.ts';
import type { Endpoint, HttpRequest, Timeouts, Transport, TransportResponse } from '../contract/provider.ts';
import { Attempt, UpstreamError, type UpstreamPhase } from './attempt.ts';
import { Connections } from './connections.ts';
import { createResponseBudget, type ResponseBudget } from './response-budget.ts';
import { createRequestPreparer, openResponse, sendRequest, type UpstreamResponse } from './send-request.ts';

export { UpstreamError, type UpstreamPhase, type UpstreamResponse };

/** Four clocks of one attempt, unless the endpoint or the call says otherwise. */
const DEFAULT_TIMEOUTS: Timeouts = Object.freeze({
  connectMs: 5_000,
  firstByteMs: 60_000,
  idleMs: 60_000,
  totalMs: 600_000,
});

interface UpstreamLimits {
  /** Of one response, streamed or not. */
  readonly maxResponseBytes: number;
  /** Of a response's head. */
  readonly maxHeaderBytes: number;
  /** Open sockets to one origin; a request beyond it fails as `overloaded`. */
  readonly maxConnections: number;
}

const DEFAULT_LIMITS: UpstreamLimits = Object.freeze({
  maxResponseBytes: 32 * 1024 * 1024,
  maxHeaderBytes: 32 * 1024,
  // As many as `server.maxConnections`, so that callers are bounded before their calls are.
  maxConnections: 10_000,
});

interface UpstreamOptions {
  readonly defaults?: Partial<Timeouts>;
  readonly limits?: Partial<UpstreamLimits>;
  /** The memory of answers that are read as a whole; one of this process's own unless set. */
  readonly budget?: ResponseBudget;
  readonly log: Log;
}

interface SendOptions {
  /** Ends the attempt at once, whatever it is doing. */
  readonly signal: AbortSignal;
  /** Replaces single clocks for this attempt. */
  readonly deadlines?: Partial<Timeouts>;
  /** Until when an answer that was read as a whole is kept; only while it is read unless set. */
  readonly heldUntil?: Promise<void>;
}

export interface Upstream {
  /**
   * Makes one attempt and resolves with the response's head. Rejects with an {@link UpstreamError}, or with a TypeError
   * when the endpoint or the request can't be sent as they are (an error of configuration or codec, never of a caller).
   */
  send(endpoint: Endpoint, request: HttpRequest, options: SendOptions): Promise<UpstreamResponse>;
  /** Cuts what is still open. */
  close(): Promise<void>;
}

/** The way out to the providers: connections, deadlines, bounds and keys. Follows no redirect and decodes no encoding. */
export function createUpstream({ log, ...options }: UpstreamOptions): Upstream {
  const defaults = { ...DEFAULT_TIMEOUTS, ...options.defaults };
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const { budget = createResponseBudget() } = options;
  const prepare = createRequestPreparer();
  /** By origin and connect deadline, which is the socket's. As many as the configuration has endpoints. */
  const pools = new Map<string, Connections>();
  const running = new Set<Attempt>();
  let isClosed = false;

  function connectionsTo(origin: string, connectMs: number): Connections {
    const name = `${connectMs} ${origin}`;
    let connections = pools.get(name);
    if (!connections) {
      const { maxHeaderBytes, maxConnections: max } = limits;
      connections = new Connections(origin, { connectMs, maxHeaderBytes, max });
      pools.set(name, connections);
    }
    return connections;
  }

  function open(endpoint: Endpoint, request: HttpRequest, attempt: Attempt): Promise<TransportResponse> {
    if (endpoint.transport) return runTransport(endpoint.transport, request, attempt);
    const prepared = prepare(endpoint, request);
    return sendRequest(prepared, connectionsTo(prepared.origin, attempt.timeouts.connectMs), attempt, log);
  }

  return {
    async send(endpoint, request, { signal, deadlines, heldUntil }) {
      const own = endpoint.timeouts || deadlines;
      const timeouts = own ? { ...defaults, ...endpoint.timeouts, ...deadlines } : defaults;
      const attempt = new Attempt(signal, timeouts, running);
      try {
        if (isClosed) throw attempt.abort(CLOSING);
        if (attempt.error) throw attempt.error;
        const head = await open(endpoint, request, attempt);
        return openResponse(head, attempt, { maxBytes: limits.maxResponseBytes, budget, heldUntil });
      } catch (error) {
        attempt.leave();
        throw error;
      }
    },
    async close() {
      isClosed = true;
      for (const attempt of running) attempt.abort(CLOSING);
      await Promise.all([...pools.values()].map((connections) => connections.close()));
    },
  };
}

const CLOSING = 'the gateway is closing';

/** Lets a provider's own {@link Transport} answer a request, with the same deadlines and abort as the network. */
async function runTransport(transport: Transport, request: HttpRequest, attempt: Attempt): Promise<TransportResponse> {
  attempt.isSent = () => true;
  try {
    const head = await inTime(transport(request, attempt.signal), 'firstByte', attempt);
    return { ...head, body: readInTime(head.body, attempt) };
  } catch (error) {
    throw attempt.explain(error, 'firstByte');
  }
}

/** The body as it comes, read when somebody reads it; one that is silent for too long fails. */
async function* readInTime(body: AsyncIterable<Uint8Array>, attempt: Attempt): AsyncGenerator<Uint8Array> {
  const chunks = body[Symbol.asyncIterator]();
  let isWhole = false;
  try {
    for (;;) {
      const { done, value } = await inTime(chunks.next(), 'idle', attempt);
      isWhole = done === true;
      if (done) return;
      yield value;
    }
  } finally {
    // Not waited for: a transport that hangs would never come to it.
    if (!isWhole) chunks.return?.().catch(() => {});
  }
}

/** Waits for some work, until its deadline has passed or the attempt is stopped. */
function inTime<T>(work: Promise<T>, phase: 'firstByte' | 'idle', attempt: Attempt): Promise<T> {
  const { signal, timeouts } = attempt;
  return new Promise<T>((resolve, reject) => {
    const timer = setTimeout(() => attempt.expire(phase), timeouts[`${phase}Ms`]).unref();
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    signal.addEventListener('abort', onAbort);
    void work.then(resolve, reject).finally(() => {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
    });
  });
}
