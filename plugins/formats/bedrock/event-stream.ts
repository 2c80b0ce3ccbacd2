/** The frames of `application/vnd.amazon.eventstream`. Source: https://smithy.io/2.0/aws/amazon-eventstream.html */
import { crc32 } from 'node:zlib';
import {
  exceedsBounds,
  GatewayError,
  type SseEvent,
  type SseReader,
  type SseReaderOptions,
  StreamFailure,
} from '../../../contract/index.ts';

/** Two lengths and their checksum. */
const PRELUDE_BYTES = 12;
const CHECKSUM_BYTES = 4;
/** Length of a frame without headers and payload. */
const LEAST_BYTES = PRELUDE_BYTES + CHECKSUM_BYTES;
/** Limit of the format. */
const MAX_HEADER_BYTES = 128 * 1024;
const MAX_FRAME_BYTES = 4 * 1024 * 1024;
/** Maximum length of a small frame. */
const SMALL_FRAME = 64 * 1024;

/** Length of a header value in bytes, by its type. -1: the length is in the next two bytes. */
const VALUE_BYTES: readonly number[] = Object.freeze([0, 0, 1, 2, 4, 8, -1, -1, 8, 16]);
const TEXT = 7;

/**
 * Reads frames, cut anywhere, as events. `event` is the type of an event or exception, `data` its payload. An error
 * of the service, which is in the headers alone, becomes the event `error`. Throws a {@link StreamFailure} for a
 * damaged or oversized frame.
 */
export function createFrameReader({ maxEventLength = MAX_FRAME_BYTES, onGrowth }: SseReaderOptions = {}): SseReader {
  const headersOf = createHeaderReader();
  const begun = createBegunFrame(onGrowth);

  return {
    push(bytes) {
      const isNew = begun.held().length === 0;
      if (!isNew && !begun.add(bytes)) return NONE;
      const buffer = isNew ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length) : begun.held();
      const events: SseEvent[] = [];
      let at = 0;
      let needed = PRELUDE_BYTES;
      while (buffer.length - at >= PRELUDE_BYTES) {
        const length = frameLength(buffer, at, maxEventLength);
        if (buffer.length - at < length) {
          needed = length;
          break;
        }
        const event = readFrame(buffer.subarray(at, at + length), headersOf);
        if (event) events.push(event);
        at += length;
      }
      begun.replace(buffer.subarray(at), needed);
      return events;
    },
    // A partial frame may be left. The decoder knows whether more events were expected.
    end: () => NONE,
  };
}

/**
 * Copies the beginning of a frame into one buffer, which doubles up to the frame's length. Reports growth before it
 * allocates. A retained one-byte slice would keep the whole chunk it was read with in memory.
 */
function createBegunFrame(onGrowth: SseReaderOptions['onGrowth']) {
  let memory = EMPTY;
  let held = 0;
  let needed = PRELUDE_BYTES;
  let grown = SMALL_FRAME;

  const add = (bytes: Uint8Array): boolean => {
    const least = held + bytes.length;
    if (least > memory.length) {
      const length = Math.max(least, Math.min(needed, Math.max(LEAST_MEMORY, 2 * memory.length)));
      if (length > grown) {
        onGrowth?.(length - grown);
        grown = length;
      }
      const larger = Buffer.allocUnsafeSlow(length);
      larger.set(memory.subarray(0, held));
      memory = larger;
    }
    memory.set(bytes, held);
    held = least;
    return held >= needed;
  };

  return {
    held: () => memory.subarray(0, held),
    /** Returns true once the frame, or the prelude with its length, is complete. */
    add,
    /** Replaces the buffered bytes; the new ones may be a view of them. */
    replace(bytes: Uint8Array, length: number): void {
      held = 0;
      needed = length;
      if (memory.length > SMALL_FRAME) memory = EMPTY;
      if (bytes.length > 0) add(bytes);
    },
  };
}

const EMPTY = Buffer.alloc(0);
const LEAST_MEMORY = 4096;
const NONE: readonly SseEvent[] = Object.freeze([]);

function damaged(what: string): StreamFailure {
  return new StreamFailure({ class: 'upstream_error', message: `The provider sent a stream whose ${what}.` });
}

/** Returns the length of the frame at this offset, after the checksum of its first twelve bytes is verified. */
function frameLength(buffer: Buffer, at: number, most: number): number {
  const [length, headers] = [buffer.readUInt32BE(at), buffer.readUInt32BE(at + 4)];
  if (crc32(buffer.subarray(at, at + 8)) !== buffer.readUInt32BE(at + 8)) throw damaged('frames are damaged');
  if (length > most) throw damaged(`frame is longer than ${most} bytes`);
  if (headers > MAX_HEADER_BYTES || length < LEAST_BYTES + headers) throw damaged('frames are malformed');
  return length;
}

function readFrame(frame: Buffer, headersOf: typeof readHeaders): SseEvent | undefined {
  const end = frame.length - CHECKSUM_BYTES;
  if (crc32(frame.subarray(0, end)) !== frame.readUInt32BE(end)) throw damaged('frames are damaged');
  const from = PRELUDE_BYTES + frame.readUInt32BE(4);
  const headers = headersOf(frame.subarray(PRELUDE_BYTES, from));
  const kind = headers.get(':message-type');
  if (kind === 'error')
    return { event: 'error', data: JSON.stringify({ message: headers.get(':error-message') ?? 'unknown' }) };
  const event = headers.get(kind === 'exception' ? ':exception-type' : ':event-type');
  if (event === undefined) return undefined;
  const data = frame.toString('utf8', from, end);
  if (exceedsBounds(data))
    throw new GatewayError(
      'provider_invalid_response',
      'The provider sent a stream event with too many values or too much nesting.',
    );
  return { event, data };
}

/** Parses equal headers of consecutive frames once; those of a model's text deltas are equal. */
function createHeaderReader(): typeof readHeaders {
  let last: { readonly bytes: Buffer; readonly headers: ReadonlyMap<string, string> } | undefined;
  return (bytes) => {
    if (!last?.bytes.equals(bytes)) last = { bytes: Buffer.from(bytes), headers: readHeaders(bytes) };
    return last.headers;
  };
}

/** Headers with text values. */
function readHeaders(bytes: Buffer): ReadonlyMap<string, string> {
  const headers = new Map<string, string>();
  let at = 0;
  while (at < bytes.length) {
    const nameEnd = at + 1 + (bytes[at] ?? 0);
    const type = bytes[nameEnd] ?? -1;
    const fixed = VALUE_BYTES[type];
    if (fixed === undefined || (fixed < 0 && nameEnd + 3 > bytes.length)) throw damaged('headers are malformed');
    const from = nameEnd + (fixed < 0 ? 3 : 1);
    const to = from + (fixed < 0 ? bytes.readUInt16BE(nameEnd + 1) : fixed);
    if (to > bytes.length) throw damaged('headers are malformed');
    if (type === TEXT) headers.set(bytes.toString('utf8', at + 1, nameEnd), bytes.toString('utf8', from, to));
    at = to;
  }
  return headers;
}
