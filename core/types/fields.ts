/** What becomes of one request field at a vendor, as data: `docs/providers/<name>.md` and the matrix are made of these. */
export type FieldRule =
  | {
      /** Sent as it is; a number outside `min` and `max` is refused. */
      readonly rule: 'passed';
      readonly min?: number;
      readonly max?: number;
      readonly note?: string;
    }
  | {
      readonly rule: 'renamed';
      /** The vendor's name, as a dotted path in its body: `generationConfig.topP`. */
      readonly to: string;
      readonly note?: string;
    }
  | {
      /** The vendor has no such field and gets something else that comes to the same; the note says what. */
      readonly rule: 'emulated';
      readonly note: string;
    }
  | {
      /** Left out and told in `x-tollgate-dropped`, except when it has the value that means nothing anyway. */
      readonly rule: 'dropped';
      readonly unless?: unknown;
      readonly note?: string;
    }
  | {
      /** Answered with 400, except for the value that means nothing anyway: leaving it out would change the answer. */
      readonly rule: 'refused';
      readonly unless?: unknown;
      readonly note?: string;
    };

export type FieldRules = Readonly<Record<string, FieldRule>>;

/** Rules that hold for some models or requests only; the first variant that fits is laid over the table. */
export interface FieldVariant {
  /** For whom, in words: `reasoning models (o1, o3, gpt-5 and later)`. */
  readonly when: string;
  /** A request that it fits, for tests and docs. */
  readonly example: Readonly<Record<string, unknown>> & { readonly model: string };
  readonly fields: FieldRules;
}

/** All field rules of a vendor. A field of OpenAI's chat completions that is not named is passed. */
export interface FieldTable {
  readonly fields: FieldRules;
  readonly variants?: readonly FieldVariant[];
  /** What happens to fields that OpenAI does not have. */
  readonly unknown: 'passed' | 'dropped';
  /** Fields of the vendor's own that are passed, when others are dropped. */
  readonly extras?: readonly string[];
}
