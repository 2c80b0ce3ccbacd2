import { isObject, readObject, type Schema } from '../../../core/index.ts';

/**
 * A model's value without what strict mode made it add: nulls for optional properties that may not be null, and
 * properties that a closed object does not have. Changes nothing else; the result still has to be validated.
 */
export function fitValue(value: unknown, schema: Schema): unknown {
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
 * The branch of `anyOf`/`oneOf` that the value seems to mean: its constants agree, its required keys are there, and the
 * fewest other keys are left over. An empty schema, which changes nothing, when no branch is meant.
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

/** The alternatives of a schema, through any nesting of `anyOf`, `oneOf` and a lone `allOf`. */
function leaves(schema: Schema): readonly Schema[] {
  const branches = schema['anyOf'] ?? schema['oneOf'];
  if (Array.isArray(branches)) return branches.flatMap((branch) => leaves(readObject(branch)));
  const parts = schema['allOf'];
  if (!Array.isArray(parts)) return [schema];
  const { allOf: _, ...rest } = schema;
  return parts.length === 1 ? leaves({ ...readObject(parts[0]), ...rest }) : [{}];
}

/** Properties that may have one value only, with that value. */
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

/** Keys that say something and that the branch does not have. */
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
