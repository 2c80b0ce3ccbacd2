import { Readable } from 'node:stream';
import {
  GatewayError,
  type JsonObject,
  type PluginApi,
  type Route,
  type RouteContext,
  readObject,
  type Schema,
} from '../../../contract/index.ts';
import type { Begin, createBeginning } from './begin.ts';
import type { BatchRecord, Records } from './records.ts';
import type { Settler } from './settle.ts';
import { WIRES } from './wires.ts';

/** Shared dependencies of the routes. */
export interface BatchParts {
  readonly records: Records;
  readonly settler: Settler;
  readonly begin: ReturnType<typeof createBeginning>['begin'];
  readonly maxBytes: number;
}

/** Page of a list of batches. */
export interface BatchPage {
  readonly batches: readonly JsonObject[];
  /** Id of the last batch, for the next page. */
  readonly last: string | undefined;
  readonly hasMore: boolean;
}

/** Vendor's format of batches. {@link addBatchRoutes} makes its routes. */
export interface BatchFormat {
  readonly wire: keyof typeof WIRES;
  /** Path of the list. */
  readonly path: string;
  /** Follows the word batch in the description of the API, such as ` of messages`. */
  readonly kind: string;
  /** Response with one batch. */
  readonly schema: Schema;
  readonly create: {
    /** Paths; default: that of the list. */
    readonly paths?: readonly string[];
    readonly body: Schema;
    readonly maxBodyBytes?: number;
    /** Text before the sentences about costs. */
    readonly description: string;
    /** Checks the requests, and writes the request that creates the batch at the vendor. */
    read(ctx: RouteContext): Promise<Begin>;
  };
  readonly list: {
    readonly query: Schema;
    /** Names of the query parameters for the number of batches, and for the id before the first one. */
    readonly limit: string;
    readonly after: string;
    readonly schema: Schema;
    write(page: BatchPage): JsonObject;
  };
  /** Runs each time the vendor's status of a batch was read. */
  onRead?(record: BatchRecord): Promise<void>;
  show(record: BatchRecord, ctx: RouteContext): JsonObject;
  /** Adds the results to a batch that is read alone, if the format has them there. */
  showWhole?(record: BatchRecord, ctx: RouteContext): Promise<JsonObject>;
  readonly cancel: {
    readonly path: string;
    /** Route members of a cancellation with a body. */
    readonly body?: Pick<Route, 'body' | 'bodyOptional'>;
    /** Response; default: the batch. */
    readonly response?: JsonObject;
  };
  /** Route of the results, for formats that have one; returns the vendor's path, or undefined before there are any. */
  results?(record: BatchRecord): string | undefined;
  /** Response to a deletion, for formats that have one. */
  readonly deletion?: { readonly schema: Schema; write(record: BatchRecord): JsonObject };
}

/** Default number of batches on a page. */
const PAGE = 20;
/** Maximum number of files or batches on a page. */
export const MAX_PAGE = 200;

/** Adds the routes of a format: create, list, read, cancel, and where it has them the results and the deletion. */
export function addBatchRoutes(api: PluginApi, parts: BatchParts, format: BatchFormat): void {
  addCreateRoutes(api, parts, format);
  addReadRoutes(api, parts, format);
  addCancelRoute(api, parts, format);
  if (format.results) addResultsRoute(api, parts, format);
  if (format.deletion) addDeleteRoute(api, parts, format, format.deletion);
}

function addCreateRoutes(api: PluginApi, { begin }: BatchParts, format: BatchFormat): void {
  const { paths = [format.path], body, maxBodyBytes, description, read } = format.create;
  for (const path of paths)
    api.route({
      method: 'POST',
      path,
      auth: ['key'],
      summary: `Create a batch${format.kind}`,
      isIdempotent: true,
      body,
      ...(maxBodyBytes !== undefined && { maxBodyBytes }),
      description: `${description} The maximum cost, at batch prices, is reserved until the batch ends. Failed requests are free.`,
      responses: { 200: { description: 'The batch.', schema: format.schema } },
      async handler(context) {
        const ctx = context as RouteContext;
        ctx.body = format.show(await begin(ctx, await read(ctx)), ctx);
      },
    });
}

function addReadRoutes(api: PluginApi, parts: BatchParts, format: BatchFormat): void {
  const { list, showWhole = format.show } = format;
  api.route({
    method: 'GET',
    path: format.path,
    auth: ['key'],
    summary: `List the caller’s batches${format.kind}`,
    query: list.query,
    description: 'Returns the last known status; GET by id refreshes it.',
    responses: { 200: { description: 'A page of batches.', schema: list.schema } },
    async handler(context) {
      const ctx = context as RouteContext;
      const query = Object.fromEntries(new URLSearchParams(ctx.querystring));
      const limit = limitOf(query[list.limit], PAGE);
      const { rows, hasMore } = await listBatches(parts, ctx, format, limit, query[list.after]);
      const batches = rows.map((row) => format.show(row, ctx));
      ctx.body = list.write({ batches, last: rows.at(-1)?.id, hasMore });
    },
  });
  api.route({
    method: 'GET',
    path: `${format.path}/:id`,
    auth: ['key'],
    summary: `Get a batch${format.kind}`,
    ...(format.showWhole && {
      description: 'An ended batch contains the results, in the order of its requests.',
    }),
    responses: { 200: { description: 'The batch.', schema: format.schema } },
    async handler(context) {
      const ctx = context as RouteContext;
      ctx.body = await showWhole(await readBatch(parts, ctx, format), ctx);
    },
  });
}

function addCancelRoute(api: PluginApi, parts: BatchParts, format: BatchFormat): void {
  const { path, body, response } = format.cancel;
  api.route({
    method: 'POST',
    path,
    auth: ['key'],
    summary: `Cancel a batch${format.kind}`,
    description: 'Finished requests are charged, and their results can be read.',
    ...body,
    responses: {
      200: response
        ? { description: 'Nothing.', schema: { type: 'object' } }
        : { description: 'The batch.', schema: format.schema },
    },
    async handler(context) {
      const ctx = context as RouteContext;
      const record = await findBatch(parts, ctx, format);
      if (record.held !== undefined) {
        const cancel = WIRES[format.wire].cancel(record.vendor);
        await parts.settler.sendForJson(record.provider, { method: 'POST', path: cancel });
      }
      const now = await refresh(parts, record, format);
      ctx.body = response ?? format.show(now, ctx);
    },
  });
}

function addResultsRoute(api: PluginApi, parts: BatchParts, format: BatchFormat): void {
  api.route({
    method: 'GET',
    path: `${format.path}/:id/results`,
    auth: ['key'],
    summary: `Get the results of a batch${format.kind}`,
    responses: { 200: { description: 'One result per line.', contentType: 'application/x-jsonl' } },
    async handler(context) {
      const ctx = context as RouteContext;
      const record = await readBatch(parts, ctx, format);
      const path = format.results?.(record);
      if (path === undefined)
        throw new GatewayError('invalid_request', 'This batch has no results yet. Get the batch to see its status.');
      const response = await parts.settler.send(record.provider, { method: 'GET', path }, ctx.state.signal);
      ctx.type = 'application/x-jsonl';
      ctx.body = Readable.from(response.body);
    },
  });
}

function addDeleteRoute(
  api: PluginApi,
  parts: BatchParts,
  format: BatchFormat,
  { schema, write }: NonNullable<BatchFormat['deletion']>,
): void {
  api.route({
    method: 'DELETE',
    path: `${format.path}/:id`,
    auth: ['key'],
    summary: `Delete an ended batch${format.kind}`,
    description: 'Deletes it in the gateway and at the provider.',
    responses: { 200: { description: 'Deleted.', schema } },
    async handler(context) {
      const ctx = context as RouteContext;
      const record = await readBatch(parts, ctx, format);
      if (record.held !== undefined)
        throw new GatewayError('invalid_request', 'This batch has not ended. Cancel it first, then delete it.');
      const path = WIRES[format.wire].path(record.vendor);
      await parts.settler.send(record.provider, { method: 'DELETE', path }).catch(passNotFound);
      await parts.records.batches.remove(record);
      ctx.body = write(record);
    },
  });
}

/** A file or batch that the vendor no longer has counts as deleted. */
export function passNotFound(error: unknown): void {
  if (readObject(error)['status'] !== 404) throw error;
}

/** Number of rows on a page, from a query. */
export function limitOf(text: string | undefined, usual: number): number {
  return Math.min(Math.max(Number(text ?? usual), 1), MAX_PAGE);
}

/** Rows of a page as OpenAI and Anthropic write them. */
export function writeRows(data: readonly JsonObject[], hasMore: boolean): JsonObject {
  return { data, has_more: hasMore, first_id: data[0]?.['id'] ?? null, last_id: data.at(-1)?.['id'] ?? null };
}

export function idOf({ params }: RouteContext): string {
  return params['id'] ?? '';
}

/** Batch of the caller in this format, with its last known status. */
async function findBatch({ records }: BatchParts, ctx: RouteContext, { wire }: BatchFormat): Promise<BatchRecord> {
  const id = idOf(ctx);
  return records.batches.getOwn(ctx.state.principal, id.startsWith(WIRES[wire].prefix) ? id : '');
}

/** Batch of the caller in this format, with the vendor's status. */
async function readBatch(parts: BatchParts, ctx: RouteContext, format: BatchFormat): Promise<BatchRecord> {
  return refresh(parts, await findBatch(parts, ctx, format), format);
}

async function refresh({ settler }: BatchParts, record: BatchRecord, format: BatchFormat): Promise<BatchRecord> {
  const now = await settler.refresh(record);
  await format.onRead?.(now);
  return now;
}

/** Page of the caller's batches in one format. Ids sort by prefix first, so they stand together. */
async function listBatches(
  { records }: BatchParts,
  ctx: RouteContext,
  { wire }: BatchFormat,
  limit: number,
  after: string | undefined,
): Promise<{ readonly rows: readonly BatchRecord[]; readonly hasMore: boolean }> {
  const { prefix } = WIRES[wire];
  const from = after?.startsWith(prefix) ? after : prefix;
  const { rows } = await records.batches.list(ctx.state.principal, limit + 1, from);
  const own = rows.filter(({ id }) => id.startsWith(prefix));
  return { rows: own.slice(0, limit), hasMore: own.length > limit };
}
