import { type CacheControl, type ContentPart, isObject, readArray, readString } from '../../../core/index.ts';
import type { Reading } from './reading.ts';
import type { Block } from './types.ts';

/** How much of a block that only its own provider understands is told to another one. */
const MAX_TOLD = 4000;

/** Blocks that other providers get as text: what tools of the provider did, and what was summed up. */
const TELLABLE = /_tool_result$|^(?:server_tool_use|mcp_tool_use|search_result|compaction|tool_reference)$/;

/** Fields that only their provider can read. */
const UNREADABLE: ReadonlySet<string> = new Set('encrypted_content encrypted_index signature cache_control'.split(' '));

/** `cache_control` where a block or tool has one. */
export function cacheControlOf({ cache_control: control }: Readonly<Record<string, unknown>>): {
  readonly cache_control?: CacheControl;
} {
  if (!isObject(control)) return {};
  const { type, ...rest } = control;
  return typeof type === 'string' ? { cache_control: { type, ...rest } } : {};
}

/** A block of a user's words or of a tool's result as a part of a message. */
export function readPart(block: Block, at: string, reading: Reading): ContentPart {
  const cached = cacheControlOf(block);
  const source = isObject(block['source']) ? block['source'] : {};
  if (block.type === 'text') return { ...readText(block), ...cached };
  if (block.type === 'image') {
    const url = sourceUrl(source);
    if (url !== undefined) return { type: 'image_url', image_url: { url }, ...cached };
  }
  if (block.type === 'document') {
    const part = readDocument(block, source);
    if (part) return { ...part, ...cached };
  }
  return readOpaque(block, at, reading);
}

/** A text; what it cites is kept for codecs and dialects of this format. */
function readText(block: Block): ContentPart {
  const citations = readArray(block['citations']);
  const annotations = citations.map((value) => ({ type: 'opaque', dialect: 'messages', value }));
  return { type: 'text', text: String(block['text']), ...(annotations.length > 0 && { annotations }) };
}

function sourceUrl({ type, media_type: media, data, url }: Readonly<Record<string, unknown>>): string | undefined {
  if (type === 'base64') return `data:${String(media)};base64,${String(data)}`;
  return type === 'url' ? readString(url) : undefined;
}

function readDocument(block: Block, source: Readonly<Record<string, unknown>>): ContentPart | undefined {
  const url = sourceUrl(source);
  const text = readString(source['type'] === 'content' ? joinedText(source['content']) : source['data']);
  const isText = source['type'] === 'text' || source['type'] === 'content';
  if (url === undefined && (!isText || text === undefined)) return undefined;
  const data = isText ? `data:text/plain;base64,${Buffer.from(text ?? '').toString('base64')}` : url;
  const filename = readString(block['title']);
  const context = readString(block['context']);
  const { citations } = block;
  return {
    type: 'file',
    file: {
      ...(filename !== undefined && { filename }),
      ...(source['type'] === 'url' ? { file_url: data } : { file_data: data }),
    },
    ...(context !== undefined && { context }),
    ...(isObject(citations) && { citations }),
    // Its parts are what citations count; other formats have one text.
    ...(source['type'] === 'content' && { dialect_fields: { messages: { source } } }),
  };
}

/** The text of a document that is given in parts; undefined when something else is among them. */
function joinedText(content: unknown): string | undefined {
  if (typeof content === 'string') return content;
  const texts = readArray(content).map((part) =>
    isObject(part) && part['type'] === 'text' ? part['text'] : undefined,
  );
  return texts.every((text) => typeof text === 'string') ? texts.join('\n\n') : undefined;
}

/** A block that only a provider of this format understands, with what others are told of it. */
export function readOpaque(block: Block, at: string, reading: Reading): ContentPart {
  const { source } = block;
  const isFile = isObject(source) && source['type'] === 'file';
  if (isFile) reading.needs.push({ kind: 'reference', name: 'file', param: `${at}.source` });
  if (typeof block['file_id'] === 'string')
    reading.needs.push({ kind: 'reference', name: block.type, param: `${at}.file_id` });
  const isTellable = TELLABLE.test(block.type);
  if (!isTellable) reading.needs.push({ kind: 'native', name: block.type, param: at });
  return { type: 'opaque', dialect: 'messages', value: block, ...(isTellable && { text: tell(block) }) };
}

function tell(block: Block): string {
  const { type, content } = block;
  if (type === 'compaction' && typeof content === 'string') return content.slice(0, MAX_TOLD);
  const json = JSON.stringify(block, (field, value: unknown) => (UNREADABLE.has(field) ? undefined : value));
  return `[${type}] ${json}`.slice(0, MAX_TOLD);
}
