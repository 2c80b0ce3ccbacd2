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
import type { Begin } from './begin.ts';
import { Checker, wrong } from './check.ts';
import type { BatchRecord } from './records.ts';
import type { BatchFormat, BatchParts } from './routes.ts';
import { googleResults, METADATA, requestsSchema } from './wires.ts';

/** Google's limit for requests sent with a batch: https://ai.google.dev/gemini-api/docs/batch-api */
const MAX_INLINE_BYTES = 20 * 1024 * 1024;

/** Field under both of its names, as Google's servers accept it. */
const both = (camel: string, snake: string, schema: Schema): Readonly<Record<string, Schema>> => ({
  [camel]: schema,
  [snake]: schema,
});

const REQUESTS = requestsSchema({
  type: 'object',
  required: ['request'],
  additionalProperties: false,
  properties: {
    request: { type: 'object', description: 'Body of `models/{model}:generateContent`.' },
    metadata: METADATA,
  },
});

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

/** Versions of Google's API; its newer client uses `v1`. */
const VERSIONS = Object.freeze(['v1beta', 'v1']);

/** Google's batches of generateContent. Source: https://ai.google.dev/api/batch-api */
export function googleBatches(
  api: Pick<PluginApi, 'models'>,
  { maxBytes, settler }: Pick<BatchParts, 'maxBytes' | 'settler'>,
): BatchFormat {
  return {
    wire: 'gemini',
    path: PATH,
    kind: ' in Gemini’s format',
    schema: OPERATION,
    create: {
      paths: VERSIONS.map((version) => `/${version}/models/*model\\:batchGenerateContent`),
      body: CREATE,
      maxBodyBytes: Math.min(maxBytes, MAX_INLINE_BYTES),
      description: 'Each request is checked like a single one.',
      read: (ctx) => readRequests(api, ctx),
    },
    list: {
      query: PAGE_QUERY,
      limit: 'pageSize',
      after: 'pageToken',
      schema: { type: 'object', required: ['operations'] },
      write: ({ batches, last, hasMore }) => ({ operations: batches, ...(hasMore && { nextPageToken: last }) }),
    },
    show: (record) => show(record),
    showWhole: async (record) => show(record, await resultsOf(record, settler)),
    cancel: {
      path: `${PATH}/:id\\:cancel`,
      body: { body: { type: 'object' }, bodyOptional: true },
      response: {},
    },
    deletion: { schema: { type: 'object' }, write: () => ({}) },
  };
}

/** Routes for file uploads by Google's clients, which are refused. */
export function addUploadRoutes(api: Pick<PluginApi, 'route'>): void {
  for (const version of VERSIONS) addUploadRoute(api, version);
}

/** Files of requests would have to be stored here until a batch names their model: Google returns no uploaded file. */
const NO_FILES =
  'Google’s Files API is not supported, since all callers share the operator’s account. Send the requests as `inputConfig.requests`, in several batches if there are too many.';

/** Adds a route that refuses file uploads of Google's clients and names the alternative. */
function addUploadRoute(api: Pick<PluginApi, 'route'>, version: string): void {
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

async function readRequests(api: Pick<PluginApi, 'models'>, ctx: RouteContext): Promise<Begin> {
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
  return {
    checked: checker.checked,
    request: {
      method: 'POST',
      path: path.replace(/:generateContent$/, ':batchGenerateContent'),
      body: { batch: { displayName, inputConfig: { requests: { requests } } } },
      ...(headers && { headers }),
      dropped: [...dropped, ...(batch['priority'] === undefined ? [] : ['batch.priority'])],
    },
  };
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

/** Results of an ended batch; undefined without any. */
async function resultsOf(
  record: BatchRecord,
  settler: Pick<BatchParts['settler'], 'readBatch'>,
): Promise<readonly unknown[] | undefined> {
  if (record.held !== undefined || record.batch['error'] !== undefined) return undefined;
  const results = googleResults(await settler.readBatch(record));
  return results.length > 0 ? results : undefined;
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
