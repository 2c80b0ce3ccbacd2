import { crc32 } from 'node:zlib';

/**
 * Format: `tg_` + 12 base62 characters of public id + `_` + 43 base62 characters of secret (256 bit) + 6 base62
 * characters of CRC-32 over everything before. By the checksum secret scanners and this gateway recognize a key without
 * a look-up.
 */
export const KEY_PATTERN = /^tg_([0-9A-Za-z]{12})_([0-9A-Za-z]{43})([0-9A-Za-z]{6})$/;
const REFERENCE_PATTERN = /^(?:tg_)?([0-9A-Za-z]{12})(?:_[0-9A-Za-z]{49})?$/;

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** Offset of the public id in a key. */
export const ID_START = 'tg_'.length;
const ID_LENGTH = 12;
export const ID_END = ID_START + ID_LENGTH;
const ID_SPACE = 62n ** BigInt(ID_LENGTH);
const SECRET_BYTES = 32;
const SECRET_LENGTH = 43;
const CHECKSUM_LENGTH = 6;

export interface NewKey {
  readonly id: string;
  /** Full key, as sent by its holder. */
  readonly text: string;
}

/** Creates a key from `randomBytes` (Node's, or a fixed one in tests); its text depends on nothing else. */
export function createKey(randomBytes: (size: number) => Uint8Array): NewKey {
  // The id needs 71 of the 128 random bits, so the modulo bias is negligible; the id is public anyway.
  const id = encodeBase62(readInteger(randomBytes(16)) % ID_SPACE, ID_LENGTH);
  const secret = encodeBase62(readInteger(randomBytes(SECRET_BYTES)), SECRET_LENGTH);
  const body = `tg_${id}_${secret}`;
  return { id, text: `${body}${checksum(body)}` };
}

/** Returns the public id of a well-formed key without a look-up; undefined for anything else. */
export function parseKey(text: string): { readonly id: string } | undefined {
  const id = KEY_PATTERN.exec(text)?.[1];
  if (id === undefined) return undefined;
  const body = text.slice(0, -CHECKSUM_LENGTH);
  return text.endsWith(checksum(body)) ? { id } : undefined;
}

/** Reads the public id from a pasted reference: the id, its `tg_` form, or (of a leaked key) the full text. */
export function readKeyId(text: string): string | undefined {
  return REFERENCE_PATTERN.exec(text)?.[1];
}

/** Public prefix of a key: `tg_<id>`. */
export function prefixOf(id: string): string {
  return `tg_${id}`;
}

function checksum(body: string): string {
  return encodeBase62(BigInt(crc32(body)), CHECKSUM_LENGTH);
}

function readInteger(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes).toString('hex')}`);
}

function encodeBase62(value: bigint, length: number): string {
  let text = '';
  for (let rest = value; text.length < length; rest /= 62n) text = `${ALPHABET.charAt(Number(rest % 62n))}${text}`;
  return text;
}
