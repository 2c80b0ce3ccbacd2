import type { Json } from '../contract/json.ts';
import type { FaultAt } from './faults.ts';
import { childPointer } from './pointer.ts';

const MAX_DEPTH = 64;
const FORBIDDEN_KEYS: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

/**
 * A value as plain data, and the faults of what is not and is left out: functions and class instances (from js and ts),
 * cycles, `__proto__`.
 */
export function toPlain(value: unknown): { readonly value: Json; readonly faults: readonly FaultAt[] } {
  const faults: FaultAt[] = [];
  return { value: convert(value, '', 0, faults) ?? null, faults };
}

function convert(value: unknown, pointer: string, depth: number, faults: FaultAt[]): Json | undefined {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  if (value === undefined) return undefined;
  if (depth > MAX_DEPTH) {
    faults.push({ pointer, message: `is nested deeper than ${MAX_DEPTH} levels, or contains itself` });
    return undefined;
  }
  if (Array.isArray(value)) {
    const items = value.map((item, index) => convert(item, childPointer(pointer, index), depth + 1, faults));
    return items.filter((item) => item !== undefined);
  }
  if (isPlainObject(value)) {
    const entries: [string, Json][] = [];
    for (const [key, item] of Object.entries(value)) {
      const child = childPointer(pointer, key);
      if (FORBIDDEN_KEYS.has(key)) {
        faults.push({ pointer: child, atKey: true, message: 'is a name that cannot be used here' });
        continue;
      }
      const converted = convert(item, child, depth + 1, faults);
      if (converted !== undefined) entries.push([key, converted]);
    }
    return Object.fromEntries(entries);
  }
  faults.push({
    pointer,
    message: `is ${describe(value)}, not data`,
    hint: 'Use text, numbers, true, false, lists and maps only.',
  });
  return undefined;
}

function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  // A module namespace and an object of another realm (jiti) have their own `Object.prototype`.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function describe(value: unknown): string {
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'number') return `the number ${value}`;
  return typeof value === 'object' ? 'an object of a class' : `a ${typeof value}`;
}
