import { FORMATS } from './formats.ts';
import { didYouMean } from './nearest.ts';
import { isSchema } from './schema-at.ts';
import type { SchemaError } from './validator.ts';

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

type Explain = (error: SchemaError, shown: string) => Explanation;

const count = (noun: string, word: string, bound: string) => (error: SchemaError) => ({
  message: `must have ${word} ${String(error.params['limit'])} ${noun}${error.params['limit'] === 1 ? bound : `${bound}s`}`,
});
const range =
  (word: string): Explain =>
  (error, shown) => ({
    message: `must be ${word} ${String(error.params['limit'])}${shown}`,
  });

/** How each keyword of JSON Schema speaks to people. */
const EXPLAIN: Readonly<Record<string, Explain>> = Object.freeze({
  type: (error, shown) => ({ message: `must be ${oneOf(nounsOf(error.schema))}${shown}` }),
  enum: (error, shown) => {
    const values = (error.schema as readonly unknown[]).map(String);
    return { message: `must be ${oneOf(values)}${shown}`, hint: didYouMean(String(error.data), values, 1) };
  },
  const: (error, shown) => ({ message: `must be ${JSON.stringify(error.schema)}${shown}` }),
  minimum: range('at least'),
  maximum: range('at most'),
  exclusiveMinimum: range('more than'),
  exclusiveMaximum: range('less than'),
  multipleOf: (error, shown) => ({ message: `must be a multiple of ${String(error.schema)}${shown}` }),
  minLength: (error) =>
    error.params['limit'] === 1 ? { message: 'must not be empty' } : count('', 'at least', 'character')(error),
  maxLength: count('', 'at most', 'character'),
  minItems: count('', 'at least', 'item'),
  maxItems: count('', 'at most', 'item'),
  minProperties: count('', 'at least', 'key'),
  maxProperties: count('', 'at most', 'key'),
  uniqueItems: () => ({ message: 'must not have the same item twice' }),
  pattern: (error, shown) => ({
    message: `must match ${String(error.schema)}${shown}`,
    hint: descriptionOf(error.parentSchema),
  }),
  format: (error, shown) => {
    const format = FORMATS[String(error.schema)];
    return format ? { message: `must be ${format.noun}${shown}`, hint: format.hint } : { message: error.message ?? '' };
  },
  anyOf: (error, shown) => ({ message: `must be ${oneOf(branchNouns(error.schema))}${shown}` }),
  oneOf: (error, shown) => ({ message: `must be exactly one of: ${branchNouns(error.schema).join('; ')}${shown}` }),
});

/** One error as a sentence. `secret` keeps the value out of it. */
export function explainError(error: SchemaError, secret: boolean): Explanation {
  const explain = EXPLAIN[error.keyword];
  const shown = secret ? '' : showValue(error.data);
  return explain ? explain(error, shown) : { message: error.message ?? `breaks the rule "${error.keyword}"` };
}

/** The start of a schema's description, for hints. */
export function descriptionOf(schema: unknown): string | undefined {
  const description = isSchema(schema) ? schema['description'] : undefined;
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
  if (!Array.isArray(branches)) return [];
  return [...new Set(branches.flatMap(branchNoun))];
}

function branchNoun(branch: unknown): readonly string[] {
  if (!isSchema(branch)) return [];
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
