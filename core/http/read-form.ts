import { rm } from 'node:fs/promises';
import os from 'node:os';
import { Readable } from 'node:stream';
import type Koa from 'koa';
import { GatewayError } from '../contract/errors.ts';
import type { FormLimits, UploadedFile } from '../contract/plugin.ts';
import { RequestAborted } from './read-body.ts';

/** The most text fields of a form, and their bytes in all. */
const MAX_FIELDS = 100;
const MAX_FIELD_BYTES = 1024 * 1024;

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
 * `unsupported_media_type`, `request_too_large` or `invalid_request`; nothing stays behind. `bytes` is the body when somebody
 * has read it already.
 */
export async function readForm(ctx: Koa.Context, limits: FormLimits, bytes?: Uint8Array): Promise<Form> {
  if (!ctx.is('multipart/form-data'))
    throw new GatewayError('unsupported_media_type', 'The content-type must be multipart/form-data.');
  const { koaBody } = await import('koa-body');
  const uploaded: string[] = [];
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
    await read(bytes ? withBody(ctx, bytes) : ctx, async () => undefined);
    return { fields: { ...(ctx.request.body as Form['fields']) }, files: filesOf(ctx), remove };
  } catch (cause) {
    await remove();
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
  }
}

/** The same request with its body to be read once more. */
function withBody(ctx: Koa.Context, bytes: Uint8Array): Koa.Context {
  const req = Object.assign(Readable.from([bytes]), { headers: ctx.req.headers });
  return Object.create(ctx, { req: { value: req } }) as Koa.Context;
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
