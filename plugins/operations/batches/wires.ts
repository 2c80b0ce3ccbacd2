import {
  type HttpRequest,
  isObject,
  type JsonObject,
  readArray,
  readObject,
  readString,
  type Schema,
  StreamFailure,
} from '../../../contract/index.ts';
import type { BatchOffer } from '../../formats/kit/index.ts';

/** Requests and responses of a vendor's batches. */
export interface Wire {
  /** Prefix of ids here. */
  readonly prefix: string;
  /** Id of a batch at its vendor, which is validated before it is added to a path. */
  idOf(batch: JsonObject): unknown;
  /** Paths of a batch below the base URL; its id is safe in a path. */
  path(id: string): string;
  cancel(id: string): string;
  /** Maximum size of a vendor's response about a batch; default: 1 MB. */
  readonly maxBytes?: number;
  /** Stored part of a batch; default: all of it. */
  stored?(batch: JsonObject): JsonObject;
  /** Returns true once all results of a batch are available. */
  hasEnded(batch: JsonObject): boolean;
  /** Expiry of a batch at the vendor, in Unix milliseconds; undefined if not reported. */
  expiresAt(batch: JsonObject): number | undefined;
  /** Results inside the batch itself, one row each in the form that `result` reads. */
  inline?(batch: JsonObject): Iterable<JsonObject>;
  /** Path of the responses of an ended batch; undefined without any. */
  results(batch: JsonObject): string | undefined;
  /** Reads one line of the results: the body of a response, if it is one. */
  result(line: JsonObject): { readonly id: string | undefined; readonly body: JsonObject | undefined };
  /** Final state of a batch that its vendor no longer knows. */
  lost(batch: JsonObject, now: number): JsonObject;
}

const ID = /^[\w.-]{1,128}$/;

/** Id of a resource at a vendor. Throws the vendor's failure for an id that could change a path. */
export function vendorId(value: unknown): string {
  const id = readString(value);
  if (id === undefined || !ID.test(id) || /^\.+$/.test(id))
    throw new StreamFailure({ class: 'upstream_error', message: 'The provider returned no id.' });
  return id;
}

/** Adds the vendor's query to a request about batches or files. */
export function withQuery({ query }: Pick<BatchOffer, 'query'>, request: HttpRequest): HttpRequest {
  return query === undefined ? request : { ...request, path: `${request.path}?${query}` };
}

/** Time in Unix seconds, from OpenAI's form or from ISO 8601 (Azure); undefined if invalid. */
export function secondsOf(time: unknown): number | undefined {
  const seconds = typeof time === 'string' ? Math.floor(Date.parse(time) / 1000) : time;
  return typeof seconds === 'number' && seconds > 0 ? seconds : undefined;
}

/** State of a batch; Azure capitalizes some. */
export function statusOf({ status }: JsonObject): string | undefined {
  return readString(status)?.toLowerCase();
}

const ENDS: ReadonlySet<unknown> = new Set(['completed', 'failed', 'expired', 'cancelled']);

export const LOST = 'Batch not found at the provider. It was not charged.';

/** Source: https://platform.openai.com/docs/api-reference/batch */
const openai: Wire = {
  prefix: 'batch_',
  idOf: ({ id }) => id,
  cancel: (id) => `/batches/${id}/cancel`,
  path: (id) => `/batches/${id}`,
  hasEnded: (batch) => ENDS.has(statusOf(batch)),
  expiresAt({ expires_at: time }) {
    const seconds = secondsOf(time);
    return seconds && seconds * 1000;
  },
  results({ output_file_id: id }) {
    return readString(id) ? `/files/${vendorId(id)}/content` : undefined;
  },
  result(line) {
    const { status_code: status, body } = readObject(line['response']);
    return { id: readString(line['custom_id']), body: status === 200 && isObject(body) ? body : undefined };
  },
  lost: (batch, now) => ({
    ...batch,
    status: 'failed',
    failed_at: Math.floor(now / 1000),
    output_file_id: null,
    error_file_id: null,
    errors: { object: 'list', data: [{ code: 'batch_lost', message: LOST, param: null, line: null }] },
  }),
};

/** Source: https://platform.claude.com/docs/en/api/messages/batches */
const anthropic: Wire = {
  prefix: 'msgbatch_',
  idOf: ({ id }) => id,
  cancel: (id) => `/v1/messages/batches/${id}/cancel`,
  path: (id) => `/v1/messages/batches/${id}`,
  hasEnded: ({ processing_status: status }) => status === 'ended',
  expiresAt({ expires_at: time }) {
    const at = Date.parse(readString(time) ?? '');
    return Number.isNaN(at) ? undefined : at;
  },
  results: ({ id }) => `/v1/messages/batches/${vendorId(id)}/results`,
  result(line) {
    const { type, message } = readObject(line['result']);
    return { id: readString(line['custom_id']), body: type === 'succeeded' && isObject(message) ? message : undefined };
  },
  lost(batch, now) {
    const { processing = 0, errored = 0, ...counts } = readObject(batch['request_counts']) as Record<string, number>;
    return {
      ...batch,
      processing_status: 'ended',
      ended_at: new Date(now).toISOString(),
      results_url: null,
      request_counts: { ...counts, processing: 0, errored: errored + processing },
    };
  },
};

/** Maximum number of requests in a batch: https://platform.openai.com/docs/guides/batch */
export const MAX_REQUESTS = 50_000;

/** Schema of `requests`, the list of a batch whose requests come with it. */
export function requestsSchema(items: Schema): Schema {
  return {
    type: 'object',
    required: ['requests'],
    additionalProperties: false,
    properties: { requests: { type: 'array', minItems: 1, maxItems: MAX_REQUESTS, items } },
  };
}

/** Metadata of a batch or of a request, which callers choose. */
export const METADATA: Schema = Object.freeze({
  type: ['object', 'null'],
  maxProperties: 16,
  additionalProperties: { type: 'string', maxLength: 512 },
});

/** Time limit of Google for a batch: https://ai.google.dev/gemini-api/docs/batch-api */
const GOOGLE_MS = 2 * 86_400_000;

/** Batches are operations that contain their results. Source: https://ai.google.dev/api/batch-api */
const gemini: Wire = {
  prefix: 'gembatch-',
  idOf: ({ name }) => readString(name)?.replace(/^batches\//, ''),
  path: (id) => `/batches/${id}`,
  cancel: (id) => `/batches/${id}:cancel`,
  maxBytes: 64 * 1024 * 1024,
  hasEnded: ({ done, metadata }) =>
    done === true || /_(?:SUCCEEDED|FAILED|CANCELLED|EXPIRED)$/.test(String(readObject(metadata)['state'])),
  stored({ response: _response, ...batch }) {
    const { output: _output, inputConfig: _input, ...metadata } = readObject(batch['metadata']);
    return { ...batch, metadata };
  },
  expiresAt({ metadata }) {
    const at = Date.parse(readString(readObject(metadata)['createTime']) ?? '');
    return Number.isNaN(at) ? undefined : at + GOOGLE_MS;
  },
  *inline(batch) {
    const rows = googleResults(batch).map(readObject);
    for (const [index, row] of rows.entries()) yield { ...row, index };
    // Successful requests without a response were processed too: they count as unreadable rows.
    const { successfulRequestCount: reported } = readObject(readObject(batch['metadata'])['batchStats']);
    const missing =
      Math.min(Number(reported ?? 0), MAX_REQUESTS) - rows.filter(({ response }) => isObject(response)).length;
    for (let at = 0; at < missing; at += 1) yield {};
  },
  results: () => undefined,
  result({ index, response }) {
    return {
      id: typeof index === 'number' ? String(index) : undefined,
      body: isObject(response) ? response : undefined,
    };
  },
  lost: (batch, now) => ({
    ...batch,
    done: true,
    error: { code: 5, message: LOST, status: 'NOT_FOUND' },
    metadata: {
      ...readObject(batch['metadata']),
      state: 'BATCH_STATE_FAILED',
      endTime: new Date(now).toISOString(),
    },
  }),
};

/** Responses of a Google batch, in the order of its requests. */
export function googleResults({ response, metadata }: JsonObject): readonly unknown[] {
  const { inlinedResponses: inlined } = readObject(isObject(response) ? response : readObject(metadata)['output']);
  return readArray(readObject(inlined)['inlinedResponses']);
}

export const WIRES = Object.freeze({ openai, anthropic, gemini });

/** Wire for the requests of a dialect. */
export function wireOf(dialect: string): Wire {
  if (dialect === 'messages') return anthropic;
  return dialect === 'gemini' ? gemini : openai;
}

/** Maximum length of a line in a file of results: that of one response. */
const MAX_LINE = 32 * 1024 * 1024;

/** Yields the lines of a file as JSON objects; undefined for each invalid or oversized line. */
export async function* readLines(body: AsyncIterable<Uint8Array>): AsyncGenerator<JsonObject | undefined> {
  let parts: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    let from = 0;
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, from)) {
      yield* lineOf([...parts, chunk.subarray(from, at)], size + at - from);
      parts = [];
      size = 0;
      from = at + 1;
    }
    size += chunk.length - from;
    // An oversized line is counted, but not kept.
    if (size > MAX_LINE) parts = [];
    else if (from < chunk.length) parts.push(chunk.subarray(from));
  }
  yield* lineOf(parts, size);
}

function* lineOf(parts: readonly Uint8Array[], size: number): Generator<JsonObject | undefined> {
  if (size > MAX_LINE) return yield undefined;
  const text = Buffer.concat(parts).toString('utf8').trim();
  if (text === '') return;
  try {
    const value: unknown = JSON.parse(text);
    yield isObject(value) ? value : undefined;
  } catch {
    yield undefined;
  }
}

/** Errors of a batch that its vendor could not read, reduced to their texts. */
export function errorsOf(batch: JsonObject, redact: (text: string) => string): JsonObject | null {
  const data = readArray(readObject(batch['errors'])['data']).slice(0, 100).map(readObject);
  if (data.length === 0) return null;
  return {
    object: 'list',
    data: data.map(({ code, message, param, line }) => ({
      code: readString(code) ?? 'error',
      message: redact(readString(message) ?? '').slice(0, 500),
      param: readString(param) ?? null,
      line: typeof line === 'number' ? line : null,
    })),
  };
}
