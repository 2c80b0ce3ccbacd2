import { isObject, type JsonObject, parseJson, readArray, readObject, readString } from '../../../contract/index.ts';

/**
 * Metadata that a package wants back with a part of an earlier answer, such as a signature. It travels in the `data`
 * of a reasoning detail, which core seals for the account and the provider.
 */
export interface Mark {
  /** Part with the metadata: `reasoning`, `text`, or `call <id>`. */
  readonly of: string;
  readonly metadata: JsonObject;
  /** Text of a thought. */
  readonly text?: string;
}

const PREFIX = 'ai-sdk:';

/** Longer metadata is left out, and reported. */
const MAX_LENGTH = 256 * 1024;

/** True for metadata that has to come back. */
export function isMarked(metadata: unknown): metadata is JsonObject {
  return isObject(metadata) && Object.keys(metadata).length > 0;
}

/** Writes one mark, or all marks of a response; undefined for too much metadata. */
export function writeMark(mark: Mark | readonly Mark[]): string | undefined {
  const text = JSON.stringify(mark);
  return text.length > MAX_LENGTH ? undefined : PREFIX + Buffer.from(text).toString('base64');
}

/** Reads the marks of a detail that {@link writeMark} wrote; undefined for any other detail. */
export function openMarks({ data, signature }: JsonObject): readonly Mark[] | undefined {
  const written = readString(data) ?? readString(signature);
  if (!written?.startsWith(PREFIX)) return undefined;
  const found = parseJson(Buffer.from(written.slice(PREFIX.length), 'base64').toString('utf8'));
  return (Array.isArray(found) ? readArray(found) : [found]).map(readObject).flatMap((mark): readonly Mark[] => {
    const { of, metadata, text } = mark;
    if (!isObject(metadata)) return [];
    return [{ of: readString(of) ?? '', metadata, ...(typeof text === 'string' && { text }) }];
  });
}
