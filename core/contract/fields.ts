/**
 * What becomes of one request field at a vendor, as data: `docs/providers/<name>.md` and the matrix are made of these.
 *
 * `passed`: sent as it is; a number outside `min` and `max` is refused. `renamed`: sent under the vendor's name, `to`.
 * `emulated`: the vendor gets something else that comes to the same; the note says what. `dropped`: left out and told
 * in `x-tollgate-dropped`. `refused`: answered with 400, because the answer would not be to what was asked.
 */
export interface FieldRule {
  readonly rule: 'passed' | 'renamed' | 'emulated' | 'dropped' | 'refused';
  /** The vendor's name of it; a dotted path in its body, such as `generationConfig.topP`. */
  readonly to?: string;
  /** One sentence for the docs; of a refused field also for the caller. */
  readonly note?: string;
  /** Values that ask for nothing beyond the default, so that leaving them out changes nothing and is not told. */
  readonly neutral?: readonly unknown[];
  readonly min?: number;
  readonly max?: number;
}

export type FieldRules = Readonly<Record<string, FieldRule>>;

/** Rules that hold for some models or requests only; the first variant that fits is laid over the table. */
export interface FieldVariant {
  /** For whom, in words: `reasoning models (o1, o3, gpt-5 and later)`. */
  readonly when: string;
  /** A request that it fits, for tests and docs. */
  readonly example: Readonly<Record<string, unknown>> & { readonly model: string };
  readonly fields: FieldRules;
}

/**
 * What an answer may show beside its text; `tool calls` and the like mean streamed ones too. `errors` is lacked only by a
 * provider without a network behind it.
 */
export type AnswerFeature =
  | 'cached tokens'
  | 'errors'
  | 'log probabilities'
  | 'parallel tool calls'
  | 'reasoning content'
  | 'reasoning tokens'
  | 'tool calls';

/** All field rules of a vendor. A field of OpenAI's chat completions that is not named is passed. */
export interface FieldTable {
  readonly fields: FieldRules;
  readonly variants?: readonly FieldVariant[];
  /** What happens to fields that OpenAI does not have. */
  readonly unknown: 'passed' | 'dropped';
  /** Fields of the vendor's own that are passed, when others are dropped. */
  readonly extras?: readonly string[];
  /** What its answers never show, and how that is known. The conformance kit holds it to the fixtures and to the rules. */
  readonly lacks?: Readonly<Partial<Record<AnswerFeature, string>>>;
  /** What a caller may notice and no rule says; a sentence each, for the docs. */
  readonly notes?: readonly string[];
}
