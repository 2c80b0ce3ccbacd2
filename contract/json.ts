import { GatewayError } from './errors.ts';

/** Any value that JSON can hold. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/** An object read from JSON whose fields nobody has checked yet. */
export type JsonObject = Record<string, unknown>;

/** A JSON Schema (2020-12) as plain data. */
export type Schema = Readonly<Record<string, unknown>>;

/**
 * Readers for JSON that nobody has checked: what a vendor answered, or a field outside the validated table. They never
 * throw, so a translator stays total whatever bytes arrive.
 */

/** Whether a value is a JSON object (not null, not an array). */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value when it is an object, else an empty one. */
export function readObject(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

/** The value when it is an array, else an empty one. */
export function readArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The value when it is a string that is not empty, else undefined. */
export function readString(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** A count: the value when it is a finite number, whole and not negative; undefined when it is anything else. */
export function readCount(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? Math.max(0, Math.round(value)) : undefined;
}

/**
 * The JSON value of a text from outside; undefined when it is not JSON, or goes over the bounds of an answer: 128 levels, 600,000 texts,
 * names, lists and objects, 4,000,000 numbers.
 */
export function parseJson(text: string): unknown {
  try {
    return exceedsBounds(text) ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A vendor's error body: parsed JSON where it parses (a single-element array is unwrapped), else the text. */
export function parseErrorBody(text: string): unknown {
  const value = parseJson(text);
  if (value === undefined) return text;
  return Array.isArray(value) && value.length === 1 ? value[0] : value;
}

/**
 * Whether values that hooks get are frozen: always, but where only plugins run that come with the package. Those do not change what they
 * are given, which their types say and tests hold them to; freezing is a tenth of the time of a small call.
 */
export const freezing = { isOn: true };

/**
 * Freezes a value of plain data with everything in it, and returns it. What is frozen already is taken to be frozen deeply, so
 * a value that is passed on twice costs one look. Only objects and arrays: bytes, streams and what else has a class of its own
 * stay as they are.
 */
export function deepFreeze<T>(value: T): T {
  if (!freezing.isOn) return value;
  if (typeof value !== 'object' || value === null || Object.isFrozen(value) || !isPlain(value)) return value;
  Object.freeze(value);
  for (const member of Array.isArray(value) ? value : Object.values(value))
    if (typeof member === 'object') deepFreeze(member);
  return value;
}

/** Whether a value is a list, or an object without a class of its own. */
export function isPlain(value: object): boolean {
  if (Array.isArray(value)) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** What a text of JSON may hold, however many bytes it has. */
export interface JsonBounds {
  /** How deep arrays and objects may nest. */
  readonly maxDepth: number;
  /** How many values and names of fields it may hold in all. */
  readonly maxValues: number;
  /** How many numbers, `true`, `false` and `null` it may hold; they count as values unless this is set. */
  readonly maxLiterals?: number;
}

export interface JsonMeasure {
  /** Values and names of fields, up to the one that went over a bound. */
  readonly values: number;
  /** Bytes of heap that it takes when it is parsed, beside its texts. */
  readonly heapBytes: number;
  /** Which bound it goes over; the measurement ends there. */
  readonly exceeded: 'depth' | 'values' | undefined;
}

/** Bytes of heap that one of these takes when parsed, beside its text: measured in Node 20, rounded up. */
const HEAP_BYTES = Object.freeze({ name: 80, container: 100, string: 40, literal: 16 });

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;

/** `{` and `[`, and `}` and `]`, differ in this bit. */
const CURLY_BIT = 0x20;
const OPENING = 0x7b;
const CLOSING = 0x7d;

/** Bytes that go on with a number or a word: neither blank nor a mark of JSON. */
const IN_LITERAL: readonly boolean[] = Array.from(
  { length: 256 },
  (_, byte) => byte > 0x20 && ![COMMA, COLON, QUOTE].includes(byte) && ![OPENING, CLOSING].includes(byte | CURLY_BIT),
);

/**
 * Measures JSON in UTF-8 before it is parsed, so that nothing large is made of what is refused. One pass without allocation; strings
 * are skipped. What is not JSON is measured as well as it can be, and left to `JSON.parse` to refuse.
 */
export function measureJson(bytes: Uint8Array, { maxDepth, maxValues, maxLiterals }: JsonBounds): JsonMeasure {
  const { length } = bytes;
  let [strings, names, containers, literals, depth] = [0, 0, 0, 0, 0];
  let roomForValues = maxValues;
  let roomForLiterals = maxLiterals ?? 0;
  let exceeded: JsonMeasure['exceeded'];
  for (let at = 0; at < length && exceeded === undefined; ) {
    const byte = bytes[at] ?? 0;
    at += 1;
    if (byte <= 0x20 || byte === COMMA) continue;
    if (byte === COLON) names += 1;
    else if ((byte | CURLY_BIT) === CLOSING) depth -= 1;
    else if (byte === QUOTE) {
      at = endOfString(bytes, at);
      strings += 1;
      roomForValues -= 1;
    } else if ((byte | CURLY_BIT) === OPENING) {
      containers += 1;
      roomForValues -= 1;
      depth += 1;
      if (depth > maxDepth) exceeded = 'depth';
    } else {
      while (at < length && IN_LITERAL[bytes[at] ?? 0]) at += 1;
      literals += 1;
      if (maxLiterals === undefined) roomForValues -= 1;
      else roomForLiterals -= 1;
    }
    if (roomForValues < 0 || roomForLiterals < 0) exceeded ??= 'values';
  }
  // Of what is not JSON, there may be more colons than strings.
  names = Math.min(names, strings);
  const heapBytes =
    names * HEAP_BYTES.name +
    (strings - names) * HEAP_BYTES.string +
    containers * HEAP_BYTES.container +
    literals * HEAP_BYTES.literal;
  return { values: strings + containers + literals, heapBytes, exceeded };
}

/** Strings up to this length are faster looked through here than by the call of `indexOf`. */
const NEAR = 64;

/** Where the string ends whose first byte is at `from`, its closing quote included. */
function endOfString(bytes: Uint8Array, from: number): number {
  const { length } = bytes;
  let at = from;
  for (;;) {
    const near = Math.min(at + NEAR, length);
    for (; at < near; at += 1) {
      const byte = bytes[at];
      if (byte === QUOTE) return at + 1;
      if (byte === BACKSLASH) at += 1;
    }
    const quote = bytes.indexOf(QUOTE, at);
    if (quote < 0) return length;
    let first = quote;
    while (first > at && bytes[first - 1] === BACKSLASH) first -= 1;
    at = quote + 1;
    if ((quote - first) % 2 === 0) return at;
  }
}

/**
 * What an answer from outside may hold: a vendor's, an identity provider's. Room for 4,096 tokens with twenty alternatives each, and for
 * 2,000 embeddings of 2,000 numbers.
 */
export const RESPONSE_BOUNDS = Object.freeze({
  maxDepth: 128,
  maxValues: 600_000,
  maxLiterals: 4_000_000,
} as const satisfies JsonBounds);

/** A text up to this length cannot nest deep enough to exhaust a stack, nor hold many values. */
const SMALL_LENGTH = 512;

/** Whether a text of JSON goes over the bounds of an answer. */
export function exceedsBounds(text: string): boolean {
  return text.length > SMALL_LENGTH && measureJson(Buffer.from(text), RESPONSE_BOUNDS).exceeded !== undefined;
}

/** Where something stands in a value of JSON. */
export interface JsonPlace {
  readonly within: JsonPlace | undefined;
  /** Its name or index in `within`. */
  readonly at: string | number;
}

const LONE_SURROGATE = /\p{Surrogate}/u;

/** Whether a text holds half a surrogate pair, which no UTF-8 can say. */
export function isHalved(text: string): boolean {
  return LONE_SURROGATE.test(text);
}

/** The refusal of what stands at a place. */
export function refusal(why: string, within: JsonPlace | undefined, at: string | number): GatewayError {
  const param = toParam(within, at);
  const where = param === '' ? 'The body' : `"${param.length > 100 ? `${param.slice(0, 100)}…` : param}"`;
  return new GatewayError('invalid_json', `${where} ${why}.`, param === '' ? {} : { param });
}

/** The refusal of a body that nests deeper than it may. */
export function tooDeep(maxDepth: number): GatewayError {
  return new GatewayError('invalid_json', `The body is nested deeper than ${maxDepth} levels.`);
}

/** A place as a caller would write it: `messages[0].role`. */
export function toParam(within: JsonPlace | undefined, at: string | number): string {
  const parts = [at];
  for (let place = within; place; place = place.within) parts.push(place.at);
  let param = '';
  // The last is the body itself, which has no name.
  for (const part of within ? parts.slice(0, -1).reverse() : parts) {
    if (typeof part === 'number') param += `[${part}]`;
    else param += `${param === '' ? '' : '.'}${part.slice(0, 200)}`;
  }
  return param.length > 200 ? `${param.slice(0, 199)}…` : param;
}

/**
 * The TypeScript type of a JSON Schema written as a literal, for the keywords that plugin configurations and request bodies
 * use: type, properties, required, default, additionalProperties, items, enum, const, and anyOf or oneOf, beside which the
 * type counts. Others are `unknown`. A property is there when it is required or has a default; the loader fills defaults in.
 *
 * Our own, because json-schema-to-ts takes 75 seconds to check one plugin here (docs/decisions/schema-types.md).
 */
export type FromSchema<S> = S extends { readonly const: infer C }
  ? C
  : S extends { readonly enum: readonly (infer E)[] }
    ? E
    : FromBranches<S> &
        (S extends { readonly type: readonly (infer T)[] }
          ? FromType<T, S>
          : S extends { readonly type: infer T }
            ? FromType<T, S>
            : unknown);

/** What `anyOf` and `oneOf` say beside the type: formats and the like say nothing. */
type FromBranches<S> = S extends { readonly anyOf: readonly (infer A)[] }
  ? FromSchema<A>
  : S extends { readonly oneOf: readonly (infer O)[] }
    ? FromSchema<O>
    : unknown;

interface Scalars {
  readonly string: string;
  readonly number: number;
  readonly integer: number;
  readonly boolean: boolean;
  readonly null: null;
}

type FromType<T, S> = T extends keyof Scalars
  ? Scalars[T]
  : T extends 'array'
    ? readonly (S extends { readonly items: infer I } ? FromSchema<I> : unknown)[]
    : T extends 'object'
      ? FromObject<S>
      : unknown;

type FromObject<S> = S extends { readonly properties: infer P }
  ? { readonly [K in keyof P as IsPresent<S, P, K> extends true ? K : never]: FromSchema<P[K]> } & {
      readonly [K in keyof P as IsPresent<S, P, K> extends true ? never : K]?: FromSchema<P[K]>;
    }
  : S extends { readonly additionalProperties: infer A }
    ? Readonly<Record<string, A extends boolean ? unknown : FromSchema<A>>>
    : Readonly<Record<string, unknown>>;

type IsPresent<S, P, K extends keyof P> = P[K] extends { readonly default: unknown }
  ? true
  : S extends { readonly required: readonly (infer R)[] }
    ? K extends R
      ? true
      : false
    : false;
