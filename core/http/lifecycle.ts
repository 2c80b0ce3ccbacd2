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

/** Where a server's connections come from: its own port, or another process that has the port. */
export interface Listener {
  /** Listens, and answers the port that was bound. Rejects when the port is taken or not allowed. */
  listen(server: Server, host: string, port: number): Promise<number>;
  /** Takes no further connection; resolves when the last one is closed. */
  close(server: Server): Promise<void>;
}

/** Longest turn of the event loop after which few connections can wait to be accepted. */
const QUIET_MS = 1;

/** Turns of the event loop before a port is closed on a busy process all the same. */
const MAX_TURNS = 100;

/**
 * Closes the port and resolves when the last connection is closed. Connections that wait to be accepted are reset, so the port is closed
 * right after a short turn of the event loop, which has accepted all. Idle connections stay open: Node's HTTP server would close them, and
 * with them a request that is on its way.
 */
export async function closeOwnPort(server: Server): Promise<void> {
  for (let turn = 0; turn < MAX_TURNS; turn += 1) {
    const began = performance.now();
    await new Promise((resolve) => setImmediate(resolve));
    if (turn > 0 && performance.now() - began < QUIET_MS) break;
  }
  await new Promise<void>((resolve) => void net.Server.prototype.close.call(server, () => resolve()));
  // Ends the timer that looks for slow requests.
  server.close();
}

interface DrainOptions {
  /** Between being not ready and closing the listener, for load balancers to notice: connections are taken meanwhile. */
  readonly delayMs: number;
  /** How long running requests may go on. */
  readonly deadlineMs: number;
  /** What the server does not close itself. */
  readonly sockets?: readonly { drain(): void; close?(): void }[];
  readonly listener?: Pick<Listener, 'close'>;
}

/**
 * How long a connection stays open without a request while draining. A proxy that meets a closed port in this time sends nothing more;
 * a connection that is closed at once can lose a request that is on its way. Not longer than the delay before the port is closed.
 */
const IDLE_MS = 1000;

/** How often idle connections are closed where the drain has no delay. */
const SWEEP_MS = 100;

/** After the deadline: how long error frames may take to leave before the sockets are cut. */
const GRACE_MS = 1000;

/**
 * Closes connections without a request. After a delay this happens once, for those that were idle before the drain began: Node closes the
 * others by its timeout. Without a delay nobody has to notice the drain, and all are closed as soon as they are idle.
 */
function closeIdle(server: Server, delayMs: number): NodeJS.Timeout {
  const close = (): void => server.closeIdleConnections();
  if (delayMs > 0) return setTimeout(close, Math.min(IDLE_MS, delayMs));
  close();
  return setInterval(close, SWEEP_MS);
}

/** A response that goes on, and the signal that ends it. */
class RunningResponse implements Linked<RunningResponse> {
  previous: RunningResponse | undefined = undefined;
  next: RunningResponse | undefined = undefined;
  isLinked = false;
  readonly controller = new AbortController();
}

/** Where a gateway is in its life, and the signals that end its running calls. */
export class Lifecycle {
  phase: Phase = 'starting';
  /** Whether it drains, or has. */
  draining = false;
  readonly #running = new LinkedList<RunningResponse>();
  /** Those that a drain does not wait for. */
  readonly #endless = new LinkedList<RunningResponse>();
  #expired = false;
  #drained: Promise<void> | undefined;

  /** A signal that fires when the caller hangs up before the end of the response, or at the drain's deadline; of an endless one when it begins. */
  abortSignal(response: ServerResponse, { onClosed }: Pick<RequestState, 'onClosed'>, isEndless = false): AbortSignal {
    const running = new RunningResponse();
    const { controller } = running;
    if (this.#expired || (isEndless && this.draining)) controller.abort(SHUTDOWN);
    else if (response.destroyed || response.socket?.destroyed) controller.abort();
    const list = isEndless ? this.#endless : this.#running;
    list.add(running);
    onClosed(() => {
      list.remove(running);
      if (!response.writableFinished) controller.abort();
    });
    return controller.signal;
  }

  /** Not ready at once; running requests finish or are ended at the deadline; resolves when the last socket is closed. */
  drain(server: Server, options: DrainOptions): Promise<void> {
    this.#drained ??= this.#drain(server, options);
    return this.#drained;
  }

  async #drain(server: Server, options: DrainOptions): Promise<void> {
    const { delayMs, deadlineMs, sockets = [], listener = { close: closeOwnPort } } = options;
    this.phase = 'draining';
    this.draining = true;
    for (const { controller } of this.#endless.toArray()) controller.abort(SHUTDOWN);
    if (delayMs > 0) {
      // For connections whose response had no `connection: close`, because it began before.
      server.keepAliveTimeout = Math.min(IDLE_MS, delayMs);
      await new Promise((resolve) => setTimeout(resolve, delayMs));
    }
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
    for (const list of [this.#running, this.#endless])
      for (const { controller } of list.toArray()) controller.abort(SHUTDOWN);
  }
}

/** How often the caller of a response that may go on for ever is looked at again. */
const RECHECK_MS = 2000;

/**
 * The signal of a response that may go on for ever, which fires too, with the error, when its caller would not be let in any more: a key that
 * was revoked or has fewer rights, a session that ended, a person who was blocked.
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
      // A store that does not answer says nothing about the caller.
      if (isGatewayError(error) && (error.status === 401 || error.status === 403)) refused.abort(error);
    }
  };
  const timer = setInterval(() => void recheck(), RECHECK_MS);
  onClosed(() => clearInterval(timer));
  refused.signal.addEventListener('abort', () => clearInterval(timer));
  return AbortSignal.any([signal, refused.signal]);
}

/** What core keeps of a request in Koa's `ctx.state`: routes see it as `RouteState`, the access log reads the rest. */
export class RequestState {
  readonly requestId: string;
  /** The caller's address. */
  readonly ip: string;
  /** The state of the caller's request, for one that the gateway makes to itself in place of that: it has no line in the log of its own. */
  readonly outer: RequestState | undefined;
  /** Whether the request is for a monitor's route (`isProbe`); known before any middleware. */
  isProbe: boolean;
  /** Where the path's dialect has credentials; known before any middleware. */
  places: CredentialPlaces | undefined;
  /** The path as it was sent, and the model that it names, for one that stands for another path. */
  alias: { readonly path: string; readonly model: string | undefined } | undefined;
  /** Method and path of the route, as registered. */
  route: string | undefined;
  /** The plugin whose route it is. */
  plugin: string | undefined;
  /** The client format that errors are written in; OpenAI's unless set. */
  dialect: DialectDefinition | undefined;
  /** What every error at this path ends with; known before any middleware. */
  errorNote: ErrorNote | undefined;
  principal: Principal | undefined;
  /** What the caller named its session. */
  session: string | undefined;
  /** The trace that it belongs to. */
  trace: TraceContext | undefined;
  body: unknown;
  files: readonly UploadedFile[] | undefined;
  /** The memory that is booked for it, until its response is over. */
  hold: Hold | undefined;
  /** Fires when the caller hangs up or the gateway drains. Set once a route was found and its caller let in. */
  signal: AbortSignal | undefined;
  /** The error that was answered. */
  error: GatewayError | undefined;
  /** What the calls made for this request came to. */
  outcomes: { readonly call: Call; readonly outcome: Outcome }[] | undefined;
  /** Sends requests to the gateway itself. */
  inner: { send(request: OwnRequest & { readonly address: string }): Promise<IncomingMessage> } | undefined;
  /** Whether all middleware has run. */
  isServed = false;
  readonly onOutcome: (call: Call, outcome: Outcome) => void;
  /** Runs this at the end of the response, after those that were given before; at once where that has been. */
  readonly onClosed: (listener: () => void) => void;
  /** For the end of the response: runs all who wait for it. What one throws is an uncaught error, as of any listener, and does not keep the others. */
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
      // After those who have a listener of their own.
      if (this.isServed) process.nextTick(release, this);
    };
  }

  send(request: OwnRequest): Promise<IncomingMessage> {
    if (!this.inner) throw new TypeError('this application has no server');
    return this.inner.send({ ...request, address: this.ip });
  }
}

/**
 * Lets go of what is large. What Node and Koa keep of a request can outlive it by some rounds of the garbage collector,
 * and all that hangs on it: bodies and calls that grow old are a tenth of the gateway's time.
 */
function release(state: RequestState): void {
  state.body = undefined;
  state.files = undefined;
  state.outcomes = undefined;
}

/**
 * A path as clients' SDKs mean it: double slashes are one, a slash at the end is none, `%3A` is a colon, and the `/v1` that SDKs put after
 * the provider segment is dropped (`/api/core/openai/v1/models` is `/api/core/openai/models`).
 */
export function normalisePath(path: string): string {
  const plain = path.includes('%3') ? path.replace(/%3a/gi, ':') : path;
  const single = plain.includes('//') ? plain.replace(/\/{2,}/g, '/') : plain;
  const trimmed = single.length > 1 && single.endsWith('/') ? single.slice(0, -1) : single;
  return trimmed.startsWith('/api/core/') ? trimmed.replace(PROVIDER_V1, '$1/') : trimmed;
}

const PROVIDER_V1 = /^(\/api\/core\/[^/]+)\/v1\//;

/**
 * The caller's address: the socket's, or, behind `hops` proxies that are trusted, the entry of `x-forwarded-for` that the
 * outermost of them wrote. What a caller put into that header itself is never taken for its address.
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

/** IPv4, or IPv6 with or without brackets; nothing else gets into a log. */
const ADDRESS = /^[0-9a-fA-F.:[\]]{2,45}$/;
