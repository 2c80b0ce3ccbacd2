import type { Schema } from '../../../contract/index.ts';

/** Formats supported by strict mode; others are an error there. */
const STRICT_FORMATS = new Set(['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uuid']);

/** Keywords that strict mode refuses, expressed in the description; the response is checked against them later. */
const DESCRIBED: Readonly<Record<string, (value: unknown) => string>> = Object.freeze({
  minLength: (value) => `at least ${String(value)} characters`,
  maxLength: (value) => `at most ${String(value)} characters`,
  uniqueItems: (value) => (value ? 'no two alike' : ''),
  minProperties: () => '',
  maxProperties: () => '',
});

/** Schema in the form sent to a provider. */
export interface ProviderSchema {
  readonly schema: Schema;
  /** True if the schema fits strict mode: every property required, nothing free-form. */
  readonly strict: boolean;
}

/**
 * Converts a normalised schema for strict structured output: all properties required (optional ones nullable),
 * `additionalProperties: false`, unsupported bounds moved to the description. A schema without such a form is sent
 * unchanged.
 * Source: https://platform.openai.com/docs/guides/structured-outputs (supported schemas).
 */
export function toProviderSchema(schema: Schema): ProviderSchema {
  const strict = schema['type'] === 'object' ? strictly(schema) : undefined;
  return strict ? { schema: strict, strict: true } : { schema, strict: false };
}

function strictly(node: Schema): Schema | undefined {
  const { anyOf, oneOf, allOf, ...rest } = node;
  const branches = anyOf ?? oneOf;
  if (Array.isArray(branches) && Array.isArray(allOf)) return undefined;
  if (Array.isArray(allOf)) {
    return allOf.length === 1 ? strictly({ ...(allOf[0] as Schema), ...rest }) : undefined;
  }
  if (Array.isArray(branches)) {
    const options = branches.map((branch) => strictly(branch as Schema));
    const bare = Object.keys(rest).every((word) => word === 'title' || word === 'description');
    return bare && options.every((option) => option !== undefined) ? { ...rest, anyOf: options } : undefined;
  }
  if ('const' in rest || 'enum' in rest) return choice(rest);
  const types = [rest['type']].flat();
  if (types.length === 0 || types[0] === undefined) return undefined;
  if (types.includes('object')) return strictObject(rest);
  if (types.includes('array')) return strictArray(rest);
  return describeBounds(rest);
}

function strictObject(node: Schema): Schema | undefined {
  const properties = node['properties'] as Readonly<Record<string, Schema>> | undefined;
  const names = Object.keys(properties ?? {});
  const { additionalProperties } = node;
  if (properties === undefined || (names.length === 0 && additionalProperties !== false)) return undefined;
  if (typeof additionalProperties === 'object') return undefined;
  const required = new Set(Array.isArray(node['required']) ? node['required'] : []);
  if ([...required].some((name) => !Object.hasOwn(properties, String(name)))) return undefined;
  const fields = names.map((name) => {
    const field = strictly(properties[name] ?? {});
    return [name, field && !required.has(name) ? orNull(field) : field] as const;
  });
  if (fields.some(([, field]) => field === undefined)) return undefined;
  return {
    ...describeBounds(node),
    properties: Object.fromEntries(fields),
    required: names,
    additionalProperties: false,
  };
}

function strictArray(node: Schema): Schema | undefined {
  const items = node['items'];
  if ('prefixItems' in node || typeof items !== 'object' || items === null) return undefined;
  const item = strictly(items as Schema);
  return item && { ...describeBounds(node), items: item };
}

function choice(node: Schema): Schema | undefined {
  const values = 'const' in node ? [node['const']] : (node['enum'] as readonly unknown[]);
  if (values.some((value) => typeof value === 'object' && value !== null)) return undefined;
  const { const: _const, ...rest } = node;
  const types = [...new Set(values.map((value) => (value === null ? 'null' : typeof value)))];
  return { ...rest, type: rest['type'] ?? (types.length === 1 ? types[0] : types), enum: values };
}

function orNull(schema: Schema): Schema {
  if (Array.isArray(schema['anyOf'])) {
    const hasNull = schema['anyOf'].some((option) => (option as Schema)['type'] === 'null');
    return hasNull ? schema : { ...schema, anyOf: [...schema['anyOf'], { type: 'null' }] };
  }
  return [schema['type']].flat().includes('null') ? schema : { anyOf: [schema, { type: 'null' }] };
}

function describeBounds(node: Schema): Schema {
  const kept = Object.entries(node).filter(
    ([word, value]) => !(word in DESCRIBED) && (word !== 'format' || STRICT_FORMATS.has(String(value))),
  );
  const described = Object.entries(DESCRIBED)
    .filter(([word]) => word in node)
    .map(([word, say]) => say(node[word]));
  const format =
    typeof node['format'] === 'string' && !STRICT_FORMATS.has(node['format']) ? `as ${node['format']}` : '';
  const notes = [...described, format].filter((note) => note !== '');
  if (notes.length === 0) return Object.fromEntries(kept);
  const description = [node['description'], `(${notes.join(', ')})`].filter(Boolean).join(' ');
  return { ...Object.fromEntries(kept), description };
}
