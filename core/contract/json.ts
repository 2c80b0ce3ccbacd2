import { exceedsBounds } from './json-bounds.ts';

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
 * Freezes a value of plain data with everything in it, and returns it. What is frozen already is taken to be frozen deeply, so
 * a value that is passed on twice costs one look. Only objects and arrays: bytes, streams and what else has a class of its own
 * stay as they are.
 */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value) || !isPlain(value)) return value;
  Object.freeze(value);
  if (Array.isArray(value)) for (const member of value) deepFreeze(member);
  else for (const name of Object.keys(value)) deepFreeze((value as JsonObject)[name]);
  return value;
}

/** Whether a value is a list, or an object without a class of its own. */
export function isPlain(value: object): boolean {
  if (Array.isArray(value)) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/**
 * The TypeScript type of a JSON Schema written as a literal, for the keywords that plugin configurations and request bodies
 * use: type, properties, required, default, additionalProperties, items, enum, const, anyOf, oneOf. Others are `unknown`.
 * A property is there when it is required or has a default; the loader fills defaults in.
 *
 * Our own, because json-schema-to-ts takes 75 seconds to check one plugin here (docs/decisions/schema-types.md).
 */
export type FromSchema<S> = S extends { readonly const: infer C }
  ? C
  : S extends { readonly enum: readonly (infer E)[] }
    ? E
    : S extends { readonly anyOf: readonly (infer A)[] }
      ? FromSchema<A>
      : S extends { readonly oneOf: readonly (infer O)[] }
        ? FromSchema<O>
        : S extends { readonly type: readonly (infer T)[] }
          ? FromType<T, S>
          : S extends { readonly type: infer T }
            ? FromType<T, S>
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
