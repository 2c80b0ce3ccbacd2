import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { GatewayError } from '../contract/errors.ts';
import { type BodyHold, HEAP_PER_BYTE } from './body-budget.ts';
import { parseBody } from './parse-body.ts';

export interface ReadBodyOptions {
  readonly maxBytes: number;
  /** Where the memory comes from that the body needs; default without a bound. */
  readonly hold?: BodyHold;
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
 * `unsupported_media_type`, `request_too_large`, `invalid_json` or `overloaded`, and with {@link RequestAborted}. What it
 * did not read is left to `discardBody`.
 */
export async function readJsonBody(req: IncomingMessage, options: ReadJsonOptions): Promise<JsonBody> {
  const { maxDepth = 64, maxValues = MAX_VALUES, hold } = options;
  if (!hasBody(req)) return EMPTY;
  const problem = findMediaProblem(req.headers['content-type'], req.headers['content-encoding']);
  if (problem !== undefined) throw new GatewayError('unsupported_media_type', problem);
  const bytes = await (options.bytes?.() ?? readBodyBytes(req, options));
  if (bytes.length === 0) return EMPTY;
  const raw = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
  if (!isUtf8(raw)) throw new GatewayError('invalid_json', 'The body is not UTF-8. Send JSON encoded as UTF-8.');
  await hold?.turn(raw.length);
  const value = parseBody(raw, { maxDepth, maxValues }, (heapBytes) => hold?.grow(heapBytes));
  return { raw, value, empty: false };
}

function hasBody({ headers }: IncomingMessage): boolean {
  const length = headers['content-length'];
  return headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
}

/** The bytes of a body as they were sent, of whatever type; none when there is no body. */
export async function readBodyBytes(req: IncomingMessage, { maxBytes, hold }: ReadBodyOptions): Promise<Buffer> {
  if (!hasBody(req)) return EMPTY.raw;
  const length = req.headers['content-length'];
  if (Number(length) > maxBytes) throw tooLarge(maxBytes);
  if (length !== undefined) hold?.grow(Number(length) * HEAP_PER_BYTE);
  return readBytes(req, maxBytes, length === undefined ? hold : undefined);
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
function readBytes(req: IncomingMessage, maxBytes: number, hold: BodyHold | undefined): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    let isOver = false;
    const fail = (error: unknown): void => {
      isOver = true;
      chunks.length = 0;
      reject(error);
    };
    // Also told of every request that ended well.
    const onGone = (): void => {
      if (!isOver) fail(new RequestAborted('the caller hung up before the body was complete'));
    };
    if (req.destroyed && !req.readableEnded) return onGone();
    req.on('data', (chunk: Buffer) => {
      if (isOver) return;
      size += chunk.length;
      if (size > maxBytes) return fail(tooLarge(maxBytes));
      try {
        hold?.grow(chunk.length * HEAP_PER_BYTE);
      } catch (error) {
        return fail(error);
      }
      chunks.push(chunk);
    });
    req.on('end', () => {
      if (isOver) return;
      isOver = true;
      resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, size));
      chunks.length = 0;
    });
    req.on('close', onGone);
    req.on('error', onGone);
  });
}

function tooLarge(maxBytes: number): GatewayError {
  return new GatewayError('request_too_large', `The body is larger than ${formatBytes(maxBytes)}, the limit here.`);
}

function formatBytes(bytes: number): string {
  const mebibytes = bytes / (1024 * 1024);
  return Number.isInteger(mebibytes) ? `${mebibytes} MiB` : `${bytes} bytes`;
}
