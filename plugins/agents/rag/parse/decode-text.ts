import { isUtf8 } from 'node:buffer';
import { BadFile } from '../section.ts';

/** Bytes that no text has in an encoding of one byte a character: controls but tab, line feed, form feed and return. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const BINARY = /[\0-\x08\x0b\x0e-\x1f\x7f]/;

/** Codes that Windows-1252 does not give to any character; its decoder keeps them as controls. */
const UNASSIGNED = /[\x81\x8d\x8f\x90\x9d]/;

/** Letters beside ASCII are the rarer ones in every language that Windows-1252 is for. */
const MAX_HIGH = 0.4;

/** An HTML page's own word for its encoding, in its first kilobyte. */
const META = /<meta[^>]{0,200}charset\s*=\s*["']?([\w-]{1,40})/i;
const META_BYTES = 1024;

/**
 * A file's text: UTF-8, UTF-16 with its mark, what an HTML page says it is, else Windows-1252 (which Latin-1 is part of). Throws
 * {@link BadFile} for bytes that are text in none of them.
 */
export function decodeText(bytes: Buffer, isHtml: boolean): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return decodeAs('utf-16le', bytes);
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return decodeAs('utf-16be', bytes);
  const ascii = bytes.toString('latin1');
  if (isUtf8(bytes) && !bytes.includes(0)) return new TextDecoder().decode(bytes);
  const told = isHtml ? META.exec(ascii.slice(0, META_BYTES))?.[1] : undefined;
  const high = bytes.reduce((sum, byte) => sum + (byte > 0x7f ? 1 : 0), 0);
  if (BINARY.test(ascii)) throw new BadFile('not text');
  if (told !== undefined && !/^(utf-?8|windows-1252|latin-?1|iso-8859-1)$/i.test(told)) return decodeAs(told, bytes);
  if (UNASSIGNED.test(ascii) || high > bytes.length * MAX_HIGH)
    throw new BadFile('not text in UTF-8, UTF-16 with its mark or Latin-1');
  return fromWindows(ascii);
}

/** What Windows-1252 has from 0x80 to 0x9f, where Latin-1 has controls; a dot stands for nothing. */
const WINDOWS = '€.‚ƒ„…†‡ˆ‰Š‹Œ.Ž..‘’“”•–—˜™š›œ.žŸ';

/** Node's own decoder of Windows-1252 reads Latin-1 in several releases (nodejs/node#56542). */
function fromWindows(latin1: string): string {
  return latin1.replace(/[\x80-\x9f]/g, (character) => WINDOWS[character.charCodeAt(0) - 0x80] ?? '');
}

function decodeAs(encoding: string, bytes: Buffer): string {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch {
    throw new BadFile(`not text in ${encoding}`);
  }
}
