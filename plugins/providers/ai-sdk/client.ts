import {
  type ClientLibrary,
  type HttpRequest,
  isObject,
  type JsonObject,
  parseJson,
  type TransportResponse,
} from '../../../contract/index.ts';
import type { CallContext } from './job.ts';
import { createLossFinder, type Draft } from './losses.ts';
import { callModel } from './models.ts';
import { type AiPackage, openPackage } from './package.ts';
import { errorResponse, jsonResponse } from './responses.ts';
import { type ClientOptions, logEarlyPrints, MAX_PRINTS, type Run, type Work, watchPackages, working } from './work.ts';

/** Requests of one call: polling for an image takes the most. */
const MAX_REQUESTS = 500;

export interface AiClient {
  readonly client: ClientLibrary;
  /** Imports the package. Rejects with a problem of the configuration. */
  open(): Promise<AiPackage>;
}

/** Creates the client of one instance. The package is imported once; its calls send their requests with `send`. */
export function createClient(instance: ClientOptions): AiClient {
  let opening: Promise<AiPackage> | undefined;
  let isSilent = false;
  const findLosses = createLossFinder();
  const open = (): Promise<AiPackage> => {
    watchPackages();
    logEarlyPrints(instance);
    const settings = { ...instance.settings, fetch: sendByGateway };
    opening ??= working.run({ instance, prints: 0 }, () => openPackage({ ...instance, settings }));
    return opening;
  };
  return {
    open,
    async client(request, signal, send) {
      if (isSilent) return refuse(ownTransportProblem(instance.package));
      const own = await open();
      const run: Run = { send, host: undefined, requests: 0, broken: undefined };
      const work: Work = { instance, prints: 0, run };
      const { package: name, providerOptions, ownTransport } = instance;
      const draft: Draft = (make) => draftRequest(instance, signal, make);
      const context: CallContext = {
        signal,
        providerOptions,
        ...(!ownTransport && { findLosses: (examined) => findLosses(examined, draft) }),
      };
      try {
        const response = await working.run(work, () => callModel(own, request, context));
        if (run.requests === 0 && !ownTransport) throw new OwnTransport();
        return within(work, response);
      } catch (error) {
        if (error instanceof OwnTransport) {
          isSilent = true;
          return refuse(ownTransportProblem(name));
        }
        if (run.broken !== undefined) throw run.broken;
        if (signal.aborted) throw error;
        return errorResponse(error, name);
      }
    },
  };
}

/** A package that answers without a request of the gateway's `fetch`. */
class OwnTransport extends Error {}

/** Runs a package until its first request, which is returned as text and not sent. */
async function draftRequest(
  instance: ClientOptions,
  signal: AbortSignal,
  make: Parameters<Draft>[0],
): Promise<string | undefined> {
  signal.throwIfAborted();
  let abort: (() => void) | undefined;
  try {
    return await new Promise((resolve, reject) => {
      abort = () => reject(signal.reason);
      signal.addEventListener('abort', abort);
      // The call itself prints the same lines.
      working
        .run({ instance, prints: MAX_PRINTS, draft: resolve }, async () => make())
        .then(
          () => reject(new OwnTransport()),
          () => resolve(undefined),
        );
    });
  } finally {
    if (abort) signal.removeEventListener('abort', abort);
  }
}

/** Reads a body within its call, so that requests of a running stream belong to it. */
function within(work: Work, response: TransportResponse): TransportResponse {
  const source = response.body[Symbol.asyncIterator]();
  const body: AsyncIterableIterator<Uint8Array> = {
    next: () => working.run(work, () => source.next()),
    async return() {
      await source.return?.();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]: () => body,
  };
  return { ...response, body };
}

function ownTransportProblem(name: string): JsonObject {
  return {
    type: 'own_transport',
    message: `The package "${name}" does not use the connections of the gateway. Set \`ownTransport: true\` to allow that.`,
  };
}

function refuse(error: JsonObject): TransportResponse {
  return jsonResponse(502, { error });
}

/** The `fetch` of packages: sends a request of the running call through the gateway. */
async function sendByGateway(input: unknown, init?: RequestInit): Promise<Response> {
  const { run, instance, draft } = working.getStore() ?? {};
  if (!instance || !(run || draft)) throw new Error('A package of the AI SDK sent a request outside of a call.');
  const request = new Request(
    input as string | URL | Request,
    { ...init, ...(init?.body instanceof ReadableStream && { duplex: 'half' }) } as RequestInit,
  );
  if (draft || !run) {
    draft?.(await draftText(request));
    throw new Error('This request is a draft.');
  }
  const url = new URL(request.url);
  assertAllowed(run, instance, url);
  const bytes = new Uint8Array(await request.arrayBuffer());
  const body = bytes.length === 0 ? undefined : (init?.body !== undefined && jsonOf(request, bytes)) || bytes;
  const sent: HttpRequest = {
    method: methodOf(request.method),
    path: `${url.pathname}${url.search}`,
    headers: headersOf(request.headers),
    ...(body && { body }),
  };
  // The signal of a `Request` is another one than that of its options.
  const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined);
  try {
    const response = await run.send(url.origin, sent, signal);
    const headers = new Headers();
    for (const [name, value] of Object.entries(response.headers)) if (value !== undefined) headers.append(name, value);
    return new Response(ReadableStream.from(response.body), { status: response.status, headers });
  } catch (error) {
    if (signal?.aborted !== true) run.broken ??= error;
    throw error;
  }
}

/** A request as text, but for what differs in each request. */
async function draftText(request: Request): Promise<string> {
  const changing = /^(?:authorization|date|x-amz-)|id$|trace/;
  const headers = [...request.headers].flatMap(([name, value]) => (changing.test(name) ? [] : [`${name}: ${value}`]));
  const [, boundary] = /boundary=([^;]+)/.exec(request.headers.get('content-type') ?? '') ?? [];
  const text = [request.url, ...headers, await request.text()].join('\n');
  return boundary === undefined ? text : text.replaceAll(boundary, '');
}

/** The body as an object, for `send` hooks. Signed bytes stay as they are. */
function jsonOf({ headers }: Request, bytes: Uint8Array): object | undefined {
  const isSigned = /^AWS4-/.test(headers.get('authorization') ?? '');
  if (isSigned || !/json/i.test(headers.get('content-type') ?? '')) return undefined;
  const value = parseJson(Buffer.from(bytes).toString('utf8'));
  return isObject(value) ? value : undefined;
}

function methodOf(method: string): 'GET' | 'POST' | 'DELETE' {
  if (method === 'GET' || method === 'POST' || method === 'DELETE') return method;
  throw new Error(`The gateway sends no ${method.slice(0, 10)} requests of packages.`);
}

function assertAllowed(run: Run, { hosts, package: name, log }: ClientOptions, url: URL): void {
  run.host ??= url.host;
  run.requests += 1;
  if (run.requests > MAX_REQUESTS)
    throw new Error(`The package "${name}" sent over ${MAX_REQUESTS} requests in a call.`);
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    throw new Error(`The package "${name}" sends to an address that is not HTTP.`);
  const allowed = hosts.length > 0 ? hosts : [run.host];
  if (allowed.includes(url.host)) return;
  // Callers do not get the names of hosts, and neither does the message of a failure.
  log?.warn({ package: name, host: url.host }, 'a package calls a host that is not allowed; add it to `hosts`');
  throw new Error(
    `The package "${name}" calls a host that is not allowed. The log names it; add it to \`hosts\` of the provider.`,
  );
}

/** Headers that the connection sets. */
const OWN_HEADERS: ReadonlySet<string> = new Set(
  'accept-encoding connection content-length expect host keep-alive te trailer transfer-encoding upgrade'.split(' '),
);

function headersOf(headers: Headers): Readonly<Record<string, string>> {
  return Object.fromEntries([...headers].filter(([name]) => !OWN_HEADERS.has(name)));
}
