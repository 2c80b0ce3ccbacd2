import { type ContentPart, isObject, type JsonObject, readString } from '../../../core/index.ts';
import { invalid } from '../../providers/kit/index.ts';
import { fieldOf, listOf, othersOf } from './spelling.ts';

const AUDIO_FORMAT: Readonly<Record<string, string>> = Object.freeze({
  'audio/wav': 'wav',
  'audio/x-wav': 'wav',
  'audio/mp3': 'mp3',
  'audio/mpeg': 'mp3',
  'audio/flac': 'flac',
  'audio/aac': 'aac',
  'audio/ogg': 'ogg',
  'audio/aiff': 'aiff',
});

/** Fields that say what a part is; one with none of them is nothing that we know. */
const KINDS = ['text', 'inlineData', 'fileData', 'functionCall', 'functionResponse'] as const;
const FIELDS: readonly string[] = Object.freeze([...KINDS, 'thought', 'thoughtSignature']);

/** Of a block that only Gemini understands, what others get to read of it. */
const MAX_HISTORY_TEXT = 4096;

/** A file that was uploaded to the operator's account at Google. */
const UPLOADED = /^(?:https:\/\/generativelanguage\.googleapis\.com\/(?:[\w.]+\/)*)?files\/[\w-]+$/i;

/** What a part is: text, media, a call, a result, or something that only Gemini understands. */
export function kindOf(part: JsonObject): (typeof KINDS)[number] | 'other' {
  return KINDS.find((kind) => fieldOf(part, kind) !== undefined) ?? 'other';
}

/** A media part in the canonical form. */
export function readMedia(part: JsonObject, at: string): ContentPart {
  const inline = fieldOf(part, 'inlineData');
  const file = fieldOf(part, 'fileData');
  const media = isObject(inline) ? readInline(inline, at) : readFile(isObject(file) ? file : {}, part, at);
  const others = othersOf(part, FIELDS);
  return Object.keys(others).length === 0 ? media : { ...media, dialect_fields: { gemini: others } };
}

function readInline(inline: JsonObject, at: string): ContentPart {
  const type = readString(fieldOf(inline, 'mimeType'))?.toLowerCase();
  const data = readString(fieldOf(inline, 'data'));
  if (type === undefined) throw invalid(`${at}.inlineData.mimeType`, 'must name the type of the data');
  if (data === undefined) throw invalid(`${at}.inlineData.data`, 'must be the data in base64');
  const format = Object.hasOwn(AUDIO_FORMAT, type) ? AUDIO_FORMAT[type] : undefined;
  if (format !== undefined) return { type: 'input_audio', input_audio: { data, format } };
  return urlPart(type, `data:${type};base64,${data}`, readString(fieldOf(inline, 'displayName')));
}

function readFile(file: JsonObject, part: JsonObject, at: string): ContentPart {
  const uri = readString(fieldOf(file, 'fileUri')) ?? '';
  if (UPLOADED.test(uri)) return { type: 'opaque', dialect: 'gemini', value: part };
  if (!/^https:\/\//i.test(uri)) throw invalid(`${at}.fileData.fileUri`, 'must be an https: URL');
  return urlPart(readString(fieldOf(file, 'mimeType')) ?? '', uri, readString(fieldOf(file, 'displayName')));
}

function urlPart(type: string, url: string, filename: string | undefined): ContentPart {
  if (type.startsWith('image/')) return { type: 'image_url', image_url: { url } };
  if (type.startsWith('video/')) return { type: 'video_url', video_url: { url } };
  const place = url.startsWith('data:') ? { file_data: url } : { file_url: url };
  return { type: 'file', file: { ...(filename !== undefined && { filename }), ...place } };
}

/** Whether a part names a file in the operator's account at Google, which all callers would share. */
export function isReference(part: JsonObject): boolean {
  const file = fieldOf(part, 'fileData');
  return isObject(file) && UPLOADED.test(readString(fieldOf(file, 'fileUri')) ?? '');
}

/** A part that only Gemini understands, such as code that it ran; others get to read it as text where it is short. */
export function opaquePart(part: JsonObject): ContentPart {
  const text = historyText(part);
  return { type: 'opaque', dialect: 'gemini', value: part, ...(text !== undefined && { text }) };
}

function historyText(part: JsonObject): string | undefined {
  const code = fieldOf(part, 'executableCode');
  const result = fieldOf(part, 'codeExecutionResult');
  const text = isObject(code)
    ? `Code that was run:\n${readString(fieldOf(code, 'code')) ?? ''}`
    : isObject(result)
      ? `Output of the code:\n${readString(fieldOf(result, 'output')) ?? ''}`
      : JSON.stringify(part);
  return text.length <= MAX_HISTORY_TEXT ? text : undefined;
}

/** The parts of a content, each with its place. */
export function partsOf(content: JsonObject, at: string): readonly (readonly [JsonObject, string])[] {
  const { parts } = content;
  return listOf(parts).flatMap((part, index) =>
    isObject(part) ? [[part, Array.isArray(parts) ? `${at}.parts[${index}]` : `${at}.parts`] as const] : [],
  );
}

/** One text alone is the content itself. */
export function contentOf(parts: readonly ContentPart[]): string | readonly ContentPart[] {
  const [first, ...others] = parts;
  if (first === undefined) return '';
  return others.length === 0 && first.type === 'text' && typeof first['text'] === 'string' ? first['text'] : parts;
}
