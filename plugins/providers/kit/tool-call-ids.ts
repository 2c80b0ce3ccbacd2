import { createHash } from 'node:crypto';

const HASH_LENGTH = 16;

/**
 * A tool call's id in the alphabet that every vendor takes (`A-Z a-z 0-9 _ -`, at most `maxLength` characters). An id that
 * fits stays as it is; any other gets a hash of the whole, so the call and its result, translated apart, still match.
 */
export function toolCallId(id: string, maxLength: number): string {
  if (/^[A-Za-z0-9_-]+$/.test(id) && id.length <= maxLength) return id;
  const hash = createHash('sha256').update(id).digest('hex').slice(0, HASH_LENGTH);
  const readable = id.slice(0, maxLength - HASH_LENGTH - 1).replace(/[^A-Za-z0-9_-]/g, '_');
  return `${readable}_${hash}`;
}
