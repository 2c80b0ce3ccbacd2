import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import type { Ajv2020, ErrorObject, Options } from 'ajv/dist/2020.js';
import { LRUCache } from 'lru-cache';
import { GatewayError, isObject, readObject, type Schema, STANDARD_FORMATS } from '../../../contract/index.ts';
import { isJsonSchema, objectToSchema } from './shape-schema.ts';

export type Checked =
  | { readonly ok: true; readonly value: unknown }
  /** `error` describes the mismatch, so that a model can correct it. */
  | { readonly ok: false; readonly error: string };

/** Schema for a model, and the check of its responses. */
export interface CheckedSchema {
  /** Normalised: no `$ref`, supported keywords only. */
  readonly schema: Schema;
  /** Removes additions of strict mode, then validates. */
  readonly check: (value: unknown) => Checked;
}

/** Maximum elements of a list in a response, which bounds the comparisons of `uniqueItems`. */
const MAX_LIST = 5000;

/** Checked formats; any other is a hint. */
const FORMATS = Object.freeze(
  Object.fromEntries(Object.entries(STANDARD_FORMATS).map(([name, { accepts }]) => [name, accepts])),
);

export interface SchemaReader {
  /** Reads a `response_model`: JSON Schema, OpenAI's `response_format` wrapper, or a plain shape. */
  readModel(value: Readonly<Record<string, unknown>>, param: string): CheckedSchema;
  /** Reads a JSON Schema. */
  readSchema(value: Schema, param: string): CheckedSchema;
}

/**
 * Creates a reader that caches the last 200 compiled schemas. Throws `invalid_request` with the path of unsupported
 * parts. Each schema is compiled by a separate Ajv, so callers' schemas never mix or accumulate.
 */
export function createSchemaReader(): SchemaReader {
  const known = new LRUCache<string, CheckedSchema>({ max: 200 });
  let meta: Ajv2020 | undefined;
  const remember = (value: object, param: string, make: () => Schema): CheckedSchema => {
    const key = createHash('sha256').update(param).update('\0').update(JSON.stringify(value)).digest('base64url');
    const found = known.get(key);
    if (found) return found;
    meta ??= createAjv({ strict: false, logger: false, validateFormats: false });
    const made = compileSchema(make(), param, meta);
    known.set(key, made);
    return made;
  };
  return {
    readModel: (value, param) => remember(value, param, () => readAnySchema(value, param)),
    readSchema: (value, param) => remember(value, param, () => normaliseSchema(value, param)),
  };
}

/** Loads Ajv with the first schema: loading is slow, and a start does not need it. */
function createAjv(options: Options): Ajv2020 {
  const ajv = createRequire(import.meta.url)('ajv/dist/2020.js') as typeof import('ajv/dist/2020.js');
  return new ajv.Ajv2020(options);
}

function readAnySchema(value: Readonly<Record<string, unknown>>, param: string): Schema {
  const wrapped = value['type'] === 'json_schema' ? value['json_schema'] : undefined;
  const inner = isObject(wrapped) ? wrapped['schema'] : undefined;
  if (isObject(inner)) return normaliseSchema(inner, `${param}.json_schema.schema`);
  return normaliseSchema(isJsonSchema(value) ? value : objectToSchema(value, param), param);
}

function compileSchema(schema: Schema, param: string, meta: Ajv2020): CheckedSchema {
  if (!meta.validateSchema(schema)) {
    const error = meta.errors?.[0];
    const path = `${param}${toPath(error?.instancePath ?? '')}`;
    throw new GatewayError('invalid_request', `${path} ${error?.message ?? 'is no JSON Schema'}.`, { param: path });
  }
  const ajv = createAjv({
    strict: false,
    logger: false,
    meta: false,
    validateSchema: false,
    code: { optimize: false },
    formats: FORMATS,
  });
  const validate = compileWith(ajv, schema, param);
  return Object.freeze({
    schema,
    check(value: unknown): Checked {
      const fitted = fitValue(value, schema);
      if (hasLongList(fitted)) return { ok: false, error: `a list has more than ${MAX_LIST} elements` };
      if (validate(fitted)) return { ok: true, value: fitted };
      return { ok: false, error: describeError(validate.errors?.[0]) };
    },
  });
}

function compileWith(ajv: Ajv2020, schema: Schema, param: string): ReturnType<Ajv2020['compile']> {
  try {
    return ajv.compile(schema);
  } catch (cause) {
    throw new GatewayError('invalid_request', `${param} is not a valid JSON Schema.`, { param, cause });
  }
}

function describeError(error: ErrorObject | undefined): string {
  if (!error) return 'it does not fit the schema';
  const where = toPath(error.instancePath).replace(/^\./, '') || 'the answer';
  const allowed = error.keyword === 'enum' ? `: ${JSON.stringify(error.params['allowedValues']).slice(0, 300)}` : '';
  return `${where} ${error.message ?? 'does not fit'}${allowed}`;
}

/** `/properties/a/anyOf/0` as `.properties.a.anyOf[0]`. */
function toPath(pointer: string): string {
  return pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((step) => (/^\d+$/.test(step) ? `[${step}]` : `.${step}`))
    .join('');
}

function hasLongList(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value) && value.length > MAX_LIST) return true;
  return Object.values(value).some(hasLongList);
}

/**
 * Removes additions of strict mode from a model's value: nulls for optional properties that are not nullable, and
 * undeclared properties of closed objects. Changes nothing else; the result must still be validated.
 */
function fitValue(value: unknown, schema: Schema): unknown {
  const node = chooseBranch(value, schema);
  if (Array.isArray(value)) {
    const prefix = Array.isArray(node['prefixItems']) ? (node['prefixItems'] as readonly Schema[]) : [];
    return value.map((item, index) => fitValue(item, prefix[index] ?? readObject(node['items'])));
  }
  if (!isObject(value)) return value;
  const properties = readObject(node['properties']);
  const required = Array.isArray(node['required']) ? node['required'] : [];
  const entries: [string, unknown][] = [];
  for (const [name, field] of Object.entries(value)) {
    if (Object.hasOwn(properties, name)) {
      const fieldSchema = readObject(properties[name]);
      if (field === null && !required.includes(name) && !allowsNull(fieldSchema)) continue;
      entries.push([name, fitValue(field, fieldSchema)]);
    } else if (node['additionalProperties'] !== false) {
      entries.push([name, fitValue(field, readObject(node['additionalProperties']))]);
    }
  }
  return Object.fromEntries(entries);
}

/**
 * Chooses the `anyOf`/`oneOf` branch for a value: its constants match, its required keys exist, and the fewest other
 * keys remain. Returns an empty schema, which changes nothing, if no branch fits.
 */
function chooseBranch(value: unknown, schema: Schema): Schema {
  const branches = leaves(schema);
  if (branches.length === 1) return branches[0] ?? {};
  if (typeof value !== 'object' || value === null) return {};
  const wanted = Array.isArray(value) ? 'array' : 'object';
  const meant = branches
    .filter(
      (branch) =>
        [branch['type']].flat().includes(wanted) && constantsAgree(value, branch) && hasRequired(value, branch),
    )
    .map((branch) => ({ branch, spare: countSpare(value, branch) }));
  return meant.sort((one, other) => one.spare - other.spare)[0]?.branch ?? {};
}

/** Lists the alternatives of a schema, through any nesting of `anyOf`, `oneOf` and a single `allOf`. */
function leaves(schema: Schema): readonly Schema[] {
  const branches = schema['anyOf'] ?? schema['oneOf'];
  if (Array.isArray(branches)) return branches.flatMap((branch) => leaves(readObject(branch)));
  const parts = schema['allOf'];
  if (!Array.isArray(parts)) return [schema];
  const { allOf: _, ...rest } = schema;
  return parts.length === 1 ? leaves({ ...readObject(parts[0]), ...rest }) : [{}];
}

/** Properties with only one allowed value, with that value. */
function constantsOf(branch: Schema): readonly (readonly [string, unknown])[] {
  return Object.entries(readObject(branch['properties'])).flatMap(([name, field]): (readonly [string, unknown])[] => {
    const { const: only, enum: few } = readObject(field);
    if (only !== undefined) return [[name, only]];
    return Array.isArray(few) && few.length === 1 ? [[name, few[0]]] : [];
  });
}

function constantsAgree(value: object, branch: Schema): boolean {
  return constantsOf(branch).every(([name, only]) => (value as Record<string, unknown>)[name] === only);
}

function hasRequired(value: object, branch: Schema): boolean {
  const required = Array.isArray(branch['required']) ? branch['required'] : [];
  return required.every((name) => Object.hasOwn(value, String(name)));
}

/** Number of keys with a value that the branch does not declare. */
function countSpare(value: object, branch: Schema): number {
  const properties = readObject(branch['properties']);
  return Object.entries(value).filter(([name, field]) => field !== null && !Object.hasOwn(properties, name)).length;
}

function allowsNull(schema: Schema): boolean {
  if (schema['const'] === null || (Array.isArray(schema['enum']) && schema['enum'].includes(null))) return true;
  const branches = schema['anyOf'] ?? schema['oneOf'];
  if (Array.isArray(branches)) return branches.some((branch) => allowsNull(readObject(branch)));
  const type = schema['type'];
  return type === undefined ? Object.keys(schema).length === 0 : [type].flat().includes('null');
}

/** Limits of a caller's schema: compiled code grows with it, and validation blocks the event loop. */
const SCHEMA_LIMITS = Object.freeze({ bytes: 65_536, properties: 500, depth: 10, nodes: 2000 });

/** Keywords passed unchanged; Ajv's meta-schema checks their values. */
const PLAIN = new Set(
  (
    'title description type enum const format minimum maximum exclusiveMinimum exclusiveMaximum multipleOf ' +
    'minLength maxLength minItems maxItems uniqueItems minProperties maxProperties required'
  ).split(' '),
);

/** Assertions that this subset does not check. Ignoring them silently would break the guarantee. */
const REFUSED = new Set(
  (
    'pattern patternProperties not if then else contains minContains maxContains propertyNames dependencies ' +
    'dependentRequired dependentSchemas unevaluatedItems unevaluatedProperties $dynamicRef $recursiveRef'
  ).split(' '),
);

interface Walk {
  readonly root: Schema;
  /** Position of the schema in the request, such as `response_model`. */
  readonly base: string;
  nodes: number;
  properties: number;
}

interface SchemaPosition {
  readonly param: string;
  readonly depth: number;
  /** References being resolved; a repeated one means that the schema is recursive. */
  readonly refs: readonly string[];
}

/**
 * Normalises a caller's JSON Schema to a small, closed tree: inlines local `$ref`s, drops annotations without effect,
 * and converts older spellings (`definitions`, tuple `items`, `nullable`). Throws `invalid_request` with the path
 * (`response_model.properties.x`) for schemas over {@link SCHEMA_LIMITS}, recursion, remote references and regular
 * expressions.
 */
function normaliseSchema(schema: Schema, base: string): Schema {
  const bytes = Buffer.byteLength(JSON.stringify(schema));
  if (bytes > SCHEMA_LIMITS.bytes) {
    refuse(base, `has ${bytes} bytes; the limit is ${SCHEMA_LIMITS.bytes}`);
  }
  return visit(schema, { param: base, depth: 1, refs: [] }, { root: schema, base, nodes: 0, properties: 0 });
}

function visit(node: unknown, place: SchemaPosition, walk: Walk): Schema {
  const { param } = place;
  walk.nodes += 1;
  if (walk.nodes > SCHEMA_LIMITS.nodes)
    refuse(walk.base, `has more than ${SCHEMA_LIMITS.nodes} parts with $refs resolved`);
  if (place.depth > SCHEMA_LIMITS.depth) refuse(param, `is nested deeper than ${SCHEMA_LIMITS.depth} levels`);
  if (node === true) return {};
  if (!isObject(node)) return refuse(param, 'must be a JSON Schema object');
  const out: Record<string, unknown> = {};
  for (const [word, value] of Object.entries(node)) {
    if (REFUSED.has(word)) {
      refuse(`${param}.${word}`, 'is not supported; use enum, const or bounds, or describe it in description');
    }
    if (PLAIN.has(word)) out[word] = value;
  }
  visitChildren(node, out, place, walk);
  const nullable = node['nullable'] === true ? allowNull(out) : out;
  return typeof node['$ref'] === 'string' ? withReference(node['$ref'], nullable, place, walk) : nullable;
}

function visitChildren(node: Schema, out: Record<string, unknown>, place: SchemaPosition, walk: Walk): void {
  const { param, depth, refs } = place;
  const child = (value: unknown, path: string, deeper: number): Schema =>
    visit(value, { param: `${param}.${path}`, depth: depth + deeper, refs }, walk);
  const children = (value: unknown, path: string, deeper: number): readonly Schema[] => {
    if (!Array.isArray(value) || value.length === 0) return refuse(`${param}.${path}`, 'must be a list of schemas');
    return value.map((one, index) => child(one, `${path}[${index}]`, deeper));
  };
  for (const word of ['anyOf', 'oneOf', 'allOf']) {
    if (node[word] !== undefined) out[word] = children(node[word], word, 0);
  }
  if (node['properties'] !== undefined) out['properties'] = visitProperties(node['properties'], place, walk);
  const { items, additionalItems, prefixItems, additionalProperties } = node;
  if (Array.isArray(items)) {
    out['prefixItems'] = children(items, 'items', 1);
    if (isObject(additionalItems)) out['items'] = child(additionalItems, 'additionalItems', 1);
    if (additionalItems === false) out['items'] = false;
  } else if (items !== undefined) out['items'] = items === false ? false : child(items, 'items', 1);
  if (prefixItems !== undefined) out['prefixItems'] = children(prefixItems, 'prefixItems', 1);
  if (typeof additionalProperties === 'boolean') out['additionalProperties'] = additionalProperties;
  else if (additionalProperties !== undefined) {
    out['additionalProperties'] = child(additionalProperties, 'additionalProperties', 1);
  }
}

function visitProperties(properties: unknown, place: SchemaPosition, walk: Walk): Schema {
  const param = `${place.param}.properties`;
  if (!isObject(properties)) return refuse(param, 'must be an object of schemas');
  const entries = Object.entries(properties);
  walk.properties += entries.length;
  if (walk.properties > SCHEMA_LIMITS.properties) {
    refuse(walk.base, `has more than ${SCHEMA_LIMITS.properties} properties`);
  }
  return Object.fromEntries(
    entries.map(([name, value]) => {
      if (name === '__proto__' || name.length > 200) refuse(param, 'has a name that is too long or reserved');
      return [name, visit(value, { ...place, param: `${param}.${name}`, depth: place.depth + 1 }, walk)];
    }),
  );
}

/** Inlines the referenced schema; constraints next to the reference still apply. */
function withReference(ref: string, siblings: Schema, place: SchemaPosition, walk: Walk): Schema {
  const param = `${place.param}.$ref`;
  if (!ref.startsWith('#/'))
    return refuse(param, 'must be a local reference such as "#/$defs/item", not to the whole schema');
  if (place.refs.includes(ref)) return refuse(param, 'is recursive, which is not supported; use a fixed depth');
  const target = resolve(walk.root, ref);
  if (target === undefined) return refuse(param, 'refers to a missing part of this schema');
  const resolved = visit(target, { ...place, refs: [...place.refs, ref] }, walk);
  const asserts = Object.keys(siblings).some((word) => word !== 'title' && word !== 'description');
  return asserts ? { allOf: [resolved, siblings] } : { ...resolved, ...siblings };
}

function resolve(root: Schema, ref: string): unknown {
  let node: unknown = root;
  for (const step of ref.slice(2).split('/')) {
    const key = decode(step).replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof node !== 'object' || node === null || !Object.hasOwn(node, key)) return undefined;
    node = (node as Record<string, unknown>)[key];
  }
  return node;
}

function decode(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    return step;
  }
}

/** OpenAPI 3.0's `nullable: true`. */
function allowNull(schema: Record<string, unknown>): Record<string, unknown> {
  const { title, description, ...rest } = schema;
  return {
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    anyOf: [rest, { type: 'null' }],
  };
}

function refuse(param: string, why: string): never {
  throw new GatewayError('invalid_request', `${param} ${why}.`, { param });
}
