import { GatewayError, isObject, type JsonObject, readArray, readObject, type Schema } from '../../../core/index.ts';
import { tellDropped } from '../kit/index.ts';

/**
 * The part of JSON Schema that `responseJsonSchema` and `parametersJsonSchema` take; anything else is a 400.
 * Source: https://ai.google.dev/api/generate-content#GenerationConfig
 */
const KEPT: ReadonlySet<string> = new Set(
  (
    '$id $ref $anchor type format title description enum minItems maxItems minimum maximum required ' +
    'propertyOrdering additionalProperties items prefixItems anyOf oneOf properties $defs'
  ).split(' '),
);

/** Words that bind no value, so leaving them out is not worth telling. */
const SILENT: ReadonlySet<string> = new Set(
  '$schema $comment default examples example deprecated readOnly writeOnly const definitions nullable allOf'.split(' '),
);

const MAX_DEPTH = 64;

/** A schema as Gemini takes it; names of the constraints that had to go are added to `dropped` behind `prefix`. */
export function geminiSchema(schema: Schema, prefix: string, dropped: string[], depth = 0): Schema {
  if (depth > MAX_DEPTH) {
    throw new GatewayError('invalid_request', `The schema is nested over ${MAX_DEPTH} levels.`, { param: prefix });
  }
  const clean = (value: unknown): unknown => (isObject(value) ? geminiSchema(value, prefix, dropped, depth + 1) : {});
  const cleanAll = (values: unknown): Schema =>
    Object.fromEntries(Object.entries(readObject(values)).map(([name, value]) => [name, clean(value)]));
  const drop = (word: string): void => tellDropped(dropped, `${prefix}.${word}`);

  const merged = mergeAllOf(schema);
  const result: JsonObject = {};
  for (const [word, value] of Object.entries(merged)) {
    if (word === '$ref') result[word] = String(value).replace('#/definitions/', '#/$defs/');
    else if (word === 'enum' || word === 'const') Object.assign(result, literals(word, value, merged, drop));
    else if (word === 'properties') result[word] = cleanAll(value);
    else if (word === '$defs' || word === 'definitions')
      result['$defs'] = { ...readObject(result['$defs']), ...readObject(cleanAll(value)) };
    else if (word === 'items' || (word === 'additionalProperties' && isObject(value))) result[word] = clean(value);
    else if (word === 'anyOf' || word === 'oneOf' || word === 'prefixItems') result[word] = readArray(value).map(clean);
    else if (KEPT.has(word)) result[word] ??= value;
    else if (!SILENT.has(word)) drop(word);
  }
  if (merged['nullable'] === true && merged['type'] !== undefined) result['type'] = withNull(merged['type']);
  return '$ref' in result ? onlyReference(result) : result;
}

/** Beside a `$ref` only words with a dollar may stand. */
function onlyReference(schema: JsonObject): Schema {
  return Object.fromEntries(Object.entries(schema).filter(([word]) => word.startsWith('$')));
}

/** There is no `allOf`: its members are laid over the schema, properties and `required` joined. */
function mergeAllOf(schema: Schema): Schema {
  const members = readArray(schema['allOf']).filter(isObject);
  if (members.length === 0) return schema;
  const merged: JsonObject = {};
  const properties: JsonObject = {};
  const required = new Set<unknown>();
  for (const member of [schema, ...members]) {
    Object.assign(merged, member);
    Object.assign(properties, readObject(member['properties']));
    for (const name of readArray(member['required'])) required.add(name);
  }
  return {
    ...merged,
    ...(Object.keys(properties).length > 0 && { properties }),
    ...(required.size > 0 && { required: [...required] }),
  };
}

/** `enum` holds strings and numbers only: null moves into the type, and a choice of booleans cannot be said. */
function literals(word: string, value: unknown, schema: Schema, drop: (word: string) => void): JsonObject {
  const values = word === 'const' ? [value] : readArray(value);
  const named = values.filter((item) => typeof item === 'string' || typeof item === 'number');
  const nullable = values.includes(null);
  if (named.length + (nullable ? 1 : 0) < values.length) {
    drop(word);
    return values.every((item) => typeof item === 'boolean') ? { type: 'boolean' } : {};
  }
  if (named.length === 0) return { type: 'null' };
  return { enum: named, ...(nullable && schema['type'] !== undefined && { type: withNull(schema['type']) }) };
}

function withNull(type: unknown): readonly unknown[] {
  const types = Array.isArray(type) ? type : type === undefined ? [] : [type];
  return types.includes('null') ? types : [...types, 'null'];
}
