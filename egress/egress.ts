import { mkdirSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { EgressRules } from '../config/egress.ts';
import { GatewayError } from '../contract/errors.ts';
import { isEventStream } from '../contract/event-reader.ts';
import { isObject } from '../contract/json.ts';
import type { Log } from '../contract/plugin.ts';
import type { Endpoint, ProxyRoute, TransportResponse } from '../contract/provider.ts';
import {
  type Cut,
  createCut,
  cutText,
  describeMissing,
  describeRequest,
  type Exchange,
  ExchangeError,
  type Known,
  keyOf,
  MAX_BYTES,
  MAX_EXCHANGES,
  messageOf,
  readExchanges,
  SUFFIX,
  secretsOf,
} from './exchanges.ts';
import { createUpstream, type Upstream, UpstreamError, type UpstreamResponse } from './upstream.ts';
import { createProxyRoute, withProxyRoute } from './way.ts';

/** Recording and replay of exchanges. Folders are absolute. */
export interface ExchangeOptions {
  /** Folder for recorded requests to providers and their responses. */
  readonly record?: string | undefined;
  /** Folder with responses to replay: nothing is sent. */
  readonly replay?: string | undefined;
  /** True to record, or to replay, the time of each chunk. */
  readonly times?: boolean | undefined;
}

/** Connections of this process to providers: over the network, or by a replay. */
export interface Egress {
  readonly upstream: Upstream;
  /** Returns the route of an instance's connections. */
  proxyRouteOf(rules: EgressRules | undefined): ProxyRoute | undefined;
  /** Adds the route to an instance's endpoint. */
  outfit<E extends Endpoint>(endpoint: E, route: ProxyRoute | undefined): E;
}

/** Opens the connections to providers. Throws an {@link ExchangeError} for an unusable folder. */
export function openEgress(
  log: Log,
  options: ExchangeOptions = {},
  listSecrets: () => readonly string[] = () => [],
): Egress {
  const { record, replay, times = false } = options;
  if (record !== undefined && replay !== undefined)
    throw new ExchangeError(
      'exchanges cannot be recorded and replayed at the same time',
      'Set only one of the two folders.',
    );
  if (times && record === undefined && replay === undefined)
    throw new ExchangeError('timing needs a folder to record or replay', 'Set a folder to record or replay.');
  const upstream = createUpstream({ log });
  if (replay !== undefined) return replayed(upstream, replay, times, listSecrets);
  const over = record === undefined ? upstream : recorded(upstream, { folder: record, times, log, listSecrets });
  return { upstream: over, proxyRouteOf: createProxyRoute, outfit: withProxyRoute };
}

interface Recording {
  readonly folder: string;
  readonly times: boolean;
  readonly log: Log;
  readonly listSecrets: () => readonly string[];
}

/** Maximum number of recent per-request tokens to remember. */
const MAX_SECRETS = 1000;

/** Wraps an upstream to record each exchange at its end. Providers within this process, such as `echo`, are not recorded. */
function recorded(upstream: Upstream, { folder, times, log, listSecrets }: Recording): Upstream {
  const save = createSaver(folder, log);
  // Secrets sent to any vendor: one vendor's response may contain those of another.
  const known = new Set<string>();
  const note = (secrets: readonly string[]): void => {
    for (const secret of secrets) known.add(secret);
    for (const oldest of known) if (known.size > MAX_SECRETS) known.delete(oldest);
  };
  return {
    async send(endpoint, request, options) {
      if (options.transport ?? options.websocket ?? endpoint.transport)
        return await upstream.send(endpoint, request, options);
      note(secretsOf(endpoint, request));
      const startedMs = performance.now();
      const chunks: Buffer[] = [];
      const timesMs: number[] = [];
      const since = (): number => Math.round(performance.now() - startedMs);
      const keep = (chunk: Buffer): void => {
        chunks.push(chunk);
        timesMs.push(since());
      };
      let isSaved = false;
      const finish = (head?: UpstreamResponse, headMs = 0, error?: unknown): void => {
        // An attempt that was aborted before any response is not recorded.
        if (isSaved || (!head && !(error instanceof UpstreamError && error.phase !== 'aborted'))) return;
        isSaved = true;
        try {
          const cut = createCut([...listSecrets(), ...known]);
          const bytes = cut(Buffer.concat(chunks));
          const failure = failureOf(error, cut);
          save.add(describeRequest(endpoint, request, cut), bytes, (body) => ({
            ...(head && {
              response: {
                status: head.status,
                headers: keptHeaders(head.headers, cut),
                body,
                chunks: chunks.map(({ length }) => length),
                ...(times && { timesMs, headMs }),
              },
            }),
            ...(failure && { failure }),
          }));
        } catch (error) {
          log.error({ err: error }, 'an exchange could not be recorded');
        }
      };
      try {
        const response = await upstream.send(noting(endpoint, note), request, options);
        return watch(response, keep, finish.bind(undefined, response, since()));
      } catch (error) {
        finish(undefined, 0, error);
        throw error;
      }
    },
    async close() {
      await upstream.close();
      await save.close();
    },
  };
}

/** Returns an endpoint whose credential reports the secrets it created for a request. */
function noting(endpoint: Endpoint, note: (secrets: readonly string[]) => void): Endpoint {
  const { credential } = endpoint;
  if (!credential?.headers) return endpoint;
  const headers: typeof credential.headers = async (request) => {
    const made = await credential.headers?.(request);
    note(Object.values(made ?? {}));
    return made ?? {};
  };
  // Overrides the credential for this attempt only: the methods of a class are not own properties of its objects.
  return Object.create(endpoint, {
    credential: { value: Object.create(credential, { headers: { value: headers } }) },
  }) as Endpoint;
}

/** Recorded response headers: none of them identifies an account. */
const KEPT_HEADERS: readonly RegExp[] = Object.freeze([
  /^content-type$/,
  /^retry-after(-ms)?$/,
  /^[a-z]+-ratelimit-/,
  /^x-should-retry$/,
  /^[a-z]+-processing-ms$/,
  /^(x-)?request-id$/,
  /^x-amzn-errortype$/,
]);

function keptHeaders(headers: UpstreamResponse['headers'], cut: Cut): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const name of Object.keys(headers)) {
    const value = headers[name];
    if (value !== undefined && KEPT_HEADERS.some((pattern) => pattern.test(name))) kept[name] = cutText(cut, value);
  }
  return kept;
}

function failureOf(error: unknown, cut: Cut): Exchange['failure'] {
  if (error === undefined) return undefined;
  if (!(error instanceof UpstreamError))
    return { failure: 'upstream_error', phase: 'body', message: 'was not read completely', sent: true, refused: false };
  const { failure, phase, message, sent, refused } = error;
  return { failure, phase, message: cutText(cut, message), sent, refused };
}

/** Records all bytes that are read of a response, and its end. */
function watch(
  response: UpstreamResponse,
  note: (chunk: Buffer) => void,
  end: (error?: unknown) => void,
): UpstreamResponse {
  const unread = new Error('was aborted');
  let isComplete = false;
  const read = async function* (): AsyncGenerator<Buffer> {
    let error: unknown = unread;
    try {
      for await (const chunk of response.body) {
        note(chunk);
        yield chunk;
      }
      error = undefined;
    } catch (thrown) {
      error = thrown;
      throw thrown;
    } finally {
      end(isComplete ? undefined : error);
    }
  };
  return {
    status: response.status,
    headers: response.headers,
    body: { [Symbol.asyncIterator]: read },
    reportProgress(progress) {
      isComplete ||= progress === 'complete';
      response.reportProgress(progress);
    },
    async readAll(maxBytes) {
      try {
        const bytes = await response.readAll(maxBytes);
        note(bytes);
        end();
        return bytes;
      } catch (error) {
        end(error);
        throw error;
      }
    },
    reserve: (bytes) => response.reserve(bytes),
    release: () => response.release(),
    destroy() {
      response.destroy();
      end(isComplete ? undefined : unread);
    },
  };
}

const EXTENSIONS: readonly (readonly [type: RegExp, extension: string])[] = [
  [/^text\/event-stream/, '.sse'],
  [/json/, '.json'],
  [/^text\//, '.txt'],
];

/** Returns a file name with the prefix of fixtures: `chat-completions-0001.json`, `stream-chat-completions-0002.sse`, `error-…`. */
function nameOf(
  { path: target }: Exchange['request'],
  { response }: Pick<Exchange, 'response'>,
  number: number,
): string {
  const words = (target.split('?')[0] ?? '').split(/[^A-Za-z0-9]+/).filter((word) => word !== '' && !/^v\d/.test(word));
  const isStream = response !== undefined && isEventStream(response.headers);
  const begin = response === undefined || response.status >= 400 ? ['error'] : isStream ? ['stream'] : [];
  return [...begin, ...words.slice(-3), String(number).padStart(4, '0')].join('-').toLowerCase().slice(-100);
}

/** Writes exchanges one at a time, each into separate files. */
function createSaver(folder: string, log: Log) {
  try {
    mkdirSync(folder, { recursive: true });
  } catch (error) {
    throw new ExchangeError(`${folder} cannot be created: ${messageOf(error)}`, 'Use a writable folder.');
  }
  let number = 0;
  let written = 0;
  let isFull = false;
  let last: Promise<void> = Promise.resolve();
  const write = async (
    request: Exchange['request'],
    bytes: Buffer,
    rest: (body: string) => Omit<Exchange, 'version' | 'request'>,
  ): Promise<void> => {
    if (isFull) return;
    for (;;) {
      number += 1;
      isFull = number > MAX_EXCHANGES || written > MAX_BYTES;
      if (isFull) {
        log.warn({ folder }, 'the folder of recorded exchanges is full; no more are written');
        return;
      }
      const name = nameOf(request, rest(''), number);
      const type = rest('').response?.headers['content-type'] ?? '';
      const body = `${name}${EXTENSIONS.find(([pattern]) => pattern.test(type))?.[1] ?? '.bin'}`;
      const exchange = { version: 1, request, ...rest(body) } satisfies Exchange;
      const text = `${JSON.stringify(exchange, null, 2)}\n`;
      try {
        // Another worker may write into the same folder; existing files are not overwritten.
        await writeFile(path.join(folder, `${name}${SUFFIX}`), text, { flag: 'wx', mode: 0o600 });
      } catch (error) {
        if (isObject(error) && error['code'] === 'EEXIST') continue;
        throw error;
      }
      if (exchange.response) await writeFile(path.join(folder, body), bytes, { flag: 'w', mode: 0o600 });
      written += bytes.length + text.length;
      return;
    }
  };
  return {
    add(...args: Parameters<typeof write>): void {
      last = last
        .then(() => write(...args))
        .catch((error: unknown) => log.error({ folder, err: error }, 'an exchange could not be recorded'));
    },
    close: (): Promise<void> => last,
  };
}

/** Responds from a recording: nothing is sent, not even by plugins, and no key is needed. */
function replayed(upstream: Upstream, folder: string, times: boolean, listSecrets: () => readonly string[]): Egress {
  const all = readExchanges(folder);
  const byKey = new Map<string, Known[]>();
  for (const known of all) {
    const key = keyOf(known.exchange.request);
    byKey.set(key, [...(byKey.get(key) ?? []), known]);
  }
  const turns = new Map<string, number>();
  const find = (request: Exchange['request']): Known => {
    const key = keyOf(request);
    const found = byKey.get(key) ?? [];
    const sameOrigin = found.filter(({ exchange }) => exchange.request.origin === request.origin);
    const fitting = sameOrigin.length > 0 ? sameOrigin : found;
    const turn = turns.get(key) ?? 0;
    turns.set(key, turn + 1);
    // In the recorded order; the last one repeats.
    const known = fitting[Math.min(turn, fitting.length - 1)];
    if (!known) throw new GatewayError('not_found', describeMissing(request, all));
    return known;
  };
  const route: ProxyRoute = {
    id: 'replay',
    connector: () => (_target, callback) => callback(new Error(NOTHING_LEAVES), null),
  };
  return {
    proxyRouteOf: () => route,
    outfit(endpoint, own) {
      const { credential } = endpoint;
      const set = withProxyRoute(endpoint, own);
      if (endpoint.transport || !credential?.required || credential.value !== undefined) return set;
      return Object.assign(set, { credential: { ...credential, value: 'replayed' } });
    },
    upstream: {
      async send(endpoint, request, options) {
        if (options.transport ?? endpoint.transport) return await upstream.send(endpoint, request, options);
        if (options.websocket) throw new GatewayError('not_found', NO_WEBSOCKETS);
        const known = find(
          describeRequest(endpoint, request, createCut([...listSecrets(), ...secretsOf(endpoint, request)])),
        );
        const { response, failure } = known.exchange;
        if (!response) throw new UpstreamError(failure?.message ?? 'no response was recorded', failure ?? NO_RESPONSE);
        const transport = (): Promise<TransportResponse> => play(known, response, times);
        return await upstream.send(
          Object.create(endpoint, { transport: { value: transport } }) as Endpoint,
          request,
          options,
        );
      },
      close: () => upstream.close(),
    },
  };
}

const NOTHING_LEAVES = 'exchanges are replayed; nothing is sent to providers';
const NO_WEBSOCKETS = 'Exchanges are replayed, which does not support websockets.';
const NO_RESPONSE = Object.freeze({ failure: 'upstream_error', phase: 'firstByte', sent: true } as const);

/** Error codes of expired deadlines. */
const CODES: Readonly<Partial<Record<UpstreamError['phase'], string>>> = Object.freeze({
  idle: 'UND_ERR_BODY_TIMEOUT',
});

async function play(
  { bytes, exchange }: Known,
  response: NonNullable<Exchange['response']>,
  times: boolean,
): Promise<TransportResponse> {
  const { status, headers, chunks, timesMs = [], headMs = 0 } = response;
  if (times) await pause(headMs, undefined, { ref: false });
  const startedMs = performance.now() - headMs;
  return {
    status,
    headers,
    body: (async function* () {
      let at = 0;
      for (const [index, length] of chunks.entries()) {
        if (times)
          await pause(Math.max((timesMs[index] ?? 0) - (performance.now() - startedMs), 0), undefined, { ref: false });
        yield bytes.subarray(at, at + length);
        at += length;
      }
      const { failure } = exchange;
      if (failure) throw Object.assign(new Error(failure.message), { code: CODES[failure.phase] });
    })(),
  };
}
