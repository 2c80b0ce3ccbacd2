import { createRequire } from 'node:module';
import type { WebSocket, WebSocketServer } from 'ws';
import {
  type DialectDefinition,
  GatewayError,
  type Hold,
  type Log,
  type PluginApi,
  toGatewayError,
  type Upgrade,
} from '../../../contract/index.ts';
import { type DialectSocket, SocketSession } from './socket-session.ts';

const require = createRequire(import.meta.url);

/** Loads the library with the first websocket. */
function loadWs(): typeof import('ws') {
  return require('ws') as typeof import('ws');
}

/** Limits and timeouts of websockets, in milliseconds; `docs/http.md` lists them. */
export const SOCKET_LIMITS = Object.freeze({
  perKey: 16,
  perUser: 64,
  perProcess: 2000,
  pingMs: 30_000,
  idleMs: 10 * 60_000,
  ageMs: 55 * 60_000,
  recheckMs: 5000,
  controlFramesPerSecond: 50,
  /** Maximum per message; each fragment takes about 100 bytes regardless of its payload. */
  fragments: 4096,
});

type SocketLimits = Readonly<Record<keyof typeof SOCKET_LIMITS, number>>;

interface Entry {
  readonly upgrade: Upgrade;
  /** Key under which sockets are counted. */
  readonly key: string;
  /** Memory of the state that the dialect keeps between requests. */
  readonly reservation: Hold;
  readonly socket: WebSocket;
  readonly session: SocketSession;
  readonly endsAt: number;
  idleSince: number;
  unansweredPings: number;
  controlFrames: number;
  /** Close code and reason for after its response. */
  closing: { readonly code: number; readonly reason: string } | undefined;
}

/** Serves a dialect by websocket; open websockets survive a reload. */
export function serveSocket<Body>(
  api: Pick<PluginApi, 'upgrade' | 'keep' | 'log'>,
  dialect: Pick<DialectDefinition<Body>, 'error'>,
  socket: DialectSocket<Body>,
): void {
  const make = (): Websockets => new Websockets({ error: dialect.error, connect: socket.connect, log: api.log });
  const websockets = api.keep('websockets', make, (reservation) => reservation.close());
  api.upgrade(socket.path, (upgrade) => websockets.take(upgrade));
}

interface Deps extends Pick<DialectDefinition, 'error'> {
  readonly connect: DialectSocket['connect'];
  readonly log: Log;
}

/** Websockets of one dialect, with their limits, lifetimes and authorization. */
export class Websockets {
  readonly #deps: Deps;
  readonly #limits: SocketLimits;
  readonly #open = new Set<Entry>();
  /** Created with the first websocket, which defines the maximum message size. */
  #acceptor: WebSocketServer | undefined;
  readonly #timers: readonly NodeJS.Timeout[];

  constructor(deps: Deps, limits: SocketLimits = SOCKET_LIMITS) {
    this.#deps = deps;
    this.#limits = limits;
    this.#timers = [
      setInterval(() => this.#ping(), limits.pingMs).unref(),
      setInterval(() => this.#check(), limits.recheckMs).unref(),
    ];
  }

  /** Throws if the limits allow no further websocket. */
  take(upgrade: Upgrade): void {
    const { keyId, userId } = upgrade.principal;
    const key = keyId ?? userId;
    this.#assertRoom(key, userId);
    this.#acceptor ??= new (loadWs().WebSocketServer)({
      noServer: true,
      perMessageDeflate: false,
      maxPayload: upgrade.maxBytes,
      maxFragments: this.#limits.fragments,
    });
    const { request, stream, head } = upgrade;
    this.#acceptor.handleUpgrade(request, stream, head, (socket) => this.#start(socket, upgrade, key));
  }

  /** Closes idle websockets immediately, others after their response. */
  close(): void {
    for (const timer of this.#timers) clearInterval(timer);
    const off = new GatewayError('upgrade_required', 'Websockets are disabled. Send the request with POST.');
    for (const entry of this.#open) end(entry, 1012, 'websockets are disabled', off);
    this.#acceptor?.close();
  }

  #assertRoom(key: string, userId: string): void {
    const { perKey, perUser, perProcess } = this.#limits;
    const retryAfterMs = 5000;
    if ([...this.#open].filter((entry) => entry.key === key).length >= perKey)
      throw new GatewayError('rate_limited', `Limit of ${perKey} websockets per key reached. Close one or reuse it.`, {
        retryAfterMs,
      });
    if ([...this.#open].filter((entry) => entry.upgrade.principal.userId === userId).length >= perUser)
      throw new GatewayError(
        'rate_limited',
        `Limit of ${perUser} websockets per user reached. Close one or reuse it.`,
        {
          retryAfterMs,
        },
      );
    if (this.#open.size >= perProcess)
      throw new GatewayError('overloaded', 'Websocket limit of the gateway reached. Try again later.', {
        retryAfterMs,
      });
  }

  #start(socket: WebSocket, upgrade: Upgrade, key: string): void {
    const { path, address: ip, memory, signal } = upgrade;
    const { error, connect, log } = this.#deps;
    const reservation = memory.book();
    const connection = connect({ resize: (jsonBytes) => resize(reservation, jsonBytes * memory.heapPerByte) });
    const onIdle = (): void => {
      entry.idleSince = Date.now();
      if (entry.closing) socket.close(entry.closing.code, entry.closing.reason);
    };
    const session = new SocketSession(socket, { upgrade, error, onIdle }, connection);
    // Varied by up to a tenth, so that sockets opened together do not end together.
    const endsAt = Date.now() + this.#limits.ageMs * (0.9 + Math.random() / 10);
    const entry: Entry = {
      upgrade,
      key,
      reservation,
      socket,
      session,
      endsAt,
      idleSince: Date.now(),
      unansweredPings: 0,
      controlFrames: 0,
      closing: undefined,
    };
    const drain = (): void => end(entry, 1001, 'shutting down', toGatewayError(signal.reason));
    this.#open.add(entry);
    log.info({ path, ip, key }, 'websocket opened');
    for (const name of ['ping', 'pong'] as const) socket.on(name, () => this.#onControl(entry));
    // For an invalid frame, the library itself closes with the right code.
    socket.on('error', () => {});
    socket.once('close', (code) => {
      signal.removeEventListener('abort', drain);
      this.#open.delete(entry);
      reservation.release();
      log.info({ path, ip, key, code }, 'websocket closed');
    });
    signal.addEventListener('abort', drain, { once: true });
    if (signal.aborted) drain();
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
      // No pong can arrive while reading is paused.
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

  /** Ends the socket if its key was revoked, or the new configuration has no websocket. */
  async #recheck(entry: Entry): Promise<void> {
    try {
      await entry.upgrade.recheck();
    } catch (thrown) {
      const error = toGatewayError(thrown);
      if (error.code === 'upgrade_required') end(entry, 1012, 'websockets are disabled', error);
      // An unavailable store does not invalidate the key.
      else if (error.status === 401 || error.status === 403) end(entry, 1008, error.code, error);
    }
  }
}

/** Resizes the reservation; returns false, without a change, if it does not fit. */
function resize(hold: Hold, heapBytes: number): boolean {
  try {
    hold.resize(heapBytes);
    return true;
  } catch {
    return false;
  }
}

/** Ends a socket now, or after its running response. */
function end(entry: Entry, code: number, reason: string, refusal: GatewayError): void {
  if (entry.closing) return;
  entry.closing = { code, reason };
  entry.session.stop(refusal);
  if (entry.session.isIdle) entry.socket.close(code, reason);
}

function endByAge(entry: Entry): void {
  const error = new GatewayError('invalid_request', 'websocket_connection_limit_reached: open a new websocket.');
  if (!entry.closing && entry.session.isIdle) entry.session.tell(error);
  end(entry, 1000, 'maximum age reached', error);
}
