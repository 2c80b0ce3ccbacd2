import { type ContentPart, isObject, type JsonObject, readObject } from '../../../core/index.ts';
import { invalid, type Located, readDataUrl, textOf, urlOf } from '../kit/index.ts';
import { signatureOf } from './signatures.ts';
import type { GeminiPart } from './types.ts';

const AUDIO_TYPE: Readonly<Record<string, string>> = Object.freeze({
  wav: 'audio/wav',
  mp3: 'audio/mp3',
  flac: 'audio/flac',
  aac: 'audio/aac',
  ogg: 'audio/ogg',
  aiff: 'audio/aiff',
});

/** Types of files behind URLs, where the vendor wants one and the URL's ending is all there is. */
const TYPE_BY_ENDING: Readonly<Record<string, string>> = Object.freeze({
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  png: 'image/png',
  webp: 'image/webp',
  gif: 'image/gif',
  heic: 'image/heic',
  heif: 'image/heif',
  pdf: 'application/pdf',
  mp4: 'video/mp4',
  webm: 'video/webm',
  mov: 'video/quicktime',
});

/** Whether parts may name what lies in the operator's account at Google. */
export interface PartRules {
  readonly references: boolean;
}

/**
 * The parts of a message as Gemini's. Throws `invalid_request` for what Gemini does not take. A block of another format becomes
 * the text that stands for it, or is left out.
 */
export function geminiParts(parts: readonly Located<ContentPart>[], rules: PartRules): readonly GeminiPart[] {
  return parts.flatMap((part) => {
    if (part.value.type === 'opaque') return opaqueParts(part, rules);
    const { context } = part.value;
    const words =
      part.value.type === 'file' && typeof context === 'string' && context !== '' ? [{ text: context }] : [];
    return [...words, geminiPart(part)];
  });
}

function geminiPart(part: Located<ContentPart>): GeminiPart {
  const text = textOf(part.value);
  const signature = signatureOf(part.value);
  if (text !== undefined) return { text, ...(signature && { thoughtSignature: signature }) };
  return { ...ownFields(part.value), ...mediaPart(part) };
}

/** What only Gemini knows of a part, such as the piece of a video that counts; never what the part is. */
function ownFields({ dialect_fields: fields }: ContentPart): JsonObject {
  const { videoMetadata, video_metadata, mediaResolution, media_resolution } = readObject(readObject(fields)['gemini']);
  const video = videoMetadata ?? video_metadata;
  const resolution = mediaResolution ?? media_resolution;
  return {
    ...(isObject(video) && { videoMetadata: video }),
    ...(resolution !== undefined && resolution !== null && { mediaResolution: resolution }),
  };
}

/** A file that was uploaded to the operator's account at Google: all callers share that account. */
const UPLOADED = /generativelanguage\.googleapis\.com|^(?!https:)/i;

/** A block that came in Gemini's own format goes back as it was. */
function opaqueParts({ value: part, at }: Located<ContentPart>, { references }: PartRules): readonly GeminiPart[] {
  const { dialect, value, text } = part;
  if (dialect !== 'gemini' || !isObject(value)) return typeof text === 'string' && text !== '' ? [{ text }] : [];
  const file = readObject(value['fileData'] ?? value['file_data']);
  const uri = file['fileUri'] ?? file['file_uri'];
  if (!references && uri !== undefined && UPLOADED.test(String(uri))) {
    throw invalid(at, 'names a file of the operator’s account; the option `cachedContent` of the provider allows that');
  }
  return [value];
}

function mediaPart(part: Located<ContentPart>): GeminiPart {
  switch (part.value.type) {
    case 'image_url':
    case 'video_url':
      return urlPart(urlOf(part), `${part.at}.${part.value.type}.url`);
    case 'input_audio':
      return audioPart(part);
    case 'file':
      return filePart(part);
    default:
      throw invalid(`${part.at}.type`, 'must be text, image_url, video_url, input_audio or file for this provider');
  }
}

function urlPart(url: string, at: string): GeminiPart {
  const inline = readDataUrl(url);
  if (inline) return inlinePart(inline.mediaType, inline.data, at);
  if (!/^https:\/\//i.test(url)) throw invalid(at, 'must be an https: URL or a base64 data: URL');
  const ending = /\.([a-z0-9]{2,5})(?:[?#]|$)/i.exec(url)?.[1]?.toLowerCase() ?? '';
  const mimeType = Object.hasOwn(TYPE_BY_ENDING, ending) ? TYPE_BY_ENDING[ending] : undefined;
  return { fileData: { ...(mimeType && { mimeType }), fileUri: url } };
}

function inlinePart(mediaType: string, data: string, at: string): GeminiPart {
  if (!/^[a-z]+\/[\w.+-]+$/.test(mediaType))
    throw invalid(at, 'must name its media type, as `data:image/png;base64,…`');
  return { inlineData: { mimeType: mediaType === 'image/jpg' ? 'image/jpeg' : mediaType, data } };
}

function audioPart({ value, at }: Located<ContentPart>): GeminiPart {
  const audio = value['input_audio'];
  const format = isObject(audio) ? audio['format'] : undefined;
  const data = isObject(audio) ? audio['data'] : undefined;
  if (typeof data !== 'string' || data === '') throw invalid(`${at}.input_audio.data`, 'must be base64');
  const mimeType = typeof format === 'string' && Object.hasOwn(AUDIO_TYPE, format) ? AUDIO_TYPE[format] : undefined;
  if (!mimeType) throw invalid(`${at}.input_audio.format`, `must be ${Object.keys(AUDIO_TYPE).join(', ')}`);
  return { inlineData: { mimeType, data } };
}

function filePart({ value, at }: Located<ContentPart>): GeminiPart {
  const file = value['file'];
  const data = isObject(file) ? (file['file_data'] ?? file['file_url'] ?? file['file_id']) : undefined;
  if (typeof data !== 'string' || !/^(data|https):/i.test(data)) {
    throw invalid(`${at}.file`, 'must hold `file_data` as a base64 data: URL, or an https: URL as `file_url`');
  }
  return urlPart(data, `${at}.file.file_data`);
}
