import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { shuttingDown } from '../calls/run-call.ts';
import type { Principal } from '../contract/call.ts';
import type { DialectConnection, DialectDefinition, DialectSocket } from '../contract/dialect.ts';
import { GatewayError, toGatewayError } from '../contract/errors.ts';
import type { Log } from '../contract/plugin.ts';
import { HEAP_PER_BYTE, type Hold, type Memory, ownerOf } from './memory.ts';
import { clientAddress } from './request-state.ts';
import { headersOfRequests, isWebsocket, pathOf, refuseUpgrade, serveWithoutUpgrade } from './server.ts';
import { SocketSession } from './socket-session.ts';

/** What the generation that serves now says about websockets. */
export interface SocketRules {
  /** The dialect whose path this is, and its websocket unless that is switched off. */
  find(path: string): { readonly dialect: DialectDefinition; readonly socket: DialectSocket | undefined } | undefined;
  /** Who opens it; throws a 401 or 403. */
  authenticate(request: IncomingMessage, address: string): Promise<Principal>;
  readonly origins: readonly string[];
  readonly trustProxy: number;
}

export interface SocketDeps {
  readonly server: Server;
  readonly log: Log;
  readonly memory: Memory;
  readonly maxMessageBytes: number;
  rules(): SocketRules;
  isDraining(): boolean;
}

/** The bounds and clocks of websockets, in milliseconds where they are times; `docs/http.md` lists them. */
export const SOCKET_LIMITS = Object.freeze({
  perKey: 16,
  perUser: 64,
  perProcess: 2000,
  pingMs: 30_000,
  idleMs: 10 * 60_000,
  ageMs: 55 * 60_000,
  recheckMs: 5000,
  controlFramesPerSecond: 50,
  /** Of one message; each takes some 100 bytes however little it carries. */
  fragments: 4096,
});

type SocketLimits = Readonly<Record<keyof typeof SOCKET_LIMITS, number>>;

/** Who may open a websocket, and where. */
interface Admitted {
  readonly dialect: DialectDefinition;
  readonly connection: DialectConnection;
  readonly address: string;
  /** What sockets are counted under, and the user whose key it is. */
  readonly key: string;
  readonly userId: string;
  /** Whose memory messages need. */
  readonly owner: string;
  /** What the dialect keeps from one request to the next. */
  readonly kept: Hold;
  readonly path: string;
}

/** An open websocket. */
interface Entry extends Omit<Admitted, 'dialect' | 'connection' | 'owner'> {
  readonly socket: WebSocket;
  readonly session: SocketSession;
  readonly request: IncomingMessage;
  readonly endsAt: number;
  idleSince: number;
  unansweredPings: number;
  controlFrames: number;
  /** How it closes once its response is over. */
  closing: { readonly code: number; readonly reason: string } | undefined;
}

/** Serves the websockets of dialects on a server's `upgrade` event. Every other upgrade gets a whole HTTP response. */
export class Websockets {
  readonly #deps: SocketDeps;
  readonly #limits: SocketLimits;
  readonly #open = new Set<Entry>();
  readonly #acceptor: WebSocketServer;
  readonly #timers: readonly NodeJS.Timeout[];

  constructor(deps: SocketDeps, limits: SocketLimits = SOCKET_LIMITS) {
    this.#deps = deps;
    this.#limits = limits;
    this.#acceptor = new WebSocketServer({
      noServer: true,
      perMessageDeflate: false,
      maxPayload: deps.maxMessageBytes,
      maxFragments: limits.fragments,
    });
    this.#timers = [
      setInterval(() => this.#ping(), limits.pingMs).unref(),
      setInterval(() => this.#check(), limits.recheckMs).unref(),
    ];
    deps.server.on('upgrade', this.#onUpgrade);
  }

  /** Idle sockets close at once, others when their response is over. */
  drain(): void {
    for (const entry of this.#open) end(entry, 1001, 'shutting down', shuttingDown());
  }

  /** Cuts what is left. */
  close(): void {
    this.#deps.server.off('upgrade', this.#onUpgrade);
    for (const timer of this.#timers) clearInterval(timer);
    for (const { socket } of this.#open) socket.terminate();
    this.#acceptor.close();
  }

  readonly #onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    if (!isWebsocket(request)) {
      serveWithoutUpgrade(this.#deps.server, request, socket, head);
      return;
    }
    socket.on('error', () => socket.destroy());
    void this.#admit(request).then(
      (admitted) =>
        this.#acceptor.handleUpgrade(request, socket, head, (opened) => this.#start(opened, request, socket, admitted)),
      (thrown: unknown) => this.#refuse(request, socket, toGatewayError(thrown)),
    );
  };

  /** Everything that can be wrong with an upgrade, in the order of the documentation. */
  async #admit(request: IncomingMessage): Promise<Admitted> {
    const { find, authenticate, origins, trustProxy } = this.#deps.rules();
    const path = pathOf(request);
    const { dialect, socket } = find(path) ?? {};
    if (!dialect) throw new GatewayError('unknown_url', `There is no websocket at ${path.slice(0, 200)}.`);
    if (!socket) throw switchedOff();
    if (this.#deps.isDraining()) throw shuttingDown();
    const { origin } = request.headers;
    if (origin !== undefined && !origins.includes('*') && !origins.includes(origin))
      throw new GatewayError('permission_denied', 'Pages of this origin may not connect; see `server.cors.origins`.');
    const address = clientAddress(request, trustProxy);
    const principal = await authenticate(request, address);
    const { keyId, userId } = principal;
    const key = keyId ?? userId;
    this.#assertRoom(key, userId);
    const owner = ownerOf(principal);
    const kept = this.#deps.memory.book(owner);
    const connection = socket.connect({ resize: (jsonBytes) => resize(kept, jsonBytes * HEAP_PER_BYTE) });
    return { dialect, connection, address, key, userId, owner, kept, path };
  }

  #refuse(request: IncomingMessage, socket: Duplex, error: GatewayError): void {
    const path = pathOf(request);
    const status = refuseUpgrade(request, socket, error, this.#deps.rules().find(path)?.dialect);
    this.#deps.log.info({ path: path.slice(0, 200), status, error: error.code }, 'websocket refused');
  }

  #assertRoom(key: string, userId: string): void {
    const { perKey, perUser, perProcess } = this.#limits;
    const retryAfterMs = 5000;
    if ([...this.#open].filter((entry) => entry.key === key).length >= perKey)
      throw new GatewayError('rate_limited', `This key has ${perKey} websockets open, the most it may.`, {
        retryAfterMs,
      });
    if ([...this.#open].filter((entry) => entry.userId === userId).length >= perUser)
      throw new GatewayError('rate_limited', `This user has ${perUser} websockets open, the most one may.`, {
        retryAfterMs,
      });
    if (this.#open.size >= perProcess)
      throw new GatewayError('overloaded', 'The gateway has as many websockets as it takes.', { retryAfterMs });
  }

  #start(socket: WebSocket, request: IncomingMessage, stream: Duplex, admitted: Admitted): void {
    const { dialect, connection, address, key, userId, owner, kept, path } = admitted;
    const { server, log, memory } = this.#deps;
    const onIdle = (): void => {
      entry.idleSince = Date.now();
      if (entry.closing) socket.close(entry.closing.code, entry.closing.reason);
    };
    const session = new SocketSession(
      socket,
      { ...{ server, stream, memory, owner, dialect, path, address, onIdle }, headers: headersOfRequests(request) },
      connection,
    );
    // Apart by up to a tenth, so that sockets that opened together do not end together.
    const endsAt = Date.now() + this.#limits.ageMs * (0.9 + Math.random() / 10);
    const entry: Entry = {
      ...{ socket, session, request, address, key, userId, kept, path, endsAt },
      ...{ idleSince: Date.now(), unansweredPings: 0, controlFrames: 0, closing: undefined },
    };
    this.#open.add(entry);
    log.info({ path, ip: address, key }, 'websocket opened');
    for (const name of ['ping', 'pong'] as const) socket.on(name, () => this.#onControl(entry));
    // A bad frame: the library closes with the right code itself.
    socket.on('error', () => {});
    socket.once('close', (code) => {
      this.#open.delete(entry);
      kept.release();
      log.info({ path, ip: address, key, code }, 'websocket closed');
    });
  }

  #onControl(entry: Entry): void {
    const { controlFramesPerSecond, recheckMs } = this.#limits;
    entry.unansweredPings = 0;
    entry.controlFrames += 1;
    if (entry.controlFrames > (controlFramesPerSecond * recheckMs) / 1000)
      entry.socket.close(1008, 'too many control frames');
  }

  #ping(): void {
    for (const entry of this.#open) {
      // Of one that is not read for now, no answer can come.
      if (entry.socket.isPaused) entry.unansweredPings = 0;
      else if (entry.unansweredPings >= 2) entry.socket.terminate();
      entry.unansweredPings += 1;
      entry.socket.ping();
    }
  }

  #check(): void {
    const now = Date.now();
    for (const entry of this.#open) {
      entry.controlFrames = 0;
      if (now > entry.endsAt) endByAge(entry);
      else if (entry.session.isIdle && now - entry.idleSince > this.#limits.idleMs) entry.socket.close(1000, 'idle');
      else void this.#recheck(entry);
    }
  }

  /** A key that was revoked, or a configuration that has no websocket any more, ends the socket. */
  async #recheck(entry: Entry): Promise<void> {
    const { find, authenticate } = this.#deps.rules();
    if (!find(entry.path)?.socket) return end(entry, 1012, 'websockets are off', switchedOff());
    try {
      await authenticate(entry.request, entry.address);
    } catch (thrown) {
      const error = toGatewayError(thrown);
      // A store that does not answer says nothing about the key.
      if (error.status === 401 || error.status === 403) end(entry, 1008, error.code, error);
    }
  }
}

/** Books so much in place of what was booked before; false, and as before, where there is no room. */
function resize(hold: Hold, heapBytes: number): boolean {
  try {
    hold.resize(heapBytes);
    return true;
  } catch {
    return false;
  }
}

function switchedOff(): GatewayError {
  return new GatewayError('upgrade_required', 'This path takes no websocket here; send the request with POST.', {
    headers: { upgrade: 'websocket' },
  });
}

/** Ends a socket now, or when its running response is over. */
function end(entry: Entry, code: number, reason: string, refusal: GatewayError): void {
  if (entry.closing) return;
  entry.closing = { code, reason };
  entry.session.stop(refusal);
  if (entry.session.isIdle) entry.socket.close(code, reason);
}

function endByAge(entry: Entry): void {
  const error = new GatewayError('invalid_request', 'websocket_connection_limit_reached: open a new websocket.');
  if (!entry.closing && entry.session.isIdle) entry.session.tell(error);
  end(entry, 1000, 'as old as it may get', error);
}
