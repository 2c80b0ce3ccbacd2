/** Media types of uploaded files, by file name extension. Sources: https://www.iana.org/assignments/media-types, https://platform.openai.com/docs/guides/speech-to-text */
const TYPES: Readonly<Record<string, string>> = Object.freeze({
  wav: 'audio/wav',
  mp3: 'audio/mpeg',
  mpga: 'audio/mpeg',
  mpeg: 'audio/mpeg',
  flac: 'audio/flac',
  ogg: 'audio/ogg',
  oga: 'audio/ogg',
  opus: 'audio/ogg',
  webm: 'audio/webm',
  m4a: 'audio/mp4',
  aac: 'audio/aac',
  mp4: 'video/mp4',
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  webp: 'image/webp',
  gif: 'image/gif',
  avif: 'image/avif',
  heic: 'image/heic',
  pdf: 'application/pdf',
  txt: 'text/plain',
  md: 'text/markdown',
  csv: 'text/csv',
  html: 'text/html',
  json: 'application/json',
  jsonl: 'application/jsonl',
});

/** Extension of each type: the first in the table; these types have other names as well. */
const EXTENSIONS: Readonly<Record<string, string>> = Object.freeze({
  ...Object.fromEntries(
    Object.entries(TYPES)
      .map(([extension, type]) => [type, extension])
      .reverse(),
  ),
  'audio/x-wav': 'wav',
  'audio/wave': 'wav',
  'audio/vnd.wave': 'wav',
  'audio/mp3': 'mp3',
  'audio/x-m4a': 'm4a',
  'audio/m4a': 'm4a',
  'audio/x-flac': 'flac',
  'audio/opus': 'opus',
  'video/webm': 'webm',
  'image/jpg': 'jpg',
});

/** Number of first bytes that {@link typeOfBytes} needs. */
export const SNIFFED_BYTES = 512;

/** Types without information about the content. */
const UNSPECIFIC = /^(?:application|binary)\/octet-stream\b/i;

/** Returns whether a part's `Content-Type` identifies the file type. */
export function isSpecificType(type: string | null | undefined): type is string {
  return typeof type === 'string' && type.trim() !== '' && !UNSPECIFIC.test(type);
}

/** Media type by the extension of a file name; undefined for an unknown one. */
export function typeOfName(name: string): string | undefined {
  const extension = /\.(\w{1,8})$/.exec(name)?.[1]?.toLowerCase();
  return extension !== undefined && Object.hasOwn(TYPES, extension) ? TYPES[extension] : undefined;
}

/** Signatures at an offset. Sources: https://mimesniff.spec.whatwg.org, https://www.garykessler.net/library/file_sigs.html */
const SIGNATURES: readonly (readonly [
  type: string,
  ...marks: readonly (readonly [offset: number, bytes: string])[],
])[] = Object.freeze([
  ['audio/wav', [0, 'RIFF'], [8, 'WAVE']],
  ['image/webp', [0, 'RIFF'], [8, 'WEBP']],
  ['audio/mpeg', [0, 'ID3']],
  ['audio/ogg', [0, 'OggS']],
  ['audio/flac', [0, 'fLaC']],
  ['audio/webm', [0, '\x1a\x45\xdf\xa3']],
  ['audio/mp4', [4, 'ftypM4A']],
  ['image/avif', [4, 'ftypavif']],
  ['image/heic', [4, 'ftypheic']],
  ['video/mp4', [4, 'ftyp']],
  ['image/png', [0, '\x89PNG\r\n\x1a\n']],
  ['image/jpeg', [0, '\xff\xd8\xff']],
  ['image/gif', [0, 'GIF8']],
  ['application/pdf', [0, '%PDF-']],
]);

/** Media type by the first {@link SNIFFED_BYTES} of a file; undefined for an unknown format. */
export function typeOfBytes(bytes: Uint8Array): string | undefined {
  const head = Buffer.from(bytes.subarray(0, SNIFFED_BYTES));
  const latin = head.toString('latin1');
  const found = SIGNATURES.find(([, ...marks]) => marks.every(([offset, mark]) => latin.startsWith(mark, offset)));
  if (found) return found[0];
  const [first = 0, second = 0] = head;
  // Frames of MPEG audio begin with eleven set bits, and those of ADTS have 0 as their layer.
  if (first === 0xff && (second & 0xf6) === 0xf0) return 'audio/aac';
  if (first === 0xff && (second & 0xe0) === 0xe0) return 'audio/mpeg';
  return head.length > 0 && isText(head) ? 'text/plain' : undefined;
}

/** Control characters of texts: tab, line feed, form feed, carriage return and escape. */
const TEXT_CONTROLS: ReadonlySet<number> = new Set([0x09, 0x0a, 0x0c, 0x0d, 0x1b]);

function isText(head: Buffer): boolean {
  if (head.some((byte) => byte < 0x20 && !TEXT_CONTROLS.has(byte))) return false;
  try {
    // The last character may be incomplete.
    new TextDecoder('utf-8', { fatal: true }).decode(head, { stream: true });
    return true;
  } catch {
    return false;
  }
}

/**
 * Adds an extension by type to a file name without one. Browsers send `blob`, httpx `upload`, and vendors rely on the extension.
 */
export function withExtension(name: string, type: string): string {
  if (/\.\w{1,8}$/.test(name)) return name;
  const bare = type.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  const extension = Object.hasOwn(EXTENSIONS, bare) ? EXTENSIONS[bare] : undefined;
  return extension === undefined ? name : `${name === '' ? 'file' : name}.${extension}`;
}
