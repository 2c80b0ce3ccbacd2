import path from 'node:path';
import type { Ajv2020, ErrorObject, ValidateFunction } from 'ajv/dist/2020.js';
import { isObject, type Schema } from '../contract/json.ts';
import { didYouMean } from '../contract/nearest.ts';
import { childPointer, formatPath, type ProblemAt, pointerKeys } from '../contract/pointers.ts';
import { FORMATS } from '../contract/schema-formats.ts';
import { bareDurationMeanings } from '../contract/units.ts';
import { createAjv, createValidatorFinder, type SettingsContext } from './ajv.ts';
import { childSchemas, isSecret, propertyNames, schemasAt } from './schema-at.ts';

const findValidator = createValidatorFinder('settings');

/** The only Ajv of this process, created for the first schema that was not compiled ahead. */
let settingsAjv: Ajv2020 | undefined;

/** Validators of schemas that another configuration has used: their text need not be written again. */
const validators = new WeakMap<Schema, ValidateFunction>();

/** Returns the validator of a configuration schema, which must not change afterwards; throws for an invalid schema. */
export function compileSettings(schema: Schema): ValidateFunction {
  const known = validators.get(schema);
  if (known) return known;
  const validate = findValidator(JSON.stringify(schema), () => {
    settingsAjv ??= createAjv('settings');
    return settingsAjv.compile(schema);
  });
  validators.set(schema, validate);
  return validate;
}

export interface SchemaProblem extends ProblemAt {
  /** Pointer of the missing key, if one is missing. */
  readonly missing?: string;
}

interface ValidateOptions {
  /** Plugin with the schema; undefined for core. */
  readonly plugin?: string | undefined;
  /** Position of the value. */
  readonly pointer: string;
  /** Base of relative paths. Absolute. */
  readonly baseDir: string;
  /** Returns true for values that a problem must not show. */
  readonly isHidden: (pointer: string) => boolean;
}

/**
 * Validates a value and fills in its defaults, in place. Returns one problem per mistake, whatever number of schema
 * errors it causes.
 */
export function validateValue(
  value: unknown,
  schema: Schema,
  { plugin, pointer, baseDir, isHidden }: ValidateOptions,
  compile: typeof compileSettings = compileSettings,
): readonly SchemaProblem[] {
  let errors: readonly ErrorObject[];
  // Defaults are filled in, in place.
  const given = plugin === undefined ? value : structuredClone(value);
  try {
    const validate = compile(schema);
    const context: SettingsContext = { resolve: (file) => path.resolve(baseDir, file) };
    errors = validate.call(context, value) ? [] : (validate.errors ?? []);
  } catch (error) {
    if (plugin === undefined) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    return [
      {
        pointer,
        atKey: true,
        message: `has the plugin "${plugin}", whose configSchema is invalid: ${reason}`,
        hint: 'Correct it in the plugin. It must be JSON Schema 2020-12, with "secret" and the formats of docs/plugins.md.',
      },
    ];
  }
  const problems = chooseErrors(errors).map((error) => {
    const problem = toProblem(error, schema, pointer, isHidden);
    const isDefault = plugin !== undefined && valueAt(value, error.instancePath) !== undefined;
    if (!isDefault || valueAt(given, error.instancePath) !== undefined) return problem;
    const message = `has the plugin "${plugin}", whose default does not match its configSchema: ${problem.message}`;
    return { ...problem, message, hint: 'Correct the default in the plugin.' };
  });
  const byPlace = new Map(
    problems
      .toReversed()
      .map((problem) => [`${problem.atKey === true} ${problem.missing ?? problem.pointer}`, problem]),
  );
  return [...byPlace.values()].reverse();
}

/** Returns the value at a JSON pointer; undefined if it is missing. */
function valueAt(value: unknown, pointer: string): unknown {
  let at = value;
  for (const key of pointerKeys(pointer)) at = (at as Readonly<Record<string, unknown>> | null | undefined)?.[key];
  return at;
}

/** Drops errors of `anyOf` and `oneOf` branches that the value does not match by type. */
function chooseErrors(errors: readonly ErrorObject[]): readonly ErrorObject[] {
  // Errors of `propertyNames` are reported once, at the name.
  const dropped = new Set(errors.filter(({ keyword, propertyName }) => keyword === 'if' || propertyName !== undefined));
  for (const combined of errors) {
    if ((combined.keyword !== 'anyOf' && combined.keyword !== 'oneOf') || dropped.has(combined)) continue;
    const branchOf = branchFinder(combined);
    const inside = errors.filter((error) => branchOf(error) !== undefined);
    const isWrongKind = ({ keyword, instancePath }: ErrorObject): boolean =>
      instancePath === combined.instancePath && /^(type|const|enum)$/.test(keyword);
    const others = new Set(inside.filter(isWrongKind).map(branchOf));
    const fitting = new Set(inside.map(branchOf).filter((branch) => branch !== 'unknown' && !others.has(branch)));
    // Only the branch with the value's type is relevant.
    const [meant] = fitting.size === 1 ? fitting : [];
    for (const error of inside) if (branchOf(error) !== meant) dropped.add(error);
    if (meant !== undefined) dropped.add(combined);
  }
  return errors.filter((error) => !dropped.has(error));
}

/** Finds the combinator branch of an error; undefined for an error of another schema. */
function branchFinder(combined: ErrorObject): (error: ErrorObject) => string | undefined {
  const place = `${combined.schemaPath}/`;
  const hasRef = JSON.stringify(combined.schema).includes('"$ref"');
  return ({ schemaPath, instancePath }) => {
    if (!`${instancePath}/`.startsWith(`${combined.instancePath}/`)) return undefined;
    if (schemaPath.startsWith(place)) return schemaPath.slice(place.length).split('/')[0];
    // After a `$ref` the schema path starts again, so the branch is unknown.
    return hasRef && schemaPath.startsWith('#/$defs/') ? 'unknown' : undefined;
  };
}

function toProblem(
  error: ErrorObject,
  root: Schema,
  base: string,
  isHidden: (pointer: string) => boolean,
): SchemaProblem {
  const params: Readonly<Record<string, unknown>> = error.params;
  const pointer = `${base}${error.instancePath}`;
  const nodes = schemasAt(root, error.instancePath);
  const misnamed = params['propertyName'];
  if (typeof misnamed === 'string')
    return {
      pointer: childPointer(pointer, misnamed),
      atKey: true,
      message: 'is not an allowed name',
      hint: descriptionOf(error.schema),
    };
  const extra = params['additionalProperty'] ?? params['unevaluatedProperty'];
  if (typeof extra === 'string') {
    const known = propertyNames(nodes);
    const hint = didYouMean(extra, known) ?? listKeys(known, pointer);
    return { pointer: childPointer(pointer, extra), atKey: true, message: 'unknown key', hint };
  }
  const missing = params['missingProperty'];
  if (typeof missing === 'string') {
    const hint = childSchemas(root, nodes, missing)
      .map(descriptionOf)
      .find((text) => text !== undefined);
    return { pointer, atKey: true, message: `needs "${missing}"`, hint, missing: childPointer(pointer, missing) };
  }
  return { pointer, ...explainError(error, isSecret(nodes) || isHidden(pointer)) };
}

function listKeys(known: readonly string[], pointer: string): string | undefined {
  if (known.length === 0 || known.length > 24) return undefined;
  return `Keys ${pointer === '' ? 'here' : `of ${formatPath(pointer)}`}: ${known.filter((key) => !key.startsWith('$')).join(', ')}.`;
}

interface Explanation {
  /** Problem, as the end of a sentence that begins with the position. */
  readonly message: string;
  readonly hint?: string | undefined;
}

const TYPE_NOUNS: Readonly<Record<string, string>> = Object.freeze({
  string: 'text',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'true or false',
  object: 'a map',
  array: 'a list',
  null: 'empty',
});

type Explain = (error: ErrorObject, shown: string) => Explanation;

const limitOf = ({ params }: ErrorObject): string => String(params['limit']);
const range =
  (words: string): Explain =>
  (error, shown) => ({ message: `must be ${words} ${limitOf(error)}${shown}` });
const count =
  (words: string, noun: string): Explain =>
  (error) => ({ message: `must have ${words} ${limitOf(error)} ${noun}${limitOf(error) === '1' ? '' : 's'}` });

/** Messages by JSON Schema keyword. */
const EXPLAIN: Readonly<Record<string, Explain>> = Object.freeze({
  type: ({ schema }, shown) => ({ message: `must be ${oneOf(nounsOf(schema))}${shown}` }),
  enum: ({ schema, data }, shown) => {
    const values = [schema].flat().map(String);
    return { message: `must be ${oneOf(values)}${shown}`, hint: didYouMean(String(data), values, 1) };
  },
  const: ({ schema }, shown) => ({ message: `must be ${JSON.stringify(schema)}${shown}` }),
  minimum: range('at least'),
  maximum: range('at most'),
  exclusiveMinimum: range('more than'),
  exclusiveMaximum: range('less than'),
  multipleOf: ({ schema }, shown) => ({ message: `must be a multiple of ${String(schema)}${shown}` }),
  minLength: (error, shown) =>
    limitOf(error) === '1' ? { message: 'must not be empty' } : count('at least', 'character')(error, shown),
  maxLength: count('at most', 'character'),
  minItems: count('at least', 'item'),
  maxItems: count('at most', 'item'),
  minProperties: count('at least', 'key'),
  maxProperties: count('at most', 'key'),
  uniqueItems: () => ({ message: 'must not have duplicate items' }),
  pattern: ({ schema, parentSchema }, shown) => ({
    message: `must match ${String(schema)}${shown}`,
    hint: descriptionOf(parentSchema),
  }),
  format: ({ schema }, shown) => {
    const format = FORMATS[String(schema)];
    return { message: `must be ${format?.noun}${shown}`, hint: format?.hint };
  },
  anyOf: ({ schema }, shown) => ({ message: `must be ${oneOf(branchNouns(schema))}${shown}` }),
  oneOf: ({ schema }, shown) => ({ message: `must be exactly one of: ${branchNouns(schema).join('; ')}${shown}` }),
});

/** Explains one error in a sentence; `secret` omits the value. */
function explainError(error: ErrorObject, secret: boolean): Explanation {
  const explain = EXPLAIN[error.keyword];
  const shown = secret ? '' : showValue(error.data);
  const meanings = secret ? undefined : explainBareDuration(error);
  if (meanings !== undefined) return { message: `must be a duration with a unit${shown}`, hint: `${meanings}.` };
  return explain?.(error, shown) ?? { message: error.message ?? `breaks the rule "${error.keyword}"` };
}

/** Returns the two likely meanings of a number in place of a duration; undefined for other errors. */
function explainBareDuration({ parentSchema, data }: ErrorObject): string | undefined {
  const isDuration = isObject(parentSchema) && parentSchema['format'] === 'duration';
  if (!isDuration || (typeof data !== 'number' && typeof data !== 'string')) return undefined;
  return bareDurationMeanings(String(data));
}

/** Description in a schema, for hints. */
function descriptionOf(schema: unknown): string | undefined {
  const description = isObject(schema) ? schema['description'] : undefined;
  return typeof description === 'string' ? description : undefined;
}

/** `, not "abc"`. Omits long texts and those that look like URLs: they may hold a secret. */
function showValue(value: unknown): string {
  if (typeof value === 'string') {
    return value.length > 30 || /[:@]/.test(value) ? ', not this text' : `, not the text ${JSON.stringify(value)}`;
  }
  if (Array.isArray(value)) return ', not a list';
  return value === null ? ', not empty' : typeof value === 'object' ? ', not a map' : `, not ${String(value)}`;
}

function nounsOf(type: unknown): readonly string[] {
  return [type].flat().map((name) => TYPE_NOUNS[String(name)] ?? String(name));
}

function branchNouns(branches: unknown): readonly string[] {
  return [...new Set([branches].flat().flatMap(branchNoun))];
}

function branchNoun(branch: unknown): readonly string[] {
  if (!isObject(branch)) return [];
  if (branch['const'] !== undefined) return [JSON.stringify(branch['const'])];
  if (Array.isArray(branch['enum'])) return branch['enum'].map((value) => JSON.stringify(value));
  const format = FORMATS[String(branch['format'])];
  if (format) return [format.noun];
  const nested = branch['anyOf'] ?? branch['oneOf'];
  if (nested !== undefined) return branchNouns(nested);
  return branch['type'] === undefined ? [descriptionOf(branch) ?? 'another form'] : nounsOf(branch['type']);
}

function oneOf(words: readonly string[]): string {
  return words.length < 2 ? (words[0] ?? '') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
}
