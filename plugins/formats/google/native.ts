import {
  type ChatMessage,
  type ChatRequest,
  type DialectContext,
  type DialectNative,
  type DialectNativeStream,
  isObject,
  type JsonObject,
  type NativeBody,
  type NativeChange,
  readObject,
  readString,
  type Tool,
} from '../../../contract/index.ts';
import { readParts, textOf, toolCallId } from '../kit/index.ts';
import { addedTo, changesOf, limitOf } from '../native-change.ts';
import { geminiError } from './errors.ts';
import { PLAIN_FIELDS } from './read-request.ts';
import { parseElement } from './read-stream.ts';
import { isPacked, MAX_CALL_ID, SKIP_SIGNATURE, sealedIn, sealSignature } from './signatures.ts';
import { geminiTraits, readEffort, writeThinking } from './tables.ts';
import { fieldOf, type GeminiBody, listOf, nameIn } from './types.ts';
import { framesOf } from './write-stream.ts';

/**
 * Passthrough of requests to Google: the caller's own body with only these edits, in its own field order. Responses
 * pass unchanged, except that signatures are sealed.
 */
export const GEMINI_NATIVE: DialectNative<GeminiBody> = Object.freeze({
  patch(body: GeminiBody, change: NativeChange): NativeBody | undefined {
    const name = nameIn(body, 'generateContentRequest');
    const wrapped = body[name];
    if (!isObject(wrapped)) return patchRequest(body, change);
    const patched = patchRequest(wrapped, change);
    return patched && { ...patched, body: { ...body, [name]: patched.body } };
  },
  write: (body: unknown, { seal }: DialectContext<GeminiBody>) => sealResponse(body, seal),
  stream: streamNative,
});

/** Fields that hooks may change and Google does not support. */
const UNSAID = Object.freeze(['user', 'metadata'] as const);

function patchRequest(body: GeminiBody, change: NativeChange): NativeBody | undefined {
  const dropped: string[] = [];
  const edits: JsonObject = {};
  const edit = (name: string, value: unknown): void => {
    edits[nameIn(body, name)] = value;
  };
  if (typeof body['model'] === 'string')
    edit('model', change.model.includes('/') ? change.model : `models/${change.model}`);
  const messages = patchMessages(body, change);
  const tools = patchTools(body, change);
  if (!messages || !tools) return undefined;
  const contents = cleanContents(messages.contents ?? fieldOf(body, 'contents'), change, dropped);
  if (contents !== fieldOf(body, 'contents')) edit('contents', contents);
  if (messages.systemInstruction) edit('systemInstruction', messages.systemInstruction);
  if (tools.tools) edit('tools', tools.tools);
  const config = patchConfig(body, change, dropped);
  if (config) edit('generationConfig', config);
  const { service_tier: tier } = change.after;
  if (tier !== change.before['service_tier']) edit('serviceTier', tier ?? undefined);
  // Fields inside these two are patched with them.
  for (const [name, value] of changesOf(ownFields(change.before), ownFields(change.after)))
    if (name !== 'generationConfig' && name !== 'toolConfig') edit(name, value);
  for (const name of UNSAID) if (change.after[name] !== change.before[name]) dropped.push(name);
  const patched = Object.fromEntries(Object.entries({ ...body, ...edits }).filter(([, value]) => value !== undefined));
  return { body: patched, ...(dropped.length > 0 && { dropped }) };
}

/** Passes Google's own stream elements unchanged, except for signatures; errors are never among them. */
function streamNative(context: DialectContext<GeminiBody>): DialectNativeStream {
  const frames = framesOf(context);
  return {
    contentType: frames.contentType,
    keepAlive: frames.keepAlive,
    push({ data }) {
      const value = parseElement(data);
      return value === undefined ? '' : frames.frame(sealResponse(value, context.seal));
    },
    end: () => frames.end(),
    fail: (error, requestId) => frames.frame(geminiError(error, requestId).body) + frames.end(),
  };
}

/** Returns `generationConfig` with the changes since reading; undefined without changes. */
function patchConfig(
  body: JsonObject,
  { before, after, model }: NativeChange,
  dropped: string[],
): JsonObject | undefined {
  const config = readObject(fieldOf(body, 'generationConfig'));
  const edits: JsonObject = {};
  const edit = (name: string, value: unknown): void => {
    edits[nameIn(config, name)] = value;
  };
  for (const [name, canonical] of Object.entries(PLAIN_FIELDS))
    if (after[canonical] !== before[canonical])
      edit(name, name === 'stopSequences' ? listOfStops(after) : (after[canonical] ?? undefined));
  const limit = limitOf(after);
  if (limit !== limitOf(before)) edit('maxOutputTokens', limit);
  const [old, now] = [before, after].map((request) => readObject(ownFields(request)?.['generationConfig']));
  for (const [name, value] of changesOf(old, now)) edit(name, value);
  if (after.reasoning_effort !== before.reasoning_effort) {
    const include = fieldOf(readObject(fieldOf(config, 'thinkingConfig')), 'includeThoughts');
    const effort = readEffort(after);
    const fitted = effort && writeThinking(effort, geminiTraits(model));
    if (effort && effort !== 'none' && !fitted) dropped.push('reasoning_effort');
    edit('thinkingConfig', { ...(include !== undefined && { includeThoughts: include }), ...fitted });
  }
  if (Object.keys(edits).length === 0) return undefined;
  return Object.fromEntries(Object.entries({ ...config, ...edits }).filter(([, value]) => value !== undefined));
}

function ownFields({ dialect_fields: fields }: ChatRequest): JsonObject | undefined {
  return fields?.['gemini'];
}

function listOfStops({ stop }: ChatRequest): readonly string[] | undefined {
  if (stop === undefined || stop === null) return undefined;
  return typeof stop === 'string' ? [stop] : stop;
}

/**
 * Prepares contents for Google. Opens its own signatures, drops thinking of other formats and accounts, and makes
 * call ids valid. Unchanged values stay the same object.
 */
function cleanContents(contents: unknown, change: NativeChange, dropped: string[]): unknown {
  return mapList(contents, (content) => {
    if (!isObject(content)) return content;
    const parts = mapList(content['parts'], (part) => (isObject(part) ? cleanPart(part, change, dropped) : part));
    return parts === content['parts'] ? content : { ...content, parts };
  });
}

function cleanPart(part: JsonObject, change: NativeChange, dropped: string[]): JsonObject | undefined {
  const signature = readString(fieldOf(part, 'thoughtSignature'));
  if (signature !== undefined && isPacked(signature)) {
    const sealed = sealedIn(signature);
    const opened = sealed === undefined ? undefined : change.open(sealed);
    if (opened === undefined) {
      if (!dropped.includes('reasoning')) dropped.push('reasoning');
      if (part['thought'] === true) return undefined;
    }
    const { thoughtSignature: _, thought_signature: __, ...rest } = part;
    const isDemanded = fieldOf(part, 'functionCall') !== undefined && geminiTraits(change.model).signatures;
    const valid = opened ?? (isDemanded ? SKIP_SIGNATURE : undefined);
    return cleanPart({ ...rest, ...(valid !== undefined && { thoughtSignature: valid }) }, change, dropped);
  }
  for (const kind of ['functionCall', 'functionResponse']) {
    const called = fieldOf(part, kind);
    const id = isObject(called) ? readString(called['id']) : undefined;
    const valid = id === undefined ? undefined : toolCallId(id, MAX_CALL_ID);
    if (valid !== id && isObject(called)) return { ...part, [nameIn(part, kind)]: { ...called, id: valid } };
  }
  return part;
}

/** Seals Google's signatures in a response or a stream element. Returns the same object if nothing is signed. */
function sealResponse(value: unknown, seal: DialectContext['seal']): unknown {
  if (Array.isArray(value)) return mapList(value, (item) => sealResponse(item, seal));
  if (!isObject(value)) return value;
  const candidates = mapList(value['candidates'], (candidate) => {
    const { content } = readObject(candidate);
    const parts = mapList(readObject(content)['parts'], (part) => sealPart(part, seal));
    if (!isObject(candidate) || !isObject(content) || parts === content['parts']) return candidate;
    return { ...candidate, content: { ...content, parts } };
  });
  return candidates === value['candidates'] ? value : { ...value, candidates };
}

function sealPart(part: unknown, seal: DialectContext['seal']): unknown {
  const signature = isObject(part) ? readString(part['thoughtSignature']) : undefined;
  return isObject(part) && signature ? { ...part, thoughtSignature: sealSignature(signature, seal) } : part;
}

/**
 * Changes or drops each member of a list, which may be given as its only member. Returns the same list without
 * changes.
 */
function mapList(value: unknown, change: (item: unknown) => unknown): unknown {
  if (!Array.isArray(value)) return isObject(value) ? change(value) : value;
  const changed = value.map(change);
  return changed.some((item, at) => item !== value[at]) ? changed.filter((item) => item !== undefined) : value;
}

/**
 * Adds messages of hooks. Instructions go before the caller's, plain text turns before or after the caller's
 * contents. Undefined for any other message; the call is then translated.
 */
function patchMessages(
  body: GeminiBody,
  { before, after }: Pick<NativeChange, 'before' | 'after'>,
): { readonly contents?: unknown; readonly systemInstruction?: JsonObject } | undefined {
  if (before.messages === after.messages) return {};
  const [front, back] = addedTo(before.messages, after.messages);
  const system = front.filter(isSystem);
  const first = contentsOf(front.filter((message) => !isSystem(message)));
  const last = contentsOf(back);
  const instructions = textsOf(system);
  if (!first || !last || !instructions) return undefined;
  // A turn before the caller's system text would end up after it.
  const own = fieldOf(body, 'systemInstruction');
  const isMoved = first.length > 0 || last.length > 0;
  return {
    ...(isMoved && { contents: [...first, ...listOf(fieldOf(body, 'contents')), ...last] }),
    ...(instructions.length > 0 && {
      systemInstruction: isObject(own)
        ? { ...own, parts: [...instructions, ...listOf(own['parts'])] }
        : { parts: instructions },
    }),
  };
}

function isSystem({ role }: ChatMessage): boolean {
  return role === 'system' || role === 'developer';
}

function contentsOf(messages: readonly ChatMessage[]): readonly JsonObject[] | undefined {
  const contents = messages.map((message) => {
    const parts = textsOf([message]);
    const isPlain = (message.role === 'user' || message.role === 'assistant') && !message.tool_calls;
    return isPlain && parts ? { role: message.role === 'user' ? 'user' : 'model', parts } : undefined;
  });
  return contents.includes(undefined) ? undefined : contents.filter((content) => content !== undefined);
}

function textsOf(messages: readonly ChatMessage[]): readonly JsonObject[] | undefined {
  const texts = messages.flatMap(({ content }) => readParts(content, 'messages').map(({ value }) => textOf(value)));
  return texts.includes(undefined) ? undefined : texts.map((text) => ({ text }));
}

/** Adds functions of hooks as tools next to the caller's. */
function patchTools(
  body: GeminiBody,
  { before, after }: Pick<NativeChange, 'before' | 'after'>,
): { readonly tools?: unknown } | undefined {
  if (before.tools === after.tools) return {};
  const [front, back] = addedTo(before.tools, after.tools);
  // Only function tools have a `function`, whatever their type is.
  if ([...front, ...back].some((tool) => !isObject(tool['function']))) return undefined;
  return { tools: [...declare(front), ...listOf(fieldOf(body, 'tools')), ...declare(back)] };
}

function declare(tools: readonly Tool[]): readonly JsonObject[] {
  if (tools.length === 0) return [];
  const functionDeclarations = tools.map(({ function: { name, description, parameters } }) => ({
    name,
    ...(description !== undefined && { description }),
    ...(parameters !== undefined && { parametersJsonSchema: parameters }),
  }));
  return [{ functionDeclarations }];
}
