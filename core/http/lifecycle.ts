import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import net from 'node:net';
import type { Call, Outcome, Principal, TraceContext } from '../../contract/call.ts';
import type { DialectDefinition } from '../../contract/dialect.ts';
import { type GatewayError, isGatewayError } from '../../contract/errors.ts';
import { type Linked, LinkedList } from '../../contract/linked-list.ts';
import type { ErrorNote, OwnRequest, UploadedFile } from '../../contract/route.ts';
import { SHUTDOWN } from '../calls/run-call.ts';
import type { CredentialPlaces } from './authenticate.ts';
import type { Hold } from './memory.ts';

export type Phase = 'starting' | 'ready' | 'draining' | 'closed';

/** Source of a server's connections: its own port, or another process that owns the port. */
export interface Listener {
  /** Listens and returns the bound port. Rejects if the port is in use or forbidden. */
  listen(server: Server, host: string, port: number): Promise<number>;
  /** Stops accepting connections; resolves when the last one is closed. */
  close(server: Server): Promise<void>;
}

/** Duration of an event loop turn below which few connections wait to be accepted. */
const QUIET_MS = 1;

/** Maximum turns of the event loop before the port is closed on a busy process. */
const MAX_TURNS = 100;

/**
 * Closes the port and resolves when the last connection is closed. Closing resets connections that wait to be accepted. The port is
 * therefore closed right after a short turn of the event loop, which has accepted them all. Idle connections stay open: Node's HTTP
 * server would close them, with any request in transit.
 */
export async function closeOwnPort(server: Server): Promise<void> {
  for (let turn = 0; turn < MAX_TURNS; turn += 1) {
    const began = performance.now();
    await new Promise((resolve) => setImmediate(resolve));
    if (turn > 0 && performance.now() - began < QUIET_MS) break;
  }
  await new Promise<void>((resolve) => void net.Server.prototype.close.call(server, () => resolve()));
  // Stops the timer that checks for slow requests.
  server.close();
}

interface DrainOptions {
  /** Delay between being not ready and closing the listener, for load balancers; connections are still accepted. */
  readonly delayMs: number;
  /** Time limit for running requests. */
  readonly deadlineMs: number;
  /** Sockets that the server does not close itself. */
  readonly sockets?: readonly { drain(): void; close?(): void }[];
  readonly listener?: Pick<Listener, 'close'>;
}

/**
 * Lifetime of idle connections while draining, also of those without a request so far. A proxy that finds the port closed in this
 * time sends no more requests. An immediate close could lose a request in transit. At most the delay before the port is closed.
 */
const IDLE_MS = 1000;

/** Interval of closing idle connections in a drain without delay. */
const SWEEP_MS = 100;

/** Time after the deadline for sending error frames, before sockets are destroyed. */
const GRACE_MS = 1000;

/**
 * Closes idle connections. With a delay, this runs once, for connections that were idle before the drain; Node closes the others by
 * its timeout. Without a delay, no load balancer needs to notice the drain, and each connection is closed once idle.
 */
function closeIdle(server: Server, delayMs: number): NodeJS.Timeout {
  const close = (): void => server.closeIdleConnections();
  if (delayMs > 0) return setTimeout(close, Math.min(IDLE_MS, delayMs));
  close();
  return setInterval(close, SWEEP_MS);
}

/** Running response, and the signal that aborts it. */
class RunningResponse implements Linked<RunningResponse> {
  previous: RunningResponse | undefined = undefined;
  next: RunningResponse | undefined = undefined;
  isLinked = false;
  readonly controller = new AbortController();
}

/** Lifecycle state of a gateway, and the signals that abort its running calls. */
export class Lifecycle {
  phase: Phase = 'starting';
  /** True during and after a drain. */
  draining = false;
  readonly #running = new LinkedList<RunningResponse>();
  /** Responses that a drain does not wait for. */
  readonly #unbounded = new LinkedList<RunningResponse>();
  #expired = false;
  #drained: Promise<void> | undefined;

  /**
   * Returns a signal that fires if the caller disconnects before the end of the response, or at the drain's deadline. For an
   * endless response it fires at the start of the drain.
   */
  abortSignal(response: ServerResponse, { onClosed }: Pick<RequestState, 'onClosed'>, isEndless = false): AbortSignal {
    const running = new RunningResponse();
    const { controller } = running;
    if (this.#expired || (isEndless && this.draining)) controller.abort(SHUTDOWN);
    else if (response.destroyed || response.socket?.destroyed) controller.abort();
    const list = isEndless ? this.#unbounded : this.#running;
    list.add(running);
    onClosed(() => {
      list.remove(running);
      if (!response.writableFinished) controller.abort();
    });
    return controller.signal;
  }

  /** Becomes not ready at once. Running requests finish or are aborted at the deadline. Resolves when the last socket is closed. */
  drain(server: Server, options: DrainOptions): Promise<void> {
    this.#drained ??= this.#drain(server, options);
    return this.#drained;
  }

  async #drain(server: Server, options: DrainOptions): Promise<void> {
    const { delayMs, deadlineMs, sockets = [], listener = { close: closeOwnPort } } = options;
    this.phase = 'draining';
    this.draining = true;
    for (const { controller } of this.#unbounded.toArray()) controller.abort(SHUTDOWN);
    if (delayMs > 0) {
      // For connections whose response started before the drain and had no `connection: close`.
      server.keepAliveTimeout = Math.min(IDLE_MS, delayMs);
      await new Promise((resolve) => setTimeout(resolve, delayMs));
    }
    // Node does not count a connection as idle before its first request: browsers open such connections in advance.
    server.headersTimeout = Math.min(server.headersTimeout, IDLE_MS);
    const closed = listener.close(server);
    for (const each of sockets) each.drain();
    const idle = closeIdle(server, delayMs);
    const end = setTimeout(() => this.#expire(), deadlineMs);
    const cut = setTimeout(() => {
      for (const each of sockets) each.close?.();
      server.closeAllConnections();
    }, deadlineMs + GRACE_MS);
    await closed;
    clearInterval(idle);
    clearTimeout(end);
    clearTimeout(cut);
    this.phase = 'closed';
  }

  #expire(): void {
    this.#expired = true;
    for (const list of [this.#running, this.#unbounded])
      for (const { controller } of list.toArray()) controller.abort(SHUTDOWN);
  }
}

/** Interval of checking the caller of an endless response. */
const RECHECK_MS = 2000;

/**
 * Returns the signal of an endless response. It also fires, with the error, when its caller loses access: a revoked or restricted
 * key, an expired session, a blocked user.
 */
export function endWithCaller(
  { onClosed }: Pick<RequestState, 'onClosed'>,
  signal: AbortSignal,
  authenticate: () => unknown,
): AbortSignal {
  const refused = new AbortController();
  const recheck = async (): Promise<void> => {
    try {
      await authenticate();
    } catch (error) {
      // An unavailable store says nothing about the caller.
      if (isGatewayError(error) && (error.status === 401 || error.status === 403)) refused.abort(error);
    }
  };
  const timer = setInterval(() => void recheck(), RECHECK_MS);
  onClosed(() => clearInterval(timer));
  refused.signal.addEventListener('abort', () => clearInterval(timer));
  return AbortSignal.any([signal, refused.signal]);
}

/** Core's data of a request in Koa's `ctx.state`: routes see it as `RouteState`, the access log reads the rest. */
export class RequestState {
  readonly requestId: string;
  /** Caller's address. */
  readonly ip: string;
  /** Time of its arrival, of `performance.now()`. */
  readonly arrivedMs = performance.now();
  /**
   * State of the caller's request, if the gateway sent this one to itself on its behalf. Such a request has no log line of its own.
   */
  readonly outer: RequestState | undefined;
  /** True for a monitoring route (`isProbe`); set before any middleware. */
  isProbe: boolean;
  /** Credential locations of the path's dialect; set before any middleware. */
  places: CredentialPlaces | undefined;
  /** For an aliased path: the path as sent, and the model that it names. */
  alias: { readonly path: string; readonly model: string | undefined } | undefined;
  /** Method and path of the route, as registered. */
  route: string | undefined;
  /** Plugin of the route. */
  plugin: string | undefined;
  /** Client format of errors; default: OpenAI's. */
  dialect: DialectDefinition | undefined;
  /** Text appended to every error at this path; set before any middleware. */
  errorNote: ErrorNote | undefined;
  principal: Principal | undefined;
  /** Session name from the caller. */
  session: string | undefined;
  /** Trace of the request. */
  trace: TraceContext | undefined;
  body: unknown;
  files: readonly UploadedFile[] | undefined;
  /** Memory reserved for it until its response ends. */
  hold: Hold | undefined;
  /** Fires when the caller disconnects or the gateway drains. Set once a route was found and its caller authenticated. */
  signal: AbortSignal | undefined;
  /** Silence of an event stream after which a keep-alive is sent. */
  sseKeepAliveMs: number | undefined;
  /** Error of the response. */
  error: GatewayError | undefined;
  /** Results of the calls for this request. */
  outcomes: { readonly call: Call; readonly outcome: Outcome }[] | undefined;
  /** Sends requests to the gateway itself. */
  inner: { send(request: OwnRequest & { readonly address: string }): Promise<IncomingMessage> } | undefined;
  /** True after all middleware has run. */
  isServed = false;
  readonly onOutcome: (call: Call, outcome: Outcome) => void;
  /** Adds a listener for the end of the response, after earlier ones; runs it at once if the response has ended. */
  readonly onClosed: (listener: () => void) => void;
  /**
   * Runs all listeners for the end of the response. A throw is an uncaught error, as in any listener, and does not affect the
   * others.
   */
  readonly close: () => void;

  constructor(requestId: string, ip: string, outer?: RequestState) {
    this.requestId = requestId;
    this.ip = ip;
    this.outer = outer;
    this.isProbe = outer !== undefined;
    this.onOutcome = (call, outcome) => {
      this.outcomes ??= [];
      this.outcomes.push({ call, outcome });
      outer?.onOutcome(call, outcome);
    };
    let waiting: (() => void)[] | undefined = [];
    this.onClosed = (listener) => {
      if (waiting) waiting.push(listener);
      else listener();
    };
    this.close = () => {
      const listeners = waiting ?? [];
      waiting = undefined;
      for (const listener of listeners)
        try {
          listener();
        } catch (error) {
          queueMicrotask(() => {
            throw error;
          });
        }
      this.hold?.release();
      // Runs after direct listeners of the response.
      if (this.isServed) process.nextTick(release, this);
    };
  }

  send(request: OwnRequest): Promise<IncomingMessage> {
    if (!this.inner) throw new TypeError('this application has no server');
    return this.inner.send({ ...request, address: this.ip });
  }
}

/**
 * Releases large objects. Node and Koa may retain a request for several garbage collections, with everything it refers to. Promoted
 * bodies and calls cost a tenth of the gateway's time.
 */
function release(state: RequestState): void {
  state.body = undefined;
  state.files = undefined;
  state.outcomes = undefined;
}

/**
 * Normalizes a path of clients' SDKs: double slashes become one, a trailing slash is removed, and `%3A` becomes a colon. The `/v1`
 * that SDKs append to the provider segment is dropped (`/api/core/openai/v1/models` is `/api/core/openai/models`).
 */
export function normalisePath(path: string): string {
  const plain = path.includes('%3') ? path.replace(/%3a/gi, ':') : path;
  const single = plain.includes('//') ? plain.replace(/\/{2,}/g, '/') : plain;
  const trimmed = single.length > 1 && single.endsWith('/') ? single.slice(0, -1) : single;
  return trimmed.startsWith('/api/core/') ? trimmed.replace(PROVIDER_V1, '$1/') : trimmed;
}

const PROVIDER_V1 = /^(\/api\/core\/[^/]+)\/v1\//;

/**
 * Returns the caller's address: the socket's, or, behind `hops` trusted proxies, the entry of `x-forwarded-for` that the outermost
 * proxy wrote. Entries written by the caller are never used.
 */
export function clientAddress(request: IncomingMessage, hops: number): string {
  const own = request.socket.remoteAddress ?? '';
  if (hops === 0) return own;
  const header = request.headers['x-forwarded-for'];
  const chain = (typeof header === 'string' ? header : '')
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => ADDRESS.test(entry));
  return chain.at(-hops) ?? chain[0] ?? own;
}

/** IPv4, or IPv6 with or without brackets; other values are not logged. */
const ADDRESS = /^[0-9a-fA-F.:[\]]{2,45}$/;
