/**
 * Upstream that sends exactly the given bytes at the given time, for failures that no correct server produces. It uses
 * raw TCP, and parses requests only to record them and to detect their end.
 */
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import tls from 'node:tls';

export interface RecordedRequest {
  readonly method: string;
  readonly path: string;
  /** Names in lower case; a repeated name has its last value. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** Number of the connection, and of the request on that connection, both from 0. */
  readonly connection: number;
  readonly nth: number;
  /** Resolves when the connection is closed by either side. */
  readonly closed: Promise<void>;
  json(): unknown;
}

/** Operations of a script on a request's connection. */
export interface Wire {
  readonly request: RecordedRequest;
  /** Sends bytes; resolves when the kernel has accepted them, or the connection is closed. */
  send(bytes: string | Uint8Array): Promise<void>;
  pause(ms: number): Promise<void>;
  /** Sends FIN. */
  end(): void;
  /** Sends RST. */
  reset(): void;
  /** Waits until the other side has closed. */
  hang(): Promise<void>;
  readonly isGone: boolean;
}

export type Script = (wire: Wire) => unknown;

export interface ScriptedUpstream {
  /** URL such as `http://127.0.0.1:40123`. */
  readonly url: string;
  readonly port: number;
  readonly requests: readonly RecordedRequest[];
  /** Connections accepted so far, and those open now. */
  readonly connections: { readonly total: number; readonly open: number };
  /** Sets the scripts of the next requests. They are used in order; the last one repeats. */
  script(...scripts: readonly (Script | string | Uint8Array)[]): void;
  /** Resolves with the n-th request (from 0) once it has arrived completely. */
  request(n: number): Promise<RecordedRequest>;
  close(): Promise<void>;
}

export interface ScriptedOptions {
  /** Runs for each connection before any data is read; return false to ignore the connection from then on. */
  readonly onConnection?: (socket: net.Socket) => boolean | undefined;
  /** Creates the server; for TLS. */
  readonly createServer?: (onConnection: (socket: net.Socket) => void) => net.Server;
  /** Starts a script as soon as the head is complete, without waiting for the body. */
  readonly eager?: boolean;
  /** Port to listen on. Default: any free port. */
  readonly port?: number;
}

export async function startScriptedUpstream(
  first?: Script | string | Uint8Array,
  options: ScriptedOptions = {},
): Promise<ScriptedUpstream> {
  const requests: RecordedRequest[] = [];
  const arrivals: (() => void)[] = [];
  const sockets = new Set<net.Socket>();
  let scripts: readonly (Script | string | Uint8Array)[] = first === undefined ? [] : [first];
  let total = 0;

  const create = options.createServer ?? net.createServer;
  const server = create((socket) => {
    const connection = total++;
    sockets.add(socket);
    let nth = 0;
    let pending = Buffer.alloc(0);
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    socket.setNoDelay(true);
    if (options.onConnection?.(socket) === false) return;
    socket.on('data', (bytes) => {
      pending = Buffer.concat([pending, bytes]);
      for (let found = parseRequest(pending, options.eager); found; found = parseRequest(pending, options.eager)) {
        pending = pending.subarray(found.size);
        const { body } = found;
        const request: RecordedRequest = {
          ...found,
          connection,
          nth: nth++,
          closed,
          json: () => JSON.parse(body.toString()) as unknown,
        };
        requests.push(request);
        for (const arrived of arrivals.splice(0)) arrived();
        void run(request, socket, closed);
      }
    });
  });

  async function run(request: RecordedRequest, socket: net.Socket, closed: Promise<void>): Promise<void> {
    const [script, ...later] = scripts;
    if (later.length > 0) scripts = later;
    const wire: Wire = {
      request,
      send: (bytes) => new Promise((resolve) => (socket.destroyed ? resolve() : socket.write(bytes, () => resolve()))),
      pause: (ms) => sleep(ms),
      end: () => void socket.end(),
      // TLS sockets cannot send RST; closing without a TLS alert is equally abrupt.
      reset: () => void (socket instanceof tls.TLSSocket ? socket.destroy() : socket.resetAndDestroy()),
      hang: () => closed,
      get isGone() {
        return socket.destroyed;
      },
    };
    if (script === undefined) await wire.hang();
    else if (typeof script === 'function') await script(wire);
    else await wire.send(script);
  }

  await new Promise<void>((resolve) => server.listen(options.port ?? 0, '127.0.0.1', resolve));
  const { port } = server.address() as net.AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    requests,
    connections: {
      get total() {
        return total;
      },
      get open() {
        return sockets.size;
      },
    },
    script(...next) {
      scripts = next;
    },
    async request(n) {
      while (requests.length <= n) await new Promise<void>((resolve) => arrivals.push(resolve));
      return requests[n]!;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

/** Complete response with its content-length. A body that is not text or bytes is sent as JSON. */
export function respondWith(
  status: number,
  body: unknown = '',
  headers: Readonly<Record<string, string>> = {},
): Buffer {
  const isPlain = typeof body === 'string' || body instanceof Uint8Array;
  const bytes = Buffer.from(isPlain ? body : JSON.stringify(body));
  const type = typeof body === 'string' ? 'text/plain' : 'application/json';
  const all = { 'content-type': type, 'content-length': String(bytes.length), ...headers };
  return Buffer.concat([Buffer.from(head(status, all)), bytes]);
}

/** Head of a response, with its blank line. */
export function head(status: number, headers: Readonly<Record<string, string>> = {}): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} Scripted\r\n${lines.join('')}\r\n`;
}

/** Head of an event stream in chunks. */
export const SSE_HEAD = head(200, { 'content-type': 'text/event-stream', 'transfer-encoding': 'chunked' });

/** Piece of a chunked body. */
export function chunk(bytes: string | Uint8Array): Buffer {
  const body = Buffer.from(bytes);
  return Buffer.concat([Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from('\r\n')]);
}

export const LAST_CHUNK = '0\r\n\r\n';

/** Event stream: each text is the data of one event in a separate chunk; then the end. */
export function sse(...data: readonly (string | object)[]): Script {
  return async (wire) => {
    await wire.send(SSE_HEAD);
    for (const item of data) await wire.send(dataChunk(item));
    await wire.send(LAST_CHUNK);
  };
}

/** Event stream that waits after its first event until `finish` is called; then the others and the end follow. */
export function heldSse(first: string | object, ...others: readonly (string | object)[]) {
  let finish = (): void => {};
  const reported = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const script: Script = async (wire) => {
    await wire.send(SSE_HEAD);
    await wire.send(dataChunk(first));
    await reported;
    for (const item of others) await wire.send(dataChunk(item));
    await wire.send(LAST_CHUNK);
  };
  return { script, finish };
}

function dataChunk(item: string | object): Buffer {
  return chunk(`data: ${typeof item === 'string' ? item : JSON.stringify(item)}\n\n`);
}

interface ParsedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: Buffer;
  readonly size: number;
}

function parseRequest(bytes: Buffer, eager = false): ParsedRequest | undefined {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const [first = '', ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n');
  const [method = '', path = ''] = first.split(' ');
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(':');
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
  }
  const start = end + 4;
  const length = Number(headers['content-length'] ?? 0);
  if (eager) return { method, path, headers, body: Buffer.alloc(0), size: bytes.length };
  if (bytes.length < start + length) return undefined;
  return { method, path, headers, body: bytes.subarray(start, start + length), size: start + length };
}
