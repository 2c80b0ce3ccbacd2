import { isObject } from './json.ts';
import { tokensOf } from './units.ts';

/** Token counts of the parts of a request, detection of loose tools, and detection of URLs that a vendor would fetch. */

/** Tokens per image part: OpenAI's high-detail price of a 1024×1024 image. */
const TOKENS_PER_IMAGE = 765;

/** Bytes of recorded sound per token: vendors count 10 to 32 tokens a second. */
const SOUND_BYTES_PER_TOKEN = Object.freeze({ plain: 1000, packed: 100 });

/** Tokens of a file or recording that is referred to by an id or a URL. */
const TOKENS_PER_NAMED_FILE = 10_000;

const FILES: ReadonlySet<string> = new Set('file input_file document video_url input_video audio_url'.split(' '));
/** Fields that hold content in base64. */
export const SENT_AS: ReadonlySet<string> = new Set(['data', 'file_data']);

/** Returns the tokens of a part by its size. Recordings count by length; files and other inline content count by bytes. */
export function tokensOfPart(part: Part, bytes: number, isSent: boolean): number {
  if (part['type'] === 'image_url') return TOKENS_PER_IMAGE;
  if (part['type'] === 'input_audio')
    return Math.ceil(bytes / SOUND_BYTES_PER_TOKEN[isPacked(part['input_audio']) ? 'packed' : 'plain']);
  if (isSent) return tokensOf(bytes);
  return Math.max(tokensOf(bytes), FILES.has(String(part['type'])) ? TOKENS_PER_NAMED_FILE : TOKENS_PER_IMAGE);
}

function isPacked(sound: unknown): boolean {
  return isObject(sound) && 'format' in sound && !/^(?:wav|pcm)/.test(String(sound['format']));
}

type Part = Readonly<Record<string, unknown>>;

/** Text fields of a part. */
const WORDS: ReadonlySet<string> = new Set(['type', 'text', 'title', 'context', 'refusal', 'filename', 'name']);

/** Names of fields that hold a URL, which may be a data URL. */
const ADDRESS_FIELD = /(?:^|_)ur[il]$/i;

/** Matches texts that an HTTP client would accept as a URL, including one disguised as a data URL. */
const ADDRESS = /^[\s\p{Cc}]{0,64}(?:data:\s{0,64})?(?:[a-z][a-z0-9+.-]{0,32}:)?[/\\]{2}/iu;

/** Returns whether a text is a URL that a vendor would fetch: by the field's name, and in parts of messages also by its form. */
export function isAddress(text: string, name: string, isInPart: boolean): boolean {
  if (ADDRESS_FIELD.test(name)) return !/^data:/i.test(text) || ADDRESS.test(text);
  return isInPart && !WORDS.has(name) && ADDRESS.test(text);
}

/** Arguments of tool calls: no vendor fetches them. */
const CALL = /_(?:use|call)$/;

/** Sources of tool results and citations. */
const SOURCE = /_(?:result|location|citation)$/;

/** Fields that contain the caller's own data or model output. */
const FREE: ReadonlySet<string> = new Set(
  'annotations citations arguments parameters input_schema schema metadata client_metadata'.split(' '),
);

/**
 * Scope of the search below a path. `every`: URLs in all objects, whatever their type. `all`: URLs that a vendor fetches, and
 * fields with effects. `effects`: only fields with effects. `nothing`: neither.
 */
export type Reach = 'every' | 'all' | 'effects' | 'nothing';

/** Returns the scope below a field of an object that was searched with `reach`. */
export function reachOf(node: object, reach: Reach, name: string): Reach {
  if (reach === 'nothing' || FREE.has(name)) return 'nothing';
  if (reach === 'every') return reach;
  const type = typeOf(node);
  if (!CALL.test(type)) return reach;
  return name === 'input' ? 'nothing' : 'effects';
}

function typeOf(node: object): string {
  return 'type' in node && typeof node.type === 'string' ? node.type : '';
}

/** Returns whether an object describes a source: its own texts are not URLs to fetch. */
export function isSource(node: object): boolean {
  return SOURCE.test(typeOf(node));
}

/** Returns whether a tool or tool call contains nulls or omits its `type`. */
export function isLooseTool(tool: unknown): boolean {
  if (!isObject(tool)) return false;
  return !('type' in tool) || hasNulls(tool) || ('function' in tool && hasNulls(tool['function']));
}

export function hasNulls(value: unknown): boolean {
  if (!isObject(value)) return false;
  for (const field of Object.keys(value)) if (value[field] === null || value[field] === undefined) return true;
  return false;
}
