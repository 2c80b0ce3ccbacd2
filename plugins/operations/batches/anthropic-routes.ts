import { Readable } from 'node:stream';
import {
  GatewayError,
  type JsonObject,
  type PluginApi,
  type RouteContext,
  readObject,
  readString,
  type Schema,
} from '../../../contract/index.ts';
import { Checker } from './check.ts';
import { type BatchParts, findBatch, passNotFound } from './openai-routes.ts';
import type { BatchRecord } from './records.ts';
import { MAX_REQUESTS, WIRES } from './wires.ts';

const CREATE: Schema = {
  type: 'object',
  required: ['requests'],
  additionalProperties: false,
  properties: {
    requests: {
      type: 'array',
      minItems: 1,
      maxItems: MAX_REQUESTS,
      items: {
        type: 'object',
        required: ['custom_id', 'params'],
        additionalProperties: false,
        properties: {
          custom_id: { type: 'string', pattern: '^[a-zA-Z0-9_-]{1,64}$' },
          params: { type: 'object', description: 'Body of `POST /v1/messages`.' },
        },
      },
    },
  },
};

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
export function addAnthropicRoutes(api: PluginApi, parts: BatchParts): void {
  addBeginRoute(api, parts);
  addReadRoutes(api, parts);
  addEndRoutes(api, parts);
}

function addBeginRoute(api: PluginApi, { begin, maxBytes }: BatchParts): void {
  api.route({
    method: 'POST',
    path: PATH,
    auth: ['key'],
    summary: 'Create a batch of messages',
    isIdempotent: true,
    body: CREATE,
    maxBodyBytes: maxBytes,
    description:
      'Each request is checked like a single message. The maximum cost, at batch prices, is reserved until the batch ends. Failed requests are free.',
    responses: { 200: { description: 'The batch.', schema: BATCH } },
    async handler(context) {
      const ctx = context as RouteContext;
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
      const record = await begin(ctx, {
        checked: checker.checked,
        request: { method: 'POST', path: PATH, body: { requests: checked }, ...(headers && { headers }), dropped },
      });
      ctx.body = show(ctx, record);
    },
  });
}

/** Routes to read batches: a list, a batch, its results. */
function addReadRoutes(api: PluginApi, { records, settler }: BatchParts): void {
  api.route({
    method: 'GET',
    path: PATH,
    auth: ['key'],
    summary: 'List the caller’s batches of messages',
    query: PAGE_QUERY,
    description: 'Returns the last known status; GET by id refreshes it.',
    responses: {
      200: { description: 'A page of batches.', schema: { type: 'object', required: ['data', 'has_more'] } },
    },
    async handler(context) {
      const ctx = context as RouteContext;
      const query = Object.fromEntries(new URLSearchParams(ctx.querystring));
      const limit = Math.min(Number(query['limit'] ?? 20), 200);
      const { rows, hasMore } = await records.batches.list(ctx.state.principal, limit, query['after_id']);
      const data = rows.filter(({ checked }) => checked.dialect === 'messages').map((row) => show(ctx, row));
      const ends = { first_id: data[0]?.['id'] ?? null, last_id: data.at(-1)?.['id'] ?? null };
      ctx.body = { data, has_more: hasMore, ...ends };
    },
  });
  api.route({
    method: 'GET',
    path: `${PATH}/:id`,
    auth: ['key'],
    summary: 'Get a batch of messages of the caller',
    responses: { 200: { description: 'The batch.', schema: BATCH } },
    async handler(context) {
      const ctx = context as RouteContext;
      ctx.body = show(ctx, await settler.refresh(await findBatch(records, ctx, 'anthropic')));
    },
  });
  api.route({
    method: 'GET',
    path: `${PATH}/:id/results`,
    auth: ['key'],
    summary: 'Get the results of a batch of messages',
    responses: { 200: { description: 'One result per line.', contentType: 'application/x-jsonl' } },
    async handler(context) {
      const ctx = context as RouteContext;
      const record = await settler.refresh(await findBatch(records, ctx, 'anthropic'));
      if (record.held !== undefined || resultsOf(record) === undefined)
        throw new GatewayError('invalid_request', 'This batch has no results yet. Get the batch to see its status.');
      const path = WIRES.anthropic.results({ ...record.batch, id: record.vendor }) ?? '';
      const response = await settler.send(record.provider, { method: 'GET', path }, ctx.state.signal);
      ctx.type = 'application/x-jsonl';
      ctx.body = Readable.from(response.body);
    },
  });
}

/** Routes to cancel a batch, and to delete an ended one. */
function addEndRoutes(api: PluginApi, { records, settler }: BatchParts): void {
  api.route({
    method: 'POST',
    path: `${PATH}/:id/cancel`,
    auth: ['key'],
    summary: 'Cancel a batch of messages',
    description: 'Finished requests are charged, and their results can be read.',
    responses: { 200: { description: 'The batch.', schema: BATCH } },
    async handler(context) {
      const ctx = context as RouteContext;
      const record = await findBatch(records, ctx, 'anthropic');
      const path = WIRES.anthropic.cancel(record.vendor);
      if (record.held !== undefined) await settler.sendForJson(record.provider, { method: 'POST', path });
      ctx.body = show(ctx, await settler.refresh(record));
    },
  });
  api.route({
    method: 'DELETE',
    path: `${PATH}/:id`,
    auth: ['key'],
    summary: 'Delete an ended batch of messages',
    description: 'Deletes it in the gateway and at the provider.',
    responses: { 200: { description: 'Deleted.', schema: { type: 'object', required: ['id', 'type'] } } },
    async handler(context) {
      const ctx = context as RouteContext;
      const record = await settler.refresh(await findBatch(records, ctx, 'anthropic'));
      if (record.held !== undefined)
        throw new GatewayError('invalid_request', 'This batch has not ended. Cancel it first, then delete it.');
      const path = WIRES.anthropic.path(record.vendor);
      await settler.send(record.provider, { method: 'DELETE', path }).catch(passNotFound);
      await records.batches.remove(record);
      ctx.body = { id: record.id, type: 'message_batch_deleted' };
    },
  });
}

function resultsOf({ batch }: BatchRecord): string | undefined {
  return readString(batch['results_url']);
}

const COUNTS = Object.freeze(['processing', 'succeeded', 'errored', 'canceled', 'expired']);
const TIMES = Object.freeze(['created_at', 'expires_at', 'ended_at', 'cancel_initiated_at', 'archived_at']);

/** Vendor's batch under the gateway's id; its results are served here. */
function show(ctx: RouteContext, record: BatchRecord): JsonObject {
  const { id, batch, held } = record;
  const counts = readObject(batch['request_counts']);
  const isThere = held === undefined && resultsOf(record) !== undefined;
  return {
    id,
    type: 'message_batch',
    processing_status: readString(batch['processing_status']) ?? 'in_progress',
    request_counts: Object.fromEntries(
      COUNTS.map((name) => [name, typeof counts[name] === 'number' ? counts[name] : 0]),
    ),
    ...Object.fromEntries(TIMES.map((name) => [name, readString(batch[name]) ?? null])),
    // URL of the request, including the path prefix of this gateway.
    results_url: isThere
      ? `${ctx.protocol}://${ctx.host}${ctx.originalUrl.split(PATH)[0] ?? ''}${PATH}/${id}/results`
      : null,
  };
}
