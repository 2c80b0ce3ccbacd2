import { GatewayError, isObject, type JsonObject, readArray, readObject, type Schema } from '../../../core/index.ts';

/**
 * The part of JSON Schema that structured outputs and strict tools take. Source:
 * https://platform.claude.com/docs/en/build-with-claude/structured-outputs
 */
const FORMATS: ReadonlySet<unknown> = new Set(
  'date-time time date duration email hostname uri ipv4 ipv6 uuid'.split(' '),
);
const KEPT: ReadonlySet<string> = new Set('$ref type title description enum const default required'.split(' '));
const SILENT: ReadonlySet<string> = new Set('$schema $id $comment examples deprecated readOnly writeOnly'.split(' '));

const MAX_DEPTH = 64;
const MAX_VISITS = 5000;
/** The vendor's limit over the whole schema. */
const MAX_OPTIONAL = 24;

/** A schema as the vendor takes it; constraints it cannot hold the model to are told to the model in the description. */
export function strictSchema(schema: Schema, depth = 0): Schema {
  if (depth > MAX_DEPTH) throw new GatewayError('invalid_request', `A JSON Schema is nested over ${MAX_DEPTH} levels.`);
  const clean = (value: unknown): unknown => (isObject(value) ? strictSchema(value, depth + 1) : {});
  const cleanAll = (values: unknown): Schema =>
    Object.fromEntries(Object.entries(readObject(values)).map(([name, value]) => [name, clean(value)]));
  const result: JsonObject = {};
  const told: string[] = [];
  for (const [word, value] of Object.entries(schema)) {
    if (word === 'properties' || word === '$defs' || word === 'definitions') result[word] = cleanAll(value);
    else if (word === 'anyOf' || word === 'oneOf') result['anyOf'] = readArray(value).map(clean);
    else if (word === 'allOf') result[word] = readArray(value).map(clean);
    else if (word === 'items') result[word] = clean(value);
    else if (word === 'format' && FORMATS.has(value)) result[word] = value;
    else if (word === 'minItems' && (value === 0 || value === 1)) result[word] = value;
    else if (KEPT.has(word)) result[word] = value;
    else if (word !== 'additionalProperties' && !SILENT.has(word)) told.push(`${word}: ${JSON.stringify(value)}`);
  }
  if (isObjectSchema(schema)) result['additionalProperties'] = false;
  if (told.length > 0) {
    const description = typeof schema['description'] === 'string' ? `${schema['description']}\n\n` : '';
    result['description'] = `${description}{${told.join(', ')}}`;
  }
  return result;
}

/** Whether the vendor can hold an answer to a schema without losing something: no recursion, no maps, few optional fields. */
export function fitsStrictly(schema: Schema): boolean {
  let visits = 0;
  let optional = 0;
  const fits = (node: unknown, path: readonly string[]): boolean => {
    visits += 1;
    if (visits > MAX_VISITS || path.length > MAX_DEPTH) return false;
    if (Array.isArray(node)) return node.every((item) => fits(item, path));
    if (!isObject(node)) return true;
    const reference = node['$ref'];
    if (typeof reference === 'string') {
      return !path.includes(reference) && fits(resolve(schema, reference), [...path, reference]);
    }
    if (isOpen(node)) return false;
    const required = new Set(readArray(node['required']));
    const properties = readObject(node['properties']);
    optional += Object.keys(properties).filter((name) => !required.has(name)).length;
    if (optional > MAX_OPTIONAL) return false;
    const inner = ['items', 'anyOf', 'oneOf', 'allOf'].map((word) => node[word]);
    return [...inner, Object.values(properties)].every((child) => fits(child, path));
  };
  return fits(schema, []);
}

/** Whether a schema can be a tool's: an object at its root, without a choice there. */
export function isToolSchema(schema: Schema): boolean {
  return isObjectSchema(schema) && !['anyOf', 'oneOf', 'allOf', '$ref'].some((word) => word in schema);
}

function isObjectSchema(schema: Schema): boolean {
  return schema['type'] === 'object' || isObject(schema['properties']);
}

function isOpen(schema: JsonObject): boolean {
  const { additionalProperties: more, patternProperties, properties, type } = schema;
  if (more === true || isObject(more) || isObject(patternProperties)) return true;
  return type === 'object' && properties === undefined && more !== false;
}

function resolve(root: Schema, reference: string): unknown {
  if (!reference.startsWith('#')) return undefined;
  const steps = reference.slice(1).split('/').slice(1);
  return steps.reduce<unknown>((node, step) => {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~');
    return isObject(node) && Object.hasOwn(node, name) ? node[name] : undefined;
  }, root);
}
