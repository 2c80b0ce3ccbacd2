import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { requestIdOf } from '../calls/ids.ts';
import type { DialectDefinition } from '../contract/dialect.ts';
import { errorHeaders, type GatewayError } from '../contract/errors.ts';
import { normalisePath } from './path-and-address.ts';
import { feedConnection } from './tls.ts';

/** Whether a request asks for a websocket; every other protocol (h2c, which curl offers) may be ignored, as HTTP has it. */
export function isWebsocket({ method, headers: { upgrade } }: IncomingMessage): boolean {
  return method === 'GET' && upgrade?.toLowerCase() === 'websocket';
}

/** Serves a request as if it had asked for no upgrade: its head is read once more without that, then what came behind it. */
export function serveWithoutUpgrade(server: Server, request: IncomingMessage, socket: Duplex, head: Buffer): void {
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

/** Refuses an upgrade with a whole HTTP response, in the format of the dialect whose path it is; returns the status. */
export function refuseUpgrade(
  request: IncomingMessage,
  socket: Duplex,
  error: GatewayError,
  dialect: DialectDefinition | undefined,
): number {
  const requestId = requestIdOf(request.headers['x-request-id']);
  const told = dialect?.error(error, requestId) ?? { body: error.toBody(requestId) };
  const status = told.status ?? error.status;
  const body = `${JSON.stringify(told.body)}\n`;
  const head = {
    ...errorHeaders(error),
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(Buffer.byteLength(body)),
    'x-request-id': requestId,
    connection: 'close',
  };
  const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}`);
  const text = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`, ...lines, '', body].join('\r\n');
  socket.end(text, () => socket.destroy());
  return status;
}

/** The path that is to be upgraded. */
export function pathOf({ url = '/' }: IncomingMessage): string {
  return normalisePath(url.split('?', 1)[0] ?? '/');
}

/** Headers of the upgrade that are about the connection, not about the requests on it. */
const OF_CONNECTION =
  /^(?:connection|upgrade|sec-websocket-.*|content-.*|transfer-encoding|keep-alive|te|trailer|expect|x-request-id|idempotency-key|accept)$/;

/** The headers of an upgrade that each request on the websocket repeats; the credential among them. */
export function headersOfRequests({
  headers,
}: IncomingMessage): Readonly<Record<string, string | string[] | undefined>> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !OF_CONNECTION.test(name)));
}
