import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { PluginApi } from '../../../contract/index.ts';
import { type Message, type MessageType, toJson, toProtobuf } from './messages.ts';

const compress = promisify(gzip);

/** Options for exporting spans and metrics. */
export interface ExportOptions {
  /** Without the path: `/v1/traces` and `/v1/metrics` are appended. */
  readonly endpoint: string;
  readonly protocol: 'protobuf' | 'json';
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
}

/** Maximum spans in the queue; more are dropped, and counted. */
const MAX_WAITING = 4096;

/** Maximum batch size and flush interval. */
const BATCH = 512;
const DELAY_MS = 2000;

/** If a collector does not accept spans, the export is retried after 1, 2 and 4 s; then they are dropped. */
const TRIES = 4;
const FIRST_WAIT_MS = 1000;

/** Statuses after which a retry may succeed; every other status of 400 and above is final. */
const AGAIN: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** Posts an OTLP message. Throws if a retry may succeed; a final refusal is logged and the message dropped. */
export function createPost(
  api: Pick<PluginApi, 'http' | 'log'>,
  { endpoint, protocol, headers, timeoutMs }: ExportOptions,
): (path: '/v1/traces' | '/v1/metrics', message: Message, type: MessageType) => Promise<void> {
  const base = endpoint.replace(/\/+$/, '');
  return async (path, message, type) => {
    const isJson = protocol === 'json';
    const body = await compress(isJson ? JSON.stringify(toJson(message, type)) : toProtobuf(message, type));
    const http = await api.http();
    const { statusCode } = await http.post(`${base}${path}`, {
      body,
      headers: {
        ...headers,
        'content-type': isJson ? 'application/json' : 'application/x-protobuf',
        'content-encoding': 'gzip',
      },
      throwHttpErrors: false,
      retry: { limit: 0 },
      timeout: { request: timeoutMs },
    });
    if (AGAIN.has(statusCode)) throw new Error(`the collector returned status ${statusCode}`);
    if (statusCode >= 400) api.log.error({ path, status: statusCode }, 'the collector rejects the data; it is dropped');
  };
}

/** Queue of spans for a collector: bounded, sent in batches, retried, and flushed at the end. */
export interface SpanQueue {
  add(spans: readonly Message[]): void;
  close(): Promise<void>;
}

export function createSpanQueue(send: (spans: readonly Message[]) => Promise<void>, log: PluginApi['log']): SpanQueue {
  const waiting: Message[] = [];
  let dropped = 0;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let isClosed = false;

  function start(delayMs: number): void {
    timer ??= setTimeout(() => {
      timer = undefined;
      running ??= work().finally(() => {
        running = undefined;
        if (waiting.length > 0 && !isClosed) start(DELAY_MS);
      });
    }, delayMs).unref();
  }

  async function work(): Promise<void> {
    if (dropped > 0) log.warn({ spans: dropped }, 'spans dropped: more spans than the collector accepts');
    dropped = 0;
    while (waiting.length > 0) await sendBatch(waiting.splice(0, BATCH));
  }

  async function sendBatch(batch: readonly Message[]): Promise<void> {
    for (let attempt = 1; ; attempt += 1)
      try {
        await send(batch);
        return;
      } catch (error) {
        const reason = error instanceof Error ? error.message : 'unknown';
        if (attempt === TRIES || isClosed) {
          log.error({ reason, spans: batch.length }, 'the collector of traces does not respond; these spans are lost');
          return;
        }
        log.debug({ reason, attempt }, 'the collector of traces does not respond; retrying');
        await new Promise((resolve) => setTimeout(resolve, FIRST_WAIT_MS * 2 ** (attempt - 1)).unref());
      }
  }

  return {
    add(spans) {
      if (waiting.length + spans.length > MAX_WAITING) {
        dropped += spans.length;
        return;
      }
      waiting.push(...spans);
      start(waiting.length >= BATCH ? 0 : DELAY_MS);
    },
    async close() {
      isClosed = true;
      clearTimeout(timer);
      await running;
      await work();
    },
  };
}
