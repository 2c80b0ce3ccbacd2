import { isUtf8 } from 'node:buffer';
import { mkdtempSync } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { type Readable, Transform } from 'node:stream';
import type Koa from 'koa';
import { GatewayError, isGatewayError } from '../../contract/errors.ts';
import { parseArgumentNumbers, parseChatNumbers } from '../../contract/exact-json.ts';
import { type BodyShape, takeBody } from '../../contract/facts.ts';
import { type JsonBounds, measureJson, tooDeep } from '../../contract/json.ts';
import type { FormLimits, UploadedFile } from '../../contract/plugin.ts';
import { decompress, decompressorOf, type OpenDecompressor } from './decompress.ts';
import { isSpecificType, SNIFFED_BYTES, typeOfBytes, typeOfName, withExtension } from './file-type.ts';
import { HEAP_PER_BYTE, type Hold, type Memory, QUEUED_BYTES } from './memory.ts';

interface BodyOptions {
  readonly maxBytes: number;
  /** Memory accounting and minimum rate of the body; default: unlimited. */
  readonly memory?: Memory;
  /** Hold of the body's memory. */
  readonly hold?: Hold;
}

interface JsonOptions extends Partial<JsonBounds> {
  /** Kind of the body, for the walk over it. */
  readonly shape?: BodyShape | undefined;
}

export interface JsonBody {
  /** Bytes as sent, without a byte order mark; empty for no body. */
  readonly raw: Buffer;
  /** Frozen; undefined for no body. */
  readonly value: unknown;
  /** True for no body, which the route may accept or reject. */
  readonly empty: boolean;
}

/** The caller disconnected before the body was complete, so no response is possible. */
export class RequestAborted extends Error {
  override readonly name = 'RequestAborted';
}

/**
 * Maximum levels and values of a body: enough for the 300,000 tokens of one embeddings request. The worst such body takes 0.2 s to
 * measure, parse and walk.
 */
export const BODY_BOUNDS: JsonBounds = Object.freeze({ maxDepth: 64, maxValues: 400_000 });

/**
 * Bodies up to this size are parsed before they are measured. Each value has at least one byte, so they cannot exceed the values of
 * {@link BODY_BOUNDS}. The walk then rejects excessive nesting.
 */
const SMALL_BYTES = QUEUED_BYTES;

const EMPTY: JsonBody = Object.freeze({ raw: Buffer.alloc(0), value: undefined, empty: true });

/** Body of one request. It is read once, on demand; unread bytes are left to `discardBody`. */
export class RequestBody {
  /** Pending or completed read of the bytes. */
  reading: Promise<Buffer> | undefined;
  readonly #req: IncomingMessage;
  readonly #options: BodyOptions;
  /** Value of `content-length`; undefined for a chunked body. */
  readonly #announced: number | undefined;

  constructor(req: IncomingMessage, options: BodyOptions) {
    const { 'transfer-encoding': encoding, 'content-length': length = 0 } = req.headers;
    this.#req = req;
    this.#options = options;
    this.#announced = encoding === undefined ? Number(length) : undefined;
  }

  /**
   * Returns the bytes as sent, of any type; empty for no body. Rejects with `request_too_large`, `request_timeout`, an error of the
   * hold, or {@link RequestAborted}.
   */
  bytes(): Promise<Buffer> {
    this.reading ??=
      this.#announced === 0 ? Promise.resolve(EMPTY.raw) : readBytes(this.#req, this.#announced, this.#options);
    return this.reading;
  }

  /**
   * Returns the body as JSON: `application/json` (UTF-8), at most `maxBytes` when decompressed, strict JSON. Rejects as {@link bytes}
   * does, and with `unsupported_media_type` or `invalid_json`.
   */
  async json({ shape, ...bounds }: JsonOptions = {}): Promise<JsonBody> {
    const { hold, memory } = this.#options;
    if (this.#announced === 0) return EMPTY;
    const { 'content-type': type, 'content-encoding': encoding } = this.#req.headers;
    if (type === undefined) throw wrongMedia('The request has no content-type. Send the body as application/json.');
    if (!JSON_TYPE.test(type)) throw wrongMedia('The content-type must be application/json.');
    const charset = CHARSET.exec(type)?.[1]?.toLowerCase();
    if (charset !== undefined && charset !== 'utf-8' && charset !== 'utf8')
      throw wrongMedia('The charset of the content-type must be utf-8 or missing.');
    const decompressor = encoding === undefined ? undefined : decompressorOf(encoding.trim().toLowerCase());
    const sent = await this.bytes();
    if (sent.length === 0) return EMPTY;
    const bytes = decompressor ? await this.#decompress(sent, decompressor) : sent;
    const raw = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
    if (!isUtf8(raw)) throw new GatewayError('invalid_json', 'The body is not UTF-8. Send JSON encoded as UTF-8.');
    const turn = memory?.turn(raw.length, hold);
    if (turn) await turn;
    return {
      raw,
      value: parseBody(raw, { ...BODY_BOUNDS, ...bounds }, hold && ((bytes) => hold.grow(bytes)), shape),
      empty: false,
    };
  }

  #decompress(bytes: Buffer, open: OpenDecompressor): Promise<Buffer> {
    const { maxBytes, hold } = this.#options;
    const grow = (more: number): void => hold?.grow(more * HEAP_PER_BYTE);
    return decompress(bytes, open, { maxBytes, grow, tooLarge: () => tooLarge(maxBytes) });
  }
}

/**
 * Reads all bytes of a request. A separate function, so that the listeners, which live as long as the request, do not retain the
 * body.
 */
function readBytes(
  req: IncomingMessage,
  announced: number | undefined,
  { maxBytes, hold, memory }: BodyOptions,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (announced !== undefined) {
      if (announced > maxBytes) throw tooLarge(maxBytes);
      hold?.announce(announced * HEAP_PER_BYTE);
    }
    let whole: Buffer | undefined;
    let chunks: Chunks | undefined;
    let isOver = false;
    // Listeners stay attached afterwards (they are freed with the request), so a late error finds one that ignores it.
    const end = (error?: unknown): void => {
      if (isOver) return;
      isOver = true;
      watch?.stop();
      if (error === undefined) resolve(whole ?? chunks?.take() ?? EMPTY.raw);
      else {
        hold?.release();
        reject(error);
      }
      whole = undefined;
      chunks = undefined;
    };
    const onGone = (): void => {
      if (!isOver) end(new RequestAborted('the caller disconnected before the body was complete'));
    };
    // A small body has already arrived.
    const watch = req.complete ? undefined : memory?.watchRate(end);
    if (req.destroyed && !req.readableEnded) return onGone();
    req.on('data', (chunk: Buffer) => {
      if (isOver) return;
      watch?.add(chunk.length);
      try {
        if ((chunks?.size ?? 0) + chunk.length > maxBytes) throw tooLarge(maxBytes);
        hold?.grow(chunk.length * HEAP_PER_BYTE);
        if (chunk.length === announced) whole = chunk;
        else {
          chunks ??= new Chunks();
          chunks.add(chunk);
        }
      } catch (error) {
        end(error);
      }
    });
    req.on('end', end);
    // `close` also fires on success.
    req.on('close', onGone);
    req.on('error', onGone);
  });
}

const JSON_TYPE = /^application\/json\s*(?:;|$)/i;
const CHARSET = /;\s*charset\s*=\s*"?([^";\s]*)/i;

function wrongMedia(message: string): GatewayError {
  return new GatewayError('unsupported_media_type', message);
}

/** Smaller chunks are copied: each would retain its object and the network buffer it belongs to. */
const SMALL_CHUNK = 1024;
const LARGEST_BLOCK = 64 * 1024;

/** Received bytes of a body. They take at most about twice their size, however small the chunks are. */
class Chunks {
  size = 0;
  #parts: Buffer[] = [];
  /** Last part, which small chunks are copied to. */
  #block: Buffer = EMPTY.raw;
  #filled = 0;

  add(chunk: Buffer): void {
    this.size += chunk.length;
    if (chunk.length >= SMALL_CHUNK) {
      this.#endBlock();
      this.#parts.push(chunk);
      return;
    }
    if (this.#filled + chunk.length > this.#block.length) {
      this.#endBlock();
      this.#block = Buffer.allocUnsafeSlow(Math.min(Math.max(this.size, SMALL_CHUNK), LARGEST_BLOCK));
    }
    chunk.copy(this.#block, this.#filled);
    this.#filled += chunk.length;
  }

  /** Returns all bytes, once. */
  take(): Buffer {
    this.#endBlock();
    const [first] = this.#parts;
    return first && this.#parts.length === 1 ? first : Buffer.concat(this.#parts.splice(0), this.size);
  }

  #endBlock(): void {
    if (this.#filled > 0) this.#parts.push(this.#block.subarray(0, this.#filled));
    this.#block = EMPTY.raw;
    this.#filled = 0;
  }
}

function tooLarge(maxBytes: number): GatewayError {
  return new GatewayError(
    'request_too_large',
    `The body is larger than the limit of ${formatBytes(maxBytes)}. Send a smaller request.`,
  );
}

function formatBytes(bytes: number): string {
  const mebibytes = bytes / (1024 * 1024);
  return Number.isInteger(mebibytes) ? `${mebibytes} MiB` : `${bytes} bytes`;
}

/** Maximum number of text fields of a form, and their total bytes. */
const MAX_FIELDS = 100;
const MAX_FIELD_BYTES = 1024 * 1024;

/** Source of a form, and its memory accounting. */
interface FormSource {
  /** Body, if it was already read. */
  readonly bytes: Uint8Array | undefined;
  readonly hold: Hold;
  readonly memory: Memory;
}

export interface Form {
  /** Text fields; a repeated field is a list. */
  readonly fields: Readonly<Record<string, string | readonly string[]>>;
  readonly files: readonly UploadedFile[];
  /** Deletes the uploaded files at the end of the request. */
  remove(): Promise<void>;
}

/**
 * Reads a `multipart/form-data` body with koa-body, files into the system's temporary folder. Only for upload routes, which are few
 * and rare; the JSON reader (`read-body.ts`) is stricter and cheaper. Rejects with `unsupported_media_type`, `request_too_large`,
 * `request_timeout`, `invalid_request` or an error of the hold, and leaves no files.
 */
export async function readForm(ctx: Koa.Context, limits: FormLimits, source: FormSource): Promise<Form> {
  if (!ctx.is('multipart/form-data'))
    throw new GatewayError('unsupported_media_type', 'The content-type must be multipart/form-data.');
  const { koaBody } = await import('koa-body');
  /** Heap per byte if the route reads files into memory. This also limits the bytes on disk during the upload. */
  const heapPerByte = limits.readsWhole === true ? FILE_HEAP_PER_BYTE : 0;
  if (source.bytes) source.hold.grow(source.bytes.length * heapPerByte);
  const parts = new FormParts(boundaryOf(ctx.req.headers['content-type']), limits);
  const body = source.bytes ? readAgain(source.bytes, source, parts) : watchBody(ctx, source, heapPerByte, parts);
  /** Folder of this form: files that its reader opens after a refusal find none. */
  let folder: string | undefined;
  const remove = async (): Promise<void> => {
    if (folder !== undefined) await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  };
  try {
    folder = mkdtempSync(path.join(os.tmpdir(), 'tollgate-upload-'));
    const read = koaBody({
      json: false,
      text: false,
      urlencoded: false,
      multipart: true,
      formidable: {
        uploadDir: folder,
        maxFiles: limits.maxFiles ?? 1,
        maxFileSize: limits.maxFileBytes,
        maxTotalFileSize: limits.maxFileBytes * (limits.maxFiles ?? 1),
        maxFields: MAX_FIELDS,
        maxFieldsSize: MAX_FIELD_BYTES,
        onPart(part, handle) {
          setKind(part);
          handle(part);
        },
      },
    });
    await read(withBody(ctx, body.req), async () => undefined);
    return { fields: { ...(ctx.request.body as Form['fields']) }, files: await filesOf(ctx), remove };
  } catch (cause) {
    await remove();
    if (isGatewayError(cause)) throw cause;
    if (ctx.req.destroyed && !ctx.req.complete)
      throw new RequestAborted('the caller disconnected before the form was complete');
    const { code, httpCode } = cause as { code?: number; httpCode?: number };
    if (TOO_MANY.has(code)) throw tooManyParts(limits, cause);
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

/** Returns the same request with another body. */
function withBody(ctx: Koa.Context, body: Readable): Koa.Context {
  const req = Object.assign(body, { headers: ctx.req.headers });
  return Object.create(ctx, { req: { value: req } }) as Koa.Context;
}

/** Heap per byte of a file that is read whole: its bytes and the forwarded copy. */
const FILE_HEAP_PER_BYTE = 2;

/** Maximum memory of a form: its text fields, and parts on their way to a file. */
const MAX_HELD_BYTES = 2 * MAX_FIELD_BYTES;

/** Start of a line that may be the boundary of a part. The form's reader takes about a microsecond for each. */
const DASHED_LINE = Buffer.from('\r\n-');
/** Number of such lines that are read at a time. */
const LINES_AT_ONCE = 2000;
/** Bytes of a body that take as long to parse, for the queue. */
const PIECE_BYTES = QUEUED_BYTES + 1;

/** Returns the boundary of a form; undefined without one, which the form's reader rejects. */
function boundaryOf(type = ''): string | undefined {
  const [, quoted, plain] = /;\s*boundary=(?:"([^"]+)"|([^;\s"]+))/i.exec(type) ?? [];
  return quoted ?? plain;
}

/** Counts the parts of a form in its bytes, before they are parsed. */
class FormParts {
  readonly #delimiter: Buffer | undefined;
  readonly #limits: FormLimits;
  #left: number;
  /** Last bytes of the chunk before, in which a delimiter may begin. */
  #end: Buffer = EMPTY.raw;

  constructor(boundary: string | undefined, limits: FormLimits) {
    this.#delimiter = boundary === undefined ? undefined : Buffer.from(`\r\n--${boundary}`);
    this.#limits = limits;
    this.#left = MAX_FIELDS + (limits.maxFiles ?? 1);
  }

  /** Throws if the form has more parts than its route accepts. */
  add(chunk: Buffer): void {
    const delimiter = this.#delimiter;
    if (!delimiter) return;
    const length = delimiter.length - 1;
    const seam = Buffer.concat([this.#end, chunk.subarray(0, length)]);
    this.#left -= countOf(seam, delimiter, 1) + countOf(chunk, delimiter, this.#left + 1);
    this.#end = Buffer.concat([this.#end, chunk.subarray(-length)]).subarray(-length);
    if (this.#left < 0) throw tooManyParts(this.#limits);
  }
}

/** Formidable's codes `maxFieldsExceeded` and `maxFilesExceeded`: it counts first if parts arrive in small chunks. */
const TOO_MANY = new Set<number | undefined>([1007, 1015]);

function tooManyParts({ maxFiles = 1 }: FormLimits, cause?: unknown): GatewayError {
  return new GatewayError(
    'request_too_large',
    `The form has too many parts: at most ${maxFiles} file(s) and ${MAX_FIELDS} fields.`,
    { cause },
  );
}

/** Counts occurrences in bytes, up to a maximum. */
function countOf(bytes: Buffer, wanted: Buffer, most: number): number {
  let count = 0;
  for (let at = bytes.indexOf(wanted); at !== -1 && count < most; at = bytes.indexOf(wanted, at + wanted.length))
    count += 1;
  return count;
}

/** Splits a chunk after each {@link LINES_AT_ONCE} lines that may be boundaries. */
function* piecesOf(chunk: Buffer): Generator<Buffer> {
  let from = 0;
  let lines = 0;
  for (let at = chunk.indexOf(DASHED_LINE); at !== -1; at = chunk.indexOf(DASHED_LINE, at + DASHED_LINE.length)) {
    lines += 1;
    if (lines % LINES_AT_ONCE > 0) continue;
    yield chunk.subarray(from, at);
    from = at;
  }
  yield chunk.subarray(from);
}

/**
 * Counts the parts in a chunk and passes it to the form's reader. Pieces with many lines that may be boundaries wait in the queue
 * of parsed bodies.
 */
async function passPieces(
  body: Transform,
  chunk: Buffer,
  { hold, memory }: FormSource,
  parts: FormParts,
): Promise<void> {
  parts.add(chunk);
  let isFirst = true;
  for (const piece of piecesOf(chunk)) {
    if (!isFirst) await memory.turn(PIECE_BYTES, hold);
    isFirst = false;
    body.push(piece);
  }
}

/** Streams the bytes of a form that was read before. */
function readAgain(bytes: Uint8Array, source: FormSource, parts: FormParts): FormBody {
  const body = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      passPieces(this, chunk, source, parts).then(() => done(), done);
    },
  });
  body.on('error', () => {});
  body.end(bytes);
  return { req: body, stop() {} };
}

interface FormBody {
  readonly req: Readable;
  stop(): void;
}

/** Streams the body with memory accounting. Ends it if it is rejected, too slow, or the caller disconnects. */
function watchBody({ req }: Koa.Context, source: FormSource, heapPerByte: number, parts: FormParts): FormBody {
  const { hold, memory } = source;
  hold.announce(Number(req.headers['content-length'] ?? 0) * heapPerByte);
  let booked = 0;
  const body = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      watch.add(chunk.length);
      const bytes = Math.min(chunk.length, MAX_HELD_BYTES - booked);
      try {
        hold.grow(bytes * HEAP_PER_BYTE + chunk.length * heapPerByte);
        booked += bytes;
        passPieces(this, chunk, source, parts).then(() => done(), done);
      } catch (error) {
        done(error as Error);
      }
    },
  });
  const watch = memory.watchRate((error) => body.destroy(error));
  req.once('close', () => {
    if (!req.complete) body.destroy(new RequestAborted('the caller disconnected before the form was complete'));
  });
  // Prevents an unhandled error while the form's reader has not started or has finished.
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

/** Returns the maximum bytes of a form, including the separators of its parts. */
export function formBytes({ maxFileBytes, maxFiles = 1 }: FormLimits): number {
  return maxFileBytes * maxFiles + 2 * MAX_FIELD_BYTES;
}

interface KoaFile {
  readonly filepath: string;
  readonly originalFilename: string | null;
  readonly mimetype: string | null;
  readonly size: number;
}

/** Part of a form before its content is read; formidable writes it to a file if it has a `mimetype`. */
interface FormPart {
  readonly headers?: Readonly<Record<string, string | undefined>>;
  originalFilename: string | null;
  mimetype: string | null;
}

const QUOTED = /"(?:\\.|[^"\\])*"/g;
const FILE_NAME = /;\s*filename(\*?)\s*=\s*([^;]*)/i;

/**
 * Treats a part with a file name as a file, with or without `Content-Type`, and a text without a file name as a field. Python's
 * `requests` sends no type for files, and .NET sends one for fields. Source: https://www.rfc-editor.org/rfc/rfc7578#section-4.2
 */
function setKind(part: FormPart): void {
  const disposition = part.headers?.['content-disposition'] ?? '';
  const [, isEncoded, value = ''] = FILE_NAME.exec(disposition.replace(QUOTED, '""')) ?? [];
  if (isEncoded !== undefined) {
    part.originalFilename ??= isEncoded === '*' ? decodeName(value) : '';
    part.mimetype ||= OCTETS;
  } else if (part.originalFilename === null && part.mimetype !== null && FIELD_TYPE.test(part.mimetype))
    part.mimetype = null;
}

const OCTETS = 'application/octet-stream';
const FIELD_TYPE = /^(?:text\/plain|application\/json)\s*(?:;|$)/i;

/** Decodes a name in the form of RFC 5987, such as `UTF-8''sp%C3%A9ech.wav`; empty if invalid. */
function decodeName(value: string): string {
  try {
    return decodeURIComponent(value.trim().replace(/^[\w-]*'[\w-]*'/, ''));
  } catch {
    return '';
  }
}

async function filesOf(ctx: Koa.Context): Promise<readonly UploadedFile[]> {
  const found = (ctx.request as { files?: Record<string, KoaFile | KoaFile[]> }).files ?? {};
  const all = Object.entries(found).flatMap(([field, files]) => [files].flat().map((file) => ({ field, file })));
  return Promise.all(
    all.map(async ({ field, file: { filepath, originalFilename, mimetype, size } }) => {
      const name = originalFilename ?? '';
      const contentType = isSpecificType(mimetype)
        ? mimetype
        : (typeOfName(name) ?? typeOfBytes(await firstBytes(filepath)) ?? OCTETS);
      return { field, path: filepath, name: withExtension(name, contentType), contentType, bytes: size };
    }),
  );
}

async function firstBytes(path: string): Promise<Uint8Array> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(SNIFFED_BYTES), 0, SNIFFED_BYTES, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

/**
 * Parses a body from outside, which is valid UTF-8, to a frozen value.
 * Throws `request_too_large` for too many values, and `invalid_json` for invalid JSON or excessive nesting, before it allocates the
 * value. Throws `invalid_json` also for numbers beyond a double, lone surrogates, and names that reach an object's prototype. The
 * last of duplicate names counts and is forwarded. `reserve` receives the heap size of the value before it is allocated.
 */
export function parseBody(
  bytes: Buffer,
  bounds: JsonBounds,
  reserve?: (heapBytes: number) => void,
  shape?: BodyShape,
): unknown {
  const isSmall = bytes.length <= SMALL_BYTES && bytes.length <= bounds.maxValues;
  let hasNumbers = shape !== undefined;
  if (!isSmall) {
    const { exceeded, heapBytes, mayChange } = measureJson(bytes, bounds);
    hasNumbers &&= mayChange;
    if (exceeded === 'values')
      throw new GatewayError('request_too_large', `The body has more than ${bounds.maxValues} values and field names.`);
    if (exceeded === 'depth') throw tooDeep(bounds.maxDepth);
    reserve?.(heapBytes);
  }
  const text = bytes.toString('utf8');
  let value: unknown;
  try {
    // Arguments of tools are text in canonical form, and objects in others.
    const parse = shape?.isChat ? parseChatNumbers : parseArgumentNumbers;
    value = hasNumbers ? parse(text) : JSON.parse(text);
  } catch (error) {
    if (isSmall && measureJson(bytes, bounds).exceeded === 'depth') throw tooDeep(bounds.maxDepth);
    throw new GatewayError('invalid_json', `The body is not valid JSON: ${describe(error, text)}.`);
  }
  // In valid UTF-8, only an escape can encode a lone surrogate.
  const heapBytes = takeBody(value, bytes.includes('\\u'), shape, bounds.maxDepth);
  if (isSmall) reserve?.(heapBytes);
  return value;
}

/** Returns the message and position of a `JSON.parse` error, without the quoted text. */
function describe(error: unknown, text: string): string {
  const message = error instanceof Error ? error.message : '';
  const position = /at position (\d+)/.exec(message)?.[1];
  const said = message
    .replace(/ in JSON.*| at position.*/s, '')
    .replace(/(?:, (?:\.\.\.)?".*)? is not valid JSON.*/s, '')
    .replace(/^[A-Z]/, (letter) => letter.toLowerCase());
  if (position === undefined) return said;
  const before = text.slice(0, Number(position));
  const column = before.length - before.lastIndexOf('\n');
  return `${said} (line ${before.split('\n').length}, column ${column})`;
}
