import { isObject, type JsonObject, readArray, type Schema } from '../../../core/index.ts';
import { invalid } from '../../providers/kit/index.ts';
import { fieldOf, snakeOf } from './spelling.ts';

const MAX_DEPTH = 64;

/** Words of Google's dialect of OpenAPI's schemas that hold schemas or are written in another way in JSON Schema. */
const WORDS: Readonly<Record<string, 'schema' | 'schemas' | 'named' | 'count' | 'special'>> = Object.freeze({
  type: 'special',
  nullable: 'special',
  propertyOrdering: 'special',
  items: 'schema',
  anyOf: 'schemas',
  properties: 'named',
  minItems: 'count',
  maxItems: 'count',
  minLength: 'count',
  maxLength: 'count',
  minProperties: 'count',
  maxProperties: 'count',
});

const NAMES: ReadonlyMap<string, string> = new Map(
  Object.keys(WORDS).flatMap((word) => [
    [word, word],
    [snakeOf(word), word],
  ]),
);

/** A `parameters` or `responseSchema` (`type: "OBJECT"`, `nullable`, counts as text) as JSON Schema. */
export function jsonSchemaOf(schema: JsonObject, at: string, depth = 0): Schema {
  if (depth > MAX_DEPTH) throw invalid(at, `must not be nested over ${MAX_DEPTH} levels`);
  const inner = (value: unknown): unknown => (isObject(value) ? jsonSchemaOf(value, at, depth + 1) : value);
  const type = readType(schema);
  const fields = Object.entries(schema).flatMap(([written, value]): (readonly [string, unknown])[] => {
    const word = NAMES.get(written);
    if (value === null || value === undefined) return [];
    if (word === undefined) return [[written, value]];
    switch (WORDS[word]) {
      case 'schema':
        return [[word, inner(value)]];
      case 'schemas':
        return [[word, readArray(value).map(inner)]];
      case 'named':
        return isObject(value) ? [[word, orderedProperties(schema, value, inner)]] : [];
      case 'count':
        return [[word, typeof value === 'string' ? Number(value) : value]];
      default:
        return [];
    }
  });
  return { ...(type !== undefined && { type }), ...Object.fromEntries(fields) };
}

/** Google's name of a type in lower case, with `null` beside it where the schema is nullable. */
function readType(schema: JsonObject): unknown {
  const { type, nullable } = schema;
  const names = (Array.isArray(type) ? type : [type]).flatMap((name) =>
    typeof name === 'string' && name !== 'TYPE_UNSPECIFIED' ? [name.toLowerCase()] : [],
  );
  if (names.length === 0) return undefined;
  if (nullable === true && !names.includes('null')) names.push('null');
  return names.length === 1 ? names[0] : names;
}

/** The order of properties, which is a word of its own there, is the order of names in JSON. */
function orderedProperties(schema: JsonObject, properties: JsonObject, inner: (value: unknown) => unknown): JsonObject {
  const order = readArray(fieldOf(schema, 'propertyOrdering'));
  const first = order.filter((name): name is string => typeof name === 'string' && Object.hasOwn(properties, name));
  const names = new Set([...first, ...Object.keys(properties)]);
  return Object.fromEntries([...names].map((name) => [name, inner(properties[name])]));
}
