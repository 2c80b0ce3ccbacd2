import {
  GatewayError,
  isObject,
  type JsonObject,
  type PluginApi,
  type RouteContext,
  readArray,
  readObject,
  readString,
  type Schema,
} from '../../../contract/index.ts';
import { Checker, wrong } from './check.ts';
import { type BatchParts, findBatch, passNotFound } from './openai-routes.ts';
import type { BatchRecord } from './records.ts';
import { googleResults, MAX_REQUESTS, WIRES } from './wires.ts';

/** Google's limit for requests sent with a batch: https://ai.google.dev/gemini-api/docs/batch-api */
const MAX_INLINE_BYTES = 20 * 1024 * 1024;

/** Field under both of its names, as Google's servers accept it. */
const both = (camel: string, snake: string, schema: Schema): Readonly<Record<string, Schema>> => ({
  [camel]: schema,
  [snake]: schema,
});

const METADATA: Schema = {
  type: ['object', 'null'],
  maxProperties: 16,
  additionalProperties: { type: 'string', maxLength: 512 },
};

const REQUESTS: Schema = {
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
        required: ['request'],
        additionalProperties: false,
        properties: {
          request: { type: 'object', description: 'Body of `models/{model}:generateContent`.' },
          metadata: METADATA,
        },
      },
    },
  },
};

const INPUT: Schema = {
  type: 'object',
  additionalProperties: false,
  properties: { requests: REQUESTS, ...both('fileName', 'file_name', { type: 'string', maxLength: 256 }) },
};

const CREATE: Schema = {
  type: 'object',
  required: ['batch'],
  additionalProperties: false,
  properties: {
    batch: {
      type: 'object',
      additionalProperties: false,
      properties: {
        model: { type: 'string', maxLength: 256 },
        ...both('displayName', 'display_name', { type: 'string', maxLength: 256 }),
        ...both('inputConfig', 'input_config', INPUT),
        priority: {
          type: ['string', 'integer'],
          description: 'Dropped and reported, since all callers share what it acts on.',
        },
      },
    },
  },
};

const OPERATION: Schema = {
  type: 'object',
  required: ['name', 'metadata'],
  properties: { name: { type: 'string' }, done: { type: 'boolean' }, metadata: { type: 'object' } },
};

const PAGE_QUERY = Object.freeze({
  type: 'object',
  properties: {
    pageSize: { type: 'string', pattern: '^\\d{1,4}$' },
    pageToken: { type: 'string', maxLength: 128 },
  },
});

const PATH = '/v1beta/batches';

/** Google's batches of generateContent. Source: https://ai.google.dev/api/batch-api */
export function addGoogleRoutes(api: PluginApi, parts: BatchParts): void {
  // Google's newer client uses `v1`.
  for (const version of ['v1beta', 'v1']) {
    addBeginRoute(api, parts, version);
    addUploadRoute(api, version);
  }
  addReadRoutes(api, parts);
  addEndRoutes(api, parts);
}

/** Files of requests would have to be stored here until a batch names their model: Google returns no uploaded file. */
const NO_FILES =
  'Google’s Files API is not supported, since all callers share the operator’s account. Send the requests as `inputConfig.requests`, in several batches if there are too many.';

/** Returns an error with the alternative to file uploads by Google's clients. */
function addUploadRoute(api: PluginApi, version: string): void {
  const path = `/upload/${version}/files`;
  api.route({
    method: 'POST',
    path,
    auth: ['key'],
    summary: 'Not supported; the error names the alternative',
    description: NO_FILES,
    responses: { 404: NO_FILES },
    errorNote: () => NO_FILES,
    handler() {
      throw new GatewayError('not_found', `${path} is not supported.`);
    },
  });
}

function addBeginRoute(api: PluginApi, { begin, maxBytes }: BatchParts, version: string): void {
  api.route({
    method: 'POST',
    path: `/${version}/models/*model\\:batchGenerateContent`,
    auth: ['key'],
    isIdempotent: true,
    summary: 'Create a batch in Gemini’s format',
    body: CREATE,
    maxBodyBytes: Math.min(maxBytes, MAX_INLINE_BYTES),
    description:
      'Each request is checked like a single one. The maximum cost, at batch prices, is reserved until the batch ends. Failed requests are free.',
    responses: { 200: { description: 'The batch, as an operation.', schema: OPERATION } },
    async handler(context) {
      const ctx = context as RouteContext;
      const { batch } = ctx.state.body as { readonly batch: JsonObject };
      const checker = new Checker(api, ctx, 'gemini', 'gemini');
      const requests: object[] = [];
      for (const [at, { request, metadata }] of requestsOf(batch).entries()) {
        const place = `requests[${at}]`;
        const body = Buffer.from(JSON.stringify(request));
        const checked = await checker.add({ customId: String(at), body, place });
        requests.push({ request: checked, ...(isObject(metadata) && { metadata }) });
      }
      const { path, headers, dropped } = checker.sent;
      const displayName = readString(batch['displayName'] ?? batch['display_name']) ?? 'batch';
      const record = await begin(ctx, {
        checked: checker.checked,
        request: {
          method: 'POST',
          path: path.replace(/:generateContent$/, ':batchGenerateContent'),
          body: { batch: { displayName, inputConfig: { requests: { requests } } } },
          ...(headers && { headers }),
          dropped: [...dropped, ...(batch['priority'] === undefined ? [] : ['batch.priority'])],
        },
      });
      ctx.body = show(record);
    },
  });
}

/** Requests of a batch. Throws for requests in a file. */
function requestsOf(batch: JsonObject): readonly JsonObject[] {
  const input = readObject(batch['inputConfig'] ?? batch['input_config']);
  if ((input['fileName'] ?? input['file_name']) !== undefined)
    throw new GatewayError('invalid_request', NO_FILES, { param: 'batch.inputConfig.fileName' });
  const requests = readArray(readObject(input['requests'])['requests']).filter(isObject);
  if (requests.length === 0) throw wrong('`batch.inputConfig.requests`', 'must contain at least one request');
  return requests;
}

/** Routes to read batches: a list, and a batch with its results. */
function addReadRoutes(api: PluginApi, { records, settler }: BatchParts): void {
  api.route({
    method: 'GET',
    path: PATH,
    auth: ['key'],
    summary: 'List the caller’s batches in Gemini’s format',
    query: PAGE_QUERY,
    description: 'Returns the last known status; GET by name refreshes it.',
    responses: {
      200: { description: 'A page of operations.', schema: { type: 'object', required: ['operations'] } },
    },
    async handler(context) {
      const ctx = context as RouteContext;
      const query = Object.fromEntries(new URLSearchParams(ctx.querystring));
      const limit = Math.min(Math.max(Number(query['pageSize'] ?? 20), 1), 200);
      const { rows, hasMore } = await records.batches.list(ctx.state.principal, limit, query['pageToken'] || undefined);
      const operations = rows.filter(({ id }) => id.startsWith(WIRES.gemini.prefix)).map((row) => show(row));
      const last = rows.at(-1);
      ctx.body = { operations, ...(hasMore && last && { nextPageToken: last.id }) };
    },
  });
  api.route({
    method: 'GET',
    path: `${PATH}/:id`,
    auth: ['key'],
    summary: 'Get a batch of the caller in Gemini’s format',
    description: 'An ended batch contains the results, in the order of its requests.',
    responses: { 200: { description: 'The operation.', schema: OPERATION } },
    async handler(context) {
      const ctx = context as RouteContext;
      const record = await settler.refresh(await findBatch(records, ctx, 'gemini'));
      ctx.body = show(record, await resultsOf(record, settler));
    },
  });
}

/** Results of an ended batch; undefined without any. */
async function resultsOf(
  record: BatchRecord,
  settler: Pick<BatchParts['settler'], 'readBatch'>,
): Promise<readonly unknown[] | undefined> {
  if (record.held !== undefined || record.batch['error'] !== undefined) return undefined;
  const results = googleResults(await settler.readBatch(record));
  return results.length > 0 ? results : undefined;
}

/** Routes to cancel a batch, and to delete an ended one. */
function addEndRoutes(api: PluginApi, { records, settler }: BatchParts): void {
  api.route({
    method: 'POST',
    path: `${PATH}/:id\\:cancel`,
    auth: ['key'],
    summary: 'Cancel a batch in Gemini’s format',
    description: 'Finished requests are charged, and their results can be read.',
    body: { type: 'object' } as Schema,
    bodyOptional: true,
    responses: { 200: { description: 'Nothing.', schema: { type: 'object' } } },
    async handler(context) {
      const record = await findBatch(records, context as RouteContext, 'gemini');
      const path = WIRES.gemini.cancel(record.vendor);
      if (record.held !== undefined) await settler.sendForJson(record.provider, { method: 'POST', path });
      await settler.refresh(record);
      context.body = {};
    },
  });
  api.route({
    method: 'DELETE',
    path: `${PATH}/:id`,
    auth: ['key'],
    summary: 'Delete a batch in Gemini’s format',
    description: 'Deletes an ended batch in the gateway and at the provider.',
    responses: { 200: { description: 'Deleted.', schema: { type: 'object' } } },
    async handler(context) {
      const record = await settler.refresh(await findBatch(records, context as RouteContext, 'gemini'));
      if (record.held !== undefined)
        throw new GatewayError('invalid_request', 'This batch has not ended. Cancel it first, then delete it.');
      const path = WIRES.gemini.path(record.vendor);
      await settler.send(record.provider, { method: 'DELETE', path }).catch(passNotFound);
      await records.batches.remove(record);
      context.body = {};
    },
  });
}

const SHOWN = Object.freeze(['displayName', 'createTime', 'updateTime', 'endTime', 'state', 'batchStats']);

/** Vendor's batch under the gateway's name, with the model as the caller named it. */
function show({ id, batch, checked, held }: BatchRecord, results?: readonly unknown[]): JsonObject {
  const name = `batches/${id}`;
  const metadata = readObject(batch['metadata']);
  const inlined = results && { inlinedResponses: { inlinedResponses: results } };
  const error = readObject(batch['error']);
  return {
    name,
    metadata: {
      '@type': 'type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch',
      name,
      model: `models/${checked.requested}`,
      ...Object.fromEntries(
        SHOWN.flatMap((field) => (metadata[field] === undefined ? [] : [[field, metadata[field]] as const])),
      ),
      ...(inlined && { output: inlined }),
    },
    ...(held === undefined && { done: true }),
    ...(batch['error'] !== undefined && {
      error: { code: error['code'] ?? 13, message: readString(error['message']) ?? '' },
    }),
    ...(inlined && {
      response: {
        '@type': 'type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatchOutput',
        ...inlined,
      },
    }),
  };
}
