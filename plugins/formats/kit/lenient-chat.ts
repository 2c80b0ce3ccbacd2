import { createHash } from 'node:crypto';
import {
  type ChatChoice,
  type ChatChunk,
  type ChatCodec,
  type ChatMessage,
  type ChatRequest,
  type ChunkChoice,
  type CodecCall,
  type FieldRules,
  type FinishReason,
  factsOf,
  type HttpRequest,
  isObject,
  type JsonObject,
  normalChat,
  readArray,
  readObject,
  readString,
  type StreamDecoder,
  type Tool,
  type ToolCallDelta,
  type ToolChoice,
} from '../../../contract/index.ts';
import { invalid } from './content.ts';
import { tellDropped } from './field-rules.ts';
import { type DropInner, dropInnerOf } from './inner-fields.ts';
import { TOOL_NAME } from './tools.ts';
import { ANY_ORDER, type Ordered, orderTurns, type TurnOrder } from './turn-order.ts';

/** Variations of client requests that a vendor accepts. */
export interface Leniency {
  /** True if a limit of 0 or −1 means "no limit", as on self-hosted servers. */
  readonly unlimited?: boolean;
  /** Valid tool names at the vendor. Other names are replaced in requests and restored in responses. */
  readonly toolNames?: RegExp;
  /** True if the codec itself handles `functions`; otherwise they are converted to tools, and back. */
  readonly ownFunctions?: boolean;
  /** Order of turns that a model accepts; default: any. */
  readonly turnOrder?: (model: string) => TurnOrder;
  /** True if the wire keeps system texts apart from messages: system messages after the first turn are moved. */
  readonly systemApart?: boolean;
  /** Returns true if a model continues a final assistant turn; default: false. */
  readonly continues?: (model: string) => boolean;
  /**
   * Names below the top level that the vendor has in addition to OpenAI's, such as `tools.eager_input_streaming` or
   * `messages.content.uuid`. Other unknown ones are dropped and reported. Default: all pass.
   */
  readonly innerFields?: readonly string[];
  /** Client format whose own names in `dialect_fields` the codec reads. Those of others are reported as dropped. */
  readonly dialect?: string;
  /**
   * Message fields of OpenAI's format that the vendor's own format has no place for, such as `name`. These and unknown ones
   * are dropped and reported. Default: the codec removes unknown message fields itself. Needs `innerFields`.
   */
  readonly lacksFields?: readonly string[];
}

/**
 * Wraps a codec so that it gets canonical requests only. Nulls and empty lists are omitted, there is one limit, and
 * `functions` become tools. Tool names are valid at the vendor, and turns are in the order that the model accepts.
 * Responses are in the caller's form, so the call must carry its request.
 */
export function lenientChat(codec: ChatCodec, leniency: Leniency = {}): ChatCodec {
  // Keyed by the frozen request, which is read when it is sent and again for its response.
  const forms = new WeakMap<ChatRequest, CallerForm>();
  const callerForm = (request: ChatRequest): CallerForm | undefined =>
    mayNeedForm(request) ? (forms.get(request) ?? readForm(request, leniency)) : undefined;
  const { turnOrder = () => ANY_ORDER, systemApart: isApart = false, innerFields, lacksFields, dialect } = leniency;
  const dropInner = innerFields && dropInnerOf(innerFields, lacksFields);
  const order = (request: ChatRequest, { model }: CodecCall, apart: boolean): Ordered =>
    orderTurns(request, turnOrder(model), { isApart: apart, continues: leniency.continues?.(model) ?? false });
  return {
    ...(codec.reader && { reader: codec.reader }),
    isOriginal: (body, response) => codec.isOriginal?.(body, response) ?? false,
    isInOrder: (input, call) => order(input, call, false).request === input,
    request(input, call) {
      const form = readForm(input, leniency);
      if (call.request === input && (form.names || form.legacy))
        forms.set(input, { names: form.names, legacy: form.legacy });
      const ordered = order(form.names ? form.names.rename(form.request) : form.request, call, isApart);
      const sent = writeOrdered(codec, ordered, call, dropInner, dialect);
      // Set for the old form, not by the caller.
      const isOurs = form.legacy && input.parallel_tool_calls !== false;
      return !isOurs ? sent : 'then' in sent ? sent.then(withoutParallel) : withoutParallel(sent);
    },
    response(body, call) {
      const response = codec.response(body, call);
      const { request } = call;
      const form = request && callerForm(request);
      if (!form?.names && !form?.legacy) return response;
      const choices = response.choices.map((choice) => {
        const restored = form.names ? form.names.restoreChoice(choice) : choice;
        return form.legacy ? functionChoice(restored) : restored;
      });
      return { ...response, choices };
    },
    stream(call) {
      const decoder = codec.stream(call);
      const { request } = call;
      const form = request && callerForm(request);
      if (!form?.names && !form?.legacy) return decoder;
      return restored(decoder, (chunk) => {
        const named = form.names ? form.names.restoreChunk(chunk) : chunk;
        return form.legacy ? functionChunk(named) : named;
      });
    },
  };
}

function withoutParallel(sent: HttpRequest): HttpRequest {
  if (!sent.dropped?.includes('parallel_tool_calls')) return sent;
  return { ...sent, dropped: sent.dropped.filter((field) => field !== 'parallel_tool_calls') };
}

function writeOrdered(
  codec: ChatCodec,
  { request, dropped, atOrigin }: Ordered,
  call: CodecCall,
  dropInner: DropInner | undefined,
  dialect: string | undefined,
): HttpRequest | Promise<HttpRequest> {
  const refuse = (thrown: unknown): never => {
    throw atOrigin(thrown);
  };
  const left = [...dropped];
  if (request.tools) tellForeign(request.tools, dialect, left);
  let sent: HttpRequest | Promise<HttpRequest>;
  try {
    sent = codec.request(dropInner?.(request, left) ?? request, call);
  } catch (thrown) {
    return refuse(thrown);
  }
  return 'then' in sent ? sent.then((written) => withDropped(written, left), refuse) : withDropped(sent, left);
}

/** Adds the names that tools have in `dialect_fields` for another client format than the codec's. */
function tellForeign(tools: readonly Tool[], own: string | undefined, dropped: string[]): void {
  for (const tool of readArray(tools).filter(isObject))
    if (tool['dialect_fields'] !== undefined)
      for (const [dialect, fields] of Object.entries(readObject(tool['dialect_fields'])))
        if (dialect !== own) for (const name of Object.keys(readObject(fields))) tellDropped(dropped, `tools.${name}`);
}

function withDropped(sent: HttpRequest, left: readonly string[]): HttpRequest {
  if (left.length === 0) return sent;
  const all = [...(sent.dropped ?? [])];
  for (const name of left) tellDropped(all, name);
  return { ...sent, dropped: all };
}

/** Caller's form of a request, for its response. Excludes the request: a WeakMap value must not hold its key. */
interface CallerForm {
  readonly names: ToolNames | undefined;
  readonly legacy: boolean;
}

/** Form of a request, with the request in canonical form. */
interface Form extends CallerForm {
  readonly request: ChatRequest;
}

function mayNeedForm(request: ChatRequest): boolean {
  if ('functions' in request || 'function_call' in request) return true;
  const { hasFunctions, toolNames } = factsOf(request);
  return hasFunctions || toolNames.size > 0;
}

/**
 * Converts a request to its canonical form: normalized, with one output limit, and tools in place of functions.
 * Returns the same object if nothing changes.
 */
function readForm(input: ChatRequest, leniency: Leniency): Form {
  const { unlimited = false, toolNames = TOOL_NAME, ownFunctions = false } = leniency;
  const normal = normalChat(input);
  const facts = factsOf(normal);
  const { logit_bias, max_tokens, max_completion_tokens } = normal;
  const changes: JsonObject = {};
  if (max_tokens !== undefined || max_completion_tokens !== undefined)
    Object.assign(changes, canonicalLimits(normal, unlimited));
  if (isObject(logit_bias) && Object.keys(logit_bias).length === 0) changes['logit_bias'] = undefined;
  const canonical = Object.keys(changes).length === 0 ? normal : withoutNulls({ ...normal, ...changes });
  const isOld = !ownFunctions && ('functions' in canonical || 'function_call' in canonical || facts.hasFunctions);
  const request = isOld ? toolsOfFunctions(canonical) : canonical;
  const used = isOld ? factsOf(request).toolNames : facts.toolNames;
  const names = used.size > 0 ? findToolNames(used, toolNames) : undefined;
  return { request, names, legacy: isOld && isLegacy(canonical) };
}

function restored(decoder: StreamDecoder, restore: (chunk: ChatChunk) => ChatChunk | undefined): StreamDecoder {
  const restoreAll = (chunks: readonly ChatChunk[]) => chunks.flatMap((chunk) => restore(chunk) ?? []);
  return {
    push: (event) => restoreAll(decoder.push(event)),
    end() {
      const { chunks, complete } = decoder.end();
      return { chunks: restoreAll(chunks), complete };
    },
    progress: decoder.progress && (() => decoder.progress?.() ?? 'open'),
  };
}

const LIMITS = ['max_tokens', 'max_completion_tokens'] as const;

/**
 * Reduces the output limits to one. `unlimited` is for servers that read 0 and −1 as "no limit". The larger limit was
 * reserved, so it alone is sent as `max_tokens`, which every codec knows.
 */
function canonicalLimits(input: ChatRequest, unlimited: boolean): JsonObject {
  const changes: JsonObject = {};
  for (const field of LIMITS) {
    const limit = input[field];
    if (typeof limit !== 'number' || limit > 0) continue;
    if (!unlimited) throw invalid(field, 'must be at least 1 for this provider');
    changes[field] = undefined;
  }
  const { max_tokens: first, max_completion_tokens: second } = input;
  if (typeof first !== 'number' || typeof second !== 'number' || first <= 0 || second <= 0) return changes;
  return { max_tokens: Math.max(first, second), max_completion_tokens: undefined };
}

function hasNulls(value: unknown): boolean {
  if (!isObject(value)) return false;
  for (const field of Object.keys(value)) if (value[field] === null || value[field] === undefined) return true;
  return false;
}

/** Null means "not set". */
function withoutNulls<T>(value: T): T {
  if (!isObject(value) || !hasNulls(value)) return value;
  const copy = { ...value };
  for (const field in copy) if (copy[field] === null || copy[field] === undefined) delete copy[field];
  return copy;
}

/** Field rules for the old form at every vendor. */
export const LEGACY_FUNCTIONS: FieldRules = Object.freeze({
  functions: { rule: 'emulated', note: 'Become `tools`; the response has `function_call`, as in the deprecated form.' },
  function_call: { rule: 'emulated', note: 'Becomes `tool_choice`.' },
});

/** Returns true if a request uses `functions`, the predecessor of `tools`; its response then does too. */
function isLegacy({ functions, tools }: ChatRequest): boolean {
  return readArray(functions).length > 0 && readArray(tools).length === 0;
}

/** Converts `functions`, `function_call` and the messages that belong to them to tools. */
function toolsOfFunctions(input: ChatRequest): ChatRequest {
  const { functions, function_call, ...request } = input;
  const isOld = ({ role, function_call: called }: ChatMessage): boolean => role === 'function' || isObject(called);
  const messages = input.messages.some(isOld) ? readCalls(input.messages) : input.messages;
  const own = Array.isArray(input.tools) ? input.tools : [];
  const named = new Set(own.map((tool) => readObject(readObject(tool)['function'])['name']));
  const added = readArray(functions)
    .filter((called) => !named.has(readObject(called)['name']))
    .map(toolOf);
  const tools = [...own, ...added];
  const choice = input.tool_choice ?? choiceOf(function_call);
  return {
    ...request,
    messages,
    ...(tools.length > 0 && { tools }),
    ...(choice !== undefined && tools.length > 0 && { tool_choice: choice }),
    // The old form supports one call.
    ...(isLegacy(input) && { parallel_tool_calls: false }),
  };
}

function toolOf(called: unknown, index: number): Tool {
  const { name, description, parameters } = readObject(called);
  if (typeof name !== 'string') throw invalid(`functions[${index}].name`, 'must be a string');
  return {
    type: 'function',
    function: {
      name,
      ...(typeof description === 'string' && { description }),
      ...(isObject(parameters) && { parameters }),
    },
  };
}

function choiceOf(value: unknown): ToolChoice | undefined {
  if (value === 'none' || value === 'auto') return value;
  const name = readString(readObject(value)['name']);
  return name === undefined ? undefined : { type: 'function', function: { name } };
}

/** Gives calls an id by position, and each result the id of the last open call with its name. */
function readCalls(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const open: { readonly id: string; readonly name: string }[] = [];
  return messages.map((message, index): ChatMessage => {
    const { function_call, ...rest } = message;
    if (message.role === 'function') {
      const at = open.findLastIndex(({ name }) => name === message.name);
      const [call] = at < 0 ? [] : open.splice(at, 1);
      if (!call) throw invalid(`messages[${index}]`, 'has no matching `function_call` before it');
      return { role: 'tool', tool_call_id: call.id, content: message.content ?? '' };
    }
    if (!isObject(function_call) || message.role !== 'assistant' || message.tool_calls) return message;
    const name = readString(function_call['name']) ?? '';
    const id = `call_function_${index}`;
    open.push({ id, name });
    const text = readString(function_call['arguments']) ?? '{}';
    return { ...rest, tool_calls: [{ id, type: 'function', function: { name, arguments: text } }] };
  });
}

/** Converts the first tool call of a choice to a `function_call`. */
function functionChoice(choice: ChatChoice): ChatChoice {
  const { tool_calls: calls, ...message } = choice.message;
  const [call] = calls ?? [];
  if (!call) return choice;
  const { name, arguments: text } = call.function;
  return {
    ...choice,
    message: { ...message, function_call: { name, arguments: text } },
    finish_reason: functionFinish(choice.finish_reason),
  };
}

/** Converts a chunk to the old form; undefined for a chunk about another call than the first. */
function functionChunk(chunk: ChatChunk): ChatChunk | undefined {
  const choices = chunk.choices.flatMap((choice): readonly ChunkChoice[] => {
    const { tool_calls: calls, ...delta } = choice.delta;
    const reason = choice.finish_reason && functionFinish(choice.finish_reason);
    if (!calls) return [{ ...choice, finish_reason: reason }];
    const first = calls.filter(({ index }) => index === 0).map(functionDelta);
    if (first.length === 0 && Object.keys(delta).length === 0 && reason === null) return [];
    return [{ ...choice, delta: Object.assign({}, delta, ...first), finish_reason: reason }];
  });
  return choices.length === 0 && chunk.choices.length > 0 ? undefined : { ...chunk, choices };
}

function functionDelta({ function: called = {} }: ToolCallDelta): { readonly function_call: object } {
  const { name, arguments: text } = called;
  return { function_call: { ...(name !== undefined && { name }), ...(text !== undefined && { arguments: text }) } };
}

function functionFinish(reason: FinishReason): FinishReason {
  return reason === 'tool_calls' ? 'function_call' : reason;
}

const MAX_NAME = 64;
const NAME_HASH_LENGTH = 8;

/** Replacements for tool names that a vendor rejects. */
interface ToolNames {
  /** Returns the request with names that the vendor accepts. */
  rename(request: ChatRequest): ChatRequest;
  /** Restores the caller's names in a choice of the response. */
  restoreChoice(choice: ChatChoice): ChatChoice;
  /** Restores the caller's names in a chunk. A codec's chunks have the name of a call once and whole. */
  restoreChunk(chunk: ChatChunk): ChatChunk;
}

/** Replacements for the names that `valid` does not match; undefined if all match. */
function findToolNames(names: ReadonlySet<string>, valid: RegExp): ToolNames | undefined {
  const refused = [...names].filter((name) => !valid.test(name));
  if (refused.length === 0) return undefined;
  const taken = new Set(names);
  const sent = new Map<string, string>();
  for (const name of refused) {
    const clean = cleanName(name, valid);
    const free = taken.has(clean) ? hashedName(clean, name) : clean;
    taken.add(free);
    sent.set(name, free);
  }
  const reported = new Map([...sent].map(([name, free]) => [free, name]));
  return {
    rename: (request) => renameAll(request, (name) => sent.get(name) ?? name),
    restoreChoice: (choice) => restoreChoice(choice, reported),
    restoreChunk: (chunk) => restoreChunk(chunk, reported),
  };
}

function cleanName(name: string, valid: RegExp): string {
  const clean = name.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, MAX_NAME);
  return valid.test(clean) ? clean : `_${clean}`.slice(0, MAX_NAME);
}

function hashedName(clean: string, name: string): string {
  const hash = createHash('sha256').update(name).digest('hex').slice(0, NAME_HASH_LENGTH);
  return `${clean.slice(0, MAX_NAME - NAME_HASH_LENGTH - 1)}_${hash}`;
}

type Rename = (name: string) => string;

function renameAll(request: ChatRequest, rename: Rename): ChatRequest {
  const { tools, tool_choice: choice, messages } = request;
  return {
    ...request,
    ...(Array.isArray(tools) && { tools: tools.map((tool) => renameFunction(tool, rename)) }),
    ...(isObject(choice) && { tool_choice: renameChoice(choice, rename) }),
    messages: messages.map((message) => renameMessage(message, rename)),
  };
}

function renameChoice<T extends JsonObject>(choice: T, rename: Rename): T {
  const { allowed_tools: allowed } = choice;
  const renamed = renameFunction(choice, rename);
  if (!isObject(allowed)) return renamed;
  const tools = readArray(allowed['tools']).map((tool) => (isObject(tool) ? renameFunction(tool, rename) : tool));
  return { ...renamed, allowed_tools: { ...allowed, tools } };
}

function renameMessage(message: ChatMessage, rename: Rename): ChatMessage {
  const { tool_calls: calls, name, role } = message;
  const isNamed = role === 'tool' && typeof name === 'string';
  if (!Array.isArray(calls) && !isNamed) return message;
  return {
    ...message,
    ...(Array.isArray(calls) && { tool_calls: calls.map((call) => renameFunction(call, rename)) }),
    ...(isNamed && { name: rename(name) }),
  };
}

/** Renames the function of a tool, call or choice. */
function renameFunction<T extends object>(item: T, rename: Rename): T {
  const called = 'function' in item ? item.function : undefined;
  if (!isObject(called) || typeof called['name'] !== 'string') return item;
  return { ...item, function: { ...called, name: rename(called['name']) } };
}

function restoreChoice(choice: ChatChoice, reported: ReadonlyMap<string, string>): ChatChoice {
  const calls = choice.message.tool_calls;
  if (!calls) return choice;
  const restored = calls.map((call) => renameFunction(call, (name) => reported.get(name) ?? name));
  return { ...choice, message: { ...choice.message, tool_calls: restored } };
}

function restoreChunk(chunk: ChatChunk, reported: ReadonlyMap<string, string>): ChatChunk {
  if (!chunk.choices.some(({ delta }) => delta.tool_calls)) return chunk;
  const choices = chunk.choices.map((choice) => {
    const calls = choice.delta.tool_calls;
    if (!calls) return choice;
    const restored = calls.map((call) => renameFunction(call, (name) => reported.get(name) ?? name));
    return { ...choice, delta: { ...choice.delta, tool_calls: restored } };
  });
  return { ...chunk, choices };
}
