import type { ChatChunk } from '../types/chat.ts';

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
  return (bytes) => {
    if (bytes.length > MAX_BYTES) return undefined;
    const text = bytes.toString('latin1');
    let textBytes = 0;
    let length = 0;
    for (let at = 0; at < text.length; at = TEXT_EVENT.lastIndex) {
      if (!text.startsWith(head, at)) return undefined;
      TEXT_EVENT.lastIndex = at + head.length;
      const match = TEXT_EVENT.exec(text);
      if (!match) return undefined;
      textBytes += match[1]?.length ?? 0;
      length += 1;
    }
    return { bytes, textBytes, length };
  };
}
