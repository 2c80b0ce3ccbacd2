import { type JsonObject, readArray } from '../../../core/index.ts';
import { invalid } from '../../providers/kit/index.ts';

/**
 * Google's servers take every field in two spellings, `maxOutputTokens` and `max_output_tokens`. Here a field is known by the
 * first one and found in either.
 */

/** The name of a field in the other spelling. */
export function snakeOf(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** The name that an object has a field by; the camelCase one where it has none. */
export function nameIn(object: JsonObject, name: string): string {
  const snake = snakeOf(name);
  return isSet(object[name]) || !isSet(object[snake]) ? name : snake;
}

/** A field in either spelling; undefined when it is absent or null. */
export function fieldOf(object: JsonObject, name: string): unknown {
  return object[nameIn(object, name)] ?? undefined;
}

/** A list, or the one object that Google's servers take in place of a list of one. */
export function listOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return readArray(value);
  return isSet(value) ? [value] : [];
}

/**
 * Refuses what could mean a field twice: both spellings at once, or a third one that a lenient reader might take for it. What was
 * checked and priced would not be what the vendor reads.
 */
export function checkSpelling(object: JsonObject, known: readonly string[], at: string): void {
  const names = new Map(known.map((name) => [plain(name), name]));
  for (const written of Object.keys(object)) {
    const name = names.get(plain(written));
    if (name === undefined || written === name) continue;
    const param = at === '' ? written : `${at}.${written}`;
    if (written !== snakeOf(name)) throw invalid(param, `must be written \`${name}\``);
    if (isSet(object[name]) && isSet(object[written])) throw invalid(param, `must not stand beside \`${name}\``);
  }
}

/** The fields of an object that are not known, as they are. */
export function othersOf(object: JsonObject, known: readonly string[]): JsonObject {
  const names = new Set(known.flatMap((name) => [name, snakeOf(name)]));
  return Object.fromEntries(Object.entries(object).filter(([name, value]) => !names.has(name) && isSet(value)));
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function plain(name: string): string {
  return name.replaceAll('_', '').toLowerCase();
}
