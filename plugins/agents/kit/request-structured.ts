import { jsonrepair } from 'jsonrepair';
import { LRUCache } from 'lru-cache';
import {
  type ChatMessage,
  type ChatRequest,
  type ChatResponse,
  GatewayError,
  isGatewayError,
  type NamedServer,
  type ResponseFormat,
  type Schema,
} from '../../../contract/index.ts';
import { toProviderSchema } from './provider-schema.ts';
import { quoteData } from './quote-data.ts';
import type { Checked } from './response-model.ts';

/** Required form of a model's result. */
export interface ResultTarget {
  /** Schema name for the provider: `[a-z_]+`. */
  readonly name: string;
  /** Normalised; the root may be of any type. */
  readonly schema: Schema;
  readonly check: (value: unknown) => Checked;
}

interface StructuredRequest {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  readonly temperature?: number | undefined;
  readonly maxTokens?: number | undefined;
  /** MCP servers whose tools the model may call before its first response. A correction calls none again. */
  readonly servers?: readonly NamedServer[] | undefined;
}

export interface StructuredResult {
  readonly value: unknown;
  /** Model that responded, by the provider's name. */
  readonly model: string;
  readonly attempts: number;
  readonly repaired: boolean;
}

/** Methods to request JSON, the most reliable first; every response is checked alike. */
const MODES = Object.freeze(['json_schema', 'json_object', 'text'] as const);
type Mode = (typeof MODES)[number];

/** JSON method per model, learnt from refusals; expires after an hour. */
export type ModeMemory = LRUCache<string, Mode>;

export function createModeMemory(): ModeMemory {
  return new LRUCache({ max: 2000, ttl: 3_600_000 });
}

/** Known methods for the models of one user. */
type UserModes = Pick<Map<string, Mode>, 'get'> & { set(model: string, mode: Mode): unknown };

/** View of the memory for one user: one user's schemas and messages must not degrade responses for others. */
export function modesOf(memory: ModeMemory, userId: string): UserModes {
  const keyOf = (model: string): string => JSON.stringify([userId, model]);
  return {
    get: (model) => memory.get(keyOf(model)),
    set: (model, mode) => memory.set(keyOf(model), mode),
  };
}

export interface StructuredDeps {
  readonly chat: (request: ChatRequest, servers?: readonly NamedServer[]) => Promise<ChatResponse>;
  readonly modes: UserModes;
  /** Returns true if the budget allows one more call. */
  readonly mayRetry: () => boolean;
  /** Shown to the caller if no response fits, so that the log can be searched. */
  readonly traceId: string;
}

/**
 * Requests a value that fits the target: by strict `json_schema` first, and by `json_object` or the prompt alone if the
 * provider refuses that. Then parses, repairs and validates it; on failure it requests the value once more with the
 * problem. Throws `provider_invalid_response` if the second response does not fit either, `content_filtered` if the
 * model refuses.
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
  const second = await send({ ...request, servers: undefined }, messages, { ...target, schema: wanted }, deps);
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
      const response = await deps.chat(buildRequest(request, messages, wanted, mode), request.servers);
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

/** Adds the schema to the system message, which is the first. */
function withSchemaInPrompt(messages: readonly ChatMessage[], schema: Schema): readonly ChatMessage[] {
  const order = `Answer with one JSON object and nothing else. It must fit this JSON Schema:\n${JSON.stringify(schema)}`;
  const [head, ...rest] = messages;
  if (head?.role !== 'system' || typeof head.content !== 'string')
    return [{ role: 'system', content: order }, ...messages];
  return [{ ...head, content: `${head.content}\n\n${order}` }, ...rest];
}

/** True for a 400 that names `response_format`, or no field of ours. Vendors' messages are not parsed. */
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
    throw new GatewayError(
      'content_filtered',
      `The model ${response.model} refused this request. Rephrase it or use another model.`,
    );
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
  const calls = response.choices[0]?.message.mcp_calls ?? [];
  const results = JSON.stringify(calls).slice(0, 32_000);
  return [
    { role: 'assistant', content: said === '' ? '(nothing)' : said },
    { role: 'user', content: order + quoteData(calls.length > 0 ? [['Results of your tools', results]] : []) },
  ];
}

/** Prose under `json_schema` shows that the provider does not enforce it: the schema then goes into the prompt. */
function weakenMode(model: string, modes: UserModes): void {
  const now = modes.get(model) ?? 'json_schema';
  if (now === 'json_schema') modes.set(model, 'json_object');
}

/** Providers require an object at the root; other schemas are wrapped in `value`. */
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
    `The model ${model} returned no valid structure after ${times}: ${error}. Simplify the structure or use a stronger model. Trace: ${traceId}.`,
  );
}

/** Limits of a response's text and JSON depth, beyond the needs of any caller's schema. */
const JSON_LIMITS = Object.freeze({ characters: 262_144, depth: 64 });

interface ExtractedJson {
  readonly value: unknown;
  /** True if the text had to be repaired to be JSON. */
  readonly repaired: boolean;
}

/**
 * Extracts the JSON in a model's text: all of it, a fenced block, or the first balanced object or list. As a last
 * resort, and only with `mayRepair`, uses the result of `jsonrepair`. Undefined if there is no JSON. A truncated
 * response must not be repaired: it would become a valid but wrong value.
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

/** Some models return the JSON within a JSON string. */
function unquoted(value: unknown): unknown {
  if (typeof value !== 'string' || !/^\s*[{[]/.test(value)) return value;
  return parse(value)?.value ?? value;
}

/** Text from the first `{` or `[` to its closing bracket. */
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

/** Text between the first two fences, without the fence's language. */
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
