import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { GatewayError } from '../contract/errors.ts';
import { parseJson } from './parse-json.ts';

export interface ReadBodyOptions {
  readonly maxBytes: number;
  /** How deep arrays and objects may nest; 64 unless told. */
  readonly maxDepth?: number;
}

export interface JsonBody {
  /** The bytes as sent, without a byte order mark; empty when none came. */
  readonly raw: Buffer;
  /** Undefined when no byte came. */
  readonly value: unknown;
  /** Whether no byte came, which is for the route to judge. */
  readonly empty: boolean;
}

/** The caller hung up before the body was complete. There is nobody left to answer. */
export class RequestAborted extends Error {
  override readonly name = 'RequestAborted';
}

const EMPTY: JsonBody = Object.freeze({ raw: Buffer.alloc(0), value: undefined, empty: true });

/**
 * Reads a JSON body: `application/json` (UTF-8, not compressed), at most `maxBytes`, strict JSON. Rejects with
 * `unsupported_media_type`, `request_too_large` or `invalid_json`, and with {@link RequestAborted}.
 */
export async function readJsonBody(req: IncomingMessage, options: ReadBodyOptions): Promise<JsonBody> {
  const { maxBytes, maxDepth = 64 } = options;
  const length = req.headers['content-length'];
  const hasBody = req.headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
  if (!hasBody) return EMPTY;
  const fault = findMediaFault(req.headers['content-type'], req.headers['content-encoding']);
  if (fault !== undefined) {
    drain(req, maxBytes);
    throw new GatewayError('unsupported_media_type', fault);
  }
  if (Number(length) > maxBytes) {
    drain(req, maxBytes);
    throw tooLarge(maxBytes);
  }
  const bytes = await readBytes(req, maxBytes);
  if (bytes.length === 0) return EMPTY;
  const raw = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
  if (!isUtf8(raw)) throw new GatewayError('invalid_json', 'The body is not UTF-8. Send JSON encoded as UTF-8.');
  return { raw, value: parseJson(raw.toString('utf8'), maxDepth), empty: false };
}

const JSON_TYPE = /^application\/json\s*(?:;|$)/i;
const CHARSET = /;\s*charset\s*=\s*"?([^";\s]*)/i;

function findMediaFault(type: string | undefined, encoding: string | undefined): string | undefined {
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
function readBytes(req: IncomingMessage, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    let isOver = false;
    const onGone = () => {
      if (isOver) return;
      isOver = true;
      reject(new RequestAborted('the caller hung up before the body was complete'));
    };
    if (req.destroyed && !req.readableEnded) return onGone();
    req.on('data', (chunk: Buffer) => {
      if (isOver) return;
      size += chunk.length;
      if (size <= maxBytes) {
        chunks.push(chunk);
        return;
      }
      isOver = true;
      drain(req, maxBytes);
      reject(tooLarge(maxBytes));
    });
    req.on('end', () => {
      if (isOver) return;
      isOver = true;
      resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, size));
    });
    req.on('close', onGone);
    req.on('error', onGone);
  });
}

/** A body that is refused by a small limit may arrive in one piece, before the answer is written. */
const MIN_DRAIN_BYTES = 1024 * 1024;

/**
 * Lets a refused body run past us, unkept, so that its sender comes to read why: a socket closed over unread bytes is
 * reset, and the answer with it. One that goes on for another `maxBytes`, and for a mebibyte at least, is cut.
 */
function drain(req: IncomingMessage, maxBytes: number): void {
  let passed = 0;
  req.on('error', () => {});
  req.on('data', (chunk: Buffer) => {
    passed += chunk.length;
    if (passed > Math.max(maxBytes, MIN_DRAIN_BYTES)) req.destroy();
  });
}

function tooLarge(maxBytes: number): GatewayError {
  return new GatewayError('request_too_large', `The body is larger than ${formatBytes(maxBytes)}, the limit here.`);
}

function formatBytes(bytes: number): string {
  const mebibytes = bytes / (1024 * 1024);
  return Number.isInteger(mebibytes) ? `${mebibytes} MiB` : `${bytes} bytes`;
}
