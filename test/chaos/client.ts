import { setTimeout as pause } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { type Form, MAX_TOKENS } from './forms.ts';

/** Result of one HTTP request. */
export interface Tried {
  readonly id: string;
  readonly node: number;
  /**
   * `lost`: the connection was refused or cut. `broken`: a stream that failed after its first delta and reported it.
   * `quiet`: one that did not report it.
   */
  readonly came: 'whole' | 'error' | 'lost' | 'broken' | 'quiet' | 'of another';
  readonly status: number | undefined;
  /** True if part of the response had arrived when it failed: no client retries then. */
  readonly hadContent: boolean;
  readonly fromMs: number;
  readonly toMs: number;
  /** Time to the first byte of the response. */
  readonly firstMs: number | undefined;
  readonly attempts: number;
  /** Body of an error. */
  readonly words: string;
  readonly shouldRetry: string | undefined;
  readonly retryAfterMs: number | undefined;
}

export interface ChaosRequest {
  readonly n: number;
  readonly form: Form;
  readonly model: string;
  readonly node: number;
  readonly url: string;
  readonly key: string;
}

export const agent = new Agent({
  ...{ connections: 1024, pipelining: 1, keepAliveTimeout: 2_000, headersTimeout: 90_000, bodyTimeout: 90_000 },
});

/** Output tokens that a call reserves in addition to its prompt. */
export const RESERVED_OUTPUT = MAX_TOKENS;

/** Default number of retries in OpenAI's and Anthropic's SDKs. */
const RETRIES = 2;

/** Makes a call as an SDK does, with its retries; returns every HTTP request. */
export async function callAsSdk(sent: ChaosRequest, clock: () => number): Promise<readonly Tried[]> {
  const all: Tried[] = [];
  for (let nth = 0; nth <= RETRIES; nth += 1) {
    const tried = await callOnce(sent, nth, clock);
    all.push(tried);
    if (!mayRetry(tried)) break;
    if (nth < RETRIES) await pause(tried.retryAfterMs ?? backOffMs(nth));
  }
  return all;
}

function mayRetry({ came, status = 0, hadContent, shouldRetry }: Tried): boolean {
  if (came === 'lost') return !hadContent;
  if (came !== 'error') return false;
  if (shouldRetry !== undefined) return shouldRetry === 'true';
  return status === 408 || status === 409 || status === 429 || status >= 500;
}

/** Half a second, doubled each time, minus up to a quarter. */
function backOffMs(nth: number): number {
  return Math.min(500 * 2 ** nth, 8_000) * (1 - Math.random() / 4);
}

async function callOnce(sent: ChaosRequest, nth: number, clock: () => number): Promise<Tried> {
  const { form, model, node, url, key } = sent;
  const id = `c-${String(sent.n).padStart(7, '0')}-${nth}`;
  const fromMs = clock();
  let text = '';
  let firstMs: number | undefined;
  let status: number | undefined;
  const headers: Record<string, unknown> = {};
  const ended = (came: Tried['came'], words = ''): Tried => ({
    ...{ id, node, came, status, fromMs, toMs: clock(), firstMs, words, hadContent: form.hasContent(text) },
    attempts: Number(headers['x-tollgate-attempts'] ?? 0),
    shouldRetry: headers['x-should-retry'] === undefined ? undefined : String(headers['x-should-retry']),
    retryAfterMs: headers['retry-after-ms'] === undefined ? undefined : Number(headers['retry-after-ms']),
  });
  try {
    const response = await request(url + form.path, {
      ...{ method: 'POST', dispatcher: agent },
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'x-request-id': id },
      body: JSON.stringify(form.body(model, `${id} `.padEnd(400, 'x'))),
    });
    status = response.statusCode;
    Object.assign(headers, response.headers);
    response.body.setEncoding('utf8');
    for await (const part of response.body) {
      text += String(part);
      if (firstMs === undefined && (!form.stream || form.hasContent(text))) firstMs = clock() - fromMs;
    }
  } catch (error) {
    const { code, message, cause } = error as Error & { code?: string };
    return ended('lost', `${code ?? ''} ${message} ${String(cause ?? '')}`.trim());
  }
  if (status !== 200) return ended('error', text.slice(0, 300));
  if (form.isWhole(text)) return text.includes(id) ? ended('whole') : ended('of another', text.slice(0, 300));
  return form.hasError(text) ? ended('broken', text.slice(-300)) : ended('quiet', text.slice(-300));
}
