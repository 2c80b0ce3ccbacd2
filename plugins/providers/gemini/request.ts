import {
  type ChatRequest,
  type CodecCall,
  type FieldTable,
  type HttpRequest,
  isObject,
  type JsonObject,
  type NativeRow,
  readArray,
  readCount,
  readObject,
  readString,
} from '../../../core/index.ts';
import { applyFieldRules, invalid, mergeExtraBody } from '../kit/index.ts';
import { geminiContents } from './contents.ts';
import { GEMINI_FIELDS } from './fields.ts';
import { type GeminiTraits, geminiTraits } from './models.ts';
import { ownThinking, readOwnFields, withCachedContent } from './own-fields.ts';
import type { PartRules } from './parts.ts';
import { geminiThinking } from './thinking.ts';
import { planTools } from './tools.ts';
import type { GeminiRequest } from './types.ts';

const MAX_STOPS = 5;
const MAX_CANDIDATES = 8;

/** The vendor's own fields, which may also stand in `extra_body`. */
const EXTRAS: ReadonlySet<string> = new Set([...(GEMINI_FIELDS.extras ?? []), 'google_search', 'labels']);

/** A chat request as generateContent or streamGenerateContent, by the field table of the instance. */
export function geminiRequest(request: ChatRequest, call: CodecCall, table: FieldTable = GEMINI_FIELDS): HttpRequest {
  const told: string[] = [];
  const input = withCachedContent(mergeExtraBody(withGoogle(request), (field) => EXTRAS.has(field), told));
  const dropped = [...told, ...applyFieldRules(input, table, 'Gemini')];
  const references = table.fields['cached_content']?.rule !== 'refused';
  const body = geminiBody(input, call, dropped, { references });
  // Without alt=sse a stream is one JSON array, sent piecewise.
  const method = call.stream ? ':streamGenerateContent?alt=sse' : ':generateContent';
  return { path: `${modelPath(call.model)}${method}`, body, ...(dropped.length > 0 && { dropped }) };
}

/** `extra_body.google` laid open: Google's own OpenAI endpoint takes its fields there. */
function withGoogle(input: ChatRequest): ChatRequest {
  const body = input['extra_body'];
  if (!isObject(body) || !isObject(body['google'])) return input;
  const { google, ...rest } = body;
  return { ...input, extra_body: { ...rest, ...readObject(google) } };
}

function geminiBody(input: ChatRequest, call: CodecCall, dropped: string[], rules: PartRules): GeminiRequest {
  const traits = geminiTraits(call.model);
  const plan = planTools(input, traits, dropped);
  const own = readOwnFields(input);
  const thinkingConfig = geminiThinking(input, traits, dropped, ownThinking(own));
  const safetySettings = readSafety(input);
  const cachedContent = readString(input['cached_content']);
  const mediaResolution = readString(input['media_resolution']);
  const { thinking_config: _, ...ownConfig } = own.generationConfig;
  const generationConfig = {
    ...ownConfig,
    ...sampling(input, traits, dropped),
    ...plan.format,
    ...readModalities(input),
    ...(mediaResolution && { mediaResolution }),
    ...(thinkingConfig && { thinkingConfig }),
  };
  const functions = plan.functions.length > 0 ? [{ functionDeclarations: plan.functions }] : [];
  const toolConfig = { ...own.toolConfig, ...(functions.length > 0 && plan.toolConfig) };
  return {
    ...own.top,
    ...geminiContents(input.messages, traits, plan.instruction, rules),
    ...(functions.length > 0 && { tools: functions }),
    ...(Object.keys(toolConfig).length > 0 && { toolConfig }),
    ...(safetySettings.length > 0 && { safetySettings }),
    ...(Object.keys(generationConfig).length > 0 && { generationConfig }),
    ...(cachedContent && { cachedContent }),
  } as GeminiRequest;
}

/** `/models/x`, or the model's own path when it has one (`tunedModels/x`). */
export function modelPath(model: string): string {
  const segments = (model.includes('/') ? model : `models/${model}`).split('/');
  if (segments.some((segment) => segment === '' || segment === '.' || segment === '..')) {
    throw invalid('model', 'is not the name of a model');
  }
  return `/${segments.map(encodeURIComponent).join('/')}`;
}

function sampling(input: ChatRequest, traits: GeminiTraits, dropped: string[]): JsonObject {
  const { temperature, top_p, seed, frequency_penalty, presence_penalty, n, logprobs, top_logprobs } = input;
  const maxOutputTokens = input.max_completion_tokens ?? input.max_tokens;
  const stops = readStops(input.stop);
  const topK = input['top_k'];
  if (typeof n === 'number' && n > MAX_CANDIDATES) throw invalid('n', `must be at most ${MAX_CANDIDATES}`);
  const penalties = {
    frequencyPenalty: frequency_penalty || undefined,
    presencePenalty: presence_penalty || undefined,
  };
  if (!traits.penalties && penalties.frequencyPenalty) dropped.push('frequency_penalty');
  if (!traits.penalties && penalties.presencePenalty) dropped.push('presence_penalty');
  return compact({
    maxOutputTokens,
    temperature,
    topP: top_p,
    topK: typeof topK === 'number' ? topK : undefined,
    seed,
    ...(traits.penalties && penalties),
    candidateCount: n === 1 ? undefined : n,
    stopSequences: stops.length > 0 ? stops : undefined,
    responseLogprobs: logprobs || undefined,
    logprobs: (logprobs && top_logprobs) || undefined,
  });
}

function compact(fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));
}

function readStops(stop: ChatRequest['stop']): readonly string[] {
  const stops = (typeof stop === 'string' ? [stop] : (stop ?? [])).filter((text) => text !== '');
  if (stops.length > MAX_STOPS) throw invalid('stop', `must hold at most ${MAX_STOPS} texts for this provider`);
  return stops;
}

function readSafety(input: ChatRequest): readonly JsonObject[] {
  return readArray(input['safety_settings']).map((setting, index) => {
    const { category, threshold } = isObject(setting) ? setting : {};
    if (typeof category === 'string' && typeof threshold === 'string') return { category, threshold };
    throw invalid(`safety_settings[${index}]`, 'must be an object with `category` and `threshold`');
  });
}

function readModalities(input: ChatRequest): JsonObject {
  const modalities = readArray(input['modalities']);
  const unknown = modalities.find((modality) => modality !== 'text' && modality !== 'image');
  if (unknown !== undefined) throw invalid('modalities', 'may hold `text` and `image` for this provider');
  return modalities.includes('image')
    ? { responseModalities: modalities.map((name) => String(name).toUpperCase()) }
    : {};
}

/** Gemini speaks its own format for every model it has. `references` lets callers name what lies in the operator's account. */
export function nativeRow(model: string, stream: boolean, references: boolean): Readonly<Record<string, NativeRow>> {
  const path = modelPath(model);
  return {
    gemini: {
      path: path + (stream ? ':streamGenerateContent?alt=sse' : ':generateContent'),
      count: { path: `${path}:countTokens`, response: (body) => readCount(readObject(body)['totalTokens']) },
      ...(references && { references }),
    },
  };
}
