import type { Schema } from '../contract/json.ts';

/** Finding one's way in a JSON Schema: the schemas that apply to a child, whatever combines them. */

type Node = Schema;

/** Every schema that applies at a place: itself, what its `$ref` names, and the branches of its combinators. */
export function expandSchema(root: Schema, schema: unknown, seen: Set<unknown> = new Set()): readonly Node[] {
  if (!isSchema(schema) || seen.has(schema)) return [];
  seen.add(schema);
  const parts: unknown[] = [resolveRef(root, schema['$ref']), schema['then'], schema['else']];
  for (const keyword of ['allOf', 'anyOf', 'oneOf']) {
    const branches = schema[keyword];
    if (Array.isArray(branches)) parts.push(...branches);
  }
  return [schema, ...parts.flatMap((part) => expandSchema(root, part, seen))];
}

/** The schemas of a child of something with these schemas. */
export function childSchemas(root: Schema, nodes: readonly Node[], key: string | number): readonly Node[] {
  return nodes.flatMap((node) => expandSchema(root, childOf(node, key)));
}

/** Whether any of the schemas says `secret: true`. */
export function isSecret(nodes: readonly Node[]): boolean {
  return nodes.some((node) => node['secret'] === true);
}

/** The JSON types that the schemas allow; empty when none says. */
export function typesOf(nodes: readonly Node[]): ReadonlySet<string> {
  return new Set(nodes.flatMap((node) => node['type'] ?? []).filter((type) => typeof type === 'string'));
}

/** The names of the properties that the schemas declare. */
export function propertyNames(nodes: readonly Node[]): readonly string[] {
  return [...new Set(nodes.flatMap((node) => (isSchema(node['properties']) ? Object.keys(node['properties']) : [])))];
}

export function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function childOf(node: Node, key: string | number): unknown {
  if (typeof key === 'number') {
    const prefix = node['prefixItems'];
    return (Array.isArray(prefix) ? prefix[key] : undefined) ?? node['items'];
  }
  const properties = node['properties'];
  if (isSchema(properties) && Object.hasOwn(properties, key)) return properties[key];
  const patterns = node['patternProperties'];
  const matching = isSchema(patterns)
    ? Object.keys(patterns).find((pattern) => new RegExp(pattern, 'u').test(key))
    : undefined;
  if (isSchema(patterns) && matching !== undefined) return patterns[matching];
  return node['additionalProperties'] ?? node['unevaluatedProperties'];
}

/** What a local reference (`#/$defs/x`) names; others are not followed. */
function resolveRef(root: Schema, ref: unknown): unknown {
  if (typeof ref !== 'string' || !ref.startsWith('#/')) return undefined;
  let node: unknown = root;
  for (const key of ref.slice(2).split('/')) {
    const name = decodeURIComponent(key).replaceAll('~1', '/').replaceAll('~0', '~');
    node = isSchema(node) ? node[name] : undefined;
  }
  return node;
}
