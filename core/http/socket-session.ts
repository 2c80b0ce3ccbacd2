import { once } from 'node:events';
import type { IncomingMessage, Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { WebSocket } from 'ws';
import { createId } from '../calls/ids.ts';
import type { DialectConnection, DialectDefinition } from '../contract/dialect.ts';
import { GatewayError, toGatewayError } from '../contract/errors.ts';
import { isObject, parseJson } from '../contract/json.ts';
import { createEventReader } from '../upstream/event-reader.ts';
import { postLocally } from './inner-requests.ts';
import { parseBody } from './parse-body.ts';

/** Requests that may wait behind the running one. */
const MAX_WAITING = 4;
/** Messages in a row that are no requests, after which the socket is closed. */
const MAX_BAD = 5;
/** Bytes that may wait in the socket before the response is read no further. */
const MAX_BUFFERED = 1024 * 1024;
/** How long a peer may take nothing, in milliseconds. */
const STUCK_MS = 60_000;
/** How often a full socket is looked at again, in milliseconds. */
const LOOK_MS = 50;

export interface SessionDeps {
  readonly server: Server;
  readonly dialect: DialectDefinition;
  readonly path: string;
  /** The headers of the upgrade that each request repeats; the key among them. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly address: string;
  /** Told when it has nothing to do any more. */
  onIdle(): void;
}

/** One websocket: its requests one after the other, each posted to the gateway's own server, the events as text frames. */
export class SocketSession {
  readonly #socket: WebSocket;
  readonly #deps: SessionDeps;
  readonly #connection: DialectConnection;
  readonly #waiting: string[] = [];
  #running: AbortController | undefined;
  #bad = 0;
  /** Why no further request is taken. */
  #refusal: GatewayError | undefined;

  constructor(socket: WebSocket, deps: SessionDeps, connection: DialectConnection) {
    this.#socket = socket;
    this.#deps = deps;
    this.#connection = connection;
    socket.on('message', (data, isBinary) => this.#onMessage(data, isBinary));
    socket.once('close', () => {
      this.#waiting.length = 0;
      this.#running?.abort();
    });
  }

  get isIdle(): boolean {
    return this.#running === undefined;
  }

  /** Takes no further request; those that wait are refused, the running one may finish. */
  stop(refusal: GatewayError): void {
    this.#refusal = refusal;
    for (const _text of this.#waiting.splice(0)) this.#refuse(refusal);
  }

  /** Tells the client of an error outside of any response. */
  tell(error: GatewayError): void {
    this.#refuse(error);
  }

  #onMessage(data: WebSocket.RawData, isBinary: boolean): void {
    if (isBinary) this.#socket.close(1003, 'text frames only');
    else if (this.#refusal) this.#refuse(this.#refusal);
    else if (this.#waiting.length >= MAX_WAITING) this.#refuse(tooMany());
    else {
      this.#waiting.push(textOf(data));
      if (!this.#running) void this.#work();
    }
  }

  async #work(): Promise<void> {
    for (let text = this.#waiting.shift(); text !== undefined; text = this.#waiting.shift()) {
      const running = new AbortController();
      this.#running = running;
      try {
        await this.#respond(text, running.signal);
      } catch (thrown) {
        if (!running.signal.aborted) this.#refuse(toGatewayError(thrown));
      }
    }
    this.#running = undefined;
    this.#deps.onIdle();
  }

  async #respond(text: string, signal: AbortSignal): Promise<void> {
    const wanted = this.#read(text);
    if (!wanted) return;
    if ('events' in wanted) {
      for (const event of wanted.events) this.#send(event);
      await this.#drained();
      return;
    }
    const { server, path, headers, address } = this.#deps;
    const body = JSON.stringify(wanted.body);
    const response = await postLocally(server, { path, headers, address, body, signal });
    if (response.headers['content-type']?.startsWith('text/event-stream')) await this.#passOn(response);
    else
      this.#send(
        this.#connection.refuse(response.statusCode ?? 500, parseJson(await readText(response)), headersOf(response)),
      );
  }

  /** What a message wants. One that nobody can read is told so, and some in a row end the socket. */
  #read(text: string): ReturnType<DialectConnection['read']> {
    try {
      const message = parseBody(Buffer.from(text), { maxDepth: 64, maxValues: 400_000 });
      if (!isObject(message)) throw new GatewayError('invalid_json', 'A message must be a JSON object.');
      const wanted = this.#connection.read(message);
      this.#bad = 0;
      return wanted;
    } catch (thrown) {
      this.#bad += 1;
      this.#refuse(toGatewayError(thrown));
      if (this.#bad >= MAX_BAD) this.#socket.close(1008, 'too many messages that are no requests');
      return undefined;
    }
  }

  async #passOn(response: IncomingMessage): Promise<void> {
    const reader = createEventReader();
    for await (const bytes of response) {
      for (const event of reader.push(bytes as Buffer)) this.#passEvent(event.data);
      await this.#drained();
    }
    for (const event of reader.end()) this.#passEvent(event.data);
  }

  #passEvent(data: string): void {
    const event = parseJson(data);
    if (isObject(event)) this.#send(this.#connection.event(event));
  }

  /** Waits while the peer takes less than it is sent; one that takes nothing is cut. */
  async #drained(): Promise<void> {
    const until = performance.now() + STUCK_MS;
    while (this.#socket.bufferedAmount > MAX_BUFFERED && this.#socket.readyState === this.#socket.OPEN) {
      if (performance.now() > until) return this.#socket.terminate();
      await sleep(LOOK_MS);
    }
  }

  #refuse(error: GatewayError): void {
    const { body, status = error.status } = this.#deps.dialect.error(error, createId('req_'));
    const { retryAfterMs } = error;
    const headers = retryAfterMs === undefined ? {} : { 'retry-after': String(Math.ceil(retryAfterMs / 1000)) };
    this.#send(this.#connection.refuse(status, body, headers));
    // Refusals wait for nobody: a peer that reads none of them would fill the memory.
    if (this.#socket.bufferedAmount > 2 * MAX_BUFFERED) this.#socket.terminate();
  }

  #send(event: object): void {
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.send(JSON.stringify(event));
  }
}

function tooMany(): GatewayError {
  return new GatewayError('rate_limited', `${MAX_WAITING} requests wait on this websocket already.`, {
    retryAfterMs: 1000,
  });
}

function textOf(data: WebSocket.RawData): string {
  if (Array.isArray(data)) return Buffer.concat(data).toString('utf8');
  return Buffer.isBuffer(data) ? data.toString('utf8') : Buffer.from(data).toString('utf8');
}

async function readText(response: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  response.on('data', (bytes: Buffer) => parts.push(bytes));
  await once(response, 'end');
  return Buffer.concat(parts).toString('utf8');
}

/** What a refusal tells about when to come back. */
function headersOf({ headers }: IncomingMessage): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      typeof value === 'string' && /^(?:retry-after|x-should-retry|x-request-id|x-ratelimit-)/.test(name)
        ? [[name, value]]
        : [],
    ),
  );
}
