import type { Json, Schema } from '../contract/json.ts';

/** Values of formats, for texts of which nothing else is known. */
const FORMAT_EXAMPLES: Readonly<Record<string, string>> = Object.freeze({
  date: '2026-01-31',
  'date-time': '2026-01-31T12:00:00Z',
  duration: '30s',
  email: 'somebody@example.com',
  money: '1.50',
  size: '1mb',
  uri: 'https://example.com',
  url: 'https://example.com',
  uuid: '123e4567-e89b-12d3-a456-426614174000',
});

/**
 * A value for people to try a schema with: its first `examples`, else its default, else the least that its everyday keywords
 * allow. A schema whose rules go beyond those needs `examples` of its own. `find` gives the schema of a `$ref`.
 */
export function exampleOf(schema: Schema, find: (id: string) => Schema | undefined): Json {
  const { examples, default: preset, const: only, enum: choices, $ref: reference } = schema;
  if (Array.isArray(examples) && examples.length > 0) return examples[0] as Json;
  if (preset !== undefined) return preset as Json;
  if (only !== undefined) return only as Json;
  if (Array.isArray(choices)) return choices[0] as Json;
  if (typeof reference === 'string') return exampleOf(find(reference) ?? {}, find);
  const [branch] = ((schema['oneOf'] ?? schema['anyOf']) as readonly Schema[] | undefined) ?? [];
  if (branch) return exampleOf({ ...schema, oneOf: undefined, anyOf: undefined, ...branch }, find);
  return exampleOfType(schema, find);
}

function exampleOfType(schema: Schema, find: (id: string) => Schema | undefined): Json {
  const [type] = [schema['type']].flat();
  const least = (keyword: string): number => Number(schema[keyword] ?? 0);
  switch (type) {
    case 'object': {
      const properties = (schema['properties'] ?? {}) as Readonly<Record<string, Schema>>;
      const required = (schema['required'] ?? []) as readonly string[];
      return Object.fromEntries(required.map((name) => [name, exampleOf(properties[name] ?? {}, find)]));
    }
    case 'array':
      return Array.from({ length: least('minItems') }, () => exampleOf((schema['items'] ?? {}) as Schema, find));
    case 'integer':
    case 'number':
      return least('minimum');
    case 'boolean':
      return false;
    case 'null':
      return null;
    default:
      return FORMAT_EXAMPLES[String(schema['format'])] ?? 'text'.padEnd(least('minLength'), '.');
  }
}
