import type { Schema } from '../contract/json.ts';
import { descriptionOf, explainError } from './explain.ts';
import type { FaultAt } from './faults.ts';
import { didYouMean } from './nearest.ts';
import { childPointer, formatPath, pointerKeys } from './pointer.ts';
import { childSchemas, expandSchema, isSecret, propertyNames } from './schema-at.ts';
import type { SchemaError, Validator } from './validator.ts';

export interface SchemaFault extends FaultAt {
  /** The pointer of what is missing, when that is the fault. */
  readonly missing?: string;
}

export interface ValidateOptions {
  /** Where the value stands. */
  readonly pointer: string;
  readonly validator: Validator;
  /** Values that a fault must not show. */
  readonly isHidden: (pointer: string) => boolean;
}

/**
 * Checks a value against a schema and fills in its defaults, in place. One fault for each mistake, whatever number of
 * errors the schema makes of it.
 */
export function validateValue(
  value: unknown,
  schema: Schema,
  { pointer, validator, isHidden }: ValidateOptions,
): readonly SchemaFault[] {
  const faults = new Map<string, SchemaFault>();
  let errors: readonly SchemaError[];
  try {
    errors = chooseErrors(validator.findErrors(schema, value));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return [{ pointer, atKey: true, message: `has a plugin whose configSchema cannot be used: ${reason}` }];
  }
  for (const error of errors) {
    const fault = toFault(error, schema, pointer, isHidden);
    const key = `${fault.atKey === true} ${fault.missing ?? fault.pointer}`;
    if (!faults.has(key)) faults.set(key, fault);
  }
  return [...faults.values()];
}

/** Leaves of the errors of a combinator's branches that the value does not mean are noise: drops them. */
function chooseErrors(errors: readonly SchemaError[]): readonly SchemaError[] {
  const dropped = new Set<SchemaError>();
  for (const error of errors) {
    if (error.keyword === 'if') dropped.add(error);
    if ((error.keyword !== 'anyOf' && error.keyword !== 'oneOf') || dropped.has(error)) continue;
    const branches = branchErrors(error, errors);
    const meant = chooseBranch(error, branches);
    for (const [index, members] of branches) {
      if (index !== meant) for (const member of members) dropped.add(member);
    }
    if (meant !== undefined) dropped.add(error);
  }
  return errors.filter((error) => !dropped.has(error));
}

/** The errors of each branch of a combinator, by the branch's index. */
function branchErrors(combined: SchemaError, errors: readonly SchemaError[]): ReadonlyMap<number, SchemaError[]> {
  const branches = new Map<number, SchemaError[]>();
  const isBelow = (place: string): boolean =>
    place === combined.instancePath || place.startsWith(`${combined.instancePath}/`);
  for (const error of errors) {
    if (error === combined || !isBelow(error.instancePath)) continue;
    const inBranch = error.schemaPath.startsWith(`${combined.schemaPath}/`);
    // Errors behind a `$ref` begin their schema path anew; they belong to the branch that refers, whichever it is.
    const behindRef = !inBranch && error.schemaPath.startsWith('#/$defs/') && hasRef(combined.schema);
    if (!inBranch && !behindRef) continue;
    const index = inBranch ? Number.parseInt(error.schemaPath.slice(combined.schemaPath.length + 1), 10) : -1;
    branches.set(index, [...(branches.get(index) ?? []), error]);
  }
  return branches;
}

function hasRef(branches: unknown): boolean {
  return Array.isArray(branches) && branches.some((branch) => typeof branch?.$ref === 'string');
}

/** The branch that the value means: the only one whose type it has. Undefined when none or several do. */
function chooseBranch(combined: SchemaError, branches: ReadonlyMap<number, SchemaError[]>): number | undefined {
  const fitting = [...branches].filter(
    ([index, errors]) =>
      index >= 0 &&
      !errors.some(({ instancePath, keyword }) => instancePath === combined.instancePath && isKind(keyword)),
  );
  const [only, another] = fitting;
  return another === undefined ? only?.[0] : undefined;
}

function isKind(keyword: string): boolean {
  return keyword === 'type' || keyword === 'const' || keyword === 'enum';
}

function toFault(error: SchemaError, root: Schema, base: string, isHidden: (pointer: string) => boolean): SchemaFault {
  const pointer = `${base}${error.instancePath}`;
  const nodes = schemasAt(root, error.instancePath);
  const extra =
    error.params['additionalProperty'] ?? error.params['unevaluatedProperty'] ?? error.params['propertyName'];
  if (typeof extra === 'string') {
    const known = propertyNames(nodes);
    const hint = didYouMean(extra, known) ?? listKeys(known, pointer);
    return { pointer: childPointer(pointer, extra), atKey: true, message: 'unknown key', hint };
  }
  const missing = error.params['missingProperty'];
  if (typeof missing === 'string') {
    const hint = childSchemas(root, nodes, missing)
      .map(descriptionOf)
      .find((text) => text !== undefined);
    return { pointer, atKey: true, message: `needs "${missing}"`, hint, missing: childPointer(pointer, missing) };
  }
  return { pointer, ...explainError(error, isSecret(nodes) || isHidden(pointer)) };
}

function listKeys(known: readonly string[], pointer: string): string | undefined {
  if (known.length === 0 || known.length > 24) return undefined;
  return `Keys ${pointer === '' ? 'here' : `of ${formatPath(pointer)}`}: ${known.filter((key) => key !== '$schema').join(', ')}.`;
}

/** The schemas that apply at a place below the root. */
function schemasAt(root: Schema, pointer: string): readonly Schema[] {
  let nodes = expandSchema(root, root);
  for (const key of pointerKeys(pointer)) {
    const index = /^\d+$/.test(key) && !propertyNames(nodes).includes(key) ? Number(key) : key;
    const children = childSchemas(root, nodes, index);
    nodes = children.length > 0 ? children : childSchemas(root, nodes, key);
  }
  return nodes;
}
