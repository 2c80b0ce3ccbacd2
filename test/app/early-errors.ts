/** Errors sent before the body was read, and the transports of bodies: none may end in a connection reset. */
import http from 'node:http';
import net from 'node:net';
import OpenAI, { APIError } from 'openai';

export interface Sent {
  readonly status: number;
  readonly code: string | undefined;
}

/** Sends a body of `bytes` bytes to a path that fails early. */
export type Transport = (url: string, error: EarlyError, bytes: number) => Promise<Sent>;

/** Request that the gateway rejects before it reads the body, and the expected error. */
export interface EarlyError {
  readonly status: number;
  readonly code: string;
  readonly path: string;
  readonly key: string;
  readonly type: string;
}

/** Returns the errors of a gateway with this key, whose body limit is smaller than the bodies. */
export function earlyErrors(key: string): Readonly<Record<string, EarlyError>> {
  const chat = { path: '/v1/chat/completions', key, type: 'application/json' };
  return {
    'a bad key': { ...chat, key: 'tg_made_up', status: 401, code: 'invalid_api_key' },
    'an unknown URL': { ...chat, path: '/v1/unknown', status: 404, code: 'unknown_url' },
    'a wrong method': { ...chat, path: '/v1/models', status: 405, code: 'method_not_allowed' },
    'a wrong content type': { ...chat, type: 'text/plain', status: 415, code: 'unsupported_media_type' },
    'too large a body': { ...chat, status: 413, code: 'request_too_large' },
  };
}

const bodyOf = (bytes: number): string => JSON.stringify({ model: 'echo/echo', messages: 'x'.repeat(bytes) });

async function viaFetch(url: string, { path, key, type }: EarlyError, bytes: number): Promise<Sent> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': type };
  return read(await fetch(url + path, { method: 'POST', headers, body: bodyOf(bytes) }));
}

async function viaMultipart(url: string, { path, key }: EarlyError, bytes: number): Promise<Sent> {
  const body = new FormData();
  body.set('file', new Blob(['x'.repeat(bytes)]), 'x.txt');
  return read(await fetch(url + path, { method: 'POST', headers: { authorization: `Bearer ${key}` }, body }));
}

async function read(response: Response): Promise<Sent> {
  const { error } = (await response.json()) as { error: { code: string } };
  return { status: response.status, code: error.code };
}

async function viaSdk(url: string, { path, key: apiKey, type }: EarlyError, bytes: number): Promise<Sent> {
  const client = new OpenAI({ apiKey, baseURL: `${url}/v1`, maxRetries: 0 });
  const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(bytes)}` } };
  const body = { model: 'echo/echo', messages: [{ role: 'user', content: [image] }] };
  try {
    await client.post(path.slice(3), { body, headers: { 'content-type': type } });
  } catch (error) {
    if (error instanceof APIError && error.status !== undefined)
      return { status: error.status, code: String(error.code) };
    throw error;
  }
  return { status: 200, code: undefined };
}

interface HttpOptions {
  readonly agent?: http.Agent | false;
  readonly headers?: http.OutgoingHttpHeaders;
}

function viaHttp({ agent = false, headers = {} }: HttpOptions = {}): Transport {
  return (url, { path, key, type }, bytes) =>
    new Promise((resolve, reject) => {
      const body = bodyOf(bytes);
      const sent = http.request(url + path, {
        method: 'POST',
        agent,
        headers: { authorization: `Bearer ${key}`, 'content-type': type, ...headers },
      });
      sent.on('error', reject);
      sent.on('response', async (response) => {
        let text = '';
        for await (const chunk of response) text += String(chunk);
        resolve({
          status: response.statusCode ?? 0,
          code: (JSON.parse(text) as { error: { code: string } }).error.code,
        });
      });
      if (headers['expect'] === undefined) sent.end(body);
      else {
        sent.flushHeaders();
        sent.on('continue', () => sent.end(body));
      }
    });
}

/** Writes everything before it reads, as simple clients do, then reads to the end. */
function viaSocket(connection: 'close' | 'keep-alive'): Transport {
  return (url, { path, key, type }, bytes) =>
    new Promise((resolve, reject) => {
      const body = bodyOf(bytes);
      const { port, hostname: host } = new URL(url);
      const socket = net.connect(Number(port), host);
      let text = '';
      socket.on('error', reject);
      socket.pause();
      const head = [
        `POST ${path} HTTP/1.1`,
        `host: ${host}`,
        `authorization: Bearer ${key}`,
        `content-type: ${type}`,
        `content-length: ${body.length}`,
        `connection: ${connection}`,
      ];
      // A response to a second request proves that the connection continues after the first body.
      const second = `GET /nowhere HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`;
      socket.write(`${head.join('\r\n')}\r\n\r\n${body}${connection === 'close' ? '' : second}`, () => {
        socket.on('data', (chunk) => {
          text += String(chunk);
        });
        socket.resume();
        socket.on('end', () => {
          const statuses = [...text.matchAll(/^HTTP\/1\.1 (\d+)/gm)].map(([, status]) => Number(status));
          const [first = 0, next] = statuses;
          if (connection === 'keep-alive' && next !== 404) reject(new Error(`no second response: ${text.slice(-500)}`));
          resolve({ status: first, code: /"code":"(\w+)"/.exec(text)?.[1] });
        });
      });
    });
}

export const TRANSPORTS: Readonly<Record<string, Transport>> = Object.freeze({
  fetch: viaFetch,
  'the OpenAI SDK': viaSdk,
  'a multipart form': viaMultipart,
  'node:http without keep-alive': viaHttp(),
  'node:http with keep-alive': viaHttp({ agent: new http.Agent({ keepAlive: true }) }),
  'node:http in chunks': viaHttp({ headers: { 'transfer-encoding': 'chunked' } }),
  'node:http with expect: 100-continue': viaHttp({ headers: { expect: '100-continue' } }),
  'a socket that keeps alive': viaSocket('keep-alive'),
  'a socket that closes': viaSocket('close'),
});
