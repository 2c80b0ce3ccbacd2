import type { Log } from '../contract/log.ts';
import type { Endpoint, HttpRequest, ResponseHeaders, Timeouts } from '../contract/provider.ts';
import { type Connection, type Connections, createConnections } from './connections.ts';
import { createDeadlineClock } from './deadline-clock.ts';
import { Exchange } from './exchange.ts';
import { createRequestPreparer } from './prepare-request.ts';
import { runTransport } from './run-transport.ts';
import type { UpstreamBody } from './upstream-body.ts';
import { UpstreamError, type UpstreamPhase } from './upstream-error.ts';

export { UpstreamError, type UpstreamPhase };

/** Four clocks of one attempt, unless the endpoint or the call says otherwise. */
export const DEFAULT_TIMEOUTS: Timeouts = Object.freeze({
  connectMs: 5_000,
  firstByteMs: 60_000,
  idleMs: 60_000,
  totalMs: 600_000,
});

export interface UpstreamLimits {
  /** Of one answer, streamed or not. */
  readonly maxResponseBytes: number;
  /** Of an answer's head. */
  readonly maxHeaderBytes: number;
  /** Open sockets to one origin; a request beyond it fails as `overloaded`. */
  readonly maxConnections: number;
}

export const DEFAULT_LIMITS: UpstreamLimits = Object.freeze({
  maxResponseBytes: 32 * 1024 * 1024,
  maxHeaderBytes: 32 * 1024,
  // As many as `server.maxConnections`, so that callers are bounded before their calls are.
  maxConnections: 10_000,
});

export interface UpstreamOptions {
  readonly defaults?: Partial<Timeouts>;
  readonly limits?: Partial<UpstreamLimits>;
  readonly log: Log;
}

export interface SendOptions {
  /** Ends the attempt at once, whatever it is doing. */
  readonly signal: AbortSignal;
  /** Replaces single clocks for this attempt. */
  readonly deadlines?: Partial<Timeouts>;
}

export interface UpstreamResponse {
  /** 200 to 299 with content, or 400 to 599. */
  readonly status: number;
  /** Names in lower case. */
  readonly headers: ResponseHeaders;
  /** Read once, by one reader. Breaking off hangs up; errors are {@link UpstreamError}s. */
  readonly body: UpstreamBody;
  /** The whole body; hangs up and throws an {@link UpstreamError} of phase `body` beyond `maxBytes`. */
  readAll(maxBytes?: number): Promise<Buffer>;
  /** Hangs up. Harmless after the end. */
  destroy(): void;
}

export interface Upstream {
  /**
   * Makes one attempt and resolves with the answer's head. Rejects with an {@link UpstreamError}, or with a TypeError
   * when the endpoint or the request can't be sent as they are (a fault of configuration or codec, never of a caller).
   */
  send(endpoint: Endpoint, request: HttpRequest, options: SendOptions): Promise<UpstreamResponse>;
  /** Cuts what is still open. */
  close(): Promise<void>;
}

/** The way out to the providers: connections, clocks, bounds and keys. Follows no redirect and decodes no encoding. */
export function createUpstream(options: UpstreamOptions): Upstream {
  const defaults = { ...DEFAULT_TIMEOUTS, ...options.defaults };
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const clock = createDeadlineClock();
  let closed = false;
  /** By origin and connect deadline, which is the socket's. As many as the configuration has endpoints. */
  const origins = new Map<string, Map<number, Connections>>();
  const prepare = createRequestPreparer();
  const timeoutsOf = createTimeoutsOf(defaults);

  function connectionsTo(origin: string, connectMs: number): Connections {
    let byDeadline = origins.get(origin);
    if (!byDeadline) {
      byDeadline = new Map();
      origins.set(origin, byDeadline);
    }
    let connections = byDeadline.get(connectMs);
    if (!connections) {
      const { maxHeaderBytes, maxConnections: max } = limits;
      connections = createConnections(origin, { connectMs, maxHeaderBytes, max });
      byDeadline.set(connectMs, connections);
    }
    return connections;
  }

  function sendOverNetwork(
    endpoint: Endpoint,
    request: HttpRequest,
    timeouts: Timeouts,
    signal: AbortSignal,
  ): Exchange {
    const prepared = prepare(endpoint, request);
    const { origin } = prepared;
    const connections = connectionsTo(origin, timeouts.connectMs);
    let connection: Connection | undefined;
    const exchange = new Exchange({
      timeouts,
      signal,
      clock,
      maxResponseBytes: limits.maxResponseBytes,
      onClose: (reusable) => connection && connections.release(connection, reusable),
      onReset() {
        if (!connection || connection.served === 0) return false;
        options.log.debug({ origin }, 'a kept connection was closed under a request: sending it again');
        connections.release(connection, false);
        attempt(true);
        return true;
      },
    });
    function attempt(fresh: boolean): void {
      connection = connections.take(fresh);
      if (connection) connection.client.dispatch(prepared, exchange);
      else exchange.refuse('overloaded', 'all connections to the provider are in use');
    }
    if (!exchange.closed) attempt(false);
    return exchange;
  }

  return {
    send(endpoint, request, { signal, deadlines }) {
      if (closed) return Promise.reject(closing());
      const known = timeoutsOf(endpoint);
      const timeouts = deadlines ? { ...known, ...deadlines } : known;
      try {
        if (!endpoint.transport) return sendOverNetwork(endpoint, request, timeouts, signal).answer;
        const { maxResponseBytes } = limits;
        const exchange = new Exchange({ timeouts, signal, clock, maxResponseBytes, onClose: () => {} });
        if (!exchange.closed) void runTransport(endpoint.transport, request, exchange);
        return exchange.answer;
      } catch (fault) {
        return Promise.reject(fault as Error);
      }
    },
    async close() {
      closed = true;
      clock.close();
      const all = [...origins.values()].flatMap((byDeadline) => [...byDeadline.values()]);
      await Promise.all(all.map((connections) => connections.close()));
    },
  };
}

function closing(): UpstreamError {
  return new UpstreamError('the gateway is closing', { failure: 'upstream_error', phase: 'aborted', sent: false });
}

/** The clocks of an endpoint, laid over the defaults once. */
function createTimeoutsOf(defaults: Timeouts): (endpoint: Endpoint) => Timeouts {
  const known = new WeakMap<Endpoint, Timeouts>();
  return (endpoint) => {
    let timeouts = known.get(endpoint);
    if (!timeouts) {
      timeouts = { ...defaults, ...endpoint.timeouts };
      known.set(endpoint, timeouts);
    }
    return timeouts;
  };
}
