import { readFile } from 'node:fs/promises';
import { Readable } from 'node:stream';
import {
  exceedsBounds,
  GatewayError,
  isObject,
  type JsonObject,
  type PluginApi,
  type RouteContext,
  readObject,
  readString,
  type Schema,
} from '../../../contract/index.ts';
import { multipartBody } from '../../formats/kit/index.ts';
import type { createBeginning } from './begin.ts';
import { keyOf } from './begin.ts';
import { Checker, wrong } from './check.ts';
import { type BatchRecord, type FileRecord, newId, ownerOf, type Records } from './records.ts';
import type { Settler } from './settle.ts';
import { errorsOf, secondsOf, statusOf, vendorId, WIRES } from './wires.ts';

/** Shared dependencies of the routes. */
export interface BatchParts {
  readonly records: Records;
  readonly settler: Settler;
  readonly begin: ReturnType<typeof createBeginning>['begin'];
  readonly maxBytes: number;
}

/** Dialects of lines by their path. */
const DIALECTS: Readonly<Record<string, string>> = Object.freeze({
  '/v1/chat/completions': 'chat',
  '/v1/responses': 'responses',
});

const PAGE_QUERY = Object.freeze({
  type: 'object',
  properties: {
    limit: { type: 'string', pattern: '^\\d{1,5}$' },
    after: { type: 'string', maxLength: 128 },
    order: { enum: ['desc'], description: 'Newest first.' },
    purpose: { type: 'string', maxLength: 64 },
  },
});

const FILE: Schema = {
  type: 'object',
  required: ['id', 'object', 'bytes', 'created_at', 'filename', 'purpose'],
  properties: { id: { type: 'string' }, object: { const: 'file' }, bytes: { type: 'integer' } },
};
const BATCH: Schema = {
  type: 'object',
  required: ['id', 'object', 'endpoint', 'status', 'input_file_id'],
  properties: { id: { type: 'string' }, object: { const: 'batch' }, status: { type: 'string' } },
};
const DELETED: Schema = { type: 'object', required: ['id', 'object', 'deleted'] };
const listOf = (items: Schema): Schema => ({
  type: 'object',
  required: ['object', 'data', 'has_more'],
  properties: { object: { const: 'list' }, data: { type: 'array', items } },
});

/** OpenAI's files and batches. Sources: https://platform.openai.com/docs/api-reference/files, …/batch */
export function addOpenAiRoutes(api: PluginApi, parts: BatchParts): void {
  addFileRoutes(api, parts);
  addBatchRoutes(api, parts);
}

function addFileRoutes(api: PluginApi, { records, settler, maxBytes }: BatchParts): void {
  const { files } = records;
  api.route({
    method: 'POST',
    path: '/v1/files',
    auth: ['key'],
    summary: 'Upload the requests of a batch',
    description:
      'Accepts a form with `file` (one JSON request per line) and `purpose: batch`. Checks each line like a single call; the first invalid line is an error.',
    form: { maxFileBytes: maxBytes, readsWhole: true },
    body: {
      type: 'object',
      required: ['purpose'],
      properties: { purpose: { type: 'string', maxLength: 64, description: 'Only `batch` is supported.' } },
    },
    responses: { 200: { description: 'The file.', schema: FILE } },
    async handler(ctx) {
      ctx.body = showFile(await upload(api, { records, settler }, ctx as RouteContext));
    },
  });
  api.route({
    method: 'GET',
    path: '/v1/files',
    auth: ['key'],
    summary: 'List the caller’s files',
    query: PAGE_QUERY,
    responses: { 200: { description: 'A page of files.', schema: listOf(FILE) } },
    async handler(ctx) {
      ctx.body = await page(ctx as RouteContext, files, 10_000, showFile);
    },
  });
  api.route({
    method: 'GET',
    path: '/v1/files/:id',
    auth: ['key'],
    summary: 'Get a file of the caller',
    responses: { 200: { description: 'The file.', schema: FILE } },
    async handler(ctx) {
      ctx.body = showFile(await files.getOwn(ctx.state.principal, idOf(ctx as RouteContext)));
    },
  });
  api.route({
    method: 'GET',
    path: '/v1/files/:id/content',
    auth: ['key'],
    summary: 'Get the content of a file of the caller',
    responses: { 200: { description: 'Lines of the file.', contentType: 'application/jsonl' } },
    async handler(ctx) {
      const { provider, vendor } = await files.getOwn(ctx.state.principal, idOf(ctx as RouteContext));
      const response = await settler.send(
        provider,
        { method: 'GET', path: `/files/${vendor}/content` },
        ctx.state.signal,
      );
      ctx.type = 'application/jsonl';
      ctx.body = Readable.from(response.body);
    },
  });
  api.route({
    method: 'DELETE',
    path: '/v1/files/:id',
    auth: ['key'],
    summary: 'Delete a file of the caller',
    description: 'Deletes it in the gateway and at the provider.',
    responses: { 200: { description: 'Deleted.', schema: DELETED } },
    async handler(ctx) {
      const file = await files.getOwn(ctx.state.principal, idOf(ctx as RouteContext));
      await settler.send(file.provider, { method: 'DELETE', path: `/files/${file.vendor}` }).catch(passNotFound);
      await files.remove(file);
      ctx.body = { id: file.id, object: 'file', deleted: true };
    },
  });
}

/** A file or batch that the vendor no longer has counts as deleted. */
export function passNotFound(error: unknown): void {
  if (readObject(error)['status'] !== 404) throw error;
}

async function upload(
  api: PluginApi,
  { records, settler }: Pick<BatchParts, 'records' | 'settler'>,
  ctx: RouteContext,
): Promise<FileRecord> {
  const file = uploadedFile(ctx);
  const { checker, written } = await checkLines(api, settler, ctx, await readFile(file.path));
  const { checked } = checker;
  const id = newId('file-');
  const form = multipartBody(
    [['purpose', 'batch']],
    [{ field: 'file', name: 'batch.jsonl', contentType: 'application/jsonl', bytes: written }],
    id,
  );
  const sent = await settler.sendForJson(checked.provider, { method: 'POST', path: '/files', ...form });
  const { dropped } = checker.sent;
  if (dropped.length > 0) ctx.set('x-tollgate-dropped', dropped.join(', '));
  const { principal } = ctx.state;
  const record: FileRecord = {
    id,
    owner: ownerOf(principal),
    account: principal.account,
    key: keyOf(ctx),
    provider: checked.provider,
    createdAt: Math.floor(Date.now() / 1000),
    vendor: vendorId(sent['id']),
    purpose: 'batch',
    filename: file.name.slice(0, 200),
    bytes: file.bytes,
    checked,
  };
  await records.files.add(record).catch(async (error: unknown) => {
    const gone = { method: 'DELETE', path: `/files/${record.vendor}` } as const;
    await settler
      .send(record.provider, gone)
      .catch((err: unknown) =>
        api.log.warn({ err }, 'a file without a record could not be deleted at its provider; delete it there'),
      );
    throw error;
  });
  return record;
}

/** Uploaded file of requests. Throws if it is missing or has another purpose. */
function uploadedFile({ state }: RouteContext) {
  const { purpose } = state.body as { readonly purpose: string };
  const file = state.files?.find(({ field }) => field === 'file');
  if (purpose !== 'batch')
    throw new GatewayError(
      'invalid_request',
      '`purpose` must be `batch`, since only files of batches are supported. Send other content in the request itself.',
      {
        param: 'purpose',
      },
    );
  if (!file || file.bytes === 0)
    throw new GatewayError('invalid_request', 'The form must have a non-empty file `file`.', { param: 'file' });
  return file;
}

/** Checks a file of requests line by line, and writes it for the vendor. */
async function checkLines(
  api: PluginApi,
  settler: Settler,
  ctx: RouteContext,
  bytes: Buffer,
): Promise<{ readonly checker: Checker; readonly written: Buffer }> {
  const lines: Buffer[] = [];
  let checker: Checker | undefined;
  let url: string | undefined;
  for (let from = 0, number = 1; from < bytes.length; number += 1) {
    const at = bytes.indexOf(10, from);
    const end = at === -1 ? bytes.length : at;
    const text = bytes.toString('utf8', from, end).trim();
    from = end + 1;
    if (text === '') continue;
    const place = `Line ${number}`;
    const line = readLine(text, place);
    const dialect = DIALECTS[line.url];
    if (dialect === undefined)
      throw wrong(
        place,
        `has the url "${line.url.slice(0, 80)}"; batches support only ${Object.keys(DIALECTS).join(' and ')}`,
      );
    url ??= line.url;
    if (line.url !== url) throw wrong(place, 'has another url than the first line');
    checker ??= new Checker(api, ctx, dialect, 'openai');
    const body = await checker.add({ customId: line.customId, body: line.body, place });
    const sent = { method: 'POST', url: settler.urlOf(checker.checked.provider, dialect, url), body };
    lines.push(Buffer.from(`${JSON.stringify({ custom_id: line.customId, ...sent })}\n`));
  }
  if (!checker)
    throw new GatewayError('invalid_request', 'The file is empty. Write one request per line.', { param: 'file' });
  return { checker, written: Buffer.concat(lines) };
}

function readLine(
  text: string,
  place: string,
): { readonly customId: string; readonly url: string; readonly body: Buffer } {
  let line: unknown;
  try {
    line = exceedsBounds(text) ? undefined : JSON.parse(text);
  } catch {
    // The error follows below.
  }
  if (!isObject(line)) throw wrong(place, 'must be a JSON object that is not nested too deeply');
  const { custom_id: customId, method, url, body } = line;
  if (typeof customId !== 'string' || customId === '' || customId.length > 256)
    throw wrong(place, 'needs a `custom_id` of 1 to 256 characters');
  if (method !== 'POST') throw wrong(place, 'needs `"method": "POST"`');
  if (typeof url !== 'string' || !isObject(body)) throw wrong(place, 'needs a `url` and an object `body`');
  return { customId, url, body: Buffer.from(JSON.stringify(body)) };
}

function showFile({ id, bytes, createdAt, filename, purpose }: FileRecord): JsonObject {
  return { id, object: 'file', bytes, created_at: createdAt, filename, purpose, status: 'processed' };
}

const CREATE: Schema = {
  type: 'object',
  required: ['input_file_id', 'endpoint', 'completion_window'],
  additionalProperties: false,
  properties: {
    input_file_id: { type: 'string', maxLength: 128 },
    endpoint: { type: 'string', maxLength: 128 },
    completion_window: { const: '24h' },
    metadata: {
      type: ['object', 'null'],
      maxProperties: 16,
      additionalProperties: { type: 'string', maxLength: 512 },
    },
  },
};

function addBatchRoutes(api: PluginApi, { records, settler, begin }: BatchParts): void {
  const { files, batches } = records;
  const show = (record: BatchRecord) => showBatch(record, api.redact);
  const find = (ctx: RouteContext) => findBatch(records, ctx, 'openai');
  api.route({
    method: 'POST',
    path: '/v1/batches',
    auth: ['key'],
    summary: 'Create a batch',
    isIdempotent: true,
    body: CREATE,
    description:
      'Needs a file that was uploaded with the same key. The maximum cost, at batch prices, is reserved until the batch ends. Failed requests are free.',
    responses: { 200: { description: 'The batch.', schema: BATCH } },
    async handler(ctx) {
      ctx.body = show(await beginOfFile(ctx as RouteContext, { files, settler, begin }));
    },
  });
  api.route({
    method: 'GET',
    path: '/v1/batches',
    auth: ['key'],
    summary: 'List the caller’s batches',
    query: PAGE_QUERY,
    description: 'Returns the last known status; GET by id refreshes it.',
    responses: { 200: { description: 'A page of batches.', schema: listOf(BATCH) } },
    async handler(ctx) {
      ctx.body = await page(ctx as RouteContext, batches, 20, show, ({ id }) => id.startsWith(WIRES.openai.prefix));
    },
  });
  api.route({
    method: 'GET',
    path: '/v1/batches/:id',
    auth: ['key'],
    summary: 'Get a batch of the caller',
    responses: { 200: { description: 'The batch.', schema: BATCH } },
    async handler(ctx) {
      const record = await settler.refresh(await find(ctx as RouteContext));
      await keepOutputs(records, record);
      ctx.body = show(record);
    },
  });
  api.route({
    method: 'POST',
    path: '/v1/batches/:id/cancel',
    auth: ['key'],
    summary: 'Cancel a batch of the caller',
    description: 'Finished requests are charged, and their results can be read.',
    responses: { 200: { description: 'The batch.', schema: BATCH } },
    async handler(ctx) {
      const record = await find(ctx as RouteContext);
      if (record.held !== undefined)
        await settler.sendForJson(record.provider, {
          method: 'POST',
          path: WIRES.openai.cancel(record.vendor),
        });
      const now = await settler.refresh(record);
      await keepOutputs(records, now);
      ctx.body = show(now);
    },
  });
}

/** Creates a batch from a file that the caller uploaded. Throws for a file with another purpose. */
async function beginOfFile(
  ctx: RouteContext,
  { files, settler, begin }: Pick<Records, 'files'> & Pick<BatchParts, 'settler' | 'begin'>,
): Promise<BatchRecord> {
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
  return begin(ctx, {
    checked,
    input: String(input),
    request: { method: 'POST', path: '/batches', body },
  });
}

/** Batch of the caller in this format. */
export async function findBatch(
  { batches }: Records,
  ctx: RouteContext,
  wire: keyof typeof WIRES,
): Promise<BatchRecord> {
  const id = idOf(ctx);
  return batches.getOwn(ctx.state.principal, id.startsWith(WIRES[wire].prefix) ? id : '');
}

export function idOf({ params }: RouteContext): string {
  return params['id'] ?? '';
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

interface Pages<T> {
  list(
    caller: RouteContext['state']['principal'],
    limit: number,
    after?: string,
  ): Promise<{ readonly rows: readonly T[]; readonly hasMore: boolean }>;
}

/** Page of a list, in OpenAI's form. */
async function page<T extends { readonly id: string }>(
  ctx: RouteContext,
  shelf: Pages<T>,
  usual: number,
  show: (row: T) => JsonObject,
  isShown: (row: T) => boolean = () => true,
): Promise<JsonObject> {
  const query = Object.fromEntries(new URLSearchParams(ctx.querystring));
  const limit = Math.min(Math.max(Number(query['limit'] ?? usual), 1), 200);
  const { rows, hasMore } = await shelf.list(ctx.state.principal, limit, query['after']);
  const data = rows.filter(isShown).map(show);
  return {
    object: 'list',
    data,
    has_more: hasMore,
    first_id: data[0]?.['id'] ?? null,
    last_id: data.at(-1)?.['id'] ?? null,
  };
}
