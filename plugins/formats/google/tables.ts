import {
  type ChatRequest,
  type FieldRule,
  type FieldRules,
  type FieldTable,
  type FinishReason,
  type JsonObject,
  type ProviderEffects,
  readString,
} from '../../../contract/index.ts';
import {
  EFFORTS,
  type Effort,
  effortOfTokens,
  fitEffort,
  invalid,
  isEffort,
  LEGACY_FUNCTIONS,
  type Leniency,
  THINKING_TOKENS,
} from '../kit/index.ts';
import { fieldOf, type GeminiThinking } from './types.ts';

/**
 * Capabilities of Gemini models, which differ by generation; the vendor responds 400 to unsupported ones. An unknown
 * `gemini-*` gets the narrowest request. Source: https://ai.google.dev/gemini-api/docs/thinking and the model
 * catalogue of @ai-sdk/google 4.0.121.
 */
export interface GeminiTraits {
  readonly thinking:
    | { readonly kind: 'none' }
    /** In tokens; thinking can be disabled if `min` is 0. */
    | { readonly kind: 'budget'; readonly min: number; readonly max: number }
    | { readonly kind: 'level'; readonly levels: readonly Effort[] };
  readonly penalties: boolean;
  /** True if more than one candidate is supported. */
  readonly candidates: boolean;
  readonly systemInstruction: boolean;
  /** True if one request may have both a JSON response format and tools. */
  readonly jsonWithTools: boolean;
  /** Generation 3 and later: replayed calls require their thought signature, and results may contain images. */
  readonly signatures: boolean;
}

const FROM_MINIMAL: readonly Effort[] = ['minimal', 'low', 'medium', 'high'];
const FROM_LOW: readonly Effort[] = ['low', 'medium', 'high'];

const OLD: GeminiTraits = {
  thinking: { kind: 'none' },
  penalties: true,
  candidates: true,
  systemInstruction: true,
  jsonWithTools: false,
  signatures: false,
};
const V25: GeminiTraits = { ...OLD, thinking: { kind: 'budget', min: 0, max: 24_576 }, penalties: false };
const NEW: GeminiTraits = {
  ...OLD,
  thinking: { kind: 'level', levels: FROM_MINIMAL },
  jsonWithTools: true,
  signatures: true,
};
const NEW_FROM_LOW: GeminiTraits = { ...NEW, thinking: { kind: 'level', levels: FROM_LOW } };
const UNKNOWN: GeminiTraits = { ...NEW_FROM_LOW, penalties: false, candidates: false };

/** First pattern that matches the model's name (without `models/`) wins. */
const TRAITS: readonly (readonly [RegExp, GeminiTraits])[] = Object.freeze([
  [/^gemma-/, { ...OLD, systemInstruction: false }],
  [/^gemini-(1[.-]|2\.0|pro$|pro-vision|robotics-er-1)/, OLD],
  [/^gemini-2\.5-.*(image|tts|audio)/, { ...OLD, penalties: false }],
  [/^gemini-2\.5-pro/, { ...V25, thinking: { kind: 'budget', min: 128, max: 32_768 } }],
  [/^gemini-2\./, V25],
  [/^gemini-3-pro-image/, { ...NEW, thinking: { kind: 'budget', min: 128, max: 32_768 } }],
  [/^gemini-(3(\.\d)?-pro|pro-latest|flash-latest$)/, NEW_FROM_LOW],
  [/^gemini-3\.[78]-flash(?!-lite)/, NEW_FROM_LOW],
  [/^gemini-(3(\.[1-8])?-flash|flash-lite-latest)/, NEW],
  [/^gemini-4-hydrogen/, { ...NEW, thinking: { kind: 'level', levels: [...FROM_LOW, 'xhigh'] }, penalties: false }],
  [/^gemini-/, UNKNOWN],
  // Tuned models, or another vendor's behind Google's API.
  [/./, { ...OLD, penalties: false, candidates: false }],
]);

/** Traits of a model by its name, with or without `models/`. */
export function geminiTraits(model: string): GeminiTraits {
  const name = model.slice(model.lastIndexOf('/') + 1).toLowerCase();
  return TRAITS.find(([pattern]) => pattern.test(name))?.[1] ?? UNKNOWN;
}

/** Effort of a `thinkingConfig`; undefined means the model's default. */
export function readThinking(thinking: JsonObject): Effort | undefined {
  const level = readString(fieldOf(thinking, 'thinkingLevel'))?.toLowerCase();
  if (isEffort(level) && level !== 'none' && level !== 'max') return level;
  const budget = fieldOf(thinking, 'thinkingBudget');
  // -1 lets the model choose.
  return typeof budget === 'number' && budget >= 0 ? effortOfTokens(budget, 'google') : undefined;
}

/** Level or budget nearest to an effort for a model; undefined for a model that does not think. */
export function writeThinking(effort: Effort, { thinking }: GeminiTraits): GeminiThinking | undefined {
  if (thinking.kind === 'level') return { thinkingLevel: fitEffort(effort, thinking.levels) };
  if (thinking.kind === 'none') return undefined;
  return { thinkingBudget: Math.min(Math.max(THINKING_TOKENS.google[effort], thinking.min), thinking.max) };
}

/** Reasoning effort of a request. Throws `invalid_request` for an unknown word. */
export function readEffort({ reasoning_effort: name }: ChatRequest): Effort | undefined {
  if (name === undefined || name === null) return undefined;
  if (!isEffort(name)) throw invalid('reasoning_effort', `must be one of ${EFFORTS.join(', ')}`);
  return name;
}

/**
 * OpenAI's finish reasons by Google's. `STOP` is checked further, since Gemini also sends it for tool calls. After
 * any other reason, such as `NO_IMAGE` or a newer one, the output is kept as incomplete.
 */
const FINISH_REASON: Readonly<Record<string, FinishReason>> = Object.freeze({
  STOP: 'stop',
  MAX_TOKENS: 'length',
  // The response could be continued with a token that OpenAI's shape has no field for; to the caller it is cut off.
  CONTINUATION: 'length',
  SAFETY: 'content_filter',
  RECITATION: 'content_filter',
  BLOCKLIST: 'content_filter',
  PROHIBITED_CONTENT: 'content_filter',
  SPII: 'content_filter',
  LANGUAGE: 'content_filter',
  MODEL_ARMOR: 'content_filter',
  IMAGE_SAFETY: 'content_filter',
  IMAGE_PROHIBITED_CONTENT: 'content_filter',
  IMAGE_RECITATION: 'content_filter',
});

/** Reasons for a failure of the model: its output cannot be read, or must not be replayed. */
export const FAILED_ENDS: ReadonlySet<string> = new Set([
  ...['MALFORMED_FUNCTION_CALL', 'MALFORMED_RESPONSE', 'MISSING_THOUGHT_SIGNATURE'],
]);

/** OpenAI's finish reason for one of Google's; undefined without an equivalent. */
export function readFinish(reason: string, called: boolean): FinishReason | undefined {
  const known = Object.hasOwn(FINISH_REASON, reason) ? FINISH_REASON[reason] : undefined;
  return called && known === 'stop' ? 'tool_calls' : known;
}

const WRITTEN_FINISH: Readonly<Record<FinishReason, string>> = Object.freeze({
  stop: 'STOP',
  length: 'MAX_TOKENS',
  tool_calls: 'STOP',
  function_call: 'STOP',
  content_filter: 'SAFETY',
});

/** Google's finish reason of a response. A native reason from Google takes precedence, since it is more exact. */
export function writeFinish(reason: FinishReason, native: string | undefined): string {
  return native !== undefined && readFinish(native, false) === reason ? native : WRITTEN_FINISH[reason];
}

/** Audio media types by their names in `input_audio.format`. */
export const AUDIO_TYPE: Readonly<Record<string, string>> = Object.freeze({
  wav: 'audio/wav',
  mp3: 'audio/mp3',
  flac: 'audio/flac',
  aac: 'audio/aac',
  ogg: 'audio/ogg',
  aiff: 'audio/aiff',
});

/** Inverse of {@link AUDIO_TYPE}, with further types that clients send. */
export const AUDIO_FORMAT: Readonly<Record<string, string>> = Object.freeze({
  ...Object.fromEntries(Object.entries(AUDIO_TYPE).map(([format, type]) => [type, format])),
  'audio/x-wav': 'wav',
  'audio/mpeg': 'mp3',
});

const BLOCK_RANK: Readonly<Record<string, number>> = Object.freeze({ reasoning: 0, content: 1, tool: 2 });

/** Returns true if the blocks of a message (`reasoning:0`, `tool:1`) are in default order: thinking, content, calls. */
export function isUsualOrder(order: readonly string[]): boolean {
  const ranks = order.map((name) => BLOCK_RANK[name.split(':')[0] ?? ''] ?? 0);
  return ranks.every((rank, at) => at === 0 || rank >= (ranks[at - 1] ?? 0));
}

const NO_PENALTY: FieldRule = { rule: 'dropped', neutral: [0] };

const FIELDS: FieldRules = Object.freeze({
  model: { rule: 'passed', note: 'Sent in the path.' },
  messages: {
    rule: 'emulated',
    to: 'contents, systemInstruction',
    note: 'Leading system and developer messages are the system prompt; later ones go into user turns, in place; for Gemma, which has no system instruction, they become user text.',
  },
  stream: { rule: 'emulated', to: ':streamGenerateContent' },
  stream_options: { rule: 'emulated', note: 'Every chunk of the vendor contains usage.' },
  max_tokens: { rule: 'renamed', to: 'generationConfig.maxOutputTokens' },
  max_completion_tokens: {
    rule: 'renamed',
    to: 'generationConfig.maxOutputTokens',
    note: 'Overrides `max_tokens`. Includes thinking at OpenAI and at Google.',
  },
  temperature: { rule: 'renamed', to: 'generationConfig.temperature' },
  top_p: { rule: 'renamed', to: 'generationConfig.topP' },
  top_k: { rule: 'renamed', to: 'generationConfig.topK' },
  seed: { rule: 'renamed', to: 'generationConfig.seed' },
  n: { rule: 'renamed', to: 'generationConfig.candidateCount', note: 'At most 8; many models take only 1.' },
  stop: { rule: 'renamed', to: 'generationConfig.stopSequences', note: 'At most 5.' },
  frequency_penalty: {
    rule: 'renamed',
    to: 'generationConfig.frequencyPenalty',
    neutral: [0],
  },
  presence_penalty: {
    rule: 'renamed',
    to: 'generationConfig.presencePenalty',
    neutral: [0],
  },
  logprobs: { rule: 'renamed', to: 'generationConfig.responseLogprobs', neutral: [false] },
  top_logprobs: { rule: 'renamed', to: 'generationConfig.logprobs', neutral: [0] },
  response_format: {
    rule: 'emulated',
    to: 'generationConfig.responseMimeType, responseJsonSchema',
    note: 'With tools on models before Gemini 3, a schema becomes a function whose arguments are the response; `json_object` becomes an instruction.',
  },
  tools: { rule: 'renamed', to: 'tools[].functionDeclarations' },
  tool_choice: { rule: 'renamed', to: 'toolConfig.functionCallingConfig' },
  parallel_tool_calls: {
    rule: 'dropped',
    note: 'The model decides whether it calls tools in parallel.',
    neutral: [true],
  },
  reasoning_effort: {
    rule: 'renamed',
    to: 'generationConfig.thinkingConfig',
    note: 'A level for Gemini 3 and later, a token budget for 2.5. Unsupported values become the nearest supported one (`none`: the lowest). The response contains `reasoning_content` only if this field requests reasoning.',
  },
  extra_body: {
    rule: 'emulated',
    note: 'The vendor’s own fields in it or in its `google`, as in Google’s own OpenAI endpoint; others are dropped.',
  },
  thinking_config: {
    rule: 'renamed',
    to: 'generationConfig.thinkingConfig',
    note: 'The vendor’s own field; overrides `reasoning_effort`.',
  },
  media_resolution: { rule: 'renamed', to: 'generationConfig.mediaResolution' },
  safety_settings: { rule: 'renamed', to: 'safetySettings' },
  cached_content: {
    rule: 'refused',
    note: 'cached contents belong to the operator’s account, which all callers share; the option `cachedContent` allows them.',
  },
  dialect_fields: {
    rule: 'emulated',
    note: 'Fields of Gemini’s own format without a canonical field are merged into the request.',
  },
  cache_control: { rule: 'dropped', note: 'The vendor caches by prefix by itself.' },
  google_search: { rule: 'dropped', note: 'The fee of each search is unknown.' },
  labels: { rule: 'dropped', note: 'Available on Vertex AI, not on the Developer API.' },
  modalities: {
    rule: 'renamed',
    to: 'generationConfig.responseModalities',
    note: '`text` and `image`; images are returned in `message.images`. `audio` is rejected.',
    neutral: [['text']],
  },
  audio: { rule: 'refused', note: 'speech is at `POST /{vendor}/tts`.' },
  logit_bias: { rule: 'refused', note: 'token ids are specific to a tokenizer.', neutral: [{}] },
  moderation: { rule: 'dropped', note: 'Use `safety_settings`.' },
  user: { rule: 'dropped' },
  safety_identifier: { rule: 'dropped' },
  metadata: { rule: 'dropped', neutral: [{}] },
  store: { rule: 'emulated', note: 'Always `false`; the option `store` lets callers choose.' },
  service_tier: { rule: 'dropped', neutral: ['auto', 'default'] },
  prediction: { rule: 'dropped' },
  prompt_cache_key: { rule: 'dropped', note: 'The vendor caches by prefix by itself.' },
  prompt_cache_options: { rule: 'dropped' },
  prompt_cache_retention: { rule: 'dropped' },
  verbosity: { rule: 'dropped', neutral: ['medium'] },
  web_search_options: { rule: 'refused', note: 'this gateway does not offer the vendor’s search tool.' },
  ...LEGACY_FUNCTIONS,
});

/** Rules for each field of a chat request; `docs/providers/gemini.md` shows this table. */
export const GEMINI_FIELDS: FieldTable = {
  fields: FIELDS,
  unknown: 'dropped',
  extras: ['top_k', 'safety_settings', 'media_resolution', 'thinking_config', 'cached_content'],
  variants: [
    {
      when: 'Gemini 2.5',
      example: { model: 'gemini-2.5-flash' },
      fields: { frequency_penalty: NO_PENALTY, presence_penalty: NO_PENALTY },
    },
    {
      when: 'Gemini 4 Hydrogen',
      example: { model: 'gemini-4-hydrogen' },
      fields: { frequency_penalty: NO_PENALTY, presence_penalty: NO_PENALTY },
    },
    {
      when: 'an unknown model',
      example: { model: 'gemini-9-unknown' },
      fields: { frequency_penalty: NO_PENALTY, presence_penalty: NO_PENALTY, n: { rule: 'dropped', neutral: [1] } },
    },
    {
      when: 'models without thinking (Gemma, Gemini 2.0 and before)',
      example: { model: 'gemma-3-27b-it' },
      fields: { reasoning_effort: { rule: 'dropped', neutral: ['none'] } },
    },
  ],
};

/**
 * Effects of a request at the vendor. Source: https://ai.google.dev/api/generate-content, `Tool` and
 * https://ai.google.dev/gemini-api/docs/logs-datasets.
 */
export const GEMINI_EFFECTS: ProviderEffects = Object.freeze({
  tools: ['[].*', '*'].map((at) => ({
    does: 'tool' as const,
    at,
    values: /^(?!function_?declarations$)/i,
    note: 'everything except `functionDeclarations`',
  })),
  google_search: [{ does: 'tool', name: 'google_search', note: 'spelling of Google’s OpenAI endpoint' }],
  store: [{ does: 'stores', values: /^true$/ }],
  serviceTier: [{ does: 'price', note: 'only tiers with a known price are sent' }],
});

/**
 * Function names that Google accepts: they begin with a letter or an underscore. Source:
 * https://ai.google.dev/api/caching#FunctionDeclaration
 */
const TOOL_NAMES = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;

/** Names of a chat request in this format: it takes `images` of earlier turns, but neither `name` nor `audio` of a message. */
export const GEMINI_LENIENCY: Pick<Leniency, 'dialect' | 'innerFields' | 'lacksFields' | 'toolNames'> = Object.freeze({
  dialect: 'gemini',
  toolNames: TOOL_NAMES,
  innerFields: Object.freeze([]),
  lacksFields: Object.freeze(['audio', 'name']),
});

/** Field table of an instance whose operator allows callers to name cached contents. */
export const GEMINI_FIELDS_WITH_CACHE: FieldTable = {
  ...GEMINI_FIELDS,
  fields: { ...FIELDS, cached_content: { rule: 'renamed', to: 'cachedContent' } },
};
