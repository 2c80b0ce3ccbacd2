/** Clients of an HTTPS gateway whose certificate only the test trusts. */
import http, { type IncomingHttpHeaders } from 'node:http';
import https from 'node:https';
import tls from 'node:tls';
import type { Certificate } from '../identity/self-signed.ts';

export interface TlsClientOptions extends tls.ConnectionOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly agent?: https.Agent;
}

export interface TlsResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** Serial number of the gateway's certificate. */
  readonly serial: string;
  /** Identifies the connection. */
  readonly localPort: number | undefined;
}

/** Port of a gateway's URL. */
export const portOf = (url: string): number => Number(new URL(url).port);

/** Options of a client that trusts only this certificate, and none of Node's. */
export const trusting = ({ cert }: Pick<Certificate, 'cert'>): tls.ConnectionOptions => ({
  ca: cert,
  servername: 'localhost',
});

/** Sends one request over TLS; rejects if the connection is refused. */
export function requestTls(url: string, path: string, options: TlsClientOptions): Promise<TlsResponse> {
  const { body, method = body === undefined ? 'GET' : 'POST', headers = {}, ...rest } = options;
  return new Promise((resolve, reject) => {
    const port = portOf(url);
    const given = {
      host: '127.0.0.1',
      port,
      path,
      method,
      ...rest,
      headers: { host: `localhost:${port}`, ...headers },
    };
    const request = https.request({ agent: false, ...given } as https.RequestOptions, (response) => {
      const socket = response.socket as tls.TLSSocket;
      const { serialNumber: serial } = socket.getPeerCertificate();
      const { localPort } = socket;
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (part: string) => {
        text += part;
      });
      response.on('error', reject);
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text, serial, localPort }),
      );
    });
    request.on('error', reject);
    request.end(body);
  });
}

/** Sends bytes over TLS; returns all received data until the other side closed. */
export function sendTlsBytes(url: string, bytes: string, options: tls.ConnectionOptions): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = tls.connect({ host: '127.0.0.1', port: portOf(url), ...options }, () => socket.write(bytes));
    socket.setEncoding('utf8');
    socket.on('data', (part: string) => {
      text += part;
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(text));
  });
}

/** Sends plain HTTP to an HTTPS gateway; returns the error code. */
export function requestPlain(url: string): Promise<string> {
  return new Promise((resolve) => {
    const request = http.get({ host: '127.0.0.1', port: portOf(url), path: '/livez', agent: false }, (response) =>
      resolve(`HTTP ${response.statusCode}`),
    );
    request.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  });
}
