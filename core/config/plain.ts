import type { Json } from '../contract/json.ts';
import { childPointer } from './positions.ts';
import type { ProblemAt } from './problems.ts';

const MAX_DEPTH = 64;
const FORBIDDEN_KEYS: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

/**
 * A value as plain data, and the problems of what is not and is left out: functions and class instances (from js and ts),
 * cycles, `__proto__`.
 */
export function toPlain(value: unknown): { readonly value: Json; readonly problems: readonly ProblemAt[] } {
  const problems: ProblemAt[] = [];
  const convert = (node: unknown, pointer: string, depth: number): Json | undefined => {
    if (node === null || typeof node === 'string' || typeof node === 'boolean') return node;
    if (node === undefined || (typeof node === 'number' && Number.isFinite(node))) return node;
    if (depth > MAX_DEPTH) {
      problems.push({ pointer, message: `is nested deeper than ${MAX_DEPTH} levels, or contains itself` });
      return undefined;
    }
    if (Array.isArray(node)) {
      const items = node.map((item, index) => convert(item, childPointer(pointer, index), depth + 1));
      return items.filter((item) => item !== undefined);
    }
    if (!isPlainObject(node)) {
      const hint = 'Use text, numbers, true, false, lists and maps only.';
      problems.push({ pointer, message: `is ${describe(node)}, not data`, hint });
      return undefined;
    }
    const entries = Object.entries(node).flatMap(([key, item]): [string, Json][] => {
      const child = childPointer(pointer, key);
      const isForbidden = FORBIDDEN_KEYS.has(key);
      if (isForbidden) problems.push({ pointer: child, atKey: true, message: 'is a name that cannot be used here' });
      const converted = isForbidden ? undefined : convert(item, child, depth + 1);
      return converted === undefined ? [] : [[key, converted]];
    });
    return Object.fromEntries(entries);
  };
  return { value: convert(value, '', 0) ?? null, problems };
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
