import assert from 'node:assert/strict';
import http from 'node:http';
import https from 'node:https';
import { type Duplex, duplexPair } from 'node:stream';
import type { PluginApi } from '../../contract/index.ts';

/** Time limit for immediate results. */
export const SOON_MS = 1500;

/** Fails with a message if the result is late; the timer keeps the process alive until then. */
export async function soon<T>(work: Promise<T>, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new assert.AssertionError({ message: what })), SOON_MS);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

/** Fails if a text contains one of these secrets: plain, URL-encoded or in base64. */
export function assertHides(text: string, secrets: readonly string[], where: string): void {
  for (const secret of secrets) {
    const forms = [secret, encodeURIComponent(secret), Buffer.from(secret).toString('base64')];
    assert.ok(!forms.some((form) => text.includes(form)), `a secret is in ${where}`);
  }
}

/** Request that the kit's server received. */
export interface IssuerRequest {
  readonly method: string;
  /** Complete URL with origin, path and query. */
  readonly url: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: string;
}

/** Response of the kit's server. Default status: 200. An object is sent as JSON. */
export interface IssuerAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string | object;
}

/** Server for all connections of a kit, in this process: every host resolves to it, and no request leaves. */
export interface Issuer {
  readonly requests: readonly IssuerRequest[];
  /** Longest timeout that a client set on one of the requests, in milliseconds. */
  readonly longestMs: number;
  /** Overrides the timeout of clients, which shortens tests of a silent server. */
  hurry(ms: number | undefined): void;
  readonly api: Pick<PluginApi, 'http' | 'fetch'>;
  close(): void;
}

/** Starts the server; `respond` returns undefined to never respond. */
export async function openIssuer(
  respond: (request: IssuerRequest) => IssuerAnswer | undefined | Promise<IssuerAnswer | undefined>,
): Promise<Issuer> {
  const requests: IssuerRequest[] = [];
  const schemes = new WeakMap<Duplex, string>();
  let longestMs = 0;
  let mostMs: number | undefined;
  const serve = async (request: IssuerRequest): Promise<Required<IssuerAnswer> & { readonly body: string }> => {
    requests.push(request);
    const { status = 200, headers = {}, body } = (await respond(request)) ?? (await new Promise<never>(() => {}));
    return { status, headers, body: typeof body === 'string' ? body : JSON.stringify(body) };
  };
  const server = http.createServer(async (incoming, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const { method = '', url = '', headers } = incoming;
    const origin = `${schemes.get(incoming.socket)}//${headers.host}`;
    const own = { method, url: origin + url, headers, body: Buffer.concat(chunks).toString() };
    const { status, headers: said, body } = await serve(own);
    response.writeHead(status, { date: new Date().toUTCString(), ...said }).end(body);
  });
  const agents = { http: new http.Agent(), https: new https.Agent() };
  for (const [scheme, agent] of Object.entries(agents))
    agent.createConnection = () => {
      const [near, far] = duplexPair();
      schemes.set(far, `${scheme}:`);
      server.emit('connection', far);
      return near;
    };
  const { got } = await import('got');
  const client = got.extend({
    // Same options as in the gateway, `egress/http-client.ts`.
    ...{ agent: agents, followRedirect: false, retry: { limit: 0 }, timeout: { request: 30_000 } },
    hooks: {
      beforeRequest: [
        (options) => {
          const ms = options.timeout.request ?? Number.POSITIVE_INFINITY;
          longestMs = Math.max(longestMs, ms);
          if (mostMs !== undefined) options.timeout = { ...options.timeout, request: Math.min(ms, mostMs) };
        },
      ],
    },
  });
  return {
    requests,
    get longestMs() {
      return longestMs;
    },
    hurry: (ms) => {
      mostMs = ms;
    },
    api: {
      http: async () => client,
      async fetch(input, init) {
        const request = new Request(input, init);
        const headers = Object.fromEntries(request.headers);
        const { method, url } = request;
        const signals = [request.signal, ...(mostMs === undefined ? [] : [AbortSignal.timeout(mostMs)])];
        const left = new Promise<never>((_resolve, reject) => {
          for (const signal of signals) signal.addEventListener('abort', () => reject(signal.reason), { once: true });
        });
        const own = { method, url, headers, body: await request.text() };
        const { status, headers: said, body } = await Promise.race([serve(own), left]);
        return new Response(body, { status, headers: { date: new Date().toUTCString(), ...said } });
      },
    },
    close() {
      server.closeAllConnections();
      for (const agent of Object.values(agents)) agent.destroy();
    },
  };
}
