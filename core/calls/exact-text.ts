import type { ChatChunk } from '../contract/chat.ts';

/** Whole events that add text to the first choice and nothing else, as the vendor wrote them. */
export interface ExactText {
  readonly bytes: Uint8Array;
  /** Bytes of text in them, escapes as written. */
  readonly textBytes: number;
  /** How many events. */
  readonly length: number;
}

/**
 * What follows the head of such an event, in OpenAI's own spelling and order. Everything else (roles, tools, other choices,
 * reasons, usage, errors, the end, comments, another order, a carriage return, what is not valid JSON) does not match and
 * is parsed.
 */
const TEXT_EVENT =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: JSON texts have none
  /(?:"service_tier":"[a-z]*",)?(?:"system_fingerprint":(?:null|"\w*"),)?"choices":\[\{"index":0,"delta":\{"content":"((?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))+)"\},"logprobs":null,"finish_reason":null\}\](?:,"usage":null)?\}\n\n/y;

const TEXT_BEGINS = '"content":"';
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = 0x20;

/** Above this an event is parsed: a pattern should not run over megabytes. */
const MAX_BYTES = 16 * 1024;

/** Reads bytes that end with a blank line; answers undefined when they are more than events of plain text. */
export type ExactTextReader = (bytes: Buffer) => ExactText | undefined;

/** For the stream that began with `first`: events of another id, model or time are not passed as they are. */
export function createExactTextReader({
  id,
  created,
  model,
}: Pick<ChatChunk, 'id' | 'created' | 'model'>): ExactTextReader {
  const head = `data: {"id":${JSON.stringify(id)},"object":"chat.completion.chunk","created":${created},"model":${JSON.stringify(model)},`;
  let last: Frame | undefined;

  const match = (bytes: Buffer): ExactText | undefined => {
    const text = bytes.toString('latin1');
    let textBytes = 0;
    let length = 0;
    for (let at = 0; at < text.length; at = TEXT_EVENT.lastIndex) {
      if (!text.startsWith(head, at)) return undefined;
      TEXT_EVENT.lastIndex = at + head.length;
      const found = TEXT_EVENT.exec(text);
      if (!found) return undefined;
      const written = found[1]?.length ?? 0;
      if (length === 0)
        last = frameOf(bytes.subarray(0, TEXT_EVENT.lastIndex), text.indexOf(TEXT_BEGINS, head.length), written);
      textBytes += written;
      length += 1;
    }
    return { bytes, textBytes, length };
  };
  return (bytes) => {
    if (bytes.length > MAX_BYTES) return undefined;
    const textBytes = last && plainTextIn(last, bytes);
    return textBytes ? { bytes, textBytes, length: 1 } : match(bytes);
  };
}

/** The bytes around the text of an event. The next event of the stream has the same, and comparing costs less than matching. */
interface Frame {
  readonly before: Uint8Array;
  readonly after: Uint8Array;
}

function frameOf(event: Buffer, quoteAt: number, textLength: number): Frame {
  const start = quoteAt + TEXT_BEGINS.length;
  // Copies of their own: a slice would keep the whole read of the socket, and a small Buffer a whole pool.
  return {
    before: new Uint8Array(event.subarray(0, start)),
    after: new Uint8Array(event.subarray(start + textLength)),
  };
}

/** How much text without escapes there is in a frame; 0 when the bytes are anything else. */
function plainTextIn({ before, after }: Frame, bytes: Buffer): number {
  const end = bytes.length - after.length;
  if (end <= before.length) return 0;
  for (let at = 0; at < before.length; at++) if (bytes[at] !== before[at]) return 0;
  for (let at = 0; at < after.length; at++) if (bytes[end + at] !== after[at]) return 0;
  for (let at = before.length; at < end; at++) {
    const byte = bytes[at] as number;
    if (byte === QUOTE || byte === BACKSLASH || byte < SPACE) return 0;
  }
  return end - before.length;
}
