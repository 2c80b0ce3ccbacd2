import {
  type ChatRequest,
  type CodecCall,
  type HttpRequest,
  isObject,
  type JsonObject,
  readArray,
  readObject,
  readString,
} from '../../../core/index.ts';
import { applyFieldRules, invalid, mergeExtraBody, readConversation, tellDropped } from '../kit/index.ts';
import { cacheControlOf } from './blocks.ts';
import { ANTHROPIC_FIELDS } from './fields.ts';
import { anthropicMessages } from './messages.ts';
import { type AnthropicTraits, anthropicTraits } from './models.ts';
import { isThinking, planThinking, wantsThinking } from './thinking.ts';
import { planTools } from './tools.ts';
import type { AnthropicRequest, OutputConfig } from './types.ts';

const MAX_USER_ID = 256;

/** The vendor's own fields, which may also stand in `extra_body`. */
const EXTRAS: ReadonlySet<string> = new Set(ANTHROPIC_FIELDS.extras);

/** A chat request as `POST /v1/messages`. */
export function anthropicRequest(request: ChatRequest, call: CodecCall): HttpRequest {
  const told: string[] = [];
  const own = readOwnFields(request, (field) => Object.hasOwn(ANTHROPIC_FIELDS.fields, field), told);
  const input = mergeExtraBody(own.input, (field) => EXTRAS.has(field), told);
  const dropped = [...told, ...applyFieldRules(input, ANTHROPIC_FIELDS, 'Anthropic')];
  const headers = readBetas(input['betas']);
  if (hasForeignReasoning(input)) tellDropped(dropped, 'reasoning');
  const body = anthropicBody(input, own.rest, call, dropped);
  return {
    path: '/v1/messages',
    body,
    ...(headers && { headers }),
    ...(dropped.length > 0 && { dropped }),
  };
}

/** Whether the history has reasoning of another vendor, which this one would refuse. */
function hasForeignReasoning({ messages }: ChatRequest): boolean {
  return messages.some(({ reasoning_details: details }) => details?.some(({ format }) => format !== 'anthropic'));
}

function anthropicBody(input: ChatRequest, own: JsonObject, call: CodecCall, dropped: string[]): AnthropicRequest {
  const traits = anthropicTraits(call.model);
  const conversation = readConversation(input.messages);
  const { tools, choice, format, instruction } = planTools(input, conversation, toolTraits(input, traits), dropped);
  const forced = choice?.type === 'any' || choice?.type === 'tool';
  const maxTokens = input.max_completion_tokens ?? input.max_tokens ?? traits.maxOutput;
  const thinking = planThinking(input, traits, { conversation, maxTokens, forced }, dropped);
  const outputConfig = {
    ...(thinking.effort && { effort: thinking.effort }),
    ...(format && { format }),
    ...ownConfig(input),
  };
  const prefill = traits.prefill && !isThinking(thinking) && !outputConfig.format && !forced;
  const stops = readStops(input);
  const user = readUser(input, dropped);
  const management = ownObject(input, 'context_management');
  const metadata = { ...readObject(own['metadata']), ...(user && { user_id: user }) };
  return {
    ...own,
    model: call.model,
    max_tokens: maxTokens,
    ...anthropicMessages(conversation, instruction, prefill),
    ...(stops.length > 0 && { stop_sequences: stops }),
    ...(call.stream && { stream: true }),
    ...(tools.length > 0 && { tools }),
    ...(choice && { tool_choice: choice }),
    ...(thinking.thinking && { thinking: thinking.thinking }),
    ...(Object.keys(outputConfig).length > 0 && { output_config: outputConfig }),
    ...(management && { context_management: management }),
    ...sampling(input, traits, isThinking(thinking), dropped),
    ...(Object.keys(metadata).length > 0 && { metadata }),
    ...cacheControlOf(input),
  };
}

/** The caller's own `output_config`. */
function ownConfig(input: ChatRequest): OutputConfig {
  return ownObject(input, 'output_config') ?? {};
}

/** A field of the vendor's own that is an object. Throws `invalid_request` for any other value. */
function ownObject(input: ChatRequest, field: string): JsonObject | undefined {
  const value = input[field];
  if (value === undefined || value === null) return undefined;
  if (!isObject(value)) throw invalid(field, 'must be an object');
  return value;
}

const MAX_BETAS = 32;

/** Names of betas as the header that asks for them: a header is written, so only plain names are taken. */
function readBetas(value: unknown): Readonly<Record<string, string>> | undefined {
  if (value === undefined || value === null) return undefined;
  const names = typeof value === 'string' ? value.split(',').map((name) => name.trim()) : readArray(value);
  const isPlain = (name: unknown): boolean => typeof name === 'string' && /^[A-Za-z0-9-]{1,64}$/.test(name);
  if (names.length > MAX_BETAS || !names.every(isPlain)) {
    throw invalid('betas', 'must be a list of names of letters, digits and dashes');
  }
  return names.length > 0 ? { 'anthropic-beta': names.join(',') } : undefined;
}

/** A call cannot be forced while a model thinks; one that thinks by a budget stops thinking instead. */
function toolTraits(input: ChatRequest, traits: AnthropicTraits): AnthropicTraits {
  return wantsThinking(input, traits) ? { ...traits, forcedTools: false } : traits;
}

function sampling(
  input: ChatRequest,
  traits: AnthropicTraits,
  thinking: boolean,
  dropped: string[],
): Pick<AnthropicRequest, 'temperature' | 'top_p' | 'top_k'> {
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

/** Fields of a body that the codec writes itself. */
const WRITTEN: ReadonlySet<string> = new Set([
  ...['model', 'max_tokens', 'messages', 'system', 'stream', 'tools', 'tool_choice', 'stop_sequences', 'temperature'],
  ...['top_p', 'extra_body', 'dialect_fields', '__proto__'],
]);

interface OwnFields {
  /** The request with those of the vendor's own fields that the codec knows, in place of what stands in for them. */
  readonly input: ChatRequest;
  /** Fields that are written as they came. */
  readonly rest: JsonObject;
}

/** Reads the fields that came in the vendor's own format; those of other formats are added to `dropped`. */
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
  // What was said in the vendor's own words wins over what was made of it for others.
  const config = readObject(known['output_config']);
  if (known['thinking'] || config['effort']) delete exact.reasoning_effort;
  if (config['format'] || rest['output_format']) delete exact.response_format;
  return { input: exact, rest: { ...rest, ...(isObject(metadata) && { metadata }) } };
}
