import { isObject, type Schema } from '../../../core/index.ts';

/**
 * A model's value without what strict mode made it add: nulls for optional properties that may not be null, and
 * properties that a closed object does not have. Changes nothing else; the result still has to be validated.
 */
export function fitValue(value: unknown, schema: Schema): unknown {
  const node = chooseBranch(value, schema);
  if (Array.isArray(value)) {
    const prefix = Array.isArray(node['prefixItems']) ? (node['prefixItems'] as readonly Schema[]) : [];
    return value.map((item, index) => fitValue(item, prefix[index] ?? asSchema(node['items'])));
  }
  if (!isObject(value)) return value;
  const properties = asSchema(node['properties']);
  const required = Array.isArray(node['required']) ? node['required'] : [];
  const entries: [string, unknown][] = [];
  for (const [name, field] of Object.entries(value)) {
    if (Object.hasOwn(properties, name)) {
      const fieldSchema = asSchema(properties[name]);
      if (field === null && !required.includes(name) && !allowsNull(fieldSchema)) continue;
      entries.push([name, fitValue(field, fieldSchema)]);
    } else if (node['additionalProperties'] !== false) {
      entries.push([name, fitValue(field, asSchema(node['additionalProperties']))]);
    }
  }
  return Object.fromEntries(entries);
}

/** The branch of `anyOf`/`oneOf` that the value seems to mean: its constants agree, or else its required keys are there. */
function chooseBranch(value: unknown, schema: Schema): Schema {
  const branches = (schema['anyOf'] ?? schema['oneOf']) as readonly Schema[] | undefined;
  if (!Array.isArray(branches)) return singleAllOf(value, schema);
  if (typeof value !== 'object' || value === null) return schema;
  const wanted = Array.isArray(value) ? 'array' : 'object';
  const options = branches.filter((branch) => [branch['type']].flat().includes(wanted));
  const exact = options.find((branch) => hasConstants(branch) && constantsAgree(value, branch));
  const keyed = options.find((branch) => !hasConstants(branch) && hasRequired(value, branch));
  const chosen = exact ?? keyed ?? (options.length === 1 ? options[0] : undefined);
  return chosen ? chooseBranch(value, chosen) : {};
}

function singleAllOf(value: unknown, schema: Schema): Schema {
  const parts = schema['allOf'];
  if (!Array.isArray(parts)) return schema;
  return parts.length === 1 ? chooseBranch(value, { ...(parts[0] as Schema), ...without(schema, 'allOf') }) : {};
}

/** Properties that may have one value only, with that value. */
function constantsOf(branch: Schema): readonly (readonly [string, unknown])[] {
  return Object.entries(asSchema(branch['properties'])).flatMap(([name, field]): (readonly [string, unknown])[] => {
    const { const: only, enum: few } = asSchema(field);
    if (only !== undefined) return [[name, only]];
    return Array.isArray(few) && few.length === 1 ? [[name, few[0]]] : [];
  });
}

function hasConstants(branch: Schema): boolean {
  return constantsOf(branch).length > 0;
}

function constantsAgree(value: object, branch: Schema): boolean {
  return constantsOf(branch).every(([name, only]) => (value as Record<string, unknown>)[name] === only);
}

function hasRequired(value: object, branch: Schema): boolean {
  const required = Array.isArray(branch['required']) ? branch['required'] : [];
  return required.every((name) => Object.hasOwn(value, String(name)));
}

function allowsNull(schema: Schema): boolean {
  if (schema['const'] === null || (Array.isArray(schema['enum']) && schema['enum'].includes(null))) return true;
  const branches = schema['anyOf'] ?? schema['oneOf'];
  if (Array.isArray(branches)) return branches.some((branch) => allowsNull(asSchema(branch)));
  const type = schema['type'];
  return type === undefined ? Object.keys(schema).length === 0 : [type].flat().includes('null');
}

function without(schema: Schema, word: string): Schema {
  return Object.fromEntries(Object.entries(schema).filter(([name]) => name !== word));
}

function asSchema(value: unknown): Schema {
  return isObject(value) ? value : {};
}
