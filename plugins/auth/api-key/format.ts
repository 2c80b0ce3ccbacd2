import { crc32 } from 'node:zlib';

/**
 * `tg_` + 12 base62 characters that name the key in public + `_` + 43 base62 characters of secret (256 bit) + 6 base62
 * characters of CRC-32 over all before them. The checksum lets secret scanners and this gateway tell a key from a
 * look-alike without a look-up.
 */
export const KEY_PATTERN = /^tg_([0-9A-Za-z]{12})_([0-9A-Za-z]{43})([0-9A-Za-z]{6})$/;
const REFERENCE_PATTERN = /^(?:tg_)?([0-9A-Za-z]{12})(?:_[0-9A-Za-z]{49})?$/;

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** Where a key has its public id. */
export const ID_START = 'tg_'.length;
const ID_LENGTH = 12;
export const ID_END = ID_START + ID_LENGTH;
const ID_SPACE = 62n ** BigInt(ID_LENGTH);
const SECRET_BYTES = 32;
const SECRET_LENGTH = 43;
const CHECKSUM_LENGTH = 6;

export interface NewKey {
  readonly id: string;
  /** The whole key, as its holder sends it. */
  readonly text: string;
}

/** Makes a key out of `randomBytes` (Node's, or a fixed one in tests); nothing else decides its text. */
export function createKey(randomBytes: (size: number) => Uint8Array): NewKey {
  // 128 random bits for an id of 71: what the modulo favours is beyond measure, and the id is public anyway.
  const id = encodeBase62(readInteger(randomBytes(16)) % ID_SPACE, ID_LENGTH);
  const secret = encodeBase62(readInteger(randomBytes(SECRET_BYTES)), SECRET_LENGTH);
  const body = `tg_${id}_${secret}`;
  return { id, text: `${body}${checksum(body)}` };
}

/** The public id of a well-formed key; undefined for anything else, before any look-up. */
export function parseKey(text: string): { readonly id: string } | undefined {
  const id = KEY_PATTERN.exec(text)?.[1];
  if (id === undefined) return undefined;
  const body = text.slice(0, -CHECKSUM_LENGTH);
  return text.endsWith(checksum(body)) ? { id } : undefined;
}

/** The public id in what people paste to name a key: the id, its `tg_` prefix, or (of a leaked key) the whole text. */
export function readKeyId(text: string): string | undefined {
  return REFERENCE_PATTERN.exec(text)?.[1];
}

/** What may be shown of a key: `tg_<id>`. */
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
