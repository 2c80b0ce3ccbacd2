import { setMaxListeners } from 'node:events';
import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Principal } from '../../contract/call.ts';
import type { DialectDefinition } from '../../contract/dialect.ts';
import { errorHeaders, GatewayError, toGatewayError } from '../../contract/errors.ts';
import type { Log } from '../../contract/plugin.ts';
import type { CallerMemory, UpgradeHandler } from '../../contract/route.ts';
import { requestIdOf } from '../calls/ids.ts';
import { shuttingDown } from '../calls/run-call.ts';
import { takeProtocolKey } from './authenticate.ts';
import { endWithResponse } from './error-answer.ts';
import { feedConnection, postLocally } from './inner-requests.ts';
import { clientAddress } from './lifecycle.ts';
import { HEAP_PER_BYTE, type Memory, ownerOf } from './memory.ts';
import { BODY_BOUNDS, parseBody } from './read-body.ts';
import { cutBasePath, outsideError } from './server.ts';

/** Upgrade rules of the current generation. */
export interface UpgradeRules {
  /** Returns the normalized path, its dialect and its websocket handler; the last two are undefined for an unknown path. */
  find(sent: string): {
    readonly path: string;
    readonly dialect?: DialectDefinition | undefined;
    readonly handler?: UpgradeHandler | undefined;
    readonly keyProtocol?: string | undefined;
  };
  /** Authenticates the caller; throws a 401 or 403. */
  authenticate(request: IncomingMessage, address: string): Promise<Principal>;
  readonly origins: readonly string[];
  readonly trustProxy: number;
}

interface UpgradeDeps {
  readonly server: Server;
  /** Path prefix of requests; empty for none. */
  readonly basePath: string;
  readonly log: Log;
  readonly memory: Memory;
  readonly maxMessageBytes: number;
  rules(): UpgradeRules;
  isDraining(): boolean;
}

/** Passes websockets to their plugins on a server's `upgrade` event. Every other upgrade gets a non-streaming HTTP response. */
export class Upgrades {
  readonly #deps: UpgradeDeps;
  readonly #open = new Set<Duplex>();
  readonly #drain = new AbortController();

  constructor(deps: UpgradeDeps) {
    this.#deps = deps;
    // One listener per connection.
    setMaxListeners(0, this.#drain.signal);
    deps.server.on('upgrade', this.#onUpgrade);
  }

  /** Notifies open websockets of the shutdown. */
  drain(): void {
    this.#drain.abort(shuttingDown());
  }

  /** Closes the remaining connections. */
  close(): void {
    this.#deps.server.off('upgrade', this.#onUpgrade);
    for (const stream of this.#open) stream.destroy();
  }

  readonly #onUpgrade = (request: IncomingMessage, stream: Duplex, head: Buffer): void => {
    if (!isWebsocket(request)) {
      serveWithoutUpgrade(this.#deps.server, request, stream, head);
      return;
    }
    stream.on('error', () => stream.destroy());
    this.#open.add(stream);
    stream.once('close', () => this.#open.delete(stream));
    this.#give(request, stream, head).catch((thrown: unknown) => this.#refuse(request, stream, toGatewayError(thrown)));
  };

  /** Checks an upgrade in the documented order and passes it to its handler. */
  async #give(request: IncomingMessage, stream: Duplex, head: Buffer): Promise<void> {
    const { server, basePath, memory, maxMessageBytes: maxBytes } = this.#deps;
    if (!cutBasePath(request, basePath)) throw outsideError(basePath);
    const { find, origins, trustProxy, authenticate } = this.#deps.rules();
    const { path, dialect, handler, keyProtocol } = find(pathOf(request));
    if (keyProtocol !== undefined) takeProtocolKey(request, keyProtocol);
    if (!dialect && !handler) throw new GatewayError('unknown_url', `${path.slice(0, 200)} is not a websocket.`);
    if (!handler) throw switchedOff();
    if (this.#deps.isDraining()) throw shuttingDown();
    const { origin } = request.headers;
    if (origin !== undefined && !origins.includes('*') && !origins.includes(origin))
      throw new GatewayError('permission_denied', 'Pages of this origin may not connect; see `server.cors.origins`.');
    const address = clientAddress(request, trustProxy);
    const principal = await authenticate(request, address);
    const headers = headersOfRequests(request);
    await handler({
      request,
      path,
      address,
      principal,
      stream,
      head,
      maxBytes,
      signal: this.#drain.signal,
      memory: memoryOf(memory, principal),
      recheck: () => this.#recheck(request, path, address),
      // Headers as sent: below some paths, others contain credentials.
      post: (body, signal) => postLocally(server, { path: basePath + pathOf(request), headers, address, body, signal }),
    });
  }

  /** Rejects after a key was revoked, or after the configuration removed the websocket path. */
  async #recheck(request: IncomingMessage, path: string, address: string): Promise<void> {
    const { find, authenticate } = this.#deps.rules();
    if (!find(path).handler) throw switchedOff();
    await authenticate(request, address);
  }

  #refuse(request: IncomingMessage, stream: Duplex, error: GatewayError): void {
    const { path, dialect } = this.#deps.rules().find(pathOf(request));
    const status = refuseUpgrade(request, stream, error, dialect);
    this.#deps.log.info({ path: path.slice(0, 200), status, error: error.code }, 'websocket rejected');
  }
}

/** Returns the memory accounting of one caller. */
function memoryOf(memory: Memory, principal: Principal): CallerMemory {
  const owner = ownerOf(principal);
  return {
    heapPerByte: HEAP_PER_BYTE,
    book: (heapBytes) => memory.book(owner, heapBytes),
    parse(text, reserve) {
      const parse = (): unknown => parseBody(Buffer.from(text), BODY_BOUNDS, reserve);
      const inTurn = (): unknown => {
        const turn = memory.turn(text.length, { owner });
        return turn ? turn.then(parse) : parse();
      };
      const line = memory.join(owner);
      return line ? line.then(inTurn) : inTurn();
    },
    watchRate: memory.watchRate,
  };
}

function switchedOff(): GatewayError {
  return new GatewayError('upgrade_required', 'Websockets are disabled. Send the request with POST.', {
    headers: { upgrade: 'websocket' },
  });
}

/** Returns whether a request opens a websocket. HTTP allows other protocols (h2c, which curl offers) to be ignored. */
function isWebsocket({ method, headers: { upgrade } }: IncomingMessage): boolean {
  return method === 'GET' && upgrade?.toLowerCase() === 'websocket';
}

/** Serves a request without its upgrade: parses its head again without the upgrade headers, then the following bytes. */
function serveWithoutUpgrade(server: Server, request: IncomingMessage, socket: Duplex, head: Buffer): void {
  const { method, url, httpVersion, rawHeaders } = request;
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const [name, value] = [rawHeaders[at] ?? '', rawHeaders[at + 1] ?? ''];
    if (/^(?:upgrade|http2-settings)$/i.test(name)) continue;
    const isConnection = /^connection$/i.test(name);
    lines.push(`${name}: ${isConnection ? value.replace(/\b(?:upgrade|http2-settings)\b/gi, 'keep-alive') : value}`);
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]));
  feedConnection(server, socket);
}

/** Rejects an upgrade with a complete HTTP response in the format of the path's dialect; returns the status. */
function refuseUpgrade(
  request: IncomingMessage,
  socket: Duplex,
  error: GatewayError,
  dialect: DialectDefinition | undefined,
): number {
  const requestId = requestIdOf(request.headers['x-request-id']);
  const reported = dialect?.error(error, requestId) ?? { body: error.toBody(requestId) };
  const status = reported.status ?? error.status;
  endWithResponse(socket, requestId, status, reported.body, errorHeaders(error));
  return status;
}

/** Returns the path of an upgrade. */
function pathOf({ url = '/' }: IncomingMessage): string {
  return url.split('?', 1)[0] ?? '/';
}

/** Headers of the connection, which do not apply to its requests. */
const OF_CONNECTION =
  /^(?:connection|upgrade|sec-websocket-.*|content-.*|transfer-encoding|keep-alive|te|trailer|expect|x-request-id|idempotency-key|accept)$/;

/** Returns the headers of an upgrade that each request on the websocket repeats, including the credential. */
function headersOfRequests({ headers }: IncomingMessage): Readonly<Record<string, string | string[] | undefined>> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !OF_CONNECTION.test(name)));
}
