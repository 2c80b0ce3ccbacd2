import { readFile } from 'node:fs/promises';
import { Readable } from 'node:stream';
import {
  exceedsBounds,
  GatewayError,
  isObject,
  type JsonObject,
  type PluginApi,
  type RouteContext,
  type Schema,
} from '../../../contract/index.ts';
import { multipartBody } from '../../formats/kit/index.ts';
import { keyOf } from './begin.ts';
import { Checker, wrong } from './check.ts';
import { type FileRecord, newId, ownerOf } from './records.ts';
import { type BatchParts, idOf, limitOf, MAX_PAGE, passNotFound, writeRows } from './routes.ts';
import type { Settler } from './settle.ts';
import { vendorId } from './wires.ts';

/** Dialects of lines by their path. */
export const DIALECTS: Readonly<Record<string, string>> = Object.freeze({
  '/v1/chat/completions': 'chat',
  '/v1/responses': 'responses',
});

export const PAGE_QUERY = Object.freeze({
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
const DELETED: Schema = { type: 'object', required: ['id', 'object', 'deleted'] };
export const listOf = (items: Schema): Schema => ({
  type: 'object',
  required: ['object', 'data', 'has_more'],
  properties: { object: { const: 'list' }, data: { type: 'array', items } },
});

/** OpenAI's files, for batches alone. Source: https://platform.openai.com/docs/api-reference/files */
export function addFileRoutes(
  api: PluginApi,
  { records, settler, maxBytes }: Pick<BatchParts, 'records' | 'settler' | 'maxBytes'>,
): void {
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
      const query = Object.fromEntries(new URLSearchParams((ctx as RouteContext).querystring));
      const limit = limitOf(query['limit'], MAX_PAGE);
      const { rows, hasMore } = await files.list(ctx.state.principal, limit, query['after']);
      ctx.body = writePage(rows.map(showFile), hasMore);
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

/** Page of a list, in OpenAI's form. */
export function writePage(data: readonly JsonObject[], hasMore: boolean): JsonObject {
  return { object: 'list', ...writeRows(data, hasMore) };
}
