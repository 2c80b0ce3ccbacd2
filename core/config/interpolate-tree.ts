import type { Json, Schema } from '../contract/json.ts';
import type { FaultAt } from './faults.ts';
import { hasReference, type Interpolated, interpolate, type Lookup } from './interpolate.ts';
import { childPointer } from './pointer.ts';
import { childSchemas, expandSchema, isSecret, typesOf } from './schema-at.ts';

export interface InterpolatedTree {
  /** A new value; keys whose secret is not set are left out. */
  readonly value: Json | undefined;
  readonly faults: readonly FaultAt[];
  /** Secrets that were left out, by pointer: the variable that is not set. */
  readonly unset: ReadonlyMap<string, string>;
  /** Where values came from, by pointer, such as `env PORT`. */
  readonly sources: ReadonlyMap<string, string>;
}

interface Walk {
  readonly root: Schema;
  readonly lookup: Lookup;
  readonly faults: FaultAt[];
  readonly unset: Map<string, string>;
  readonly sources: Map<string, string>;
}

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const BOOLEANS: Readonly<Record<string, boolean>> = Object.freeze({ true: true, false: false });

/**
 * Replaces the references in every text below `value`, which stands at `pointer` and should match `schema`. Where the
 * schema says `secret: true` a variable that is not set (or empty) removes the key; elsewhere it is a fault. A text that
 * is one reference becomes a number or boolean where the schema wants one.
 */
export function interpolateTree(value: Json, schema: Schema, pointer: string, lookup: Lookup): InterpolatedTree {
  const walk: Walk = { root: schema, lookup, faults: [], unset: new Map(), sources: new Map() };
  return { value: visit(value, expandSchema(schema, schema), pointer, walk), ...walk };
}

function visit(value: Json, nodes: readonly Schema[], pointer: string, walk: Walk): Json | undefined {
  if (typeof value === 'string') return hasReference(value) ? replace(value, nodes, pointer, walk) : value;
  if (typeof value !== 'object' || value === null) return value;
  if (isList(value)) {
    return value
      .map((item, index) => visit(item, childSchemas(walk.root, nodes, index), childPointer(pointer, index), walk))
      .filter((item) => item !== undefined);
  }
  const entries: [string, Json][] = [];
  for (const [key, item] of Object.entries(value)) {
    const visited = visit(item, childSchemas(walk.root, nodes, key), childPointer(pointer, key), walk);
    if (visited !== undefined) entries.push([key, visited]);
  }
  return Object.fromEntries(entries);
}

function replace(text: string, nodes: readonly Schema[], pointer: string, walk: Walk): Json | undefined {
  const result = interpolate(text, walk.lookup);
  const secret = isSecret(nodes);
  walk.faults.push(...result.errors.map((error) => ({ pointer, ...error })));
  if (result.sources.length > 0) walk.sources.set(pointer, result.sources.join(', '));
  if (result.unset.length > 0 && !secret) walk.faults.push(...result.unset.map((name) => notSet(name, pointer)));
  if (result.text === undefined || (secret && result.text === '')) {
    walk.unset.set(pointer, variableOf(result));
    return undefined;
  }
  return result.whole ? coerce(result.text, typesOf(nodes)) : result.text;
}

function variableOf({ unset, sources }: Interpolated): string {
  return unset[0] ?? sources[0]?.replace(/^env /, '') ?? '';
}

function notSet(name: string, pointer: string): FaultAt {
  return {
    pointer,
    message: `needs the environment variable ${name}, which is not set (looked in the environment, .env.local and .env)`,
    hint: `Set ${name}, or write \${${name}:-default}.`,
  };
}

function coerce(text: string, types: ReadonlySet<string>): Json {
  if ((types.has('number') || types.has('integer')) && NUMBER.test(text)) return Number(text);
  if (types.has('boolean') && Object.hasOwn(BOOLEANS, text)) return BOOLEANS[text] ?? text;
  return text;
}

function isList(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}
