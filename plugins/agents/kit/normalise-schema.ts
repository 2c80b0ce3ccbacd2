import { GatewayError, isObject, type Schema } from '../../../core/index.ts';

/** What a caller's schema may cost: compiled code grows with it, and validating runs on everybody's event loop. */
export const SCHEMA_LIMITS = Object.freeze({ bytes: 65_536, properties: 500, depth: 10, nodes: 2000 });

/** Keywords kept as they are; Ajv's meta-schema checks their values. */
const PLAIN = new Set(
  (
    'title description type enum const format minimum maximum exclusiveMinimum exclusiveMaximum multipleOf ' +
    'minLength maxLength minItems maxItems uniqueItems minProperties maxProperties required'
  ).split(' '),
);

/** Keywords that assert something this subset does not check; dropping them in silence would break the promise. */
const REFUSED = new Set(
  (
    'pattern patternProperties not if then else contains minContains maxContains propertyNames dependencies ' +
    'dependentRequired dependentSchemas unevaluatedItems unevaluatedProperties $dynamicRef $recursiveRef'
  ).split(' '),
);

interface Walk {
  readonly root: Schema;
  /** Where the caller finds the schema, such as `response_model`. */
  readonly base: string;
  nodes: number;
  properties: number;
}

interface Place {
  readonly param: string;
  readonly depth: number;
  /** References being followed; meeting one again means the schema is recursive. */
  readonly refs: readonly string[];
}

/**
 * A caller's JSON Schema as a small, closed tree: local `$ref`s put in place, annotations that say nothing dropped,
 * older spellings (`definitions`, tuple `items`, `nullable`) made new. Throws `invalid_request` with the path
 * (`response_model.properties.x`) for what is over {@link SCHEMA_LIMITS}, recursive, remote or a regular expression.
 */
export function normaliseSchema(schema: Schema, base: string): Schema {
  const bytes = Buffer.byteLength(JSON.stringify(schema));
  if (bytes > SCHEMA_LIMITS.bytes) {
    refuse(base, `is ${bytes} bytes long; the most is ${SCHEMA_LIMITS.bytes}`);
  }
  return visit(schema, { param: base, depth: 1, refs: [] }, { root: schema, base, nodes: 0, properties: 0 });
}

function visit(node: unknown, place: Place, walk: Walk): Schema {
  const { param } = place;
  walk.nodes += 1;
  if (walk.nodes > SCHEMA_LIMITS.nodes)
    refuse(walk.base, `has over ${SCHEMA_LIMITS.nodes} parts once $refs are resolved`);
  if (place.depth > SCHEMA_LIMITS.depth) refuse(param, `is nested deeper than ${SCHEMA_LIMITS.depth} levels`);
  if (node === true) return {};
  if (!isObject(node)) return refuse(param, 'must be a JSON Schema object');
  const out: Record<string, unknown> = {};
  for (const [word, value] of Object.entries(node)) {
    if (REFUSED.has(word)) {
      refuse(`${param}.${word}`, 'is not supported here: use enum, const or bounds, or say it in description');
    }
    if (PLAIN.has(word)) out[word] = value;
  }
  visitChildren(node, out, place, walk);
  const nullable = node['nullable'] === true ? allowNull(out) : out;
  return typeof node['$ref'] === 'string' ? withReference(node['$ref'], nullable, place, walk) : nullable;
}

function visitChildren(node: Schema, out: Record<string, unknown>, place: Place, walk: Walk): void {
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

function visitProperties(properties: unknown, place: Place, walk: Walk): Schema {
  const param = `${place.param}.properties`;
  if (!isObject(properties)) return refuse(param, 'must be an object of schemas');
  const entries = Object.entries(properties);
  walk.properties += entries.length;
  if (walk.properties > SCHEMA_LIMITS.properties) {
    refuse(walk.base, `has over ${SCHEMA_LIMITS.properties} properties`);
  }
  return Object.fromEntries(
    entries.map(([name, value]) => {
      if (name === '__proto__' || name.length > 200) refuse(param, 'has a name that is too long or reserved');
      return [name, visit(value, { ...place, param: `${param}.${name}`, depth: place.depth + 1 }, walk)];
    }),
  );
}

/** Puts the referenced schema in place; constraints beside the reference still hold. */
function withReference(ref: string, beside: Schema, place: Place, walk: Walk): Schema {
  const param = `${place.param}.$ref`;
  if (!ref.startsWith('#/')) return refuse(param, 'must be local, such as "#/$defs/item", and not to the whole schema');
  if (place.refs.includes(ref)) return refuse(param, 'is recursive, which is not supported: nest to a fixed depth');
  const target = resolve(walk.root, ref);
  if (target === undefined) return refuse(param, 'names nothing in this schema');
  const resolved = visit(target, { ...place, refs: [...place.refs, ref] }, walk);
  const asserts = Object.keys(beside).some((word) => word !== 'title' && word !== 'description');
  return asserts ? { allOf: [resolved, beside] } : { ...resolved, ...beside };
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
