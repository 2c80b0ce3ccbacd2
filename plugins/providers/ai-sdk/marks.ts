import { isObject, type JsonObject, parseJson, readString } from '../../../contract/index.ts';

/**
 * Metadata that a package wants back with a part of an earlier answer, such as a signature. It travels in the `data`
 * of a reasoning detail, which core seals for the account and the provider.
 */
export interface Mark {
  /** Part with the metadata: `reasoning`, `text`, or `call <id>`. */
  readonly of: string;
  readonly metadata: JsonObject;
}

const PREFIX = 'ai-sdk:';

/** Longer metadata is left out, and reported. */
const MAX_LENGTH = 256 * 1024;

/** Writes metadata; undefined for none, or too much. */
export function writeMark(of: string, metadata: unknown): string | undefined {
  if (!isObject(metadata) || Object.keys(metadata).length === 0) return undefined;
  const text = JSON.stringify({ of, metadata });
  return text.length > MAX_LENGTH ? undefined : PREFIX + Buffer.from(text).toString('base64');
}

/** Reads the metadata of a detail that {@link writeMark} wrote; undefined for any other detail. */
export function openMark({ data, signature }: JsonObject): Mark | undefined {
  const text = readString(data) ?? readString(signature);
  if (!text?.startsWith(PREFIX)) return undefined;
  const mark = parseJson(Buffer.from(text.slice(PREFIX.length), 'base64').toString('utf8'));
  if (!isObject(mark) || !isObject(mark['metadata'])) return undefined;
  return { of: readString(mark['of']) ?? '', metadata: mark['metadata'] };
}
