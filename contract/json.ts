import { GatewayError } from './errors.ts';

/** JSON value. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/** Object parsed from JSON with unchecked fields. */
export type JsonObject = Record<string, unknown>;

/** A JSON Schema (2020-12) as plain data. */
export type Schema = Readonly<Record<string, unknown>>;

/**
 * Readers for unchecked JSON: responses of vendors and fields without a schema. They never throw, so a translator handles any
 * input.
 */

/** Returns whether a value is a JSON object (not null, not an array). */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the value if it is an object, else an empty object. */
export function readObject(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

/** Returns the value if it is an array, else an empty array. */
export function readArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Returns the value if it is a non-empty string, else undefined. */
export function readString(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Returns the value if it is a count (a non-negative integer), else undefined. */
export function readCount(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? Math.max(0, Math.round(value)) : undefined;
}

/**
 * Parses JSON from outside. Returns undefined for invalid JSON and beyond the bounds of a response: 128 levels, 600,000 texts,
 * names, lists and objects, 4,000,000 numbers.
 */
export function parseJson(text: string): unknown {
  try {
    return exceedsBounds(text) ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Parses a vendor's error body. Unwraps a single-element array; returns the text if it is not JSON. */
export function parseErrorBody(text: string): unknown {
  const value = parseJson(text);
  if (value === undefined) return text;
  return Array.isArray(value) && value.length === 1 ? value[0] : value;
}

/**
 * Freezing of values that hooks get. On unless all plugins ship with the package: these do not mutate their input, by their types
 * and by tests. Freezing takes a tenth of the time of a small call.
 */
export const freezing = { isOn: true };

/**
 * Freezes plain data deeply and returns it. Frozen values count as deeply frozen, so a second call costs one check. Freezes objects
 * and arrays only, not bytes, streams or instances of other classes.
 */
export function deepFreeze<T>(value: T): T {
  if (!freezing.isOn) return value;
  if (typeof value !== 'object' || value === null || Object.isFrozen(value) || !isPlain(value)) return value;
  Object.freeze(value);
  for (const member of Array.isArray(value) ? value : Object.values(value))
    if (typeof member === 'object') deepFreeze(member);
  return value;
}

/** Returns whether a value is a list, or an object without a class. */
export function isPlain(value: object): boolean {
  if (Array.isArray(value)) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Limits of a JSON text, independent of its length. */
export interface JsonBounds {
  /** Maximum nesting depth of arrays and objects. */
  readonly maxDepth: number;
  /** Maximum number of values and names of fields. */
  readonly maxValues: number;
  /** Maximum number of numbers, `true`, `false` and `null`. Default: they count as values. */
  readonly maxLiterals?: number;
}

export interface JsonMeasure {
  /** Values and names of fields, up to the first exceeded limit. */
  readonly values: number;
  /** Heap size after parsing in bytes, without texts. */
  readonly heapBytes: number;
  /** First exceeded limit; the measurement ends there. */
  readonly exceeded: 'depth' | 'values' | undefined;
  /** True if `JSON.parse` may change the text of a number: one has a fraction, an exponent or 16 digits. */
  readonly mayChange: boolean;
}

/** Heap size after parsing in bytes, without text: measured in Node 20, rounded up. */
const HEAP_BYTES = Object.freeze({ name: 80, container: 100, string: 40, literal: 16 });

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;

/** Bit that distinguishes `{` from `[`, and `}` from `]`. */
const CURLY_BIT = 0x20;
const OPENING = 0x7b;
const CLOSING = 0x7d;

/** Bytes of a number that is no plain whole number: `.`, `E`, `e`. */
const FRACTIONAL: readonly number[] = [0x2e, 0x45, 0x65];
const NINE = 0x39;

/**
 * Bytes that continue a number or a word: neither white space nor punctuation of JSON (0). A fraction or exponent is 2, another
 * byte 1.
 */
const IN_LITERAL: readonly number[] = Array.from({ length: 256 }, (_, byte) => {
  if (byte <= 0x20 || [COMMA, COLON, QUOTE].includes(byte)) return 0;
  if ([OPENING, CLOSING].includes(byte | CURLY_BIT)) return 0;
  return FRACTIONAL.includes(byte) ? 2 : 1;
});

/**
 * Measures JSON in UTF-8 before it is parsed, so that rejected input allocates little. One pass without allocation; strings are
 * skipped. Invalid JSON is measured as far as possible and rejected by `JSON.parse`.
 */
export function measureJson(bytes: Uint8Array, { maxDepth, maxValues, maxLiterals }: JsonBounds): JsonMeasure {
  const { length } = bytes;
  let [strings, names, containers, literals, depth] = [0, 0, 0, 0, 0];
  let roomForValues = maxValues;
  let roomForLiterals = maxLiterals ?? 0;
  let exceeded: JsonMeasure['exceeded'];
  let mayChange = false;
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
      const start = at;
      let kinds = 0;
      for (let kind = literalKind(bytes[at]); kind > 0 && at < length; kind = literalKind(bytes[at])) {
        kinds |= kind;
        at += 1;
      }
      if ((kinds > 1 || at - start >= 15) && byte <= NINE) mayChange = true;
      literals += 1;
      if (maxLiterals === undefined) roomForValues -= 1;
      else roomForLiterals -= 1;
    }
    if (roomForValues < 0 || roomForLiterals < 0) exceeded ??= 'values';
  }
  // Invalid JSON may have more colons than strings.
  names = Math.min(names, strings);
  const heapBytes =
    names * HEAP_BYTES.name +
    (strings - names) * HEAP_BYTES.string +
    containers * HEAP_BYTES.container +
    literals * HEAP_BYTES.literal;
  return { values: strings + containers + literals, heapBytes, exceeded, mayChange };
}

function literalKind(byte = 0): number {
  return IN_LITERAL[byte] ?? 0;
}

/** Strings up to this length are scanned faster here than by `indexOf`. */
const NEAR = 64;

/** Returns the end of the string whose first byte is at `from`, including its closing quote. */
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
 * Limits of a response from outside: from a vendor or an identity provider. They allow 4,096 tokens with twenty alternatives each,
 * and 2,000 embeddings of 2,000 numbers.
 */
export const RESPONSE_BOUNDS = Object.freeze({
  maxDepth: 128,
  maxValues: 600_000,
  maxLiterals: 4_000_000,
} as const satisfies JsonBounds);

/** A text up to this length cannot exhaust a stack by nesting, nor contain many values. */
const SMALL_LENGTH = 512;

/** Returns whether a JSON text exceeds the limits of a response. */
export function exceedsBounds(text: string): boolean {
  return text.length > SMALL_LENGTH && measureJson(Buffer.from(text), RESPONSE_BOUNDS).exceeded !== undefined;
}

/** Position within a JSON value. */
export interface JsonPlace {
  readonly within: JsonPlace | undefined;
  /** Name or index in `within`. */
  readonly at: string | number;
}

const LONE_SURROGATE = /\p{Surrogate}/u;

/** Returns whether a text contains a lone surrogate, which UTF-8 cannot encode. */
export function isHalved(text: string): boolean {
  return LONE_SURROGATE.test(text);
}

/** Returns the error for a value at a path. */
export function refusal(why: string, within: JsonPlace | undefined, at: string | number): GatewayError {
  const param = toParam(within, at);
  const where = param === '' ? 'The body' : `"${param.length > 100 ? `${param.slice(0, 100)}…` : param}"`;
  return new GatewayError('invalid_json', `${where} ${why}.`, param === '' ? {} : { param });
}

/** Returns the error for a body that exceeds the nesting depth. */
export function tooDeep(maxDepth: number): GatewayError {
  return new GatewayError('invalid_json', `The body is nested deeper than ${maxDepth} levels.`);
}

/** Formats a path as a caller would write it: `messages[0].role`. */
export function toParam(within: JsonPlace | undefined, at: string | number): string {
  const parts = [at];
  for (let place = within; place; place = place.within) parts.push(place.at);
  let param = '';
  // The last part is the body itself, which has no name.
  for (const part of within ? parts.slice(0, -1).reverse() : parts) {
    if (typeof part === 'number') param += `[${part}]`;
    else param += `${param === '' ? '' : '.'}${part.slice(0, 200)}`;
  }
  return param.length > 200 ? `${param.slice(0, 199)}…` : param;
}

/**
 * TypeScript type of a JSON Schema literal. Supports these keywords of plugin configurations and request bodies: type, properties,
 * required, default, additionalProperties, items, enum, const. It also supports anyOf or oneOf in addition to the type. Others are
 * `unknown`. A property exists if it is required or has a default; the loader fills in defaults.
 *
 * Custom, because json-schema-to-ts takes 75 seconds to check one plugin here (docs/decisions/definitions.md).
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

/** Types from the branches of `anyOf` and `oneOf`; formats and similar keywords add nothing. */
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
