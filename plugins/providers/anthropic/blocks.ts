import { type ContentPart, isObject, readArray, readObject, readString } from '../../../core/index.ts';
import { invalid, type Located, readDataUrl, textOf, urlOf } from '../kit/index.ts';
import type { CacheControl, MediaBlock, OtherBlock, TextBlock } from './types.ts';

const IMAGE_TYPES: ReadonlySet<string> = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp']);

/** `cache_control` where somebody put a valid one; anything else is left out. */
export function cacheControlOf(source: unknown): { readonly cache_control?: CacheControl } {
  const control = isObject(source) ? source['cache_control'] : undefined;
  if (!isObject(control) || control['type'] !== 'ephemeral') return {};
  const { ttl } = control;
  return { cache_control: { type: 'ephemeral', ...((ttl === '5m' || ttl === '1h') && { ttl }) } };
}

/** A text block; none for blank text, which the vendor refuses. */
export function textBlocks(text: string, source?: unknown): readonly TextBlock[] {
  return text.trim() === '' ? [] : [{ type: 'text', text, ...citationsOf(source), ...cacheControlOf(source) }];
}

/** What a text of the vendor's cites, for the vendor: other citations have nothing that it could check. */
function citationsOf(source: unknown): { readonly citations?: readonly unknown[] } {
  const citations = readArray(readObject(source)['annotations']).flatMap((annotation) => ownValue(annotation) ?? []);
  return citations.length > 0 ? { citations } : {};
}

/** What an `opaque` thing of the vendor's own format holds. */
export function ownValue(thing: unknown): OtherBlock | undefined {
  const { type, dialect, value } = readObject(thing);
  if (type !== 'opaque' || dialect !== 'messages' || !isObject(value)) return undefined;
  const { type: own, ...rest } = value;
  return typeof own === 'string' ? { type: own as OtherBlock['type'], ...rest } : undefined;
}

/** One part of a message as blocks (none for blank text). Throws `invalid_request` for what the vendor does not take. */
export function anthropicBlocks(part: Located<ContentPart>): readonly (TextBlock | MediaBlock | OtherBlock)[] {
  const own = ownValue(part.value);
  if (own) return [own];
  const text = textOf(part.value);
  if (text !== undefined) return textBlocks(text, part.value);
  switch (part.value.type) {
    case 'image_url':
      return [{ ...imageBlock(urlOf(part), `${part.at}.image_url.url`), ...cacheControlOf(part.value) }];
    case 'file':
      return [{ ...fileBlock(part), ...cacheControlOf(part.value) }];
    case 'opaque':
      // A block of another format: what it says in words, where it says something.
      return textBlocks(readString(part.value['text']) ?? '');
    default:
      throw invalid(`${part.at}.type`, 'must be text, image_url or file for this provider');
  }
}

function imageBlock(url: string, at: string): MediaBlock {
  const inline = readDataUrl(url);
  if (!inline) {
    if (/^https:\/\//i.test(url)) return { type: 'image', source: { type: 'url', url } };
    throw invalid(at, 'must be an https: URL or a base64 data: URL');
  }
  const mediaType = inline.mediaType === 'image/jpg' ? 'image/jpeg' : inline.mediaType;
  if (!IMAGE_TYPES.has(mediaType)) throw invalid(at, 'must be a JPEG, PNG, GIF or WebP image for this provider');
  return { type: 'image', source: { type: 'base64', media_type: mediaType, data: inline.data } };
}

function fileBlock({ value, at }: Located<ContentPart>): MediaBlock {
  const file = isObject(value['file']) ? value['file'] : {};
  const url = file['file_url'] ?? file['file_data'] ?? file['file_id'];
  const details = detailsOf(value, file);
  const own = readObject(readObject(readObject(value['dialect_fields'])['messages'])['source']);
  if (own['type'] === 'content')
    return { type: 'document', source: { type: 'content', content: own['content'] }, ...details };
  if (typeof url === 'string' && /^https:\/\//i.test(url)) {
    return { type: 'document', source: { type: 'url', url }, ...details };
  }
  const inline = typeof url === 'string' ? readDataUrl(url) : undefined;
  if (inline && IMAGE_TYPES.has(inline.mediaType)) return imageBlock(String(url), at);
  if (inline?.mediaType === 'application/pdf') {
    return {
      type: 'document',
      source: { type: 'base64', media_type: inline.mediaType, data: inline.data },
      ...details,
    };
  }
  if (inline?.mediaType === 'text/plain') {
    const data = Buffer.from(inline.data, 'base64').toString('utf8');
    return { type: 'document', source: { type: 'text', media_type: 'text/plain', data }, ...details };
  }
  const wanted = 'as a base64 data: URL of a PDF, a plain text or an image, or an https: URL as `file_id`';
  throw invalid(`${at}.file`, `must hold \`file_data\` ${wanted}`);
}

/** What is said of a document beside its content. */
function detailsOf(value: ContentPart, file: Readonly<Record<string, unknown>>): Omit<MediaBlock, 'type' | 'source'> {
  const { context, citations } = value;
  const title = readString(file['filename']);
  const about = readString(context);
  return {
    ...(title !== undefined && { title }),
    ...(about !== undefined && { context: about }),
    ...(isObject(citations) && { citations }),
  };
}
