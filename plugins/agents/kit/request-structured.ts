import { jsonrepair } from 'jsonrepair';
import { LRUCache } from 'lru-cache';
import {
  type ChatMessage,
  type ChatRequest,
  type ChatResponse,
  GatewayError,
  isGatewayError,
  type ResponseFormat,
  type Schema,
} from '../../../contract/index.ts';
import { toProviderSchema } from './provider-schema.ts';
import type { Checked } from './response-model.ts';

/** What a model's result must be. */
export interface ResultTarget {
  /** Names the schema to the provider: `[a-z_]+`. */
  readonly name: string;
  /** Normalised; the root need not be an object. */
  readonly schema: Schema;
  readonly check: (value: unknown) => Checked;
}

interface StructuredRequest {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  readonly temperature?: number | undefined;
  readonly maxTokens?: number | undefined;
}

export interface StructuredResult {
  readonly value: unknown;
  /** The model that responded, as the provider names it. */
  readonly model: string;
  readonly attempts: number;
  readonly repaired: boolean;
}

/** From the strongest to the weakest way to request JSON; every response is checked the same way. */
const MODES = Object.freeze(['json_schema', 'json_object', 'text'] as const);
type Mode = (typeof MODES)[number];

/** Which way each model takes, learnt from its refusals; forgotten after an hour. */
export type ModeMemory = LRUCache<string, Mode>;

export function createModeMemory(): ModeMemory {
  return new LRUCache({ max: 2000, ttl: 3_600_000 });
}

/** What a memory knows of the models of one user. */
type UserModes = Pick<Map<string, Mode>, 'get'> & { set(model: string, mode: Mode): unknown };

/** The part of a memory that is one user's: a schema or a message of one must not make a model's answers worse for others. */
export function modesOf(memory: ModeMemory, userId: string): UserModes {
  const keyOf = (model: string): string => JSON.stringify([userId, model]);
  return {
    get: (model) => memory.get(keyOf(model)),
    set: (model, mode) => memory.set(keyOf(model), mode),
  };
}

export interface StructuredDeps {
  readonly chat: (request: ChatRequest) => Promise<ChatResponse>;
  readonly modes: UserModes;
  /** Whether the budget allows one more call. */
  readonly mayRetry: () => boolean;
  /** Shown to the caller when nothing fits, so that the log can be searched. */
  readonly traceId: string;
}

/**
 * Requests a value that fits the target: by strict `json_schema` first, by `json_object` or the prompt alone where the
 * provider refuses that; then parses, repairs, validates, and requests it once more saying what was wrong. Throws
 * `provider_invalid_response` when the second response does not fit either, `content_filtered` when the model refuses.
 */
export async function requestStructured(
  request: StructuredRequest,
  target: ResultTarget,
  deps: StructuredDeps,
): Promise<StructuredResult> {
  const wrapped = target.schema['type'] !== 'object';
  const wanted = wrapped ? wrap(target.schema) : target.schema;
  const first = await send(request, request.messages, { ...target, schema: wanted }, deps);
  const one = readResponse(first, target, wrapped);
  if (one.ok) return { value: one.value, model: first.model, attempts: 1, repaired: one.repaired };
  if (one.unstructured) weakenMode(request.model, deps.modes);
  if (!deps.mayRetry()) throw doesNotFit(request.model, one.error, 1, deps.traceId);
  const messages = [...request.messages, ...correction(first, one.error)];
  const second = await send(request, messages, { ...target, schema: wanted }, deps);
  const two = readResponse(second, target, wrapped);
  if (two.ok) return { value: two.value, model: second.model, attempts: 2, repaired: true };
  throw doesNotFit(request.model, two.error, 2, deps.traceId);
}

async function send(
  request: StructuredRequest,
  messages: readonly ChatMessage[],
  wanted: Pick<ResultTarget, 'name' | 'schema'>,
  deps: StructuredDeps,
): Promise<ChatResponse> {
  const known = deps.modes.get(request.model) ?? 'json_schema';
  for (const mode of MODES.slice(MODES.indexOf(known))) {
    try {
      const response = await deps.chat(buildRequest(request, messages, wanted, mode));
      if (mode !== known) deps.modes.set(request.model, mode);
      return response;
    } catch (error) {
      if (mode === 'text' || !refusesFormat(error) || !deps.mayRetry()) throw error;
    }
  }
  throw new TypeError('no mode is left');
}

function buildRequest(
  request: StructuredRequest,
  messages: readonly ChatMessage[],
  wanted: Pick<ResultTarget, 'name' | 'schema'>,
  mode: Mode,
): ChatRequest {
  const format = responseFormat(mode, wanted);
  return {
    model: request.model,
    messages: mode === 'json_schema' ? messages : withSchemaInPrompt(messages, wanted.schema),
    ...(request.temperature !== undefined && { temperature: request.temperature }),
    ...(request.maxTokens !== undefined && { max_tokens: request.maxTokens }),
    ...(format && { response_format: format }),
  };
}

function responseFormat(mode: Mode, wanted: Pick<ResultTarget, 'name' | 'schema'>): ResponseFormat | undefined {
  if (mode === 'text') return undefined;
  if (mode === 'json_object') return { type: 'json_object' };
  const { schema, strict } = toProviderSchema(wanted.schema);
  return { type: 'json_schema', json_schema: { name: wanted.name, schema, strict } };
}

/** Added to the system message, which is the first. */
function withSchemaInPrompt(messages: readonly ChatMessage[], schema: Schema): readonly ChatMessage[] {
  const order = `Answer with one JSON object and nothing else. It must fit this JSON Schema:\n${JSON.stringify(schema)}`;
  const [head, ...rest] = messages;
  if (head?.role !== 'system' || typeof head.content !== 'string')
    return [{ role: 'system', content: order }, ...messages];
  return [{ ...head, content: `${head.content}\n\n${order}` }, ...rest];
}

/** A 400 that names `response_format`, or names no field of ours at all. Texts of vendors are not read. */
function refusesFormat(error: unknown): boolean {
  if (!isGatewayError(error) || error.code !== 'invalid_request') return false;
  return error.param === undefined || error.param.startsWith('response_format');
}

type Reading =
  | { readonly ok: true; readonly value: unknown; readonly repaired: boolean }
  | { readonly ok: false; readonly error: string; readonly unstructured: boolean };

function readResponse(response: ChatResponse, target: ResultTarget, wrapped: boolean): Reading {
  const choice = response.choices[0];
  const message = choice?.message;
  if (message?.refusal || choice?.finish_reason === 'content_filter') {
    throw new GatewayError('content_filtered', `The model ${response.model} refused to answer this request.`);
  }
  const cut = choice?.finish_reason === 'length';
  const json = extractJson(message?.content ?? '', !cut);
  if (!json) {
    const error = cut ? 'the answer was cut off; answer much shorter' : 'the answer is not a JSON object';
    return { ok: false, error, unstructured: !cut };
  }
  const checked = target.check(wrapped ? unwrap(json.value) : json.value);
  return checked.ok
    ? { ok: true, value: checked.value, repaired: json.repaired }
    : { ok: false, error: checked.error, unstructured: false };
}

function correction(response: ChatResponse, error: string): readonly ChatMessage[] {
  const said = (response.choices[0]?.message.content ?? '').slice(0, 8000);
  const order = `That does not fit: ${error}. Answer again, with the corrected JSON object and nothing else.`;
  return [
    { role: 'assistant', content: said === '' ? '(nothing)' : said },
    { role: 'user', content: order },
  ];
}

/** A model that writes prose under `json_schema` is not held to it by its provider: then the schema goes into the prompt. */
function weakenMode(model: string, modes: UserModes): void {
  const now = modes.get(model) ?? 'json_schema';
  if (now === 'json_schema') modes.set(model, 'json_object');
}

/** Providers want an object at the root; other schemas travel in `value`. */
function wrap(schema: Schema): Schema {
  return { type: 'object', properties: { value: schema }, required: ['value'], additionalProperties: false };
}

function unwrap(value: unknown): unknown {
  const lone = typeof value === 'object' && value !== null && Object.keys(value).length === 1 && 'value' in value;
  return lone ? value.value : value;
}

function doesNotFit(model: string, error: string, attempts: number, traceId: string): GatewayError {
  const times = attempts === 1 ? 'one attempt' : `${attempts} attempts`;
  return new GatewayError(
    'provider_invalid_response',
    `The model ${model} gave no answer of the asked structure after ${times}: ${error}. Ask for a simpler one, or use a stronger model. Trace: ${traceId}.`,
  );
}

/** A text that is longer, or JSON that is deeper, is not read: no schema of a caller needs it. */
const JSON_LIMITS = Object.freeze({ characters: 262_144, depth: 64 });

interface ExtractedJson {
  readonly value: unknown;
  /** Whether the text had to be repaired to be JSON at all. */
  readonly repaired: boolean;
}

/**
 * The JSON in a model's text: all of it, a fenced block, or the first balanced object or list; as a last resort,
 * and only when `mayRepair`, what `jsonrepair` makes of it. Undefined when it has none. A truncated response must not
 * be repaired: it would become a valid and wrong value.
 */
export function extractJson(text: string, mayRepair: boolean): ExtractedJson | undefined {
  const bare = text
    .replace(/^\uFEFF/, '')
    .replace(/^\s*<think>[\s\S]*?<\/think>/, '')
    .trim();
  if (bare === '' || bare.length > JSON_LIMITS.characters) return undefined;
  const fenced = fencedBlock(bare);
  for (const span of [bare, fenced, balanced(bare)]) {
    if (!span) continue;
    const parsed = parse(span);
    if (parsed) return { value: unquoted(parsed.value), repaired: false };
  }
  if (!mayRepair) return undefined;
  for (const span of [fenced, bare.slice(Math.max(bare.search(/[{[]/), 0))]) {
    if (span === undefined || !/^[{[]/.test(span)) continue;
    const parsed = repair(span);
    if (parsed) return { value: parsed.value, repaired: true };
  }
  return undefined;
}

function parse(text: string): { readonly value: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isDeeper(value, JSON_LIMITS.depth) ? undefined : { value };
  } catch {
    return undefined;
  }
}

function repair(text: string): { readonly value: unknown } | undefined {
  try {
    return parse(jsonrepair(text));
  } catch {
    return undefined;
  }
}

/** Some models write a JSON string that holds the JSON. */
function unquoted(value: unknown): unknown {
  if (typeof value !== 'string' || !/^\s*[{[]/.test(value)) return value;
  return parse(value)?.value ?? value;
}

/** The text from the first `{` or `[` to the bracket that closes it. */
function balanced(text: string): string | undefined {
  const start = text.search(/[{[]/);
  if (start < 0) return undefined;
  let depth = 0;
  let quoted = false;
  for (let at = start; at < text.length; at += 1) {
    const sign = text[at];
    if (quoted) {
      if (sign === '\\') at += 1;
      else if (sign === '"') quoted = false;
    } else if (sign === '"') quoted = true;
    else if (sign === '{' || sign === '[') depth += 1;
    else if (sign === '}' || sign === ']') {
      depth -= 1;
      if (depth === 0) return text.slice(start, at + 1);
    }
  }
  return undefined;
}

/** What stands between the first two fences, without the fence's language. */
function fencedBlock(text: string): string | undefined {
  const open = text.indexOf('```');
  const start = open < 0 ? -1 : text.indexOf('\n', open);
  const end = start < 0 ? -1 : text.indexOf('```', start);
  return end < 0 ? undefined : text.slice(start, end).trim();
}

function isDeeper(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return depth === 0 || Object.values(value).some((inner) => isDeeper(inner, depth - 1));
}
