import {
  type ChatRequest,
  type CodecCall,
  GatewayError,
  type HttpRequest,
  isObject,
  type JsonObject,
  type NativeRow,
  readArray,
  readCount,
  readObject,
  readString,
} from '../../../contract/index.ts';
import { fitMarksOfBody } from '../kit/cache-marks.ts';
import {
  applyFieldRules,
  fitCacheMarks,
  invalid,
  mergeExtraBody,
  readConversation,
  tellDropped,
} from '../kit/index.ts';
import { anthropicResponse, anthropicStream } from './read-response.ts';
import { ANTHROPIC_FIELDS, type AnthropicTraits, anthropicTraits, cacheControlOf } from './tables.ts';
import { addedThinking, hasThinking, isThinking, planThinking, wantsThinking } from './thinking.ts';
import type { AnthropicRequest } from './types.ts';
import { anthropicMessages, planTools } from './write-contents.ts';

const MAX_USER_ID = 256;

/** Vendor's own fields, also accepted in `extra_body`. */
const EXTRAS: ReadonlySet<string> = new Set(ANTHROPIC_FIELDS.extras);

/** Beta that drops thinking with a changed prefix instead of rejecting the request. */
const BINDING_BETA = 'thinking-binding-controls-2026-08-01';

/** Writes a chat request for `POST /v1/messages`. */
export function anthropicRequest(request: ChatRequest, call: CodecCall, rules: BetaRules = NO_RULES): HttpRequest {
  const unread: string[] = [];
  const own = readOwnFields(request, (field) => Object.hasOwn(ANTHROPIC_FIELDS.fields, field), unread);
  const merged = mergeExtraBody(own.input, (field) => EXTRAS.has(field), unread);
  const input = fitCacheMarks(merged, true);
  const dropped = [...unread, ...applyFieldRules(input, ANTHROPIC_FIELDS, 'Anthropic')];
  if (input !== merged) tellDropped(dropped, 'cache_control');
  const betas = readBetas(input['betas']);
  if (hasForeignReasoning(input)) tellDropped(dropped, 'reasoning');
  const mayBind = !rules.deny.includes(BINDING_BETA);
  const { body, isBound } = anthropicBody(input, own.rest, call, mayBind, dropped);
  const headers =
    betas.length > 0 || isBound ? betaHeader([...betas, ...(isBound ? [BINDING_BETA] : [])].join(','), rules) : {};
  return {
    path: '/v1/messages',
    body,
    ...addedThinking(input['thinking'], body.thinking),
    ...(Object.keys(headers).length > 0 && { headers }),
    ...(dropped.length > 0 && { dropped }),
  };
}

/** Returns true if the history has another vendor's reasoning, which this one would reject. */
function hasForeignReasoning({ messages }: ChatRequest): boolean {
  return messages.some(({ reasoning_details: details }) => details?.some(({ format }) => format !== 'anthropic'));
}

function anthropicBody(
  input: ChatRequest,
  own: JsonObject,
  call: CodecCall,
  mayBind: boolean,
  dropped: string[],
): { readonly body: AnthropicRequest; readonly isBound: boolean } {
  const traits = anthropicTraits(call.model);
  const conversation = readConversation(input.messages);
  const { tools, choice, format, instruction } = planTools(input, conversation, toolTraits(input, traits), dropped);
  const forced = choice?.['type'] === 'any' || choice?.['type'] === 'tool';
  const maxTokens = input.max_completion_tokens ?? input.max_tokens ?? traits.maxOutput;
  const plan = planThinking(input, traits, { conversation, maxTokens, forced }, dropped);
  const outputConfig = {
    ...(plan.effort && { effort: plan.effort }),
    ...(format && { format }),
    ...ownObject(input, 'output_config'),
  };
  const prefill = traits.prefill && !isThinking(plan) && !('format' in outputConfig) && !forced;
  const bound =
    mayBind && traits.preservedThinking && hasThinking(conversation) ? bindThinking(plan.thinking) : undefined;
  const thinking = bound ?? plan.thinking;
  const stops = readStops(input);
  const user = readUser(input, dropped);
  const management = ownObject(input, 'context_management');
  const metadata = { ...readObject(own['metadata']), ...(user && { user_id: user }) };
  const body = {
    ...own,
    model: call.model,
    max_tokens: maxTokens,
    ...anthropicMessages(conversation, instruction, prefill),
    ...(stops.length > 0 && { stop_sequences: stops }),
    ...(call.stream && { stream: true }),
    ...(tools.length > 0 && { tools }),
    ...(choice && { tool_choice: choice }),
    ...(thinking && { thinking }),
    ...(Object.keys(outputConfig).length > 0 && { output_config: outputConfig }),
    ...(management && { context_management: management }),
    ...(typeof input['inference_geo'] === 'string' && { inference_geo: input['inference_geo'] }),
    ...sampling(input, traits, isThinking(plan), dropped),
    ...(Object.keys(metadata).length > 0 && { metadata }),
    ...cacheControlOf(input),
  };
  return { body, isBound: bound !== undefined };
}

/**
 * Lets the vendor drop thinking of the history whose prefix has changed, as emulations and clients change it.
 * Otherwise the vendor rejects the request. Undefined if the caller sets it, or the model does not think before it
 * responds. Source: https://platform.claude.com/docs/en/build-with-claude/preserved-thinking
 */
function bindThinking(thinking: JsonObject = { type: 'adaptive' }): JsonObject | undefined {
  if (thinking['type'] !== 'adaptive' || 'block_binding' in thinking) return undefined;
  return { ...thinking, block_binding: { prefix_mismatch_behavior: 'drop_block' } };
}

/** Vendor field with an object value. Throws `invalid_request` for any other value. */
function ownObject(input: ChatRequest, field: string): JsonObject | undefined {
  const value = input[field];
  if (value === undefined || value === null) return undefined;
  if (!isObject(value)) throw invalid(field, 'must be an object');
  return value;
}

const MAX_BETAS = 32;

/** Names of betas. They are sent in a header, so only plain names are accepted. */
function readBetas(value: unknown): readonly unknown[] {
  if (value === undefined || value === null) return [];
  const names = typeof value === 'string' ? betaNames(value) : readArray(value);
  const isPlain = (name: unknown): boolean => typeof name === 'string' && /^[A-Za-z0-9-]{1,64}$/.test(name);
  if (names.length > MAX_BETAS || !names.every(isPlain)) {
    throw invalid('betas', 'must be a list of names of letters, digits and dashes');
  }
  return names;
}

/** A call cannot be forced while a model thinks; a model with a budget stops thinking instead. */
function toolTraits(input: ChatRequest, traits: AnthropicTraits): AnthropicTraits {
  return wantsThinking(input, traits) ? { ...traits, forcedTools: false } : traits;
}

function sampling(input: ChatRequest, traits: AnthropicTraits, thinking: boolean, dropped: string[]): JsonObject {
  const temperature = typeof input.temperature === 'number' ? input.temperature : undefined;
  const topP = typeof input.top_p === 'number' && input.top_p !== 1 ? input.top_p : undefined;
  const topK = typeof input['top_k'] === 'number' ? input['top_k'] : undefined;
  if (!traits.sampling || thinking) {
    if (temperature !== undefined && temperature !== 1) dropped.push('temperature');
    if (topP !== undefined) dropped.push('top_p');
    if (topK !== undefined) dropped.push('top_k');
    return {};
  }
  const crowded = temperature !== undefined && topP !== undefined && !traits.temperatureWithTopP;
  if (crowded) dropped.push('top_p');
  return {
    ...(temperature !== undefined && { temperature: Math.min(temperature, 1) }),
    ...(topP !== undefined && !crowded && { top_p: topP }),
    ...(topK !== undefined && { top_k: topK }),
  };
}

function readStops({ stop, stop_sequences: own }: ChatRequest): readonly string[] {
  const stops: readonly unknown[] = [...(typeof stop === 'string' ? [stop] : (stop ?? [])), ...readArray(own)];
  return stops.filter((text): text is string => typeof text === 'string' && text.trim() !== '');
}

function readUser(input: ChatRequest, dropped: string[]): string | undefined {
  const user = readString(input['safety_identifier']) ?? readString(input.user);
  if (user === undefined || user.length <= MAX_USER_ID) return user;
  dropped.push('user');
  return undefined;
}

/** Body fields that the codec writes itself. */
const WRITTEN: ReadonlySet<string> = new Set([
  ...['model', 'max_tokens', 'messages', 'system', 'stream', 'tools', 'tool_choice', 'stop_sequences', 'temperature'],
  ...['top_p', 'extra_body', 'dialect_fields', '__proto__'],
]);

interface OwnFields {
  /** Request in which known vendor fields replace their canonical equivalents. */
  readonly input: ChatRequest;
  /** Fields that are sent unchanged. */
  readonly rest: JsonObject;
}

/** Reads the fields of the vendor's own format; those of other formats are added to `dropped`. */
function readOwnFields(request: ChatRequest, isKnown: (field: string) => boolean, dropped: string[]): OwnFields {
  const { dialect_fields: fields, ...input } = request;
  if (!isObject(fields)) return { input, rest: {} };
  const { messages, ...others } = fields;
  for (const other of Object.values(others))
    for (const field of Object.keys(readObject(other))) tellDropped(dropped, field);
  const own = Object.entries(readObject(messages)).filter(([field]) => !WRITTEN.has(field));
  const { metadata, ...known } = Object.fromEntries(own.filter(([field]) => isKnown(field)));
  const rest = Object.fromEntries(own.filter(([field]) => !isKnown(field)));
  const exact = { ...input, ...known };
  // Vendor fields take precedence over their canonical equivalents.
  const config = readObject(known['output_config']);
  if (known['thinking'] || config['effort']) delete exact.reasoning_effort;
  if (config['format'] || rest['output_format']) delete exact.response_format;
  return { input: exact, rest: { ...rest, ...(isObject(metadata) && { metadata }) } };
}

/** Maximum length of a caller's header for the vendor. */
const MAX_HEADER = 4096;

/** Betas that callers may use. */
export interface BetaRules {
  /** Rejected names. */
  readonly deny: readonly string[];
  /** Names that the operator adds to every request. */
  readonly always: readonly string[];
}

const NO_RULES: BetaRules = Object.freeze({ deny: [], always: [] });

/** Passthrough for callers of the vendor's own format. */
export function nativeMessages(rules: BetaRules): NativeRow {
  return {
    path: '/v1/messages',
    headers: ({ 'anthropic-version': version, 'anthropic-beta': betas }) => {
      assertPlain('anthropic-version', version);
      assertPlain('anthropic-beta', betas);
      return { ...(version && { 'anthropic-version': version }), ...betaHeader(betas, rules) };
    },
    body: (body) => {
      const fitted = fitMarksOfBody(body);
      return { body: fitted, ...(fitted !== body && { dropped: ['cache_control'] }) };
    },
    count: COUNT,
    // The caller knows this format, so an unmapped stop reason ends the message, even an empty one.
    codec: {
      response: (body, call) => anthropicResponse(body, call, true),
      stream: (call) => anthropicStream(call, true),
    },
  };
}

/** Fields of a message that the vendor rejects in a request to count tokens. */
const UNCOUNTED: ReadonlySet<string> = new Set([
  ...['max_tokens', 'stream', 'stop_sequences', 'temperature', 'top_p', 'top_k', 'metadata', 'service_tier'],
]);

const COUNT = Object.freeze({
  path: '/v1/messages/count_tokens',
  body: (body: object): object => Object.fromEntries(Object.entries(body).filter(([field]) => !UNCOUNTED.has(field))),
  response: (body: unknown) => readCount(readObject(body)['input_tokens']),
});

/** Beta names in a header. */
export function betaNames(header: string | undefined): readonly string[] {
  return (header ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}

/** Header of betas: the caller's, byte for byte, then missing ones of the operator. Throws for a denied one. */
export function betaHeader(
  callers: string | undefined,
  { deny, always }: BetaRules,
): { readonly 'anthropic-beta'?: string } {
  const names = betaNames(callers);
  const denied = names.find((name) => deny.includes(name));
  if (denied !== undefined)
    throw new GatewayError(
      'invalid_request',
      `The beta \`${denied}\` is denied by this gateway's configuration. Remove it from \`anthropic-beta\`.`,
      { param: 'anthropic-beta' },
    );
  const missing = always.filter((name) => !names.includes(name));
  const header = [...(names.length > 0 ? [callers] : []), ...missing].join(',');
  return header === '' ? {} : { 'anthropic-beta': header };
}

function assertPlain(name: string, value: string | undefined): void {
  if (value === undefined || (value.length <= MAX_HEADER && /^[\x20-\x7e]*$/.test(value))) return;
  throw new GatewayError(
    'invalid_request',
    `The header \`${name}\` must be at most ${MAX_HEADER} printable ASCII characters.`,
    { param: name },
  );
}
