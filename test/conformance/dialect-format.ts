import type { FinishReason } from '../../contract/index.ts';

/** What `format.json` of a dialect's fixtures says: how its streams are ordered and where things stand in its JSON. */

/**
 * Which value: names and `[n]` of lists by dots, `[]` for every element. `choices[].delta.content` is all texts of a chunk.
 */
export type JsonPath = string;

/** An event of a stream: the frame's name, or values of its JSON; the first row that holds is its name in the grammar. */
export interface EventRow {
  /** The word by which the grammar knows it. */
  readonly name: string;
  /** Values at paths of its JSON; null for "there is something". A frame that is no JSON is a text. */
  readonly when?: Readonly<Record<JsonPath, string | number | boolean | null>>;
  /** The whole data of a frame that is no JSON, such as `[DONE]`. */
  readonly text?: string;
  /** The `event:` of its frame, which is checked. */
  readonly event?: string;
}

/** Where the same content stands in a whole response and in the events of a stream. */
export interface ContentRow {
  readonly what: string;
  readonly whole: readonly JsonPath[];
  readonly streamed: readonly Streamed[];
  /** Which of the canonical message stands there, one after the other; it has to be there once, and nothing else. */
  readonly holds?: readonly Held[];
}

/** A part of the canonical message; `name` and `arguments` are those of its tool calls. */
export type Held = 'reasoning_content' | 'content' | 'refusal' | 'name' | 'arguments';

/** Where in which events. */
export interface Streamed {
  readonly events: readonly string[];
  readonly path: JsonPath;
}

export interface DialectFormat {
  readonly events: readonly EventRow[];
  /** The order of a stream that ends well: a regular expression over names of events; blanks mean nothing. */
  readonly complete: string;
  /** The order of a stream that an error ended. */
  readonly failed: string;
  /** Numbers that count 0, 1, 2 … over these events, without gaps. */
  readonly counters?: readonly Streamed[];
  readonly content: readonly ContentRow[];
  /** Where it stands why a response ended, with the format's word for each reason; null for a format that does not say it. */
  readonly finish: {
    readonly whole: JsonPath;
    readonly streamed: readonly Streamed[];
    readonly words: Readonly<Record<Exclude<FinishReason, 'function_call'>, string>>;
  } | null;
  /** Where the id of the response stands; null for a format that has none. */
  readonly id: { readonly whole: JsonPath; readonly streamed: readonly Streamed[] } | null;
  /** Token counts; the sums of `input` and `output` are the canonical `prompt_tokens` and `completion_tokens`. */
  readonly usage: {
    readonly whole: JsonPath;
    readonly streamed: JsonPath;
    readonly input: readonly JsonPath[];
    readonly output: readonly JsonPath[];
    readonly total?: JsonPath;
  };
  /** Where an error says what it is: in a body, and in the event that ends a stream. */
  readonly error: {
    readonly body: { readonly type: JsonPath; readonly message: JsonPath };
    readonly streamed: { readonly type: JsonPath; readonly message: JsonPath };
  };
  /** What a recorded response or stream may lose or change when it is read by a codec and written again. */
  readonly modulo?: readonly JsonPath[];
  readonly native?: {
    /** Fields that are written whatever the caller said. */
    readonly edits: readonly string[];
    /** The vendor's model, where the edits depend on what it can do. */
    readonly model?: string;
    /** Canonical fields that hooks may change, and what of the body may change with each; null: the body cannot say it, which is told. */
    readonly changes: Readonly<Record<string, string | readonly string[] | null>>;
  };
}

const STEP = /\[(\d*)\]|([^.[\]]+)/g;

/** The values at a path; none where it leads nowhere. */
export function valuesAt(value: unknown, path: JsonPath): readonly unknown[] {
  let found: readonly unknown[] = [value];
  for (const [, index, name] of path.matchAll(STEP)) {
    found = found.flatMap((one): readonly unknown[] => {
      if (name !== undefined) {
        const has = typeof one === 'object' && one !== null && Object.hasOwn(one, name);
        return has ? [(one as Readonly<Record<string, unknown>>)[name]] : [];
      }
      if (!Array.isArray(one)) return [];
      return index === '' ? one : one.slice(Number(index), Number(index) + 1);
    });
  }
  return found.filter((one) => one !== undefined && one !== null);
}

/** A copy without what stands at these paths. */
export function without(value: unknown, paths: readonly JsonPath[]): unknown {
  const copy: unknown = structuredClone(value);
  for (const path of paths) {
    const steps = [...path.matchAll(STEP)].map(([step]) => step);
    const last = steps.at(-1) ?? '';
    const owner = steps.slice(0, -1).join('.').replaceAll('.[', '[');
    for (const one of owner === '' ? [copy] : valuesAt(copy, owner))
      if (typeof one === 'object' && one !== null) delete (one as Record<string, unknown>)[last];
  }
  return copy;
}

/** The grammar's expression over names, each followed by a blank. */
export function compileOrder(order: string, names: readonly string[]): RegExp {
  const pattern = order.replace(/[\w-]+|\s+/g, (word) => {
    if (/\s/.test(word)) return '';
    if (!names.includes(word)) throw new Error(`format.json: there is no event "${word}"`);
    return `(?:${word} )`;
  });
  return new RegExp(`^${pattern}$`);
}
