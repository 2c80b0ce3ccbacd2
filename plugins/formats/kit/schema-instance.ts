import type { Schema } from '../../../contract/index.ts';
import { isObject } from '../../../contract/index.ts';

/** Samples of common string formats; any other format is free text. */
const FORMAT_SAMPLE: Readonly<Record<string, string>> = Object.freeze({
  date: '1970-01-01',
  time: '00:00:00Z',
  'date-time': '1970-01-01T00:00:00Z',
  duration: 'PT0S',
  email: 'nobody@example.invalid',
  uri: 'https://example.invalid/',
  url: 'https://example.invalid/',
  uuid: '00000000-0000-4000-8000-000000000000',
  ipv4: '192.0.2.1',
  hostname: 'example.invalid',
});

/** Deeper than any practical schema; ends recursive ones. */
const MAX_DEPTH = 32;

/**
 * Returns the smallest value that fits a JSON Schema, with `text` for free strings. A provider without a model
 * (`echo`) answers `response_format: json_schema` with it. Required properties are filled, or all if none is
 * required. Enums give their first value, numbers their minimum, arrays their fewest items, nullable fields a value.
 * Supports types, bounds, `const`, `enum`, local `$ref`, the first branch of `anyOf`/`oneOf`, and merged `allOf`.
 * `pattern`, `not` and conditions are not supported.
 */
export function minimalInstance(schema: Schema, text: string): unknown {
  return instance(schema, { root: schema, text, index: 0 }, 0);
}

interface Making {
  readonly root: Schema;
  readonly text: string;
  /** Position in a list, so that unique items differ. */
  readonly index: number;
}

function instance(node: unknown, making: Making, depth: number): unknown {
  if (!isObject(node)) return making.text;
  if (depth > MAX_DEPTH) return null;
  const schema = flatten(node, making.root, 0);
  if ('const' in schema) return schema['const'];
  if (Array.isArray(schema['enum']) && schema['enum'].length > 0) {
    return schema['enum'][making.index % schema['enum'].length];
  }
  switch (typeOf(schema)) {
    case 'object':
      return objectInstance(schema, making, depth);
    case 'array':
      return arrayInstance(schema, making, depth);
    case 'number':
      return numberInstance(schema, making.index, false);
    case 'integer':
      return numberInstance(schema, making.index, true);
    case 'boolean':
      return false;
    case 'null':
      return null;
    default:
      return stringInstance(schema, making);
  }
}

/** Follows references and merges branches into one schema with a definite type. */
function flatten(node: Schema, root: Schema, hops: number): Schema {
  if (hops > MAX_DEPTH) return {};
  const { $ref, allOf, anyOf, oneOf, ...rest } = node;
  let schema: Schema = rest;
  const parts: unknown[] = [];
  if (typeof $ref === 'string') parts.push(resolve(root, $ref));
  if (Array.isArray(allOf)) parts.push(...allOf);
  for (const branches of [anyOf, oneOf]) {
    if (!Array.isArray(branches)) continue;
    parts.push(branches.find((branch) => isObject(branch) && branch['type'] !== 'null') ?? branches[0]);
  }
  for (const part of parts) if (isObject(part)) schema = merge(schema, flatten(part, root, hops + 1));
  return schema;
}

function merge(one: Schema, other: Schema): Schema {
  return {
    ...other,
    ...one,
    ...(isObject(one['properties']) &&
      isObject(other['properties']) && { properties: { ...other['properties'], ...one['properties'] } }),
    ...(Array.isArray(one['required']) &&
      Array.isArray(other['required']) && { required: [...other['required'], ...one['required']] }),
  };
}

function resolve(root: Schema, ref: string): unknown {
  if (!ref.startsWith('#')) return undefined;
  const steps = ref.split('/').slice(1);
  let node: unknown = root;
  for (const step of steps) {
    const key = decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof node !== 'object' || node === null || !Object.hasOwn(node, key)) return undefined;
    node = (node as Record<string, unknown>)[key];
  }
  return node;
}

function typeOf(schema: Schema): string {
  const type = schema['type'];
  if (typeof type === 'string') return type;
  if (Array.isArray(type)) return String(type.find((one) => one !== 'null') ?? 'null');
  if ('properties' in schema || 'required' in schema) return 'object';
  if ('items' in schema || 'prefixItems' in schema) return 'array';
  if ('minimum' in schema || 'maximum' in schema) return 'number';
  return 'string';
}

function objectInstance(schema: Schema, making: Making, depth: number): Readonly<Record<string, unknown>> {
  const properties = isObject(schema['properties']) ? schema['properties'] : {};
  const required = Array.isArray(schema['required']) ? schema['required'].map(String) : [];
  const names = required.length > 0 || depth > 4 ? [...new Set(required)] : Object.keys(properties);
  return Object.fromEntries(names.map((name) => [name, instance(properties[name] ?? {}, making, depth + 1)]));
}

function arrayInstance(schema: Schema, making: Making, depth: number): readonly unknown[] {
  const prefix = Array.isArray(schema['prefixItems']) ? schema['prefixItems'] : [];
  const length = Math.min(readNumber(schema['minItems']) ?? 0, 1000);
  const isUnique = schema['uniqueItems'] === true;
  return Array.from({ length }, (_, index) =>
    instance(prefix[index] ?? schema['items'] ?? {}, { ...making, index: isUnique ? index : 0 }, depth + 1),
  );
}

function numberInstance(schema: Schema, index: number, whole: boolean): number {
  const least = readNumber(schema['minimum']) ?? Number.NEGATIVE_INFINITY;
  const above = readNumber(schema['exclusiveMinimum']) ?? Number.NEGATIVE_INFINITY;
  const most = readNumber(schema['maximum']) ?? Number.POSITIVE_INFINITY;
  const below = readNumber(schema['exclusiveMaximum']) ?? Number.POSITIVE_INFINITY;
  const step = readNumber(schema['multipleOf']) ?? (whole ? 1 : undefined);
  const fits = (value: number) => value >= least && value > above && value <= most && value < below;
  const floor = Math.max(least, above);
  const first = Number.isFinite(floor) ? floor : Math.min(0, most, below);
  if (step === undefined) {
    const between = (Math.max(floor, -1e9) + Math.min(most, below, 1e9)) / 2;
    return [first + index, first, between].find(fits) ?? first;
  }
  const start = Math.ceil(first / step) * step;
  return [start + index * step, start, start + step, start - step].find(fits) ?? start;
}

function stringInstance(schema: Schema, making: Making): string {
  const sample = FORMAT_SAMPLE[String(schema['format'])];
  if (sample !== undefined) return sample;
  const text = making.index > 0 ? `${making.text} ${making.index + 1}` : making.text;
  const letters = [...text];
  const longest = readNumber(schema['maxLength']) ?? letters.length;
  const shortest = readNumber(schema['minLength']) ?? 0;
  return letters.slice(0, longest).join('').padEnd(Math.min(shortest, 100_000), '.');
}

function readNumber(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}
