import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { requestIdOf } from '../calls/ids.ts';
import type { DialectDefinition } from '../contract/dialect.ts';
import { errorHeaders, type GatewayError } from '../contract/errors.ts';
import { normalisePath } from './paths.ts';

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
