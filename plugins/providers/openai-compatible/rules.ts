import type { ChatRequest, FieldRule } from '../../../core/index.ts';
import { MIN_OUTPUT_TOKENS } from '../../formats/openai-responses/tables.ts';

/** What an emulation puts into the vendor's body; an undefined value removes a field. */
export interface Emulation {
  readonly body?: Readonly<Record<string, unknown>>;
  /** True when the wish could not be met in full: the field is told in `x-tollgate-dropped`. */
  readonly dropped?: boolean;
  /** Parts of the field that are left out, such as `tools.strict`; told in `x-tollgate-dropped`. */
  readonly told?: readonly string[];
}

/** A field rule that also says how, with small pure functions where data does not reach. */
export interface CompatibleRule extends FieldRule {
  /** Changes the value of a passed or renamed field; undefined leaves the field out. */
  readonly convert?: (value: unknown) => unknown;
  /** What an emulated field becomes. */
  readonly apply?: (value: unknown, request: ChatRequest) => Emulation;
}

export type CompatibleRules = Readonly<Record<string, CompatibleRule>>;

/** Sent as it is, or converted; undefined from `convert` leaves it out. */
export function pass(note?: string, convert?: (value: unknown) => unknown): CompatibleRule {
  return { rule: 'passed', ...(note && { note }), ...(convert && { convert }) };
}

/** Sent as it is; a number outside the range is refused. */
export function within(min: number, max: number, note?: string): CompatibleRule {
  return { rule: 'passed', min, max, ...(note && { note }) };
}

/** Sent under another name. When the caller also gave that name itself, the caller's own wins. */
export function rename(to: string, note?: string, convert?: (value: unknown) => unknown): CompatibleRule {
  return { rule: 'renamed', to, ...(note && { note }), ...(convert && { convert }) };
}

/** Left out and told, except when it has a value that asks for nothing anyway. */
export function drop(note?: string, ...neutral: readonly unknown[]): CompatibleRule {
  return { rule: 'dropped', ...(note && { note }), ...(neutral.length > 0 && { neutral }) };
}

/** Refused with 400, except for a value that asks for nothing anyway. */
export function refuse(note: string, ...neutral: readonly unknown[]): CompatibleRule {
  return { rule: 'refused', note, ...(neutral.length > 0 && { neutral }) };
}

/** Replaced by something that comes to the same; the note says by what. */
export function emulate(
  note: string,
  apply: (value: unknown, request: ChatRequest) => Emulation = () => ({}),
): CompatibleRule {
  return { rule: 'emulated', note, apply };
}

/** A conversion that looks values up and keeps those the table does not have. */
export function mapped(table: Readonly<Record<string, unknown>>): (value: unknown) => unknown {
  return (value) => (typeof value === 'string' && Object.hasOwn(table, value) ? table[value] : value);
}

/** Fields that only OpenAI has: hints are left out, what would change the response is refused. */
export const OPENAI_ONLY: CompatibleRules = Object.freeze({
  audio: refuse('no audio output'),
  metadata: drop(),
  modalities: refuse('text only', ['text']),
  moderation: drop(),
  prediction: drop('it would only save time'),
  prompt_cache_key: drop('it would only save time'),
  prompt_cache_options: drop('it would only save time'),
  prompt_cache_retention: drop('it would only save time'),
  safety_identifier: drop(),
  service_tier: drop(undefined, 'auto', 'default'),
  store: drop(undefined, false),
  verbosity: drop(undefined, 'medium'),
  web_search_options: refuse('no web search'),
});

const OUTPUT_TOKENS = rename('max_output_tokens', `${MIN_OUTPUT_TOKENS} at least`, (value) =>
  typeof value === 'number' ? Math.max(value, MIN_OUTPUT_TOKENS) : value,
);

/** For variants of the wire `responses`: what OpenAI's Responses API has otherwise than chat completions, or not at all. */
export const RESPONSES_API: CompatibleRules = Object.freeze({
  audio: refuse('the Responses API has no audio'),
  frequency_penalty: drop('the Responses API has none', 0),
  logit_bias: drop('the Responses API has none'),
  logprobs: drop(undefined, false),
  max_completion_tokens: OUTPUT_TOKENS,
  max_tokens: OUTPUT_TOKENS,
  modalities: refuse('the Responses API has text only', ['text']),
  n: refuse('the Responses API, by which the request has to go, gives one response', 1),
  prediction: drop('it would only save time'),
  presence_penalty: drop('the Responses API has none', 0),
  response_format: emulate('as `text.format`', (value) => ({ body: { response_format: value } })),
  seed: drop('the Responses API has none'),
  stop: drop('the Responses API has none'),
  store: emulate('always `false`', (value) => ({ dropped: value !== false })),
  top_logprobs: drop(),
  verbosity: emulate('as `text.verbosity`', (value) => ({ body: { verbosity: value } })),
  web_search_options: refuse('the search of chat completions belongs to other models'),
});
