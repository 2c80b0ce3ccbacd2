import { rm } from 'node:fs/promises';
import os from 'node:os';
import { Readable, Transform } from 'node:stream';
import type Koa from 'koa';
import { GatewayError, isGatewayError } from '../contract/errors.ts';
import type { FormLimits, UploadedFile } from '../contract/plugin.ts';
import { HEAP_PER_BYTE, type Hold, type Memory, watchRate } from './memory.ts';
import { RequestAborted } from './read-body.ts';

/** The most text fields of a form, and their bytes in all. */
const MAX_FIELDS = 100;
const MAX_FIELD_BYTES = 1024 * 1024;

/** Where a form comes from, and where the memory that it needs is booked. */
export interface FormSource {
  /** The body when it was read already. */
  readonly bytes: Uint8Array | undefined;
  readonly hold: Hold;
  readonly memory: Memory;
}

export interface Form {
  /** Text fields; a field that came several times is a list. */
  readonly fields: Readonly<Record<string, string | readonly string[]>>;
  readonly files: readonly UploadedFile[];
  /** Deletes the uploaded files; for the end of the request. */
  remove(): Promise<void>;
}

/**
 * Reads a `multipart/form-data` body with koa-body, files into the system's temporary folder. For routes that take uploads
 * only: small and rare beside the JSON ones, whose reader (`read-body.ts`) is stricter and cheaper. Rejects with
 * `unsupported_media_type`, `request_too_large`, `request_timeout`, `invalid_request` or what the hold refuses with; nothing
 * stays behind.
 */
export async function readForm(ctx: Koa.Context, limits: FormLimits, source: FormSource): Promise<Form> {
  if (!ctx.is('multipart/form-data'))
    throw new GatewayError('unsupported_media_type', 'The content-type must be multipart/form-data.');
  const { koaBody } = await import('koa-body');
  const uploaded: string[] = [];
  const body = source.bytes ? { req: Readable.from([source.bytes]), stop() {} } : watchBody(ctx, source);
  const read = koaBody({
    json: false,
    text: false,
    urlencoded: false,
    multipart: true,
    formidable: {
      uploadDir: os.tmpdir(),
      maxFiles: limits.maxFiles ?? 1,
      maxFileSize: limits.maxFileBytes,
      maxTotalFileSize: limits.maxFileBytes * (limits.maxFiles ?? 1),
      maxFields: MAX_FIELDS,
      maxFieldsSize: MAX_FIELD_BYTES,
      onFileBegin: (_name: string, file: { filepath: string }) => void uploaded.push(file.filepath),
    },
  });
  const remove = async (): Promise<void> => {
    await Promise.all(uploaded.map((file) => rm(file, { force: true })));
  };
  try {
    await read(withBody(ctx, body.req), async () => undefined);
    return { fields: { ...(ctx.request.body as Form['fields']) }, files: filesOf(ctx), remove };
  } catch (cause) {
    await remove();
    if (isGatewayError(cause)) throw cause;
    if (ctx.req.destroyed && !ctx.req.complete)
      throw new RequestAborted('the caller hung up before the form was complete');
    const { httpCode } = cause as { httpCode?: number };
    if (httpCode === 413)
      throw new GatewayError(
        'request_too_large',
        `The form is too large: at most ${limits.maxFiles ?? 1} file(s) of ${limits.maxFileBytes} bytes.`,
        { cause },
      );
    throw new GatewayError('invalid_request', 'The body is not a valid multipart form.', { cause });
  } finally {
    body.stop();
  }
}

/** The same request with its body from elsewhere. */
function withBody(ctx: Koa.Context, body: Readable): Koa.Context {
  const req = Object.assign(body, { headers: ctx.req.headers });
  return Object.create(ctx, { req: { value: req } }) as Koa.Context;
}

/** What of a form may be in memory at once: its text fields, and parts on their way to a file. */
const MAX_HELD_BYTES = 2 * MAX_FIELD_BYTES;

/** The body as it comes: booked, and ended when it is refused, comes too slowly or its caller hangs up. */
function watchBody({ req }: Koa.Context, { hold, memory }: FormSource): { readonly req: Readable; stop(): void } {
  let booked = 0;
  const body = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      watch.add(chunk.length);
      const bytes = Math.min(chunk.length, MAX_HELD_BYTES - booked);
      try {
        hold.grow(bytes * HEAP_PER_BYTE);
        booked += bytes;
        done(null, chunk);
      } catch (error) {
        done(error as Error);
      }
    },
  });
  const watch = watchRate(memory.leastRate, (error) => body.destroy(error));
  req.once('close', () => {
    if (!req.complete) body.destroy(new RequestAborted('the caller hung up before the form was complete'));
  });
  // Without a reader an error would have no listener: the form's reader may not have begun, or may be over.
  body.on('error', () => {});
  req.pipe(body);
  return {
    req: body,
    stop() {
      watch.stop();
      req.unpipe(body);
    },
  };
}

/** The most bytes that a form may have in all, with what stands between its parts. */
export function formBytes({ maxFileBytes, maxFiles = 1 }: FormLimits): number {
  return maxFileBytes * maxFiles + 2 * MAX_FIELD_BYTES;
}

interface KoaFile {
  readonly filepath: string;
  readonly originalFilename: string | null;
  readonly mimetype: string | null;
  readonly size: number;
}

function filesOf(ctx: Koa.Context): readonly UploadedFile[] {
  const found = (ctx.request as { files?: Record<string, KoaFile | KoaFile[]> }).files ?? {};
  return Object.entries(found).flatMap(([field, files]) =>
    [files].flat().map(({ filepath, originalFilename, mimetype, size }) => ({
      field,
      path: filepath,
      name: originalFilename ?? '',
      contentType: mimetype ?? 'application/octet-stream',
      bytes: size,
    })),
  );
}
