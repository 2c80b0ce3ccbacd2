import { isDeepStrictEqual } from 'node:util';
import {
  type ChatCodec,
  type ChatMessage,
  type ChatRequest,
  type CodecCall,
  type ContentPart,
  type DialectNeed,
  type DialectRequest,
  GatewayError,
  type HttpRequest,
  isObject,
  type JsonObject,
  type ReasoningDetail,
  readArray,
  readObject,
  readString,
} from '../../../contract/index.ts';
import {
  alternateTurns,
  fitCacheMarks,
  mergeExtraBody,
  readRelayDetails,
  tellDropped,
  toolsOfHistory,
} from '../kit/index.ts';
import { writeResponsesRequest } from '../openai-responses/write-request.ts';
import { hasSealedSignature, readSealedDetail } from '../sealed-reasoning.ts';
import { fitTools, mapMessages, messageRules, plainTools } from './messages.ts';
import { readContent } from './response.ts';
import { CHAT_FIELDS, ROUTING_FIELDS } from './tables.ts';
import type { CompatibleRule, CompatibleRules, Differences, Variant } from './types.ts';

/** Creates the request half of a codec: wire, fields by rule, messages, stream options. */
export function createRequestWriter(differences: Differences, rulesFor: RulesFor): ChatCodec['request'] {
  const { cacheMarks, historyTools, streamUsage = 'ask' } = differences;
  const streamOptions = { ...differences.streamOptions, include_usage: true };
  const optionNames = Object.keys(streamOptions);
  return (request, call) => {
    const rules = rulesFor(request);
    const dropped: string[] = [];
    let input = request;
    if ('extra_body' in input) input = mergeExtraBody(input, (field) => isExtraField(field, rules), dropped);
    if (cacheMarks || historyTools || input.tools) input = withTools(input, call.model, differences);
    const fields = mapFields(input, rules, OWN, dropped, differences.modelOf);
    if (rules.variant?.wire === 'responses') return writeOnResponses(input, call, fields, dropped, rules, differences);
    const left = new Set<string>();
    const own = mapMessages(input.messages, call.model, rules.messages, left);
    const mapped = differences.turnOrder?.(call.model).alternate ? alternateTurns(own) : own;
    for (const part of left) tellDropped(dropped, part);
    const body: Record<string, unknown> = {
      model: call.model,
      messages: differences.messages?.(mapped, input) ?? mapped,
    };
    // Requests usage wherever the vendor sends it only on request.
    if (call.stream) body['stream'] = true;
    else if (input.stream === false) body['stream'] = false;
    const requestsUsage = call.stream && streamUsage === 'ask';
    if (requestsUsage) body['stream_options'] = { ...input.stream_options, ...streamOptions };
    for (const field in rules.defaults)
      if (input[field] === undefined || input[field] === null) body[field] = rules.defaults[field];
    Object.assign(body, fields);
    const path = differences.path?.('chat/completions', call.model) ?? '/chat/completions';
    const written = requestsUsage ? { path, body, added: addedOptions(optionNames, input) } : { path, body };
    return dropped.length > 0 ? { ...written, dropped } : written;
  };
}

/** Stream options that the caller did not send. */
function addedOptions(names: readonly string[], { stream_options: sent }: ChatRequest): readonly string[] {
  const added = sent ? names.filter((name) => (readObject(sent)[name] ?? undefined) === undefined) : names;
  return added.map((name) => `stream_options.${name}`);
}

/** Writes a request for the wire `responses` from the fields that the rules produced. */
function writeOnResponses(
  input: ChatRequest,
  call: CodecCall,
  fields: Readonly<Record<string, unknown>>,
  dropped: string[],
  rules: RequestRules,
  { streamOptions, reasoningSummary, responsesPath }: Differences,
): HttpRequest {
  const left = new Set<string>();
  const messages = mapMessages(input.messages, call.model, rules.messages, left);
  const wanted = readString(readObject(input.dialect_fields?.['responses']?.['reasoning'])['summary']);
  const chat = { ...fields, model: call.model, messages };
  const summary = wanted ?? reasoningSummary;
  const written = writeResponsesRequest(chat, { stream: call.stream, streamOptions, summary });
  for (const field of [...left, ...written.dropped]) tellDropped(dropped, field);
  const path = responsesPath?.(call.model) ?? '/responses';
  const body = { ...rules.variant?.defaults, ...written.body };
  const added = [
    ...(wanted === undefined ? ['reasoning.summary'] : []),
    'include',
    ...(call.stream && streamOptions ? addedOptions(Object.keys(streamOptions), input) : []),
  ];
  return dropped.length > 0 ? { path, body, added, dropped } : { path, body, added };
}

/** Adapts tools to the vendor: removes those of other formats, and adds those that the history called. */
function withTools(
  request: ChatRequest,
  model: string,
  { cacheMarks = false, historyTools, openAiTools }: Differences,
): ChatRequest {
  const fitted = openAiTools || !request.tools ? request : fitTools(request);
  const input = cacheMarks ? fitCacheMarks(fitted) : fitted;
  const { tools, tool_choice: _choice, ...rest } = input;
  if (!Array.isArray(tools) || tools.length === 0) {
    const called = historyTools?.test(model) ? toolsOfHistory(input.messages) : [];
    return called.length > 0 ? { ...input, tools: called } : input;
  }
  const plain = plainTools(tools, cacheMarks);
  if (plain === tools) return input;
  return plain.length > 0 ? { ...input, tools: plain as NonNullable<ChatRequest['tools']> } : rest;
}

/** Fields with their own code; `dialect_fields` is for other formats. */
const OWN: ReadonlySet<string> = new Set(['model', 'messages', 'stream', 'stream_options', 'dialect_fields']);
const PASSED: CompatibleRule = Object.freeze({ rule: 'passed' });
const DROPPED: CompatibleRule = Object.freeze({ rule: 'dropped' });

/** Merged tables of a vendor for requests that match a variant, or none. */
interface RequestRules {
  readonly variant: Variant | undefined;
  readonly fields: ReadonlyMap<string, CompatibleRule>;
  /** Rule for fields without an entry. */
  readonly other: CompatibleRule;
  readonly defaults: Differences['defaults'];
  readonly messages: ReturnType<typeof messageRules>;
}

/** Finds the rules for a request. */
export type RulesFor = (request: ChatRequest) => RequestRules;

/** Compiles a vendor's tables once. Candidate variants are looked up once per model. */
export function compileRules(differences: Differences): RulesFor {
  const { unknown = 'dropped', extras = [], variants = [], cacheMarks = false, modelOf, responsesPath } = differences;
  const fields = { cache_control: cacheRule(cacheMarks), ...differences.fields };
  const base: RequestRules = {
    variant: undefined,
    fields: tableOf(fields, extras),
    other: unknown === 'passed' ? PASSED : DROPPED,
    defaults: differences.defaults,
    messages: messageRules(differences, undefined),
  };
  const varied = variants.map((variant): RequestRules => {
    // A field of the Responses API may refer to resources of the operator's account, so only known fields are sent.
    const isForResponses = variant.wire === 'responses';
    return {
      variant,
      fields: tableOf({ ...fields, ...variant.fields }, isForResponses ? [] : extras),
      other: isForResponses ? DROPPED : base.other,
      defaults: variant.defaults ? { ...differences.defaults, ...variant.defaults } : differences.defaults,
      messages: messageRules(differences, variant),
    };
  });
  const candidatesOf = onceAModel((model) =>
    varied.filter(({ variant }) => {
      const isThere = variant?.wire !== 'responses' || responsesPath?.(model) !== undefined;
      return isThere && (variant?.models?.test(model) ?? true);
    }),
  );
  return (request) => {
    const subject = modelOf ? { ...request, model: modelOf(request.model) } : request;
    for (const rules of candidatesOf(subject.model)) if (rules.variant?.applies?.(subject) ?? true) return rules;
    return base;
  };
}

/** Maximum number of models in the cache; model names come from callers. */
const MAX_MODELS = 1000;

/** Caches the result of a function per model. */
export function onceAModel<T>(work: (model: string) => T): (model: string) => T {
  const known = new Map<string, T>();
  return (model) => {
    let value = known.get(model);
    if (value === undefined) {
      value = work(model);
      if (known.size >= MAX_MODELS) known.clear();
      known.set(model, value);
    }
    return value;
  };
}

/** Rule for the mark that caches a whole request at the vendor. */
export function cacheRule(cacheMarks: boolean): CompatibleRule {
  const note = cacheMarks
    ? 'at the top level, in messages and in tools: at most four marks, and no `1h` mark after a five-minute mark'
    : 'its cache does not support marks';
  return { rule: cacheMarks ? 'passed' : 'dropped', note };
}

function tableOf(fields: CompatibleRules, extras: readonly string[]): ReadonlyMap<string, CompatibleRule> {
  const rules = new Map<string, CompatibleRule>();
  for (const field of [...OWN, ...ROUTING_FIELDS]) rules.set(field, DROPPED);
  for (const field of [...CHAT_FIELDS, ...extras]) rules.set(field, PASSED);
  for (const [field, rule] of Object.entries(fields)) rules.set(field, rule);
  return rules;
}

/**
 * Rule for a field without an entry. A vendor whose parser ignores case reads `Model` as `model`, and U+017F as an s.
 */
function otherRule(field: string, { fields, other }: RequestRules): CompatibleRule {
  return fields.has(field.toUpperCase().toLowerCase()) ? DROPPED : other;
}

/**
 * Returns true if a field is allowed in `extra_body`: vendor fields, and unknown fields that would pass at the top
 * level.
 */
function isExtraField(field: string, rules: RequestRules): boolean {
  if (OWN.has(field) || CHAT_FIELDS.has(field)) return false;
  return (rules.fields.get(field) ?? otherRule(field, rules)).rule === 'passed';
}

/**
 * Writes the caller's fields with the vendor's names; dropped ones are added to `dropped`. Null means absent, as at
 * OpenAI.
 */
export function mapFields(
  request: Readonly<Record<string, unknown>>,
  rules: RequestRules,
  skip: ReadonlySet<string>,
  dropped: string[],
  modelOf?: Differences['modelOf'],
): Readonly<Record<string, unknown>> {
  const body: Record<string, unknown> = {};
  const emulated: [field: string, value: unknown, apply: CompatibleRule['apply']][] = [];
  for (const field of Object.keys(request)) {
    const value = request[field];
    if (skip.has(field) || value === null || value === undefined || field === '__proto__') continue;
    const rule = rules.fields.get(field) ?? otherRule(field, rules);
    if (rule === PASSED) body[field] = value;
    else if (rule.rule === 'emulated') emulated.push([field, value, rule.apply]);
    else mapField(field, value, rule, request, body, dropped);
  }
  if (emulated.length === 0) return body;
  const chat = request as ChatRequest;
  const subject = modelOf ? { ...chat, model: modelOf(chat.model) } : chat;
  for (const [field, value, apply] of emulated) {
    const { body: changes = {}, dropped: isDropped = false, reported = [] } = apply?.(value, subject) ?? {};
    if (isDropped) tellDropped(dropped, field);
    for (const part of reported) tellDropped(dropped, part);
    for (const [name, replacement] of Object.entries(changes)) {
      if (replacement === undefined) delete body[name];
      else body[name] = replacement;
    }
  }
  return body;
}

function mapField(
  field: string,
  value: unknown,
  rule: CompatibleRule,
  request: Readonly<Record<string, unknown>>,
  body: Record<string, unknown>,
  dropped: string[],
): void {
  if (rule.rule === 'passed') {
    const sent = rule.convert ? rule.convert(value) : value;
    checkRange(field, sent, rule);
    if (sent !== undefined) body[field] = sent;
    else tellDropped(dropped, field);
  } else if (rule.rule === 'renamed') {
    const to = rule.to ?? field;
    if (request[to] === undefined || request[to] === null) body[to] = rule.convert ? rule.convert(value) : value;
  } else if (!rule.neutral?.some((neutral) => isDeepStrictEqual(value, neutral))) {
    if (rule.rule === 'refused') throw refusal(field, rule.note);
    tellDropped(dropped, field);
  }
}

function checkRange(field: string, value: unknown, rule: CompatibleRule): void {
  const { min = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY } = rule;
  if (typeof value !== 'number' || (value >= min && value <= max)) return;
  throw new GatewayError('invalid_request', `\`${field}\` must be between ${min} and ${max} for this provider.`, {
    param: field,
  });
}

/** Error 400 for an unsupported field that may not be dropped silently. */
export function refusal(field: string, note?: string): GatewayError {
  const reason = note ? ` (${note})` : '';
  return new GatewayError(
    'invalid_request',
    `This provider does not support \`${field}\`${reason}. Remove the field or use another provider.`,
    { param: field },
  );
}

/**
 * Field that a dialect passes to the codecs of its format, without any other reader. From here it would bypass the
 * checks of that format (vendor tools, files in the operator's account), so it is dropped and reported.
 */
const INNER = 'dialect_fields';

/** Additional results of reading a request. */
interface Findings {
  readonly dropped: Set<string>;
  readonly needs: DialectNeed[];
}

/** Reads a request of this format: normalizes alternative client forms, and drops fields that clients may not set. */
export function readChatRequest(body: ChatRequest, provider?: string): DialectRequest {
  const findings: Findings = { dropped: new Set(), needs: [] };
  const { dropped, needs } = findings;
  let changed: ChatMessage[] | undefined;
  // By index: an iterator makes two objects for each message.
  for (let at = 0; at < body.messages.length; at += 1) {
    const message = body.messages[at];
    const read = message && readMessage(message, at, findings);
    if (!read || read === message) continue;
    changed ??= [...body.messages];
    changed[at] = read;
  }
  const messages = changed ?? body.messages;
  const tools = body.tools ? mapOwn(body.tools, findings) : body.tools;
  if (tools) for (const [index, tool] of readArray(tools).entries()) needTool(tool, `tools[${index}]`, needs);
  const own = INNER in body ? withoutInner(body, findings) : body;
  const isSame = own === body && messages === body.messages && tools === body.tools;
  const request = isSame ? body : { ...own, messages, ...(tools !== undefined && { tools }) };
  const read: { -readonly [Name in keyof DialectRequest]: DialectRequest[Name] } = { request };
  if (provider !== undefined) read.provider = provider;
  if (dropped.size > 0) read.dropped = [...dropped];
  if (needs.length > 0) read.needs = needs;
  return read;
}

function readMessage(message: ChatMessage, at: number, findings: Findings): ChatMessage {
  let read = INNER in message ? withoutInner(message, findings) : message;
  if (read['reasoning'] !== undefined || read['thinking'] !== undefined) read = readThought(read);
  if (read.reasoning_details || read['thinking_blocks'] !== undefined) read = readReasoning(read);
  if (read.role === 'assistant' && Array.isArray(read.content)) read = readThinkingParts(read, read.content);
  const { content, tool_calls: calls } = read;
  const ownContent =
    typeof content === 'object' && content !== null ? readParts(content, `messages[${at}]`, findings) : content;
  const readCalls = calls ? mapOwn(calls, findings) : calls;
  if (ownContent === content && readCalls === calls) return read;
  return {
    ...read,
    ...(ownContent !== undefined && { content: ownContent }),
    ...(readCalls !== undefined && { tool_calls: readCalls }),
  };
}

function readParts(parts: readonly ContentPart[], at: string, findings: Findings): readonly ContentPart[] {
  return mapSame(mapOwn(parts, findings), (part, index) => readPart(part, `${at}.content[${index}]`, findings.needs));
}

/** Items of this format, without those for other formats. */
function mapOwn<T extends object>(items: readonly T[], findings: Findings): readonly T[] {
  const own = items.filter((item) => !('type' in item) || item.type !== 'opaque');
  if (own.length < items.length) findings.dropped.add('opaque');
  return mapSame(own.length < items.length ? own : items, (item) => withoutInner(item, findings));
}

function withoutInner<T extends object>(value: T, { dropped }: Findings): T {
  if (!(INNER in value)) return value;
  dropped.add(INNER);
  const { [INNER]: _inner, ...rest } = value;
  return rest as T;
}

/** Maps a list; returns the same list if no item changes. */
function mapSame<T>(items: readonly T[], map: (item: T, index: number) => T): readonly T[] {
  const mapped = items.map(map);
  return mapped.some((item, index) => item !== items[index]) ? mapped : items;
}

/** A tool of another type runs at the vendor with the operator's account. */
function needTool(tool: unknown, at: string, needs: DialectNeed[]): void {
  const type = isObject(tool) ? readString(tool['type']) : undefined;
  if (type === undefined || type === 'function' || type === 'custom') return;
  needs.push({ kind: 'server tool', name: type, param: `${at}.type` });
}

/**
 * Converts an image or document in the form of Mistral's clients to OpenAI's. Source: `ImageURLChunk`,
 * `DocumentURLChunk` of @mistralai/mistralai 2.7.
 */
function readAddress(part: ContentPart): ContentPart {
  const { type, image_url: image, document_url: url, document_name: name } = part as Readonly<Record<string, unknown>>;
  if (type === 'image_url' && typeof image === 'string') return { type, image_url: { url: image } };
  if (type !== 'document_url' || typeof url !== 'string') return part;
  const filename = readString(name);
  const where = /^data:/i.test(url) ? 'file_data' : 'file_url';
  return { type: 'file', file: { ...(filename !== undefined && { filename }), [where]: url } } as ContentPart;
}

/** Reads a document. LiteLLM's clients put a URL where OpenAI's put the id of a file in the operator's account. */
function readPart(given: ContentPart, at: string, needs: DialectNeed[]): ContentPart {
  const part = readAddress(given);
  const file = part.type === 'file' ? part['file'] : undefined;
  if (!isObject(file)) return part;
  const id = readString(file['file_id']);
  if (id === undefined) return part;
  if (!/^(?:https?|data):/i.test(id)) {
    needs.push({ kind: 'reference', name: 'file_id', param: `${at}.file.file_id` });
    return part;
  }
  const { file_id: _id, ...rest } = file;
  return { ...part, file: { ...rest, [/^data:/i.test(id) ? 'file_data' : 'file_url']: id } };
}

/**
 * Names in which clients keep the text of a model's thinking: those of DeepSeek, of Groq and OpenRouter, and of Ollama. The
 * first text counts, since the gateway sends the same text under two names.
 */
const THOUGHTS = ['reasoning_content', 'reasoning', 'thinking'] as const;

/** Converts the text of a message's thinking to its canonical name. Other roles have none. */
function readThought(message: ChatMessage): ChatMessage {
  if (message.role !== 'assistant') return message;
  const { reasoning_content: _content, reasoning: _reasoning, thinking: _thinking, ...rest } = message;
  const text = THOUGHTS.map((name) => readString(message[name])).find((value) => value !== undefined);
  return text === undefined ? rest : { ...rest, reasoning_content: text };
}

/** Moves thinking from the content, where Mistral's clients have it, to its canonical name. */
function readThinkingParts(message: ChatMessage, content: readonly ContentPart[]): ChatMessage {
  const parts = content.filter(({ type }) => type !== 'thinking');
  if (parts.length === content.length) return message;
  const { reasoning } = readContent({ content });
  return {
    ...message,
    content: parts.length > 0 ? parts : message.tool_calls ? null : '',
    ...(reasoning !== undefined && !message.reasoning_content && { reasoning_content: reasoning }),
  };
}

/** Converts the reasoning of a message to the canonical form, from any form that clients keep. */
function readReasoning(message: ChatMessage): ChatMessage {
  const { thinking_blocks: blocks, ...rest } = message;
  const { reasoning_details: details } = message;
  const isCanonical = !readArray(details).some(
    (detail) => isRelayed(detail) || (isDetail(detail) && hasSealedSignature(detail)),
  );
  if (blocks === undefined && isCanonical) return message;
  const own = readArray(details).flatMap((detail) =>
    isRelayed(detail) ? readRelayDetails([detail]) : asDetail(detail),
  );
  const all = (own.length > 0 ? own : readThinkingBlocks(blocks)).map(readSealedDetail);
  const { reasoning_details: _details, ...others } = rest;
  return all.length > 0 ? { ...rest, reasoning_details: all } : others;
}

function isRelayed(detail: unknown): detail is JsonObject {
  return isObject(detail) && !('kind' in detail);
}

function asDetail(detail: unknown): readonly ReasoningDetail[] {
  return isDetail(detail) ? [detail] : [];
}

function isDetail(value: unknown): value is ReasoningDetail {
  return isObject(value) && typeof value['kind'] === 'string' && typeof value['format'] === 'string';
}

/**
 * Converts `thinking_blocks` of LiteLLM's clients, which are Anthropic's blocks, to reasoning details. An unsigned
 * block has no vendor.
 */
function readThinkingBlocks(value: unknown): readonly ReasoningDetail[] {
  return readArray(value).flatMap((block): readonly ReasoningDetail[] => {
    if (!isObject(block)) return [];
    const data = readString(block['data']);
    if (block['type'] === 'redacted_thinking')
      return data === undefined ? [] : [{ kind: 'encrypted', data, format: 'anthropic' }];
    const text = typeof block['thinking'] === 'string' ? block['thinking'] : '';
    const signature = readString(block['signature']);
    if (block['type'] !== 'thinking' || (text === '' && signature === undefined)) return [];
    return [
      { kind: 'text', text, ...(signature === undefined ? { format: 'none' } : { signature, format: 'anthropic' }) },
    ];
  });
}
