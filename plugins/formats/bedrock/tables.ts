import type { FailureClass, FieldTable, FinishReason } from '../../../contract/index.ts';
import { LEGACY_FUNCTIONS } from '../kit/index.ts';

type Meaning = FinishReason | { readonly failure: FailureClass };

const BROKEN_OFF: Meaning = Object.freeze({ failure: 'broken_off' });

/**
 * Finish reasons by stop reason; an unknown reason keeps the response as incomplete. Source: `StopReason` of the
 * Bedrock API.
 */
const STOP_REASONS: Readonly<Record<string, Meaning>> = Object.freeze({
  end_turn: 'stop',
  stop_sequence: 'stop',
  tool_use: 'tool_calls',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  content_filtered: 'content_filter',
  guardrail_intervened: 'content_filter',
  malformed_model_output: BROKEN_OFF,
  malformed_tool_use: BROKEN_OFF,
});

/** OpenAI's finish reason or the failure for a stop reason; undefined for an unknown one. */
export function meaningOf(reason: string): Meaning | undefined {
  return Object.hasOwn(STOP_REASONS, reason) ? STOP_REASONS[reason] : undefined;
}

/** Reasons without an exact equivalent at OpenAI. */
export const OWN_REASONS: ReadonlySet<string> = new Set(['model_context_window_exceeded', 'guardrail_intervened']);

/**
 * Failure classes by the service's error name, in a header, a body or a stream. Source: errors of `Converse` and of
 * AWS APIs in general.
 */
export const CLASS_BY_ERROR: Readonly<Record<string, FailureClass>> = Object.freeze({
  accessdenied: 'permission',
  expiredtoken: 'authentication',
  incompletesignature: 'authentication',
  internalserver: 'upstream_error',
  invalidclienttokenid: 'authentication',
  invalidsignature: 'authentication',
  missingauthenticationtoken: 'authentication',
  modelerror: 'upstream_error',
  modelnotready: 'overloaded',
  modelstreamerror: 'upstream_error',
  modeltimeout: 'timeout',
  optinrequired: 'authentication',
  requestexpired: 'authentication',
  servicequotaexceeded: 'rate_limit',
  serviceunavailable: 'overloaded',
  signaturedoesnotmatch: 'authentication',
  throttling: 'rate_limit',
  toomanyrequests: 'rate_limit',
  unrecognizedclient: 'authentication',
});

/** Failure classes by message, for `ValidationException`, which covers many errors. */
export const CLASS_BY_TEXT: readonly (readonly [RegExp, FailureClass])[] = Object.freeze([
  [
    /model identifier is invalid|on-demand throughput isn.t supported|model.{0,40}(?:end of its life|not found)/i,
    'model_not_found',
  ],
  [
    /too long|too many (?:input )?tokens|maximum context|context (?:length|window)|exceeds? the maximum|expected maxLength/i,
    'context_length',
  ],
  [/blocked by content filter|guardrail/i, 'content_filter'],
]);

/** Hints for credential errors; the service only names them. */
export const HINTS: readonly (readonly [RegExp, string])[] = Object.freeze([
  [
    /scoped to a (?:valid|correct) region/i,
    'The signature is for another region than the address. Check `region` and `baseUrl`.',
  ],
  [
    /signature (?:expired|not yet current)/i,
    'The clock of this machine is wrong. The next attempt is signed with the time of AWS.',
  ],
  [
    /token.{0,40}expired|expired.{0,20}token/i,
    'The session has expired. Use credentials that are renewed, such as a role.',
  ],
]);

/** Models that refuse images in `toolResult` and accept them next to it. */
export const IMAGES_APART = /(?:^|\.)openai\./;

/** Rules of Converse for each field of a chat request. */
export const CONVERSE_FIELDS: FieldTable = {
  unknown: 'dropped',
  lacks: {
    'log probabilities': 'Converse has no field',
    'reasoning tokens': 'its usage does not count them separately',
  },
  fields: {
    model: { rule: 'passed', note: 'Sent in the path.' },
    messages: {
      rule: 'emulated',
      to: 'messages, system',
      note: 'Leading system and developer messages are the system prompt; later ones go into user turns, in place; images and documents are sent as data; tool call ids other than 1 to 64 letters, digits, `_` and `-` become a hash.',
    },
    stream: { rule: 'emulated', note: 'Uses another path.' },
    stream_options: { rule: 'emulated', note: 'The vendor always reports usage.' },
    max_tokens: { rule: 'renamed', to: 'inferenceConfig.maxTokens' },
    max_completion_tokens: { rule: 'renamed', to: 'inferenceConfig.maxTokens', note: 'Overrides `max_tokens`.' },
    temperature: { rule: 'renamed', to: 'inferenceConfig.temperature', note: 'Values above 1 become 1.' },
    top_p: { rule: 'renamed', to: 'inferenceConfig.topP' },
    stop: { rule: 'renamed', to: 'inferenceConfig.stopSequences', note: 'Whitespace-only values are dropped.' },
    n: { rule: 'refused', note: 'one response per request.', neutral: [1] },
    logprobs: { rule: 'dropped', neutral: [false] },
    top_logprobs: { rule: 'dropped', neutral: [0] },
    response_format: {
      rule: 'emulated',
      note: 'Becomes an instruction with the schema at the end of the user’s last turn.',
    },
    tools: { rule: 'renamed', to: 'toolConfig.tools', note: '`strict` is dropped.' },
    tool_choice: {
      rule: 'renamed',
      to: 'toolConfig.toolChoice',
      note: '`none` drops the tools. If the history called some, they are sent, since the vendor requires them, and the field is reported as dropped.',
    },
    parallel_tool_calls: { rule: 'dropped', neutral: [true] },
    reasoning_effort: {
      rule: 'emulated',
      to: 'additionalModelRequestFields',
      note: '`reasoning_effort` of gpt-oss, `reasoning.effort` of GPT, `reasoningConfig` of Nova 2; not sent to other models.',
    },
    cache_control: {
      rule: 'emulated',
      to: 'cachePoint',
      note: 'Sent to Nova only; the other models reject it.',
    },
    extra_body: { rule: 'dropped' },
    user: { rule: 'dropped' },
    safety_identifier: { rule: 'dropped' },
    seed: { rule: 'dropped' },
    frequency_penalty: { rule: 'dropped', neutral: [0] },
    presence_penalty: { rule: 'dropped', neutral: [0] },
    logit_bias: { rule: 'refused', note: 'token ids are specific to a tokenizer.', neutral: [{}] },
    moderation: { rule: 'dropped' },
    metadata: { rule: 'dropped', neutral: [{}] },
    store: { rule: 'dropped', neutral: [false] },
    service_tier: {
      rule: 'dropped',
      note: 'The gateway has no prices for its tiers.',
      neutral: ['auto', 'default'],
    },
    prediction: { rule: 'dropped' },
    prompt_cache_key: { rule: 'dropped', note: 'Use `cache_control`.' },
    prompt_cache_options: { rule: 'dropped', note: 'Use `cache_control`.' },
    prompt_cache_retention: { rule: 'dropped', note: 'Use `cache_control`.' },
    verbosity: { rule: 'dropped', neutral: ['medium'] },
    modalities: { rule: 'refused', note: 'the vendor returns text only.', neutral: [['text']] },
    audio: { rule: 'refused', note: 'the vendor returns text only.' },
    web_search_options: { rule: 'refused', note: 'no web search.' },
    ...LEGACY_FUNCTIONS,
  },
};
