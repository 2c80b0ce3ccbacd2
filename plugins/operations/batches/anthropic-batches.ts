import {
  type JsonObject,
  type PluginApi,
  type RouteContext,
  readObject,
  readString,
  type Schema,
} from '../../../contract/index.ts';
import type { Begin } from './begin.ts';
import { Checker } from './check.ts';
import type { BatchRecord } from './records.ts';
import { type BatchFormat, type BatchParts, writeRows } from './routes.ts';
import { requestsSchema, WIRES } from './wires.ts';

const CREATE = requestsSchema({
  type: 'object',
  required: ['custom_id', 'params'],
  additionalProperties: false,
  properties: {
    custom_id: { type: 'string', pattern: '^[a-zA-Z0-9_-]{1,64}$' },
    params: { type: 'object', description: 'Body of `POST /v1/messages`.' },
  },
});

const BATCH: Schema = {
  type: 'object',
  required: ['id', 'type', 'processing_status', 'request_counts'],
  properties: { id: { type: 'string' }, type: { const: 'message_batch' }, processing_status: { type: 'string' } },
};

const PAGE_QUERY = Object.freeze({
  type: 'object',
  properties: {
    limit: { type: 'string', pattern: '^(?:[1-9]\\d?\\d?|1000)$' },
    after_id: { type: 'string', maxLength: 128 },
    beta: { type: 'string', maxLength: 16 },
  },
});

const PATH = '/v1/messages/batches';

/** Anthropic's message batches. Source: https://platform.claude.com/docs/en/api/messages/batches */
export function anthropicBatches(api: Pick<PluginApi, 'models'>, { maxBytes }: BatchParts): BatchFormat {
  return {
    wire: 'anthropic',
    path: PATH,
    kind: ' of messages',
    schema: BATCH,
    create: {
      body: CREATE,
      maxBodyBytes: maxBytes,
      description: 'Each request is checked like a single message.',
      read: (ctx) => readRequests(api, ctx),
    },
    list: {
      query: PAGE_QUERY,
      limit: 'limit',
      after: 'after_id',
      schema: { type: 'object', required: ['data', 'has_more'] },
      write: ({ batches, hasMore }) => writeRows(batches, hasMore),
    },
    show,
    cancel: { path: `${PATH}/:id/cancel` },
    results(record) {
      return hasResults(record) ? WIRES.anthropic.results({ ...record.batch, id: record.vendor }) : undefined;
    },
    deletion: {
      schema: { type: 'object', required: ['id', 'type'] },
      write: ({ id }) => ({ id, type: 'message_batch_deleted' }),
    },
  };
}

async function readRequests(api: Pick<PluginApi, 'models'>, ctx: RouteContext): Promise<Begin> {
  const { requests } = ctx.state.body as {
    readonly requests: readonly { readonly custom_id: string; readonly params: JsonObject }[];
  };
  const checker = new Checker(api, ctx, 'messages', 'anthropic');
  const checked: object[] = [];
  for (const [at, { custom_id: customId, params }] of requests.entries()) {
    const body = Buffer.from(JSON.stringify(params));
    checked.push({ custom_id: customId, params: await checker.add({ customId, body, place: `requests[${at}]` }) });
  }
  const { headers, dropped } = checker.sent;
  return {
    checked: checker.checked,
    request: { method: 'POST', path: PATH, body: { requests: checked }, ...(headers && { headers }), dropped },
  };
}

function hasResults({ batch, held }: BatchRecord): boolean {
  return held === undefined && readString(batch['results_url']) !== undefined;
}

const COUNTS = Object.freeze(['processing', 'succeeded', 'errored', 'canceled', 'expired']);
const TIMES = Object.freeze(['created_at', 'expires_at', 'ended_at', 'cancel_initiated_at', 'archived_at']);

/** Vendor's batch under the gateway's id; its results are served here. */
function show(record: BatchRecord, ctx: RouteContext): JsonObject {
  const { id, batch } = record;
  const counts = readObject(batch['request_counts']);
  return {
    id,
    type: 'message_batch',
    processing_status: readString(batch['processing_status']) ?? 'in_progress',
    request_counts: Object.fromEntries(
      COUNTS.map((name) => [name, typeof counts[name] === 'number' ? counts[name] : 0]),
    ),
    ...Object.fromEntries(TIMES.map((name) => [name, readString(batch[name]) ?? null])),
    // URL of the request, including the path prefix of this gateway.
    results_url: hasResults(record)
      ? `${ctx.protocol}://${ctx.host}${ctx.originalUrl.split(PATH)[0] ?? ''}${PATH}/${id}/results`
      : null,
  };
}
