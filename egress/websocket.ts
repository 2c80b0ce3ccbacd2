import { createRequire } from 'node:module';
import type { RawData, WebSocket } from 'ws';
import type { SentBy } from '../contract/operation.ts';
import type { CredentialRequest, Endpoint, ResponseHeaders } from '../contract/provider.ts';
import type { Attempt, Source } from './attempt.ts';
import { agentsOf } from './way.ts';

const require = createRequire(import.meta.url);

/** Loaded with the first websocket. */
function loadWs(): typeof import('ws') {
  return require('ws') as typeof import('ws');
}

/** Upgrade request, with the headers of its endpoint and its key. */
interface WebsocketRequest extends Omit<CredentialRequest, 'url'> {
  readonly origin: string;
  readonly path: string;
}

/** Maximum unread bytes before reading from the vendor pauses. */
const MAX_WAITING_BYTES = 1024 * 1024;

/** Ping interval; a vendor without a response until the next ping is disconnected. */
const PING_MS = 30_000;

/** Time limit for the vendor to close its side. */
const CLOSE_MS = 2000;

/**
 * Opens a websocket as an attempt. Its head is that of the upgrade, its body the text frames, one per chunk. A rejection is an
 * ordinary response.
 */
export async function openWebsocket(
  { credential, proxyRoute }: Endpoint,
  request: WebsocketRequest,
  bounds: NonNullable<SentBy['websocket']>,
  attempt: Attempt,
): Promise<void> {
  try {
    const made = await credential?.headers?.({ ...request, url: request.origin + request.path });
    if (!attempt.error) connect({ ...request, headers: { ...request.headers, ...made } }, proxyRoute, bounds, attempt);
  } catch (error) {
    attempt.refuse(error);
  }
}

function connect(
  { origin, path, headers }: WebsocketRequest,
  proxyRoute: Endpoint['proxyRoute'],
  { maxMessageBytes }: NonNullable<SentBy['websocket']>,
  attempt: Attempt,
): void {
  const agent = agentsOf(proxyRoute)?.[origin.startsWith('https:') ? 'https' : 'http'];
  const socket = new (loadWs().WebSocket)(origin.replace(/^http/, 'ws') + path, {
    headers,
    maxPayload: maxMessageBytes,
    perMessageDeflate: false,
    followRedirects: false,
    ...(agent && { agent }),
  });
  const source = new SocketSource(socket);
  attempt.source = source;
  const { connectMs, firstByteMs } = attempt.timeouts;
  const timer = setTimeout(() => attempt.expire('firstByte'), connectMs + firstByteMs).unref();
  let head: ResponseHeaders = {};
  socket.on('upgrade', (response) => {
    head = textsOf(response.headers);
  });
  socket.on('open', () => {
    clearTimeout(timer);
    attempt.socket = source;
    attempt.open(101, head);
  });
  socket.on('unexpected-response', (_request, response) => {
    clearTimeout(timer);
    const parts = response[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
    attempt.source = {
      isSent: () => true,
      read: async () => (await parts.next()).value as Buffer | undefined,
      stop: () => void response.destroy(),
    };
    attempt.open(response.statusCode ?? 0, textsOf(response.headers));
  });
  socket.on('error', (error) => {
    clearTimeout(timer);
    if (source.isOpen) source.end(error);
    else attempt.explain(error, 'connect');
  });
}

function textsOf(headers: Readonly<Record<string, string | string[] | undefined>>): ResponseHeaders {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value && String(value)]));
}

/** Frames of a websocket with back pressure. */
class SocketSource implements Source {
  isOpen = false;
  readonly #socket: WebSocket;
  readonly #frames: Buffer[] = [];
  #waitingBytes = 0;
  #error: Error | undefined;
  #isOver = false;
  #wake: (() => void) | undefined;
  #isAlive = true;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('open', () => {
      this.isOpen = true;
      const timer = setInterval(() => this.#ping(), PING_MS).unref();
      socket.once('close', () => clearInterval(timer));
    });
    socket.on('pong', () => {
      this.#isAlive = true;
    });
    socket.on('message', (data, isBinary) => (isBinary ? this.end(new Error(NO_TEXT)) : this.#take(data)));
    socket.on('close', (code) => this.end(code === 1000 ? undefined : new Error(`it closed the websocket (${code})`)));
  }

  isSent(): boolean {
    return this.isOpen;
  }

  read(): Buffer | undefined | Promise<Buffer | undefined> {
    const frame = this.#frames.shift();
    if (frame) {
      this.#waitingBytes -= frame.length;
      if (this.#socket.isPaused && this.#waitingBytes <= MAX_WAITING_BYTES) {
        // Pending frames, including pongs, are read only from now on.
        this.#isAlive = true;
        this.#socket.resume();
      }
      return frame;
    }
    if (this.#error) throw this.#error;
    if (this.#isOver) return undefined;
    return new Promise<void>((resolve) => {
      this.#wake = resolve;
    }).then(() => this.read());
  }

  /** Resolves when the frame is written to the connection. */
  send(text: string): Promise<void> {
    return new Promise((resolve, reject) => this.#socket.send(text, (error) => (error ? reject(error) : resolve())));
  }

  /** Ends the source: no further frames arrive. */
  end(error?: Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#error = error;
    this.#wake?.();
    this.#close();
  }

  stop(): void {
    this.end(new Error('it was closed here'));
  }

  #ping(): void {
    if (this.#isOver || this.#socket.isPaused) return;
    if (this.#isAlive) this.#socket.ping();
    else this.end(new Error('it no longer responds'));
    this.#isAlive = false;
  }

  #close(): void {
    if (!this.isOpen) {
      this.#socket.terminate();
      return;
    }
    this.#socket.resume();
    this.#socket.close(1000);
    setTimeout(() => this.#socket.terminate(), CLOSE_MS).unref();
  }

  #take(data: RawData): void {
    if (this.#isOver) return;
    const frame = Buffer.isBuffer(data)
      ? data
      : Buffer.concat([data].flat().map((part) => Buffer.from(part as Buffer)));
    this.#isAlive = true;
    this.#frames.push(frame);
    this.#waitingBytes += frame.length;
    if (this.#waitingBytes > MAX_WAITING_BYTES) this.#socket.pause();
    this.#wake?.();
  }
}

const NO_TEXT = 'it sent a binary frame';
