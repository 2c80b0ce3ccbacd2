import type { Json, Schema } from '../contract/json.ts';
import type { FaultAt } from './faults.ts';
import type { Lookup } from './interpolate.ts';
import { interpolateTree } from './interpolate-tree.ts';
import { type SchemaFault, validateValue } from './validate.ts';
import type { Validator } from './validator.ts';

export interface CheckContext {
  readonly lookup: Lookup;
  readonly validator: Validator;
}

export interface CheckedSection {
  /** Interpolated, with defaults. Meaningless when there are faults. */
  readonly value: Readonly<Record<string, unknown>>;
  readonly faults: readonly FaultAt[];
  readonly sources: ReadonlyMap<string, string>;
}

/**
 * Interpolates and validates the part of a configuration that stands at `pointer`. A value that could not be made is
 * one fault, not a second one for missing; a required secret whose variable is not set is told as such.
 */
export function checkSection(
  raw: { readonly [key: string]: Json },
  schema: Schema,
  pointer: string,
  { lookup, validator }: CheckContext,
): CheckedSection {
  const tree = interpolateTree(raw, schema, pointer, lookup);
  const value = tree.value as Readonly<Record<string, unknown>>;
  const told = new Set(tree.faults.map((fault) => fault.pointer));
  const explain = (fault: SchemaFault): readonly FaultAt[] => {
    if (fault.missing === undefined) return [fault];
    if (told.has(fault.missing)) return [];
    const variable = tree.unset.get(fault.missing);
    return variable ? [needsVariable(fault.missing, variable)] : [fault];
  };
  const errors = validateValue(value, schema, {
    pointer,
    validator,
    isHidden: (place) => tree.sources.has(place),
  });
  return { value, faults: [...tree.faults, ...errors.flatMap(explain)], sources: tree.sources };
}

function needsVariable(pointer: string, variable: string): FaultAt {
  const message = `needs the environment variable ${variable}, which is not set or empty`;
  return { pointer, message, hint: `Set ${variable} in the environment, in .env.local or in .env.` };
}
