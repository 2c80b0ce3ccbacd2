import type { Schema } from '../contract/json.ts';
import { isSchema } from './schema-at.ts';

const COMBINATORS = ['allOf', 'anyOf', 'oneOf', 'not', 'if', 'then', 'else', '$ref', 'dependentSchemas'] as const;
const OPEN = ['additionalProperties', 'unevaluatedProperties', 'patternProperties', '$dynamicRef'] as const;

/**
 * A plugin's schema as the configuration uses it: `plugin` is one more key, and objects are closed, so that a misspelt
 * key is a fault. A schema that wants an object open says so with `additionalProperties`.
 */
export function sealPluginSchema(schema: Schema): Schema {
  const properties = isSchema(schema['properties']) ? schema['properties'] : {};
  const { $schema: _dialect, $id: _id, ...own } = schema;
  return closeObjects({
    ...own,
    type: 'object',
    properties: {
      plugin: { type: 'string', minLength: 1, description: 'The plugin, when the key is not its name.' },
      ...properties,
    },
  });
}

function closeObjects(schema: Schema): Schema {
  const closed: Record<string, unknown> = { ...schema };
  for (const keyword of ['properties', '$defs', 'patternProperties', 'definitions']) {
    const members = schema[keyword];
    if (isSchema(members)) {
      closed[keyword] = Object.fromEntries(Object.entries(members).map(([name, member]) => [name, close(member)]));
    }
  }
  if (isSchema(schema['items'])) closed['items'] = closeObjects(schema['items']);
  if (isSchema(schema['additionalProperties'])) {
    closed['additionalProperties'] = closeObjects(schema['additionalProperties']);
  }
  if (!isSchema(schema['properties']) || OPEN.some((keyword) => keyword in schema)) return closed;
  // Beside a combinator only `unevaluatedProperties` knows what its branches declare.
  const combined = COMBINATORS.some((keyword) => keyword in schema);
  return { ...closed, [combined ? 'unevaluatedProperties' : 'additionalProperties']: false };
}

function close(schema: unknown): unknown {
  return isSchema(schema) ? closeObjects(schema) : schema;
}
