import {
  type ChatMessage,
  type ContentPart,
  isObject,
  type JsonObject,
  type ReasoningDetail,
  readObject,
  readString,
  type ToolCall,
  writeJson,
} from '../../../contract/index.ts';
import { invalid } from '../kit/index.ts';
import { isPacked, sealedIn, signatureField, unpackReasoning } from './signatures.ts';
import { AUDIO_FORMAT, isUsualOrder } from './tables.ts';
import { fieldOf, listOf, nameIn, othersOf, type Reading } from './types.ts';

/**
 * Reads `contents` as canonical messages. Between two model turns, results of calls come first, then the user's text.
 * Consecutive model contents are one turn, because clients keep each chunk of a stream as a separate content.
 */
export function readContents(contents: unknown, base: string, first: number, reading: Reading): readonly ChatMessage[] {
  const messages: ChatMessage[] = [];
  let turn: ModelTurn | undefined;
  let run: UserRun = { responses: [], messages: [] };
  const add = (message: ChatMessage, places: readonly (readonly [string, string])[]): void => {
    const at = `messages[${first + messages.length}]`;
    for (const [canonical, caller] of places) reading.places.push([at + canonical, caller]);
    messages.push(message);
  };
  const closeUser = (): void => {
    for (const { message, places } of [...pairResponses(turn?.calls ?? [], run.responses), ...run.messages])
      add(message, places);
    run = { responses: [], messages: [] };
    turn = undefined;
  };
  const closeModel = (): void => {
    const closed = turn?.message();
    if (closed) add(closed.message, closed.places);
  };

  let isModel = false;
  for (const [index, item] of listOf(contents).entries()) {
    const content = isObject(item) ? item : {};
    const at = Array.isArray(contents) ? `${base}[${index}]` : base;
    const wasModel = isModel;
    isModel = content['role'] === 'model';
    if (isModel) {
      if (!wasModel) {
        closeUser();
        turn = createModelTurn(`call_${index}`);
      }
      turn?.add(content, at);
    } else {
      if (wasModel) closeModel();
      readUser(content, at, run, reading);
    }
  }
  if (isModel) closeModel();
  else closeUser();
  return messages;
}

/** Contents between two model turns. */
interface UserRun {
  readonly responses: FoundResponse[];
  readonly messages: Placed[];
}

interface Placed {
  readonly message: ChatMessage;
  readonly places: readonly (readonly [string, string])[];
}

function readUser(content: JsonObject, at: string, run: UserRun, reading: Reading): void {
  const parts: ContentPart[] = [];
  const places: [string, string][] = [['', at]];
  let responses = 0;
  for (const [part, place] of partsOf(content, at)) {
    if (isReference(part))
      reading.needs.push({
        kind: 'reference',
        name: 'fileData.fileUri',
        param: `${place}.${nameIn(part, 'fileData')}`,
      });
    const response = fieldOf(part, 'functionResponse');
    if (isObject(response)) {
      run.responses.push({ response, at: `${place}.${nameIn(part, 'functionResponse')}` });
      responses += 1;
      continue;
    }
    const read = readPart(part, place);
    if (!read) continue;
    places.push([`.content[${parts.length}]`, place]);
    parts.push(read);
  }
  if (parts.length === 0 && responses > 0) return;
  run.messages.push({ message: { role: 'user', content: contentOf(parts) }, places });
}

function readPart(part: JsonObject, at: string): ContentPart | undefined {
  switch (kindOf(part)) {
    case 'text': {
      const text = readString(fieldOf(part, 'text'));
      return text === undefined ? undefined : { type: 'text', text };
    }
    case 'inlineData':
    case 'fileData':
      return readMedia(part, at);
    default:
      return Object.keys(part).length === 0 ? undefined : opaquePart(part);
  }
}

/** Fields that define the kind of a part; a part without any of them is unknown. */
const KINDS = ['text', 'inlineData', 'fileData', 'functionCall', 'functionResponse'] as const;
const FIELDS: readonly string[] = Object.freeze([...KINDS, 'thought', 'thoughtSignature']);

/** Maximum length of the text in place of a Gemini-only block. */
const MAX_HISTORY_TEXT = 4096;

/** URI of a file uploaded to the operator's account at Google. */
const UPLOADED = /^(?:https:\/\/generativelanguage\.googleapis\.com\/(?:[\w.]+\/)*)?files\/[\w-]+$/i;

/** Returns the kind of a part: text, media, a call, a result, or something that only Gemini understands. */
export function kindOf(part: JsonObject): (typeof KINDS)[number] | 'other' {
  return KINDS.find((kind) => fieldOf(part, kind) !== undefined) ?? 'other';
}

/** Reads a media part into the canonical form. */
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

/** Returns true if a part names a file in the operator's account at Google, which all callers would share. */
export function isReference(part: JsonObject): boolean {
  const file = fieldOf(part, 'fileData');
  return isObject(file) && UPLOADED.test(readString(fieldOf(file, 'fileUri')) ?? '');
}

/** Wraps a part that only Gemini understands, such as code it ran. Other vendors get it as text if it is short. */
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
      : writeJson(part);
  return text.length <= MAX_HISTORY_TEXT ? text : undefined;
}

/** Parts of a content with their paths. */
export function partsOf(content: JsonObject, at: string): readonly (readonly [JsonObject, string])[] {
  const { parts } = content;
  return listOf(parts).flatMap((part, index) =>
    isObject(part) ? [[part, Array.isArray(parts) ? `${at}.parts[${index}]` : `${at}.parts`] as const] : [],
  );
}

/** A single text is the content itself. */
export function contentOf(parts: readonly ContentPart[]): string | readonly ContentPart[] {
  const [first, ...others] = parts;
  if (first === undefined) return '';
  return others.length === 0 && first.type === 'text' && typeof first['text'] === 'string' ? first['text'] : parts;
}

/** A `functionResponse` with its path. */
export interface FoundResponse {
  readonly response: JsonObject;
  readonly at: string;
}

interface PairedResponse {
  readonly message: ChatMessage;
  readonly places: readonly (readonly [string, string])[];
}

/**
 * Returns tool messages for the responses to one turn's calls. They pair by id, else by order within one name, else
 * by order. Many clients send no ids, and calls of one function may be parallel.
 */
export function pairResponses(
  calls: readonly FoundCall[],
  responses: readonly FoundResponse[],
): readonly PairedResponse[] {
  const open = new Set(calls);
  const paired = new Map<FoundResponse, FoundCall>();
  const pair = (matches: (call: FoundCall, response: JsonObject) => boolean): void => {
    for (const found of responses) {
      if (paired.has(found)) continue;
      const call = [...open].find((each) => matches(each, found.response));
      if (!call) continue;
      open.delete(call);
      paired.set(found, call);
    }
  };
  pair(({ id }, response) => id !== undefined && response['id'] === id);
  pair(({ call }, response) => call.function.name === response['name']);
  pair(() => true);
  return responses.map((found) => {
    const call = paired.get(found);
    if (!call) throw invalid(found.at, 'has no matching `functionCall` in the preceding turn of the model');
    return resultOf(call, found);
  });
}

function resultOf({ call }: FoundCall, { response, at }: FoundResponse): PairedResponse {
  const { text, isError } = readOutput(fieldOf(response, 'response'));
  const media = listOf(response['parts']).flatMap((part, index) =>
    isObject(part) ? [readMedia(part, `${at}.parts[${index}]`)] : [],
  );
  const words: readonly ContentPart[] = text === '' ? [] : [{ type: 'text', text }];
  return {
    message: {
      role: 'tool',
      tool_call_id: call.id,
      content: media.length === 0 ? text : [...words, ...media],
      ...(isError && { is_error: true }),
    },
    places: [['', at]],
  };
}

/**
 * An object with only `output` holds the result, one with only `error` the failure. Any other object is the result
 * itself.
 */
function readOutput(value: unknown): { readonly text: string; readonly isError: boolean } {
  if (value === undefined || value === null) return { text: '', isError: false };
  if (!isObject(value)) return { text: textOf(value), isError: false };
  const names = Object.keys(value);
  if (names.length === 0) return { text: '', isError: false };
  const [name] = names;
  if (names.length === 1 && (name === 'output' || name === 'error'))
    return { text: textOf(value[name]), isError: name === 'error' };
  return { text: textOf(value), isError: false };
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : writeJson(value);
}

/** Call of the history. `id` is the caller's id, which results refer to; undefined if the caller sent none. */
export interface FoundCall {
  readonly id: string | undefined;
  readonly call: ToolCall;
}

type Block =
  | {
      readonly kind: 'reasoning' | 'content';
      readonly text: string;
      readonly signature: string | undefined;
      readonly at: string;
      readonly from: string;
    }
  | { readonly kind: 'opaque'; readonly part: ContentPart; readonly at: string }
  | { readonly kind: 'image'; readonly url: string; readonly at: string }
  | { readonly kind: 'tool'; readonly call: ToolCall; readonly sealed: string | undefined; readonly at: string };

/** Model turn, which may span several contents. */
export interface ModelTurn {
  readonly calls: readonly FoundCall[];
  add(content: JsonObject, at: string): void;
  /** Canonical message with the paths of its blocks; undefined for an empty turn. */
  message(): { readonly message: ChatMessage; readonly places: readonly (readonly [string, string])[] } | undefined;
}

/** `prefix` starts the generated ids of calls without one. */
export function createModelTurn(prefix: string): ModelTurn {
  const blocks: Block[] = [];
  const calls: FoundCall[] = [];
  const addText = (block: Extract<Block, { text: string }>): void => {
    const last = blocks.at(-1);
    // Chunks of a stream form one text; a signature after a text belongs to that text.
    const isPiece =
      last?.kind === block.kind && last.signature === undefined && (last.from !== block.from || block.text === '');
    if (isPiece) blocks[blocks.length - 1] = { ...last, text: last.text + block.text, signature: block.signature };
    else if (block.text !== '' || block.signature !== undefined) blocks.push(block);
  };
  return {
    calls,
    add(content, from) {
      for (const [part, at] of partsOf(content, from)) {
        const signature = readString(fieldOf(part, 'thoughtSignature'));
        const kind = kindOf(part);
        if (kind === 'text') {
          const text = readString(fieldOf(part, 'text')) ?? '';
          addText({ kind: part['thought'] === true ? 'reasoning' : 'content', text, signature, at, from });
        } else if (kind === 'functionCall') {
          const sealed = signature && sealedIn(signature);
          if (signature !== undefined && isPacked(signature) && !sealed)
            addText({ kind: 'reasoning', text: '', signature, at, from });
          const found = readCall(part, signature, `${prefix}_${calls.length}`);
          calls.push(found);
          blocks.push({ kind: 'tool', call: found.call, sealed, at: `${at}.${nameIn(part, 'functionCall')}` });
        } else blocks.push(readOther(part, at));
      }
    },
    message: () => (blocks.length === 0 ? undefined : messageOf(blocks)),
  };
}

function readCall(part: JsonObject, signature: string | undefined, ownId: string): FoundCall {
  const called = readObject(fieldOf(part, 'functionCall'));
  const id = readString(called['id']);
  const own = signature !== undefined && !isPacked(signature) ? signature : undefined;
  return {
    id,
    call: {
      id: id ?? ownId,
      type: 'function',
      function: { name: String(called['name']), arguments: writeJson(called['args'] ?? {}) },
      ...signatureField(own),
    },
  };
}

function readOther(part: JsonObject, at: string): Block {
  const inline = fieldOf(part, 'inlineData');
  const type = isObject(inline) ? (readString(fieldOf(inline, 'mimeType')) ?? '') : '';
  const data = isObject(inline) ? readString(fieldOf(inline, 'data')) : undefined;
  if (data !== undefined && type.startsWith('image/')) return { kind: 'image', url: `data:${type};base64,${data}`, at };
  const signature = readString(fieldOf(part, 'thoughtSignature'));
  const { thoughtSignature: _, thought_signature: __, ...unsigned } = part;
  // Vendors cannot read a sealed signature.
  return { kind: 'opaque', part: opaquePart(signature !== undefined && isPacked(signature) ? unsigned : part), at };
}

interface Pieces {
  readonly parts: ContentPart[];
  readonly details: ReasoningDetail[];
  readonly calls: ToolCall[];
  readonly images: JsonObject[];
  readonly order: string[];
  readonly places: [string, string][];
  reasoning: string;
}

function messageOf(blocks: readonly Block[]): ReturnType<ModelTurn['message']> {
  const pieces: Pieces = {
    parts: [],
    details: [],
    calls: [],
    images: [],
    order: [],
    places: [['', placeOf(blocks)]],
    reasoning: '',
  };
  for (const block of blocks) addBlock(pieces, block);
  const { parts, details, calls, images, order, reasoning, places } = pieces;
  const [first, ...others] = parts;
  const isText = first?.type === 'text' && others.length === 0;
  const isPlain = isText && typeof first['text'] === 'string';
  const message: ChatMessage = {
    role: 'assistant',
    content: isPlain ? String(first['text']) : parts.length > 0 ? parts : null,
    ...(isPlain && isObject(first['extra_content']) && { extra_content: first['extra_content'] }),
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    ...(details.some(({ format }) => format !== 'none') && { reasoning_details: details }),
    ...(calls.length > 0 && { tool_calls: calls }),
    ...(images.length > 0 && { images }),
    ...(!isUsualOrder(order) && { order }),
  };
  return { message, places };
}

function addBlock(pieces: Pieces, block: Block): void {
  const { parts, details, calls, images, order, places } = pieces;
  switch (block.kind) {
    case 'reasoning':
      order.push(`reasoning:${details.length}`);
      details.push(detailOf(block.text, block.signature));
      pieces.reasoning += block.text;
      break;
    case 'content':
    case 'opaque': {
      order.push(`content:${parts.length}`);
      places.push([`.content[${parts.length}]`, block.at]);
      const sealed = block.kind === 'content' && block.signature && sealedIn(block.signature);
      if (sealed) details.push(sealedDetail(sealed, `content:${parts.length}`));
      parts.push(
        block.kind === 'opaque'
          ? block.part
          : { type: 'text', text: block.text, ...(!sealed && signatureField(block.signature)) },
      );
      break;
    }
    case 'tool':
      order.push(`tool:${calls.length}`);
      if (block.sealed) details.push(sealedDetail(block.sealed, `tool:${calls.length}`));
      places.push([`.tool_calls[${calls.length}]`, block.at]);
      calls.push(block.call);
      break;
    default:
      images.push({ type: 'image_url', image_url: { url: block.url } });
  }
}

function detailOf(text: string, signature: string | undefined): ReasoningDetail {
  if (signature === undefined) return { kind: 'text', text, format: 'none' };
  const sealed = sealedIn(signature);
  if (sealed !== undefined) return { kind: 'text', text, data: sealed, format: 'gemini' };
  return unpackReasoning(signature, text) ?? { kind: 'text', text, signature, format: 'gemini' };
}

/**
 * Sealed signature of a block other than thinking. `id` names the block as `order` does. Core opens it only for its
 * vendor.
 */
function sealedDetail(data: string, id: string): ReasoningDetail {
  return { kind: 'encrypted', data, id, format: 'gemini' };
}

/** Path of the content in which a turn begins. */
function placeOf([first]: readonly Block[]): string {
  return first?.at.replace(/\.parts(\[\d+\])?(\.\w+)?$/, '') ?? '';
}
