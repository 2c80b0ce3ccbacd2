import { createHmac } from 'node:crypto';
import type { Log, PluginApi } from '../../../contract/index.ts';

/** Reply of a receiver; after a refusal a retry is useless. */
export interface Reply {
  readonly isTaken: boolean;
  /** Short description, such as `status 204`. */
  readonly said: string;
}

/** Sends a delivery; rejects if a retry may help. */
export type Send = () => Promise<Reply>;

/** Deliveries that are retried until they are accepted or too old. */
export interface Deliveries {
  add(about: string, send: Send): void;
  /** Tries waiting deliveries once more, and stops. */
  close(): Promise<void>;
}

interface DeliveriesOptions {
  /** Name of the receiver, for the log. */
  readonly receiver: string;
  readonly firstPauseMs?: number;
  readonly maxTries?: number;
  readonly maxWaiting?: number;
}

const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 300_000;
/** About two hours, including the pauses. */
const MAX_TRIES = 32;
const MAX_WAITING = 500;
const TIMEOUT_MS = 10_000;
/** Statuses below 500 after which a retry makes sense, as after any from 500. */
const AGAIN: ReadonlySet<number> = new Set([408, 425, 429]);

/** Creates a queue that delivers in order, one at a time, with growing pauses while the receiver is unavailable. */
export function createDeliveries(log: Log, options: DeliveriesOptions): Deliveries {
  const { receiver, firstPauseMs = FIRST_PAUSE_MS, maxTries = MAX_TRIES, maxWaiting = MAX_WAITING } = options;
  const waiting: { readonly about: string; readonly send: Send; tries: number }[] = [];
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let isClosed = false;

  const work = async (): Promise<void> => {
    for (let next = waiting[0]; next; next = waiting[0]) {
      next.tries += 1;
      const { about, tries } = next;
      try {
        const { isTaken, said } = await next.send();
        if (!isTaken) log.error({ about, said }, `${receiver} rejected a notice`);
      } catch (error) {
        if (tries < maxTries && !isClosed) {
          log.debug({ about, err: error }, `delivery of a notice to ${receiver} failed; it is retried`);
          timer = setTimeout(start, Math.min(firstPauseMs * 2 ** (tries - 1), LONGEST_PAUSE_MS));
          timer.unref();
          return;
        }
        log.error({ about, tries, err: error }, `delivery of a notice to ${receiver} failed; it is dropped`);
      }
      waiting.shift();
    }
  };
  const start = (): void => {
    timer = undefined;
    running = work().finally(() => {
      running = undefined;
    });
  };

  return {
    add(about, send) {
      if (waiting.length >= maxWaiting) {
        log.error(
          { about, waiting: waiting.length },
          `too many notices are queued for ${receiver}; this one is dropped`,
        );
        return;
      }
      waiting.push({ about, send, tries: 0 });
      if (!timer && !running) start();
    },
    async close() {
      isClosed = true;
      clearTimeout(timer);
      await running;
      clearTimeout(timer);
      if (waiting.length > 0) await work();
    },
  };
}

/**
 * Posts JSON to a receiver's address; with a secret it is signed: `x-tollgate-signature: t=<Unix s>,v1=<hex
 * HMAC-SHA-256 of "t.body">`. Redirects are not followed.
 */
export async function postJson(
  api: Pick<PluginApi, 'http'>,
  { url, secret }: { readonly url: string; readonly secret?: string | undefined },
  body: string,
  contentType = 'application/json',
): Promise<Reply> {
  const http = await api.http();
  const { statusCode } = await http.post(url, {
    body,
    headers: {
      'content-type': contentType,
      ...(secret !== undefined && { 'x-tollgate-signature': signatureOf(secret, body, Date.now()) }),
    },
    throwHttpErrors: false,
    retry: { limit: 0 },
    timeout: { request: TIMEOUT_MS },
  });
  const said = `status ${statusCode}`;
  if (statusCode >= 200 && statusCode < 300) return { isTaken: true, said };
  if (statusCode < 500 && !AGAIN.has(statusCode)) return { isTaken: false, said };
  throw new Error(`the receiver returned status ${statusCode}`);
}

/** Signature of a body, with its time so that receivers can refuse an old one. */
function signatureOf(secret: string, body: string, now: number): string {
  const seconds = Math.floor(now / 1000);
  return `t=${seconds},v1=${createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex')}`;
}
