import type { JsonObject } from './json.ts';

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

/** The JSON value of a text, or undefined when it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
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
