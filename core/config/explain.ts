import type { ErrorObject } from 'ajv/dist/2020.js';
import { isObject } from '../contract/json.ts';
import { FORMATS } from '../contract/units.ts';
import { didYouMean } from './nearest.ts';

export interface Explanation {
  /** What is wrong, as the end of a sentence that begins with the place. */
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

/** How each keyword of JSON Schema speaks to people. */
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
  uniqueItems: () => ({ message: 'must not have the same item twice' }),
  pattern: ({ schema, parentSchema }, shown) => ({
    message: `must match ${String(schema)}${shown}`,
    hint: descriptionOf(parentSchema),
  }),
  format: ({ schema, message = '' }, shown) => {
    const format = FORMATS[String(schema)];
    return format ? { message: `must be ${format.noun}${shown}`, hint: format.hint } : { message };
  },
  anyOf: ({ schema }, shown) => ({ message: `must be ${oneOf(branchNouns(schema))}${shown}` }),
  oneOf: ({ schema }, shown) => ({ message: `must be exactly one of: ${branchNouns(schema).join('; ')}${shown}` }),
});

/** One error as a sentence. `secret` keeps the value out of it. */
export function explainError(error: ErrorObject, secret: boolean): Explanation {
  const explain = EXPLAIN[error.keyword];
  const shown = secret ? '' : showValue(error.data);
  return explain?.(error, shown) ?? { message: error.message ?? `breaks the rule "${error.keyword}"` };
}

/** A schema's description, for hints. */
export function descriptionOf(schema: unknown): string | undefined {
  const description = isObject(schema) ? schema['description'] : undefined;
  return typeof description === 'string' ? description : undefined;
}

/** `, not "abc"`. Texts that look like URLs or are long are not shown: they may hold a secret. */
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
