import type { FinishReason } from '../../contract/index.ts';

/** Content of `format.json` in a dialect's fixtures: the order of its stream events and the paths in its JSON. */

/**
 * Path to a value: names and `[n]` of lists, joined by dots; `[]` is every element. `choices[].delta.content` is all
 * texts of a chunk.
 */
export type JsonPath = string;

/** Event of a stream: the frame's name, or values of its JSON. The first matching row names it in the grammar. */
export interface EventRow {
  /** Name in the grammar. */
  readonly name: string;
  /** Values at paths of its JSON; null matches any value. A frame that is not JSON is matched by `text`. */
  readonly when?: Readonly<Record<JsonPath, string | number | boolean | null>>;
  /** Complete data of a frame that is not JSON, such as `[DONE]`. */
  readonly text?: string;
  /** Expected `event:` of the frame. */
  readonly event?: string;
}

/** Places of the same content in a JSON response and in the events of a stream. */
export interface ContentRow {
  readonly what: string;
  readonly whole: readonly JsonPath[];
  readonly streamed: readonly Streamed[];
  /** Parts of the canonical message at this place, in order: each exactly once, and nothing else. */
  readonly holds?: readonly Held[];
}

/** Part of the canonical message; `name` and `arguments` are those of its tool calls. */
export type Held = 'reasoning_content' | 'content' | 'refusal' | 'name' | 'arguments';

/** Paths in named events. */
export interface Streamed {
  readonly events: readonly string[];
  readonly path: JsonPath;
}

export interface DialectFormat {
  readonly events: readonly EventRow[];
  /** Order of a stream that completes: a regular expression over event names; blanks are ignored. */
  readonly complete: string;
  /** Order of a stream that an error ends. */
  readonly failed: string;
  /** Numbers that count 0, 1, 2 … over these events, without gaps. */
  readonly counters?: readonly Streamed[];
  readonly content: readonly ContentRow[];
  /** Paths of the finish reason, with the format's word for each reason; null for a format without one. */
  readonly finish: {
    readonly whole: JsonPath;
    readonly streamed: readonly Streamed[];
    readonly words: Readonly<Record<Exclude<FinishReason, 'function_call'>, string>>;
  } | null;
  /** Paths of the response id; null for a format without one. */
  readonly id: { readonly whole: JsonPath; readonly streamed: readonly Streamed[] } | null;
  /** Token counts; the sums of `input` and `output` are the canonical `prompt_tokens` and `completion_tokens`. */
  readonly usage: {
    readonly whole: JsonPath;
    readonly streamed: JsonPath;
    readonly input: readonly JsonPath[];
    readonly output: readonly JsonPath[];
    readonly total?: JsonPath;
  };
  /** Paths of an error's type and message: in a body, and in the event that ends a stream. */
  readonly error: {
    readonly body: { readonly type: JsonPath; readonly message: JsonPath };
    readonly streamed: { readonly type: JsonPath; readonly message: JsonPath };
  };
  /**
   * Paths that may get lost or change when a codec reads a recorded response or stream and the dialect writes it again.
   */
  readonly modulo?: readonly JsonPath[];
  readonly native?: {
    /** Fields that are always written, whatever the caller sent. */
    readonly edits: readonly string[];
    /** Vendor's model, if the edits depend on its features. */
    readonly model?: string;
    /**
     * Canonical fields that hooks may change, and the body fields that may change with each. Null: the body cannot
     * represent the field, which is reported as dropped.
     */
    readonly changes: Readonly<Record<string, string | readonly string[] | null>>;
  };
}

const STEP = /\[(\d*)\]|([^.[\]]+)/g;

/** Returns the values at a path; empty if the path does not exist. */
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

/** Returns a copy without the values at these paths. */
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

/** Compiles the grammar to an expression over names, each followed by a blank. */
export function compileOrder(order: string, names: readonly string[]): RegExp {
  const pattern = order.replace(/[\w-]+|\s+/g, (word) => {
    if (/\s/.test(word)) return '';
    if (!names.includes(word)) throw new Error(`format.json: there is no event "${word}"`);
    return `(?:${word} )`;
  });
  return new RegExp(`^${pattern}$`);
}
