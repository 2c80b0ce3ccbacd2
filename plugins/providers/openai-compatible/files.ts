import { type ContentPart, isObject, readObject, readString } from '../../../core/index.ts';
import { invalid, readDataUrl } from '../kit/index.ts';

/** Which documents a vendor takes, beside those whose content is text: these become text everywhere. */
export interface FileRules {
  /** Media types that are taken as data URLs. */
  readonly data: readonly string[];
  /** True where addresses are taken. */
  readonly urls?: boolean;
  /** True where ids of files in the operator's account are. */
  readonly ids?: boolean;
  /** The vendor's part for a document, by its name and its address or data URL; OpenAI's `file` part unless set. */
  readonly part?: (filename: string, url: string) => ContentPart;
}

/** For vendors that have no documents. */
export const NO_FILES: FileRules = Object.freeze({ data: [] });

const TEXTUAL = /^text\/|^application\/(?:json|xml|yaml|x-yaml|javascript|x-ndjson|toml|sql)$|[+](?:json|xml)$/;
const NAMES: Readonly<Record<string, string>> = Object.freeze({ 'application/pdf': 'document.pdf' });

/**
 * A document as parts that the vendor takes, with what the caller says of it in front. Throws `invalid_request` naming the part
 * where the vendor has no such documents.
 */
export function mapFile(part: ContentPart, at: string, rules: FileRules): readonly ContentPart[] {
  const file = readObject(part['file']);
  const filename = readString(file['filename']);
  const context = readString(part['context']);
  const about: readonly ContentPart[] =
    context === undefined ? [] : [{ type: 'text', text: `About the document${named(filename)}: ${context}` }];
  return [...about, mapDocument(file, filename, at, rules)];
}

function mapDocument(
  file: Readonly<Record<string, unknown>>,
  filename: string | undefined,
  at: string,
  rules: FileRules,
): ContentPart {
  const { data, urls = false, ids = false } = rules;
  const url = readString(file['file_url']) ?? readString(file['file_data']);
  if (url === undefined) {
    if (ids && readString(file['file_id'])) return { type: 'file', file };
    throw invalid(`${at}.file`, 'must hold `file_data`, a data URL, for this provider');
  }
  if (/^https:\/\//i.test(url)) {
    if (urls) return write(rules, filename ?? lastOf(url), url);
    throw invalid(`${at}.file`, 'is an address: this provider takes documents as data URLs only');
  }
  const [, type] = /^data:([^;,]*)/i.exec(url) ?? [];
  if (type === undefined) throw invalid(`${at}.file`, 'must hold a data URL, or an https: URL');
  const mediaType = type.trim().toLowerCase() || 'text/plain';
  if (mediaType.startsWith('image/')) return { type: 'image_url', image_url: { url } };
  if (!data.includes(mediaType) && TEXTUAL.test(mediaType)) {
    return { type: 'text', text: `Document${named(filename)}:\n${readText(url, at)}` };
  }
  if (data.includes('*') || data.includes(mediaType))
    return write(rules, filename ?? NAMES[mediaType] ?? 'document', url);
  throw invalid(`${at}.file`, `is a document of the type ${mediaType.slice(0, 80)}, which this provider does not have`);
}

function write({ part }: FileRules, filename: string, url: string): ContentPart {
  return part ? part(filename, url) : { type: 'file', file: { filename, file_data: url } };
}

function named(filename: string | undefined): string {
  return filename === undefined ? '' : ` "${filename}"`;
}

function lastOf(url: string): string {
  return (URL.canParse(url) && new URL(url).pathname.split('/').at(-1)) || 'document';
}

/** The text of a data URL, in base64 or percent-encoded. */
function readText(url: string, at: string): string {
  const inline = readDataUrl(url);
  if (inline) return Buffer.from(inline.data, 'base64').toString('utf8');
  const comma = url.indexOf(',');
  try {
    return decodeURIComponent(url.slice(comma + 1));
  } catch {
    throw invalid(`${at}.file.file_data`, 'must be a data URL');
  }
}

/** Whether a part is a document. */
export function isFile(part: unknown): part is ContentPart {
  return isObject(part) && part['type'] === 'file';
}
