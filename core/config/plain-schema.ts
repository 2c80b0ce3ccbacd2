import type { Schema } from '../contract/json.ts';
import { FORMATS } from './formats.ts';
import { isSchema } from './schema-at.ts';

/** Whether a value fits; fills in its defaults, in place, also in one that does not fit. */
export type Fits = (value: unknown) => boolean;

/**
 * Compiles a schema of everyday keywords, as most plugins' are; undefined for any other, and for one that Ajv in its strict
 * mode might refuse. It says yes where Ajv does, and never why not: loading Ajv and compiling ten schemas with it takes
 * 150 ms of every start, so Ajv is asked only about what this does not know and what does not fit.
 */
export function compilePlain(schema: Schema): Fits | undefined {
  return compileNode(schema, 'alone');
}

/** Where a schema stands: Ajv fills in the default of a `member` of an object; anywhere else a default makes it not plain. */
type Place = 'member' | 'alone' | 'branch';

interface Node {
  readonly schema: Schema;
  readonly place: Place;
  readonly hasType: (type: string) => boolean;
}

/** Compiles one keyword; undefined when its argument is none that it takes. */
type Rule = (argument: unknown, node: Node) => Fits | undefined;

const TYPES: Readonly<Record<string, Fits>> = Object.freeze({
  string: isString,
  number: (value) => Number.isFinite(value),
  integer: (value) => Number.isInteger(value),
  boolean: (value) => typeof value === 'boolean',
  null: (value) => value === null,
  array: (value) => Array.isArray(value),
  object: isSchema,
});

/** In the order of checking: defaults are there before anything is missed. */
const RULES: Readonly<Record<string, Rule>> = Object.freeze({
  title: () => accept,
  description: () => accept,
  default: (_, { place }) => (place === 'member' ? accept : undefined),
  secret: (argument) => (typeof argument === 'boolean' ? accept : undefined),
  type: (argument) => {
    const tests = complete([argument].flat().map((type) => (isOwn(TYPES, type) ? TYPES[type] : undefined)));
    return tests && ((value) => tests.some((test) => test(value)));
  },
  enum: (argument) =>
    Array.isArray(argument) && argument.length > 0 && !argument.some((item) => typeof item === 'object')
      ? (value) => argument.includes(value)
      : undefined,
  const: (argument) => (typeof argument === 'object' ? undefined : (value) => value === argument),
  pattern: (argument, { hasType }) => {
    const pattern = isString(argument) && hasType('string') ? readPattern(argument) : undefined;
    return pattern && ((value) => !isString(value) || pattern.test(value));
  },
  format: (argument) => {
    const format = isOwn(FORMATS, argument) ? FORMATS[argument] : undefined;
    return format && ((value) => !(isString(value) || typeof value === 'number') || format.accepts(value));
  },
  minimum: bound('number', (value: number, least) => value >= least),
  maximum: bound('number', (value: number, most) => value <= most),
  minLength: bound('string', (value: string, least) => [...value].length >= least),
  maxLength: bound('string', (value: string, most) => [...value].length <= most),
  minItems: bound('array', (value: readonly unknown[], least) => value.length >= least),
  maxItems: bound('array', (value: readonly unknown[], most) => value.length <= most),
  anyOf: (argument, { schema }) => {
    // Ajv compares the types of a schema with those of its branches.
    if (!Array.isArray(argument) || 'type' in schema) return undefined;
    const branches = complete(argument.map((branch) => compileNode(branch, 'branch')));
    return branches && ((value) => branches.some((fits) => fits(value)));
  },
  items: (argument, { place, hasType }) => {
    const fits = hasType('array') && compileNode(argument, below(place));
    return fits ? (value) => !Array.isArray(value) || value.every(fits) : undefined;
  },
  properties: (argument, { place, hasType }) => {
    if (!hasType('object') || !isSchema(argument) || Object.keys(argument).some(isInherited)) return undefined;
    const members = complete(
      Object.entries(argument).map(([name, schema]) => {
        const fits = compileNode(schema, place === 'branch' ? place : 'member');
        return fits && { name, fits, value: (schema as Schema)['default'] };
      }),
    );
    if (!members) return undefined;
    return (object) => {
      if (!isSchema(object)) return true;
      const target = object as Record<string, unknown>;
      for (const { name, value } of members)
        if (target[name] === undefined && value !== undefined) target[name] = structuredClone(value);
      return members.every(({ name, fits }) => target[name] === undefined || fits(target[name]));
    };
  },
  required: (argument, { hasType }) => {
    const names: readonly unknown[] = Array.isArray(argument) ? argument : [undefined];
    if (!hasType('object') || !names.every(isString) || names.some(isInherited)) return undefined;
    return (object) => !isSchema(object) || names.every((name) => object[name] !== undefined);
  },
  propertyNames: (argument, { hasType }) => {
    const fits = hasType('object') && isSchema(argument) && compileNode({ type: 'string', ...argument }, 'branch');
    return fits ? (object) => !isSchema(object) || Object.keys(object).every(fits) : undefined;
  },
  additionalProperties: (argument, { schema, place, hasType }) => {
    const fits = argument === true ? accept : argument === false ? () => false : compileNode(argument, below(place));
    if (!fits || !hasType('object')) return undefined;
    const known = isSchema(schema['properties']) ? schema['properties'] : {};
    return (object) =>
      !isSchema(object) || Object.entries(object).every(([name, value]) => Object.hasOwn(known, name) || fits(value));
  },
});

function compileNode(schema: unknown, place: Place): Fits | undefined {
  if (!isSchema(schema) || Object.keys(schema).some((keyword) => !Object.hasOwn(RULES, keyword))) return undefined;
  const types = [schema['type']].flat();
  const node: Node = { schema, place, hasType: (type) => types.includes(type) };
  const rules = Object.entries(RULES).filter(([keyword]) => Object.hasOwn(schema, keyword));
  const tests = complete(rules.map(([keyword, compile]) => compile(schema[keyword], node)));
  return tests && ((value) => tests.every((test) => test(value)));
}

/** A keyword that compares with a number, and lets values of other types pass. */
function bound<T>(type: 'number' | 'string' | 'array', compare: (value: T, bound: number) => boolean): Rule {
  return (argument, { hasType }) => {
    if (typeof argument !== 'number' || !(hasType(type) || (type === 'number' && hasType('integer')))) return undefined;
    return (value) => !TYPES[type]?.(value) || compare(value as T, argument);
  };
}

function readPattern(text: string): RegExp | undefined {
  try {
    return new RegExp(text, 'u');
  } catch {
    return undefined;
  }
}

function below(place: Place): Place {
  return place === 'branch' ? place : 'alone';
}

function accept(): boolean {
  return true;
}

function isString(value: unknown): value is string {
  return typeof value === 'string';
}

/** Names that every object seems to have. */
function isInherited(name: unknown): boolean {
  return isString(name) && name in {};
}

function isOwn(table: object, key: unknown): key is string {
  return isString(key) && Object.hasOwn(table, key);
}

/** The list when nothing in it is missing. */
function complete<T>(list: readonly (T | undefined)[]): readonly T[] | undefined {
  return list.includes(undefined) ? undefined : (list as readonly T[]);
}
