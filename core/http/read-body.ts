import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { GatewayError } from '../contract/errors.ts';
import { HEAP_PER_BYTE, type Hold, type Memory, watchRate } from './memory.ts';
import { parseBody } from './parse-body.ts';

export interface ReadBodyOptions {
  readonly maxBytes: number;
  /** Where the memory comes from that the body needs, and how fast it must come; default without bounds. */
  readonly memory?: Memory;
  /** What the body needs is booked here. */
  readonly hold?: Hold;
}

export interface ReadJsonOptions extends ReadBodyOptions {
  /** Where the bytes come from when somebody may have read them before. */
  readonly bytes?: () => Promise<Buffer>;
  /** How deep arrays and objects may nest; default 64. */
  readonly maxDepth?: number;
  /** How many values and names of fields the body may hold; default 400,000. */
  readonly maxValues?: number;
}

export interface JsonBody {
  /** The bytes as sent, without a byte order mark; empty when none came. */
  readonly raw: Buffer;
  /** Frozen; undefined when no byte came. */
  readonly value: unknown;
  /** Whether no byte came, which is for the route to judge. */
  readonly empty: boolean;
}

/** The caller hung up before the body was complete. There is nobody left to answer. */
export class RequestAborted extends Error {
  override readonly name = 'RequestAborted';
}

/** Room for the 300,000 tokens that one request for embeddings may have; the worst such body is measured, parsed and looked through in 0.2 s. */
const MAX_VALUES = 400_000;

const EMPTY: JsonBody = Object.freeze({ raw: Buffer.alloc(0), value: undefined, empty: true });

/**
 * Reads a JSON body: `application/json` (UTF-8, not compressed), at most `maxBytes`, strict JSON. Rejects with
 * `unsupported_media_type`, `request_too_large`, `request_timeout`, `invalid_json` or what a hold refuses with, and with
 * {@link RequestAborted}. What it did not read is left to `discardBody`.
 */
export async function readJsonBody(req: IncomingMessage, options: ReadJsonOptions): Promise<JsonBody> {
  const { maxDepth = 64, maxValues = MAX_VALUES, hold, memory } = options;
  if (!hasBody(req)) return EMPTY;
  const problem = findMediaProblem(req.headers['content-type'], req.headers['content-encoding']);
  if (problem !== undefined) throw new GatewayError('unsupported_media_type', problem);
  const bytes = await (options.bytes?.() ?? readBodyBytes(req, options));
  if (bytes.length === 0) return EMPTY;
  const raw = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
  if (!isUtf8(raw)) throw new GatewayError('invalid_json', 'The body is not UTF-8. Send JSON encoded as UTF-8.');
  await memory?.turn(raw.length);
  const value = parseBody(raw, { maxDepth, maxValues }, (heapBytes) => hold?.grow(heapBytes));
  return { raw, value, empty: false };
}

function hasBody({ headers }: IncomingMessage): boolean {
  const length = headers['content-length'];
  return headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
}

/** The bytes of a body as they were sent, of whatever type; none when there is no body. */
export async function readBodyBytes(req: IncomingMessage, options: ReadBodyOptions): Promise<Buffer> {
  if (!hasBody(req)) return EMPTY.raw;
  const announced = Number(req.headers['content-length'] ?? 0);
  if (announced > options.maxBytes) throw tooLarge(options.maxBytes);
  options.hold?.announce(announced * HEAP_PER_BYTE);
  return readBytes(req, options);
}

const JSON_TYPE = /^application\/json\s*(?:;|$)/i;
const CHARSET = /;\s*charset\s*=\s*"?([^";\s]*)/i;

function findMediaProblem(type: string | undefined, encoding: string | undefined): string | undefined {
  if (type === undefined) return 'The request has no content-type. Send the body as application/json.';
  if (!JSON_TYPE.test(type)) return 'The content-type must be application/json.';
  const charset = CHARSET.exec(type)?.[1]?.toLowerCase();
  if (charset !== undefined && charset !== 'utf-8' && charset !== 'utf8') {
    return 'The charset of the content-type must be utf-8, or be left out.';
  }
  if (encoding !== undefined && encoding.trim().toLowerCase() !== 'identity') {
    return 'Compressed bodies are not accepted. Send the body without a content-encoding.';
  }
  return undefined;
}

/** The listeners stay when it is over (the request goes with them), and a late error then finds one that ignores it. */
function readBytes(req: IncomingMessage, { maxBytes, hold, memory }: ReadBodyOptions): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks = new Chunks();
    let isOver = false;
    const fail = (error: unknown): void => {
      finish();
      hold?.release();
      reject(error);
    };
    const finish = (): void => {
      isOver = true;
      watch?.stop();
    };
    // A small body is here already.
    const watch = memory && !req.complete ? watchRate(memory.leastRate, fail) : undefined;
    // Also told of every request that ended well.
    const onGone = (): void => {
      if (!isOver) fail(new RequestAborted('the caller hung up before the body was complete'));
    };
    if (req.destroyed && !req.readableEnded) return onGone();
    req.on('data', (chunk: Buffer) => {
      if (isOver) return;
      watch?.add(chunk.length);
      if (chunks.size + chunk.length > maxBytes) return fail(tooLarge(maxBytes));
      try {
        hold?.grow(chunk.length * HEAP_PER_BYTE);
      } catch (error) {
        return fail(error);
      }
      chunks.add(chunk);
    });
    req.on('end', () => {
      if (isOver) return;
      finish();
      resolve(chunks.take());
    });
    req.on('close', onGone);
    req.on('error', onGone);
  });
}

/** Chunks below this are copied: each would keep the object around it, and what else was read from the network with it. */
const SMALL_CHUNK = 1024;
const LARGEST_BLOCK = 64 * 1024;

/** The bytes of a body so far; however small the chunks are that they come in, they take about twice their size at most. */
class Chunks {
  size = 0;
  #parts: Buffer[] = [];
  /** The last part, when small chunks are copied there. */
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

  /** All of them, once. */
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
  return new GatewayError('request_too_large', `The body is larger than ${formatBytes(maxBytes)}, the limit here.`);
}

function formatBytes(bytes: number): string {
  const mebibytes = bytes / (1024 * 1024);
  return Number.isInteger(mebibytes) ? `${mebibytes} MiB` : `${bytes} bytes`;
}
