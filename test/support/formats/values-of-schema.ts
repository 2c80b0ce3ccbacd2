import { isObject, type Schema } from '../../../contract/index.ts';

const TEXTS = [
  '',
  'x',
  'a/b',
  '30s',
  '20mb',
  '0.25',
  './x',
  '/x',
  '127.0.0.1',
  'https://a.example',
  '2026-01-31',
  'DE',
];
const ANYTHING: readonly unknown[] = [null, true, -1, 0, 1.5, 7, 1e12, ...TEXTS, [], ['x', 'x'], {}, { x: 1 }];
const MAX_DEPTH = 5;

/**
 * Value that mostly fits a schema with local references. Some of its parts are wrong, missing or additional.
 * Deterministic for a seed.
 */
export function valueOfSchema(root: Schema, seed: number): unknown {
  let state = seed >>> 0;
  /** Integer below `end`. */
  const pick = (end: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * end);
  };
  const oneOf = (values: readonly unknown[]): unknown => values[pick(values.length)];
  const chance = (part: number): boolean => pick(part) === 0;
  const visit = (node: unknown, depth: number): unknown => {
    if (!isObject(node) || depth > MAX_DEPTH || chance(25)) return structuredClone(oneOf(ANYTHING));
    const { $ref, anyOf, oneOf: either, enum: choices, ...own } = node;
    if (typeof $ref === 'string') return visit(refer(root, $ref), depth + 1);
    const branches = [anyOf, either].flat().filter(isObject);
    if (branches.length > 0) return visit({ ...own, ...(oneOf(branches) as Schema) }, depth + 1);
    if (Array.isArray(choices)) return oneOf(choices);
    if ('const' in own) return own['const'];
    return ofType(String(oneOf([own['type'] ?? 'object'].flat())), own, depth);
  };
  const ofType = (type: string, node: Schema, depth: number): unknown => {
    if (type === 'object') return objectOf(node, depth);
    if (type === 'array') return Array.from({ length: pick(3) }, () => visit(node['items'], depth + 1));
    if (type === 'string') return typeof node['default'] === 'string' ? node['default'] : oneOf(TEXTS);
    if (type === 'boolean') return chance(2);
    if (type === 'null') return null;
    const { minimum = 0, maximum = Number(minimum) + 10 } = node;
    return Number(minimum) + pick(Number(maximum) - Number(minimum) + 1);
  };
  const objectOf = (node: Schema, depth: number): unknown => {
    const { properties, required = [], additionalProperties: others } = node;
    const known = Object.entries(isObject(properties) ? properties : {});
    const chosen = known.filter(([name]) => ((required as readonly string[]).includes(name) ? !chance(25) : chance(3)));
    const more: [string, unknown][] = isObject(others) || chance(8) ? [['more', others]] : [];
    return Object.fromEntries([...chosen, ...more].map(([name, child]) => [name, visit(child, depth + 1)]));
  };
  return visit(root, 0);
}

/** Target of a local reference (`#/$defs/x`). */
function refer(root: Schema, reference: string): unknown {
  const keys = reference.split('/').slice(1);
  return keys.reduce<unknown>((node, key) => (isObject(node) ? node[key] : undefined), root);
}
