import {
  type ChatMessage,
  type ChatRequest,
  type ContentPart,
  isObject,
  type JsonObject,
  readArray,
  readObject,
  readString,
} from '../../../contract/index.ts';
import {
  type CalledTool,
  type Conversation,
  invalid,
  type Located,
  parseArguments,
  readConversation,
  readDataUrl,
  type ToolResult,
  textOf,
  urlOf,
} from '../kit/index.ts';
import { readCallId, SKIP_SIGNATURE, signatureOf } from './signatures.ts';
import { AUDIO_TYPE, type GeminiTraits } from './tables.ts';
import type { GeminiContent, GeminiPart } from './types.ts';

/** User turn added where the vendor requires one and the caller sent none. */
const OPENING = '(The assistant speaks first.)';
const CLOSING = 'Continue.';

interface Translated {
  readonly contents: readonly GeminiContent[];
  readonly systemInstruction?: { readonly parts: readonly GeminiPart[] };
}

/** Converts messages to `contents` and `systemInstruction`; `instruction` is a system text added by the gateway. */
export function geminiContents(
  messages: readonly ChatMessage[],
  traits: GeminiTraits,
  instruction: string | undefined,
  rules: PartRules = { references: false },
): Translated {
  const conversation = readConversation(messages);
  const contents: GrowingContent[] = [];
  for (const turn of conversation.turns) {
    if (turn.kind === 'user') append(contents, 'user', geminiParts(turn.parts, rules));
    else if (turn.kind === 'assistant') append(contents, 'model', modelParts(turn, traits, rules));
    else contents.push({ role: 'user', parts: [...resultParts(turn.results, traits, rules)] });
  }
  const system = [
    ...conversation.system.map(({ value }): GeminiPart => ({ text: value.text })),
    ...(instruction ? [{ text: instruction }] : []),
  ];
  // Gemma has no system instruction, and a request needs a turn. In both cases the system texts become a user turn.
  const asUser = system.length > 0 && (!traits.systemInstruction || contents.length === 0);
  if (asUser && contents[0]?.role === 'user' && !contents[0].parts[0]?.functionResponse) {
    contents[0] = { role: 'user', parts: [...system, ...contents[0].parts] };
  } else if (asUser) contents.unshift({ role: 'user', parts: system });
  if (contents.length === 0) throw invalid('messages', 'must contain text, an image or other content');
  if (contents[0]?.role === 'model') contents.unshift({ role: 'user', parts: [{ text: OPENING }] });
  if (contents.at(-1)?.role === 'model') contents.push({ role: 'user', parts: [{ text: CLOSING }] });
  return { contents, ...(!asUser && system.length > 0 && { systemInstruction: { parts: system } }) };
}

/** Mutable turn: copying it for every message would be slow with many short ones. */
interface GrowingContent extends GeminiContent {
  readonly parts: GeminiPart[];
}

/**
 * Appends a turn. Adjacent turns of one role are merged, except function results, which the vendor matches with the
 * calls.
 */
function append(contents: GrowingContent[], role: GeminiContent['role'], parts: readonly GeminiPart[]): void {
  if (parts.length === 0) return;
  const last = contents.at(-1);
  if (last?.role !== role || last.parts[0]?.functionResponse) contents.push({ role, parts: [...parts] });
  else for (const part of parts) last.parts.push(part);
}

/**
 * Results of calls. Texts are one string under `output`, byte for byte: parsed JSON would lose precision of long
 * numbers. If results cannot hold media, it follows all results, labelled with the name of its call.
 */
function resultParts(results: readonly ToolResult[], traits: GeminiTraits, rules: PartRules): readonly GeminiPart[] {
  const loose: GeminiPart[] = [];
  const responses = results.map(({ call, parts, message }): GeminiPart => {
    const media = geminiParts(
      parts.filter(({ value }) => textOf(value) === undefined),
      rules,
    );
    const { id } = readCallId(call.id);
    if (!traits.signatures && media.length > 0) loose.push({ text: `Result of call ${id}:` }, ...media);
    const text = parts.map(({ value }) => textOf(value) ?? '').join('');
    return {
      functionResponse: {
        id,
        name: call.name,
        response: message.is_error === true ? { error: text } : { output: text },
        ...(traits.signatures && media.length > 0 && { parts: media }),
      },
    };
  });
  return [...responses, ...loose];
}

type AssistantTurn = Extract<Conversation['turns'][number], { kind: 'assistant' }>;

/** Model turn in the order in which its blocks were made. Default without `order`: thinking, text and images, calls. */
export function modelParts(turn: AssistantTurn, traits: GeminiTraits, rules: PartRules): readonly GeminiPart[] {
  const blocks = [...thoughtBlocks(turn), ...textBlocks(turn, rules), ...callBlocks(turn, traits)];
  const place = new Map((turn.message.order ?? []).map((name, at) => [name, at]));
  const rankOf = (name: string): number => place.get(name) ?? place.size;
  return blocks.toSorted((a, b) => rankOf(a.name) - rankOf(b.name)).flatMap(({ parts }) => parts);
}

/** Parts with the name of their message block in `order`. */
interface NamedParts {
  readonly name: string;
  readonly parts: readonly GeminiPart[];
}

/** Returns true if there is earlier thinking signed by another vendor. Gemini verifies only its own. */
export function hasForeignReasoning({ messages }: ChatRequest): boolean {
  return messages.some(({ reasoning_details: details }) => details?.some(({ format }) => format !== 'gemini'));
}

/** Gemini's own thinking with its signatures; other formats' thinking is dropped. */
function thoughtBlocks({ message }: AssistantTurn): readonly NamedParts[] {
  return readArray(message.reasoning_details).map((detail, at) => {
    const { format, text, signature } = readObject(detail);
    const words = readString(text) ?? '';
    const thoughtSignature = readString(signature);
    const isOwn = format === 'gemini' && (words !== '' || thoughtSignature !== undefined);
    const part: GeminiPart = { text: words, thought: true, ...(thoughtSignature && { thoughtSignature }) };
    return { name: `reasoning:${at}`, parts: isOwn ? [part] : [] };
  });
}

function textBlocks(turn: AssistantTurn, rules: PartRules): readonly NamedParts[] {
  const opened = openedSignatures(turn);
  const blocks = turn.parts.map((part): NamedParts => {
    const name = `content:${indexOf(part)}`;
    const parts = wordsOf(part, rules);
    const thoughtSignature = opened.get(name);
    return { name, parts: thoughtSignature ? parts.map((each) => ({ ...each, thoughtSignature })) : parts };
  });
  const images = imageParts(turn);
  const signature = signatureOf(turn.message) ?? (blocks.length === 0 ? opened.get('content:0') : undefined);
  const last = blocks.at(-1);
  if (signature === undefined) return images.length > 0 ? [...blocks, { name: 'image', parts: images }] : blocks;
  // The signature of a text belongs to its last part. An empty text consists of its signature only.
  const [text = { text: '' }, ...others] = last?.parts.toReversed() ?? [];
  const signed = [...others.toReversed(), { ...text, thoughtSignature: signature }];
  return [...blocks.slice(0, -1), { name: last?.name ?? 'content:0', parts: [...signed, ...images] }];
}

/** Original index of a part in the message's content, before empty parts were removed. */
function indexOf({ at }: Located<ContentPart>): string {
  return /\.content\[(\d+)\]$/.exec(at)?.[1] ?? '0';
}

function wordsOf(part: Located<ContentPart>, rules: PartRules): readonly GeminiPart[] {
  if (textOf(part.value) === undefined && part.value.type !== 'opaque')
    throw invalid(`${part.at}.type`, 'must be text or refusal in an assistant message');
  return geminiParts([part], rules);
}

/** Images from earlier model turns. */
function imageParts({ message }: AssistantTurn): readonly GeminiPart[] {
  return readArray(message['images']).flatMap((image) => {
    const url = readString(readObject(readObject(image)['image_url'])['url']);
    const inline = url === undefined ? undefined : readDataUrl(url);
    const thoughtSignature = signatureOf(readObject(image));
    if (!inline) return [];
    return [
      { inlineData: { mimeType: inline.mediaType, data: inline.data }, ...(thoughtSignature && { thoughtSignature }) },
    ];
  });
}

function callBlocks(turn: AssistantTurn, traits: GeminiTraits): readonly NamedParts[] {
  const opened = openedSignatures(turn);
  let signed = false;
  return turn.calls.map((call, at) => {
    const { id, signature: found = opened.get(`tool:${at}`) } = readSignedCall(call);
    // Only the first of parallel calls is signed, so an unsigned call after a signed one is valid.
    const thoughtSignature = found ?? (traits.signatures && !signed ? SKIP_SIGNATURE : undefined);
    signed ||= found !== undefined;
    const functionCall = { id, name: call.name, args: parseArguments(call.arguments) };
    return { name: `tool:${at}`, parts: [{ functionCall, ...(thoughtSignature && { thoughtSignature }) }] };
  });
}

/** Opened signatures of texts and calls, by the block's name in `order`. */
function openedSignatures({ message }: AssistantTurn): ReadonlyMap<string, string> {
  const found = readArray(message.reasoning_details).flatMap((detail) => {
    const { kind, format, id, data } = readObject(detail);
    const isOwn = kind === 'encrypted' && format === 'gemini';
    return isOwn && typeof id === 'string' && typeof data === 'string' && data !== '' ? [[id, data] as const] : [];
  });
  return new Map(found);
}

function readSignedCall(call: CalledTool): { id: string; signature?: string | undefined } {
  const { id, signature } = readCallId(call.id);
  return { id, signature: signatureOf(call.source) ?? signature };
}

/** Media types by file extension, where the vendor requires one and only the URL is known. */
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

/** `references` allows parts to name files in the operator's account at Google. */
export interface PartRules {
  readonly references: boolean;
}

/**
 * Converts the parts of a message to Gemini's. Throws `invalid_request` for parts that Gemini does not accept. A
 * block of another format is replaced by its text, or dropped.
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

/** Gemini-only options of a part, such as the section of a video; never its content. */
function ownFields({ dialect_fields: fields }: ContentPart): JsonObject {
  const { videoMetadata, video_metadata, mediaResolution, media_resolution } = readObject(readObject(fields)['gemini']);
  const video = videoMetadata ?? video_metadata;
  const resolution = mediaResolution ?? media_resolution;
  return {
    ...(isObject(video) && { videoMetadata: video }),
    ...(resolution !== undefined && resolution !== null && { mediaResolution: resolution }),
  };
}

/** URI of a file uploaded to the operator's account at Google, which all callers share. */
const UPLOADED = /generativelanguage\.googleapis\.com|^(?!https:)/i;

/** A block in Gemini's own format is sent unchanged. */
function opaqueParts({ value: part, at }: Located<ContentPart>, { references }: PartRules): readonly GeminiPart[] {
  const { dialect, value, text } = part;
  if (dialect !== 'gemini' || !isObject(value)) return typeof text === 'string' && text !== '' ? [{ text }] : [];
  const file = readObject(value['fileData'] ?? value['file_data']);
  const uri = file['fileUri'] ?? file['file_uri'];
  if (!references && uri !== undefined && UPLOADED.test(String(uri))) {
    throw invalid(at, 'names a file of the operator’s account, which requires the provider option `cachedContent`');
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
    throw invalid(at, 'must have a media type, such as `data:image/png;base64,…`');
  return { inlineData: { mimeType: mediaType === 'image/jpg' ? 'image/jpeg' : mediaType, data } };
}

function audioPart({ value, at }: Located<ContentPart>): GeminiPart {
  const audio = value['input_audio'];
  const format = isObject(audio) ? audio['format'] : undefined;
  const data = isObject(audio) ? audio['data'] : undefined;
  if (typeof data !== 'string' || data === '') throw invalid(`${at}.input_audio.data`, 'must be base64');
  const mimeType = typeof format === 'string' && Object.hasOwn(AUDIO_TYPE, format) ? AUDIO_TYPE[format] : undefined;
  if (!mimeType) throw invalid(`${at}.input_audio.format`, `must be one of ${Object.keys(AUDIO_TYPE).join(', ')}`);
  return { inlineData: { mimeType, data } };
}

function filePart({ value, at }: Located<ContentPart>): GeminiPart {
  const file = value['file'];
  const data = isObject(file) ? (file['file_data'] ?? file['file_url'] ?? file['file_id']) : undefined;
  if (typeof data !== 'string' || !/^(data|https):/i.test(data)) {
    throw invalid(`${at}.file`, 'must contain `file_data` as a base64 data: URL, or an https: URL as `file_url`');
  }
  return urlPart(data, `${at}.file.file_data`);
}
