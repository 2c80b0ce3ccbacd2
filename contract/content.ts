import { isObject } from './json.ts';
import { tokensOf } from './units.ts';

/** What the pieces of a request count in tokens, what is loose in them, and which of their texts are addresses that a vendor would fetch. */

/** What one image part counts, in tokens: OpenAI's high-detail price of a 1024×1024 picture. */
const TOKENS_PER_IMAGE = 765;

/** Bytes of recorded sound that count as one token: vendors count 10 to 32 tokens a second. */
const SOUND_BYTES_PER_TOKEN = Object.freeze({ plain: 1000, packed: 100 });

/** What a file or a recording counts that is only named, by an id or a URL. */
const TOKENS_PER_NAMED_FILE = 10_000;

const FILES: ReadonlySet<string> = new Set('file input_file document video_url input_video audio_url'.split(' '));
/** Fields that hold content in base64. */
export const SENT_AS: ReadonlySet<string> = new Set(['data', 'file_data']);

/** The tokens of a part by its size: a file and whatever else is sent whole by its bytes, a recording by its length. */
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

/** Fields of a part that are words about it. */
const WORDS: ReadonlySet<string> = new Set(['type', 'text', 'title', 'context', 'refusal', 'filename', 'name']);

/** Names of fields that hold an address, or the thing itself as a data URL. */
const ADDRESS_FIELD = /(?:^|_)ur[il]$/i;

/** A text that a client of HTTP would take for an address, also one in the guise of a data URL. */
const ADDRESS = /^[\s\p{Cc}]{0,64}(?:data:\s{0,64})?(?:[a-z][a-z0-9+.-]{0,32}:)?[/\\]{2}/iu;

/** Whether a text is an address that a vendor would fetch, by the field's name; in a part of a message also by its looks. */
export function isAddress(text: string, name: string, isInPart: boolean): boolean {
  if (ADDRESS_FIELD.test(name)) return !/^data:/i.test(text) || ADDRESS.test(text);
  return isInPart && !WORDS.has(name) && ADDRESS.test(text);
}

/** What a tool was called with: no vendor fetches that. */
const CALL = /_(?:use|call)$/;

/** Where a tool found something, or a model cites it. */
const SOURCE = /_(?:result|location|citation)$/;

/** Fields below which is the caller's own data, or what a model wrote. */
const FREE: ReadonlySet<string> = new Set(
  'annotations citations arguments parameters input_schema schema metadata client_metadata'.split(' '),
);

/**
 * What is looked at below a place: addresses, whatever an object says it is; addresses that a vendor fetches, and fields that act there;
 * only these fields; or neither.
 */
export type Reach = 'every' | 'all' | 'effects' | 'nothing';

/** What is looked at below a field of an object that `reach` says of itself. */
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

/** Whether an object says where something was found: its own texts are no addresses to fetch. */
export function isSource(node: object): boolean {
  return SOURCE.test(typeOf(node));
}

/** Whether a tool, or a call of one, holds nulls or leaves its `type` out. */
export function isLooseTool(tool: unknown): boolean {
  if (!isObject(tool)) return false;
  return !('type' in tool) || hasNulls(tool) || ('function' in tool && hasNulls(tool['function']));
}

export function hasNulls(value: unknown): boolean {
  if (!isObject(value)) return false;
  for (const field of Object.keys(value)) if (value[field] === null || value[field] === undefined) return true;
  return false;
}
