import type { FieldRule, FieldRules, FieldTable } from '../../../core/index.ts';
import { LEGACY_FUNCTIONS } from '../kit/index.ts';

const NO_PENALTY: FieldRule = { rule: 'dropped', neutral: [0] };

const FIELDS: FieldRules = Object.freeze({
  model: { rule: 'passed', note: 'Goes into the path.' },
  messages: {
    rule: 'emulated',
    to: 'contents, systemInstruction',
    note: 'System and developer messages are gathered in front, in order; Gemma, which has no system instruction, gets them as user text.',
  },
  stream: { rule: 'emulated', to: ':streamGenerateContent' },
  stream_options: { rule: 'emulated', note: 'Usage is in every chunk of the vendor.' },
  max_tokens: { rule: 'renamed', to: 'generationConfig.maxOutputTokens' },
  max_completion_tokens: {
    rule: 'renamed',
    to: 'generationConfig.maxOutputTokens',
    note: 'Wins over `max_tokens`. Includes thinking on both sides.',
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
    note: 'With tools on models before Gemini 3, a schema becomes a function whose arguments are the answer, and plain JSON an instruction.',
  },
  tools: { rule: 'renamed', to: 'tools[].functionDeclarations' },
  tool_choice: { rule: 'renamed', to: 'toolConfig.functionCallingConfig' },
  parallel_tool_calls: { rule: 'dropped', note: 'The model decides.', neutral: [true] },
  reasoning_effort: {
    rule: 'renamed',
    to: 'generationConfig.thinkingConfig',
    note: 'A level for Gemini 3 and later, a token budget for 2.5; what a model cannot do becomes the nearest it can (`none` is its least). The model’s thinking comes back as `reasoning_content` only when this field asks for some.',
  },
  extra_body: {
    rule: 'emulated',
    note: 'The vendor’s own fields in it or in its `google`, as in Google’s own OpenAI endpoint; others are told.',
  },
  thinking_config: {
    rule: 'renamed',
    to: 'generationConfig.thinkingConfig',
    note: 'The vendor’s own field; wins over `reasoning_effort`.',
  },
  media_resolution: { rule: 'renamed', to: 'generationConfig.mediaResolution' },
  safety_settings: { rule: 'renamed', to: 'safetySettings' },
  cached_content: {
    rule: 'refused',
    note: 'a cached content belongs to the operator’s account, which all callers share; the option `cachedContent` allows it.',
  },
  dialect_fields: {
    rule: 'emulated',
    note: 'What a caller of Gemini’s own format said beyond the canonical fields is merged; what stands in those is not said twice.',
  },
  cache_control: { rule: 'dropped', note: 'The vendor caches by prefix by itself.' },
  google_search: { rule: 'dropped', note: 'Each search costs a fee that no price here knows.' },
  labels: { rule: 'dropped', note: 'Vertex AI has them, the Developer API has not.' },
  modalities: {
    rule: 'renamed',
    to: 'generationConfig.responseModalities',
    note: '`text` and `image`; images come back in `message.images`. `audio` is refused.',
    neutral: [['text']],
  },
  audio: { rule: 'refused', note: 'speech is at `POST /{vendor}/tts`.' },
  logit_bias: { rule: 'refused', note: 'token ids mean nothing to another tokenizer.', neutral: [{}] },
  moderation: { rule: 'dropped', note: 'The vendor filters by `safety_settings`.' },
  user: { rule: 'dropped' },
  safety_identifier: { rule: 'dropped' },
  metadata: { rule: 'dropped', neutral: [{}] },
  store: { rule: 'dropped', neutral: [false] },
  service_tier: { rule: 'dropped', neutral: ['auto', 'default'] },
  prediction: { rule: 'dropped' },
  prompt_cache_key: { rule: 'dropped', note: 'The vendor caches by prefix by itself.' },
  prompt_cache_options: { rule: 'dropped' },
  prompt_cache_retention: { rule: 'dropped' },
  verbosity: { rule: 'dropped', neutral: ['medium'] },
  web_search_options: { rule: 'refused', note: 'this gateway does not offer the vendor’s search tool.' },
  ...LEGACY_FUNCTIONS,
});

/** What becomes of each field of a chat request; `docs/providers/gemini.md` shows this table. */
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
      when: 'models that do not think (Gemma, Gemini 2.0 and before)',
      example: { model: 'gemma-3-27b-it' },
      fields: { reasoning_effort: { rule: 'dropped', neutral: ['none'] } },
    },
  ],
};

/** The table of an instance whose operator lets callers name cached contents. */
export const GEMINI_FIELDS_WITH_CACHE: FieldTable = {
  ...GEMINI_FIELDS,
  fields: { ...FIELDS, cached_content: { rule: 'renamed', to: 'cachedContent' } },
};
