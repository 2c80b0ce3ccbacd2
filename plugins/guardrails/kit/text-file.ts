/** Text files in requests: as text, in base64 or as a data URL. */

/** Text file with a function that encodes a changed text in its place. */
interface TextFile {
  readonly text: string;
  write(text: string): string;
}

/** Media type, `;base64` and comma of a data URL. */
const DATA_URL = /^data:([^,]{0,256}?)(;base64)?,/i;

const TEXT_TYPE = /^(?:text\/|application\/(?:json|xml|yaml|javascript)\b|[\w.-]+\/[\w.-]+\+(?:json|xml|yaml)\b)/i;

/** Characters of base64, including base64url. */
const BASE64 = /^[\w+/=\s-]*$/;

/** Number of characters of encoded content that are decoded to detect text: a multiple of four. */
const HEAD = 2048;

/**
 * Reads a text file; undefined for other content. Content without a text media type counts as text if it begins like
 * one.
 */
export function readTextFile(value: string, mediaType: string | undefined): TextFile | undefined {
  const url = DATA_URL.exec(value);
  if (!url) {
    if (!BASE64.test(value.slice(0, HEAD))) return { text: value, write: (text) => text };
    return readBase64(value, mediaType ?? '');
  }
  const [head, type = '', isBase64] = url;
  const file = isBase64
    ? readBase64(value.slice(head.length), type === '' ? (mediaType ?? 'text/plain') : type)
    : readPercent(value.slice(head.length));
  return file && { text: file.text, write: (text) => `${head}${file.write(text)}` };
}

function readPercent(coded: string): TextFile {
  let text = coded;
  try {
    text = decodeURIComponent(coded);
  } catch {
    // Without percent-encoding, the text is used unchanged.
  }
  return { text, write: encodeURIComponent };
}

function readBase64(coded: string, mediaType: string): TextFile | undefined {
  const head = Buffer.from(coded.slice(0, HEAD), 'base64');
  const encoding = encodingOf(head, mediaType);
  if (encoding === 'utf8' && !TEXT_TYPE.test(mediaType) && !isText(head)) return undefined;
  return {
    text: decode(Buffer.from(coded, 'base64'), encoding),
    write: (text) => encode(text, encoding).toString('base64'),
  };
}

type Encoding = 'utf8' | 'utf16le' | 'utf16be';

/** Encoding by byte order mark, otherwise by the declared charset, otherwise by the zeros of every other byte. */
function encodingOf(head: Buffer, mediaType: string): Encoding {
  const [first, second] = head;
  if (first === 0xff && second === 0xfe) return 'utf16le';
  if (first === 0xfe && second === 0xff) return 'utf16be';
  const [declared] = /;\s*charset="?utf-?16(?:le|be)?\b/i.exec(mediaType) ?? [];
  if (declared !== undefined) return /be$/i.test(declared) ? 'utf16be' : 'utf16le';
  const start = [...head.subarray(0, 64)];
  const zeros = (parity: number) => start.filter((byte, at) => at % 2 === parity && byte === 0).length;
  const half = Math.floor(start.length / 2);
  if (half > 0 && zeros(1) === half && zeros(0) === 0) return 'utf16le';
  if (half > 0 && zeros(0) >= half && zeros(1) === 0) return 'utf16be';
  return 'utf8';
}

function decode(bytes: Buffer, encoding: Encoding): string {
  if (encoding === 'utf8') return bytes.toString('utf8');
  const even = Buffer.from(bytes.subarray(0, bytes.length - (bytes.length % 2)));
  return (encoding === 'utf16be' ? even.swap16() : even).toString('utf16le');
}

function encode(text: string, encoding: Encoding): Buffer {
  if (encoding === 'utf8') return Buffer.from(text);
  const bytes = Buffer.from(text, 'utf16le');
  return encoding === 'utf16be' ? bytes.swap16() : bytes;
}

/**
 * Returns true if bytes begin like UTF-8 text: without control characters and invalid letters, except for a cut
 * letter at the end.
 */
function isText(head: Buffer): boolean {
  if (head.length === 0) return false;
  const text = new TextDecoder().decode(head, { stream: true });
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they tell other files from text
  return !/[\u0000-\u0008\u000e-\u001a\u001c-\u001f\ufffd]/.test(text);
}
