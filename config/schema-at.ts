import { isObject, type Schema } from '../contract/json.ts';
import { childPointer, pointerKeys } from '../contract/pointers.ts';

/** Navigates a JSON Schema: finds the schemas of a child, through all combinators. */

/** Lists every schema that applies at a position: itself, its `$ref`, and the branches of its combinators. */
function expandSchema(root: Schema, schema: unknown, seen: Set<unknown> = new Set()): readonly Schema[] {
  if (!isObject(schema) || seen.has(schema)) return [];
  seen.add(schema);
  const { $ref, then: holds, else: fails, allOf, anyOf, oneOf } = schema;
  const parts = [resolveRef(root, $ref), holds, fails, allOf, anyOf, oneOf].flat();
  return [schema, ...parts.flatMap((part) => expandSchema(root, part, seen))];
}

/** Schemas of a child, given those of its parent. */
export function childSchemas(root: Schema, nodes: readonly Schema[], key: string | number): readonly Schema[] {
  return nodes.flatMap((node) => expandSchema(root, childOf(node, key)));
}

/** Schemas that apply at a pointer below the root. */
export function schemasAt(root: Schema, pointer: string): readonly Schema[] {
  let nodes = expandSchema(root, root);
  for (const key of pointerKeys(pointer)) {
    const index = /^\d+$/.test(key) && !propertyNames(nodes).includes(key) ? Number(key) : key;
    const children = childSchemas(root, nodes, index);
    nodes = children.length > 0 ? children : childSchemas(root, nodes, key);
  }
  return nodes;
}

/** True if any of the schemas has `secret: true`. */
export function isSecret(nodes: readonly Schema[]): boolean {
  return nodes.some((node) => node['secret'] === true);
}

/** Names of the properties that the schemas declare. */
export function propertyNames(nodes: readonly Schema[]): readonly string[] {
  return [...new Set(nodes.flatMap(({ properties }) => (isObject(properties) ? Object.keys(properties) : [])))];
}

/** Text, number, boolean or null in a value, with its schemas. */
export interface Leaf {
  readonly pointer: string;
  readonly nodes: readonly Schema[];
  /** True if it, or anything around it, is secret by schema. */
  readonly isInSecret: boolean;
}

/** Copies the value at `pointer` and replaces each leaf by the result of `change`; undefined omits it. */
export function mapLeaves(
  value: unknown,
  schema: Schema,
  pointer: string,
  change: (leaf: unknown, at: Leaf) => unknown,
): unknown {
  const visit = (node: unknown, at: string, nodes: readonly Schema[], isSecretAbove: boolean): unknown => {
    const isInSecret = isSecretAbove || isSecret(nodes);
    const below = (key: string | number, child: unknown): unknown =>
      visit(child, childPointer(at, key), childSchemas(schema, nodes, key), isInSecret);
    if (Array.isArray(node)) return node.map((item, index) => below(index, item)).filter((item) => item !== undefined);
    if (!isObject(node)) return change(node, { pointer: at, nodes, isInSecret });
    const entries = Object.entries(node).map(([key, child]) => [key, below(key, child)] as const);
    return Object.fromEntries(entries.filter(([, child]) => child !== undefined));
  };
  return visit(value, pointer, expandSchema(schema, schema), false);
}

function childOf(node: Schema, key: string | number): unknown {
  const { prefixItems, items, properties, patternProperties } = node;
  if (typeof key === 'number') return (Array.isArray(prefixItems) ? prefixItems[key] : undefined) ?? items;
  if (isObject(properties) && Object.hasOwn(properties, key)) return properties[key];
  const patterns = isObject(patternProperties) ? Object.entries(patternProperties) : [];
  const matching = patterns.find(([pattern]) => new RegExp(pattern, 'u').test(key));
  return matching?.[1] ?? node['additionalProperties'] ?? node['unevaluatedProperties'];
}

/** Resolves a local reference (`#/$defs/x`); others are ignored. */
function resolveRef(root: Schema, ref: unknown): unknown {
  if (typeof ref !== 'string' || !ref.startsWith('#/')) return undefined;
  let node: unknown = root;
  for (const key of pointerKeys(decodeURIComponent(ref.slice(1)))) node = isObject(node) ? node[key] : undefined;
  return node;
}
