import { LRUCache } from 'lru-cache';
import {
  type ChatMessage,
  type ChatRequest,
  type ChatResponse,
  GatewayError,
  isGatewayError,
  type ResponseFormat,
  type Schema,
} from '../../../core/index.ts';
import { toProviderSchema } from './provider-schema.ts';
import { readJson } from './read-json.ts';
import type { Checked } from './response-model.ts';

/** What an answer must be. */
export interface AnswerTarget {
  /** Names the schema to the provider: `[a-z_]+`. */
  readonly name: string;
  /** Normalised; the root need not be an object. */
  readonly schema: Schema;
  readonly check: (value: unknown) => Checked;
}

export interface Question {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  readonly temperature?: number | undefined;
  readonly maxTokens?: number | undefined;
}

export interface StructuredAnswer {
  readonly value: unknown;
  /** The model that answered, as the provider names it. */
  readonly model: string;
  readonly attempts: number;
  readonly repaired: boolean;
}

/** From the strongest to the weakest way of asking; every answer is checked the same way. */
const MODES = Object.freeze(['json_schema', 'json_object', 'text'] as const);
type Mode = (typeof MODES)[number];

/** Which way of asking each model takes, learnt from its refusals; forgotten after an hour. */
export type ModeMemory = LRUCache<string, Mode>;

export function createModeMemory(): ModeMemory {
  return new LRUCache({ max: 500, ttl: 3_600_000 });
}

export interface AskDeps {
  readonly chat: (request: ChatRequest) => Promise<ChatResponse>;
  readonly modes: ModeMemory;
  /** Whether the budget allows one more call. */
  readonly mayRetry: () => boolean;
  /** Shown to the caller when nothing fits, so that the log can be searched. */
  readonly traceId: string;
}

/**
 * Asks a model for a value that fits the target: strict `json_schema` first, `json_object` or the prompt alone where the
 * provider refuses; then parses, mends, validates, and asks once more saying what was wrong. Throws
 * `provider_invalid_response` when the second answer does not fit either, `content_filtered` when the model refuses.
 */
export async function askStructured(
  question: Question,
  target: AnswerTarget,
  deps: AskDeps,
): Promise<StructuredAnswer> {
  const wrapped = target.schema['type'] !== 'object';
  const wanted = wrapped ? wrap(target.schema) : target.schema;
  const first = await send(question, question.messages, { ...target, schema: wanted }, deps);
  const one = readAnswer(first, target, wrapped);
  if (one.ok) return { value: one.value, model: first.model, attempts: 1, repaired: one.repaired };
  if (one.unstructured) demote(question.model, deps.modes);
  if (!deps.mayRetry()) throw misfit(question.model, one.fault, 1, deps.traceId);
  const messages = [...question.messages, ...correction(first, one.fault)];
  const second = await send(question, messages, { ...target, schema: wanted }, deps);
  const two = readAnswer(second, target, wrapped);
  if (two.ok) return { value: two.value, model: second.model, attempts: 2, repaired: true };
  throw misfit(question.model, two.fault, 2, deps.traceId);
}

async function send(
  question: Question,
  messages: readonly ChatMessage[],
  wanted: Pick<AnswerTarget, 'name' | 'schema'>,
  deps: AskDeps,
): Promise<ChatResponse> {
  const known = deps.modes.get(question.model) ?? 'json_schema';
  for (const mode of MODES.slice(MODES.indexOf(known))) {
    try {
      const response = await deps.chat(buildRequest(question, messages, wanted, mode));
      if (mode !== known) deps.modes.set(question.model, mode);
      return response;
    } catch (error) {
      if (mode === 'text' || !refusesFormat(error) || !deps.mayRetry()) throw error;
    }
  }
  throw new TypeError('no mode is left');
}

function buildRequest(
  question: Question,
  messages: readonly ChatMessage[],
  wanted: Pick<AnswerTarget, 'name' | 'schema'>,
  mode: Mode,
): ChatRequest {
  const format = responseFormat(mode, wanted);
  return {
    model: question.model,
    messages: mode === 'json_schema' ? messages : withSchemaInPrompt(messages, wanted.schema),
    ...(question.temperature !== undefined && { temperature: question.temperature }),
    ...(question.maxTokens !== undefined && { max_tokens: question.maxTokens }),
    ...(format && { response_format: format }),
  };
}

function responseFormat(mode: Mode, wanted: Pick<AnswerTarget, 'name' | 'schema'>): ResponseFormat | undefined {
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
  | { readonly ok: false; readonly fault: string; readonly unstructured: boolean };

function readAnswer(response: ChatResponse, target: AnswerTarget, wrapped: boolean): Reading {
  const choice = response.choices[0];
  const message = choice?.message;
  if (message?.refusal || choice?.finish_reason === 'content_filter') {
    throw new GatewayError('content_filtered', `The model ${response.model} refused to answer this request.`);
  }
  const cut = choice?.finish_reason === 'length';
  const json = readJson(message?.content ?? '', !cut);
  if (!json) {
    const fault = cut ? 'the answer was cut off; answer much shorter' : 'the answer is not a JSON object';
    return { ok: false, fault, unstructured: !cut };
  }
  const checked = target.check(wrapped ? unwrap(json.value) : json.value);
  return checked.ok
    ? { ok: true, value: checked.value, repaired: json.repaired }
    : { ok: false, fault: checked.fault, unstructured: false };
}

function correction(response: ChatResponse, fault: string): readonly ChatMessage[] {
  const said = (response.choices[0]?.message.content ?? '').slice(0, 8000);
  const order = `That does not fit: ${fault}. Answer again, with the corrected JSON object and nothing else.`;
  return [
    { role: 'assistant', content: said === '' ? '(nothing)' : said },
    { role: 'user', content: order },
  ];
}

/** A model that answers prose under `json_schema` is not held to it by its provider: say the schema in the prompt. */
function demote(model: string, modes: ModeMemory): void {
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

function misfit(model: string, fault: string, attempts: number, traceId: string): GatewayError {
  const times = attempts === 1 ? 'one attempt' : `${attempts} attempts`;
  return new GatewayError(
    'provider_invalid_response',
    `The model ${model} gave no answer of the asked structure after ${times}: ${fault}. Ask for a simpler one, or use a stronger model. Trace: ${traceId}.`,
  );
}
