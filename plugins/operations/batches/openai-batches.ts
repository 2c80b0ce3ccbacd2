import {
  GatewayError,
  isObject,
  type JsonObject,
  type PluginApi,
  type RouteContext,
  readObject,
  readString,
  type Schema,
} from '../../../contract/index.ts';
import { type Begin, keyOf } from './begin.ts';
import { DIALECTS, listOf, PAGE_QUERY, writePage } from './openai-files.ts';
import type { BatchRecord, Records } from './records.ts';
import type { BatchFormat, BatchParts } from './routes.ts';
import type { Settler } from './settle.ts';
import { errorsOf, METADATA, secondsOf, statusOf, vendorId } from './wires.ts';

const PATH = '/v1/batches';

const BATCH: Schema = {
  type: 'object',
  required: ['id', 'object', 'endpoint', 'status', 'input_file_id'],
  properties: { id: { type: 'string' }, object: { const: 'batch' }, status: { type: 'string' } },
};
const CREATE: Schema = {
  type: 'object',
  required: ['input_file_id', 'endpoint', 'completion_window'],
  additionalProperties: false,
  properties: {
    input_file_id: { type: 'string', maxLength: 128 },
    endpoint: { type: 'string', maxLength: 128 },
    completion_window: { const: '24h' },
    metadata: METADATA,
  },
};

/** OpenAI's batches. Source: https://platform.openai.com/docs/api-reference/batch */
export function openAiBatches(
  api: Pick<PluginApi, 'redact'>,
  { records, settler }: Pick<BatchParts, 'records' | 'settler'>,
): BatchFormat {
  return {
    wire: 'openai',
    path: PATH,
    kind: '',
    schema: BATCH,
    create: {
      body: CREATE,
      description: 'Needs a file that was uploaded with the same key.',
      read: (ctx) => readFileOfRequests(ctx, records, settler),
    },
    list: {
      query: PAGE_QUERY,
      limit: 'limit',
      after: 'after',
      schema: listOf(BATCH),
      write: ({ batches, hasMore }) => writePage(batches, hasMore),
    },
    onRead: (record) => keepOutputs(records, record),
    show: (record) => showBatch(record, api.redact),
    cancel: { path: `${PATH}/:id/cancel` },
  };
}

/** Reads a batch whose requests are a file that the caller uploaded. Throws for a file with another purpose. */
async function readFileOfRequests(
  ctx: RouteContext,
  { files }: Pick<Records, 'files'>,
  settler: Pick<Settler, 'urlOf'>,
): Promise<Begin> {
  const { input_file_id: input, endpoint, metadata } = ctx.state.body as JsonObject;
  const { checked, key, vendor } = await files.getOwn(ctx.state.principal, String(input));
  if (!checked)
    throw new GatewayError('invalid_request', 'This file contains results. Use a file of requests.', {
      param: 'input_file_id',
    });
  if (key !== keyOf(ctx))
    throw new GatewayError(
      'permission_denied',
      'This file was uploaded with another key. Upload it with the key that creates the batch.',
    );
  if (DIALECTS[String(endpoint)] !== checked.dialect)
    throw new GatewayError('invalid_request', '`endpoint` must be the url of the lines in this file.', {
      param: 'endpoint',
    });
  const body = {
    input_file_id: vendor,
    endpoint: settler.urlOf(checked.provider, checked.dialect, String(endpoint)),
    completion_window: '24h',
    ...(isObject(metadata) && { metadata }),
  };
  return { checked, input: String(input), request: { method: 'POST', path: '/batches', body } };
}

const OUTPUTS = Object.freeze(['output', 'error'] as const);

/** Deterministic ids of the output files of a batch. */
function outputId({ id, batch }: BatchRecord, kind: (typeof OUTPUTS)[number]): string | null {
  return readString(batch[`${kind}_file_id`]) ? `file-${id.slice('batch_'.length)}-${kind}` : null;
}

/** Records the owner of the output files of a batch. */
async function keepOutputs({ files }: Records, record: BatchRecord): Promise<void> {
  for (const kind of OUTPUTS) {
    const id = outputId(record, kind);
    const of = record.batch[`${kind}_file_id`];
    if (id === null || (await files.any(id))) continue;
    const { owner, account, key, provider } = record;
    await files.add({
      id,
      owner,
      account,
      key,
      provider,
      vendor: vendorId(of),
      purpose: 'batch_output',
      bytes: 0,
      createdAt: Math.floor(Date.now() / 1000),
      filename: `${record.id}_${kind}.jsonl`,
    });
  }
}

const TIMES = Object.freeze(
  ['in_progress', 'expires', 'finalizing', 'completed', 'failed', 'expired', 'cancelling', 'cancelled'].map(
    (name) => `${name}_at`,
  ),
);

/** Vendor's batch under the gateway's ids and names. */
function showBatch(record: BatchRecord, redact: (text: string) => string): JsonObject {
  const { id, batch, input, checked, createdAt } = record;
  const counts = readObject(batch['request_counts']);
  const count = (name: string): number => (typeof counts[name] === 'number' ? counts[name] : 0);
  const endpoint = Object.keys(DIALECTS).find((url) => DIALECTS[url] === checked.dialect);
  return {
    id,
    object: 'batch',
    endpoint,
    model: checked.requested,
    errors: errorsOf(batch, redact),
    input_file_id: input,
    completion_window: '24h',
    status: statusOf(batch) ?? 'validating',
    output_file_id: outputId(record, 'output'),
    error_file_id: outputId(record, 'error'),
    created_at: createdAt,
    ...Object.fromEntries(TIMES.map((name) => [name, secondsOf(batch[name]) ?? null])),
    request_counts: { total: count('total'), completed: count('completed'), failed: count('failed') },
    metadata: isObject(batch['metadata']) ? batch['metadata'] : null,
  };
}
