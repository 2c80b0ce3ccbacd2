/** Failures of a provider and the results of the call, in every format in which they occur. */
import type { ErrorCode } from '../../contract/index.ts';
import { PROMPT_COST } from '../support/gateways/failure-rig.ts';
import { completion, delta, events } from '../support/vendors/openai-vendor.ts';
import { chunk, head, respondWith, type Script, SSE_HEAD } from '../support/vendors/scripted-upstream.ts';

export interface UpstreamCase {
  readonly title: string;
  readonly script: Script | string | Uint8Array;
  /** True for streams only, false for other requests only. Default: both. */
  readonly stream?: boolean;
  /** True if the target has short timeouts. */
  readonly isHasty?: boolean;
  readonly code: ErrorCode;
  /** Text before the error. */
  readonly text?: string;
  /** Charge in micro-dollars. Default: none. */
  readonly cost?: number;
  readonly message?: RegExp;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  /** True if the request causes the failure, so that no other target is tried. */
  readonly isOfRequest?: boolean;
}

/** Three pieces of text without an end marker. */
const THREE = [delta('a'.repeat(20)), delta('b'.repeat(20)), delta('c'.repeat(20))];
const THREE_TEXT = 'a'.repeat(20) + 'b'.repeat(20) + 'c'.repeat(20);
/** Prompt and 60 bytes of text: 4 bytes per token, 2 micro-dollars each. */
const THREE_COST = PROMPT_COST + 30;
const hang: Script = (wire) => wire.hang();
const dripping =
  (text: string): Script =>
  async (wire) => {
    await wire.send(SSE_HEAD);
    while (!wire.isGone) {
      await wire.send(chunk(text));
      await wire.pause(20);
    }
  };

const silent = { isHasty: true, code: 'provider_timeout', cost: PROMPT_COST } as const;
const broken = { code: 'provider_unavailable', cost: PROMPT_COST } as const;

/** Interrupted responses. */
export const BREAKS: readonly UpstreamCase[] = [
  { title: 'U05: a provider that is silent', script: hang, ...silent },
  {
    title: 'U06: a provider that is silent after the head of a stream',
    script: events([], hang),
    stream: true,
    ...silent,
  },
  {
    title: 'U07: a provider that falls silent in the middle of a stream',
    script: events(THREE, hang),
    ...{ ...silent, stream: true, text: THREE_TEXT, cost: THREE_COST },
  },
  {
    title: 'U08: a provider that resets a fresh connection before it answers',
    script: (wire) => wire.reset(),
    ...broken,
  },
  {
    title: 'U10: a provider that resets in the middle of a response',
    script: async (wire) => {
      await wire.send(head(200, { 'content-type': 'application/json', 'content-length': '100' }));
      await wire.send('{"id":1');
      wire.reset();
    },
    ...{ ...broken, stream: false },
  },
  {
    title: 'U11: a provider that resets in the middle of a stream',
    script: events(THREE, async (wire) => {
      await wire.pause(20);
      wire.reset();
    }),
    ...{ ...broken, stream: true, text: THREE_TEXT, cost: THREE_COST },
  },
  {
    title: 'U12: a provider that ends a stream without a finish reason',
    script: events(THREE),
    ...{ ...broken, stream: true, text: THREE_TEXT, cost: THREE_COST },
  },
  {
    title: 'U14: a provider that drips bytes of an event that never ends',
    script: dripping('x'),
    stream: true,
    ...silent,
  },
  {
    title: 'U15: a provider that sends comments and nothing else',
    script: dripping(': ping\n\n'),
    stream: true,
    ...silent,
  },
  {
    title: 'U15: a provider that sends comments and nothing else behind its first words (G10)',
    script: events(THREE, async (wire) => {
      while (!wire.isGone) {
        await wire.send(chunk(': ping\n\n'));
        await wire.pause(20);
      }
    }),
    ...{ ...silent, stream: true, text: THREE_TEXT, cost: THREE_COST },
  },
  {
    title: 'U33: a provider that sends an event without end',
    script: async (wire) => {
      await wire.send(head(200, { 'content-type': 'text/event-stream', 'content-length': String(64 << 20) }));
      await wire.send('data: ');
      const piece = Buffer.alloc(256 * 1024, 'x');
      for (let n = 0; n < 255 && !wire.isGone; n++) await wire.send(piece);
    },
    ...{ ...broken, stream: true },
  },
  {
    title: 'U34: a provider that sends a response without end',
    script: async (wire) => {
      await wire.send(head(200, { 'content-type': 'application/json', 'transfer-encoding': 'chunked' }));
      const piece = chunk(Buffer.alloc(1024 * 1024, ' '));
      while (!wire.isGone) await wire.send(piece);
    },
    ...{ ...broken, stream: false },
  },
];

const PAGE = '<html><head><title>502 Bad Gateway</title></head><body>nginx at 127.0.0.1</body></html>';
const html = { 'content-type': 'text/html' };
const RATE = { message: 'slow down', type: 'rate_limit_error' };

export const refusal = (status: number, error: object, headers: Record<string, string> = {}) =>
  respondWith(status, { error }, headers);

const limited = (wait: string) => ({
  script: refusal(429, RATE, { 'retry-after': wait }),
  code: 'upstream_rate_limited' as const,
});
const encoded = (encoding: string, body: unknown, type = 'application/json') =>
  respondWith(200, body, { 'content-encoding': encoding, 'content-type': type });

/** Invalid responses. */
export const FAILED_RESPONSES: readonly UpstreamCase[] = [
  {
    title: 'U16: a 200 that is not JSON',
    script: respondWith(200, '{"id":', { 'content-type': 'application/json' }),
    ...{ code: 'provider_invalid_response', cost: PROMPT_COST },
  },
  { title: 'U17: a 200 that is a page', script: respondWith(200, PAGE, html), code: 'provider_invalid_response' },
  { title: 'U18: a 502 that is a page', script: respondWith(502, PAGE, html), code: 'provider_unavailable' },
  { title: 'U18: a 503 that is a page', script: respondWith(503, PAGE, html), code: 'provider_overloaded' },
  { title: 'U18: a 504 that is a page', script: respondWith(504, PAGE, html), code: 'provider_timeout' },
  {
    title: 'U20: an error as JSON where a stream was asked for',
    script: respondWith(200, { error: { message: 'no', type: 'server_error' } }),
    ...{ stream: true, code: 'provider_unavailable' },
  },
  {
    title: 'U22: an error inside a 200',
    script: respondWith(200, { error: { message: 'no', code: 'overloaded' } }),
    code: 'provider_overloaded',
  },
  {
    title: 'U23: an error in the first event of a stream',
    script: events([JSON.stringify({ error: { message: 'no', type: 'server_error' } })]),
    ...{ stream: true, code: 'provider_unavailable' },
  },
  { title: 'U35: a compressed response, which was not requested,', script: encoded('gzip', completion()), ...broken },
  {
    title: 'U36: a response encoded a thousand times',
    script: encoded(Array(1000).fill('gzip').join(', '), completion()),
    ...broken,
  },
  {
    title: 'U37: a cut compressed stream',
    script: encoded('gzip', Buffer.from([31, 139, 8, 0, 0]), 'text/event-stream'),
    ...broken,
  },
  {
    title: 'U38: a rate limit with a wait',
    ...limited('2'),
    headers: { 'retry-after': '2', 'retry-after-ms': '2000' },
  },
  {
    title: 'U39: a rate limit with a date gone by',
    ...limited('Sun, 06 Nov 1994 08:49:37 GMT'),
    headers: { 'x-should-retry': undefined },
  },
  {
    title: 'U39: a rate limit with an unreadable wait',
    ...limited('soon'),
    headers: { 'retry-after': undefined },
  },
  {
    title: 'U40: a rate limit of an hour, after which the caller’s SDK must not wait,',
    ...limited('3600'),
    headers: { 'retry-after': '60', 'x-should-retry': 'false' },
  },
  {
    title: 'U40: a rate limit of many days, which is taken for a mistake,',
    ...limited('999999'),
    headers: { 'retry-after': undefined },
  },
  {
    title: 'U41: a 401 for the operator’s key',
    script: refusal(401, {
      message: 'Incorrect API key provided: sk-operator-canary-0123456789abcdef',
      type: 'invalid_request_error',
      code: 'invalid_api_key',
    }),
    code: 'provider_auth_failed',
    headers: { 'www-authenticate': undefined, 'x-should-retry': 'false' },
  },
  {
    title: 'U41: a 403 for the operator’s key',
    script: refusal(403, { message: 'no', code: 'invalid_api_key' }),
    code: 'provider_auth_failed',
  },
  {
    title: 'U41: a 403 for the operator’s account',
    script: refusal(403, { message: 'not in this region' }),
    code: 'permission_denied',
    message: /^one: not in this region/,
  },
  { title: 'U42: a 402', script: refusal(402, { message: 'pay' }), code: 'provider_quota_exhausted' },
  {
    title: 'U42: a used-up quota as 429',
    script: refusal(429, { message: 'pay', type: 'insufficient_quota', code: 'insufficient_quota' }),
    code: 'provider_quota_exhausted',
  },
  {
    title: 'U43: a 400, whose words are passed on without secrets,',
    script: refusal(400, {
      message: 'Bad value for org-abc123def456 with key sk-operator-canary-0123456789abcdef at http://127.0.0.1/x',
      type: 'invalid_request_error',
      param: 'top_k',
    }),
    ...{ code: 'invalid_request', isOfRequest: true },
    message: /^one: Bad value for \[redacted\] with key \[redacted\]/,
  },
  {
    title: 'U44: a model that the vendor does not have',
    script: refusal(404, { message: 'The model m does not exist', code: 'model_not_found' }),
    code: 'unsupported_model',
  },
  {
    title: 'U45, U46: a redirection, which is not followed,',
    script: respondWith(307, '', { location: 'http://127.0.0.1:9/steal' }),
    code: 'provider_unavailable',
    headers: { location: undefined },
  },
  { title: 'U47: a 101', script: head(101, { upgrade: 'websocket', connection: 'upgrade' }), ...broken },
  { title: 'U48: a 204', script: head(204), code: 'provider_unavailable' },
  { title: 'U48: a 205 with a body', script: respondWith(205, 'surprise'), code: 'provider_unavailable' },
  { title: 'U48: a 304', script: head(304), code: 'provider_unavailable' },
  {
    title: 'U49: a header with a zero byte',
    script: 'HTTP/1.1 200 OK\r\nx\0y: z\r\ncontent-length: 0\r\n\r\n',
    ...broken,
  },
  {
    title: 'U49: 100 KB of headers',
    script: head(200, { 'x-large': 'x'.repeat(100_000), 'content-length': '0' }),
    ...broken,
  },
  {
    title: 'U49: two lengths',
    script: 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nabc',
    ...broken,
  },
];
