import { GatewayError, isObject, type Schema } from '../../../core/index.ts';

/** Words of the plain shape and the schema each stands for. */
const TYPES: Readonly<Record<string, Schema>> = Object.freeze({
  string: { type: 'string' },
  str: { type: 'string' },
  text: { type: 'string' },
  number: { type: 'number' },
  float: { type: 'number' },
  integer: { type: 'integer' },
  int: { type: 'integer' },
  boolean: { type: 'boolean' },
  bool: { type: 'boolean' },
  object: { type: 'object' },
  any: {},
  null: { type: 'null' },
  date: { type: 'string', format: 'date' },
  datetime: { type: 'string', format: 'date-time' },
  email: { type: 'string', format: 'email' },
  url: { type: 'string', format: 'uri' },
  uuid: { type: 'string', format: 'uuid' },
});

const JSON_TYPES = new Set(['string', 'number', 'integer', 'boolean', 'object', 'array', 'null']);

/** What may stand beside `type` for a nested object to be read as JSON Schema and not as a shape with a field `type`. */
const SCHEMA_WORDS = new Set(
  (
    'type title description enum const default examples format items prefixItems properties required additionalProperties ' +
    'minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength minItems maxItems uniqueItems ' +
    'minProperties maxProperties anyOf oneOf allOf nullable $ref pattern deprecated'
  ).split(' '),
);

/** Whether a `response_model` is JSON Schema; anything else is a plain shape. */
export function isJsonSchema(value: Readonly<Record<string, unknown>>): boolean {
  if ('$schema' in value || '$ref' in value || '$defs' in value) return true;
  if (value['type'] === 'object' && isObject(value['properties'])) return true;
  if (value['type'] === 'array' && isObject(value['items'])) return true;
  if (isObject(value['properties']) && Array.isArray(value['required'])) return true;
  const words = Object.keys(value);
  const combines = ['anyOf', 'oneOf', 'allOf'].some((word) => Array.isArray(value[word]));
  return combines && words.every((word) => SCHEMA_WORDS.has(word));
}

/**
 * A plain shape as JSON Schema: `{"answer": "string", "steps": ["string"], "mood?": "calm | tense", "n": "int - how many"}`.
 * The grammar is in docs/agents.md. Throws `invalid_request` with the path for what is no shape.
 */
export function shapeToSchema(shape: unknown, param: string): Schema {
  if (typeof shape === 'string') return wordToSchema(shape);
  if (typeof shape === 'boolean') return { type: 'boolean' };
  if (typeof shape === 'number') return { type: 'number' };
  if (shape === null) return { type: 'null' };
  if (Array.isArray(shape)) return listToSchema(shape, param);
  if (!isObject(shape)) throw new GatewayError('invalid_request', `${param} is not a shape.`, { param });
  return isNestedSchema(shape) ? shape : objectToSchema(shape, param);
}

/** An object all of whose keys are required unless they end in `?`. */
export function objectToSchema(shape: Readonly<Record<string, unknown>>, param: string): Schema {
  const fields = Object.entries(shape).map(([key, value]) => {
    const optional = key.length > 1 && key.endsWith('?');
    const name = optional ? key.slice(0, -1) : key;
    return { name, optional, schema: shapeToSchema(value, `${param}.${name}`) };
  });
  if (fields.length === 0) {
    throw new GatewayError('invalid_request', `${param} names no fields: write {"answer": "string"}.`, { param });
  }
  return {
    type: 'object',
    properties: Object.fromEntries(fields.map(({ name, schema }) => [name, schema])),
    required: fields.filter(({ optional }) => !optional).map(({ name }) => name),
    additionalProperties: false,
  };
}

function listToSchema(list: readonly unknown[], param: string): Schema {
  if (list.length === 1) return { type: 'array', items: shapeToSchema(list[0], `${param}[0]`) };
  if (list.length > 1 && list.every((one) => typeof one === 'string')) return { type: 'string', enum: unique(list) };
  throw new GatewayError(
    'invalid_request',
    `${param} is a list of ${list.length}: write one element for "a list of these", or several strings for a choice.`,
    { param },
  );
}

/** `string`, `int?`, `string[]`, `a | b`, each with an optional ` - description`; any other text describes a string. */
function wordToSchema(text: string): Schema {
  const described = /^([^:]{1,200}?)(?:\s+-\s+|:\s+)(.+)$/s.exec(text);
  const type = described?.[1] === undefined ? undefined : typeToSchema(described[1]);
  if (type && described?.[2]) return { ...type, description: described[2] };
  const whole = typeToSchema(text);
  if (whole) return whole;
  return text.trim() === '' ? { type: 'string' } : { type: 'string', description: text };
}

function typeToSchema(text: string): Schema | undefined {
  const word = text.trim();
  if (word.endsWith('?')) {
    const inner = typeToSchema(word.slice(0, -1));
    return inner && { anyOf: [inner, { type: 'null' }] };
  }
  if (word.endsWith('[]')) {
    const items = typeToSchema(word.slice(0, -2));
    return items && { type: 'array', items };
  }
  if (word.includes('|')) return choiceToSchema(word.split('|').map((part) => part.trim()));
  return Object.hasOwn(TYPES, word.toLowerCase()) ? TYPES[word.toLowerCase()] : undefined;
}

function choiceToSchema(parts: readonly string[]): Schema | undefined {
  if (parts.some((part) => part === '' || part.length > 60 || part.includes(':'))) return undefined;
  const types = parts.map((part) => typeToSchema(part));
  if (types.every((type) => type !== undefined)) return { anyOf: types };
  const words = parts.filter((part) => part !== 'null');
  const choice = { type: 'string', enum: unique(words.map((word) => word.replace(/^(["'])(.*)\1$/, '$2'))) };
  return words.length < parts.length ? { anyOf: [choice, { type: 'null' }] } : choice;
}

function isNestedSchema(value: Readonly<Record<string, unknown>>): boolean {
  if (isJsonSchema(value)) return true;
  const { type } = value;
  const typed = typeof type === 'string' ? JSON_TYPES.has(type) : Array.isArray(type) || Array.isArray(value['enum']);
  return typed && Object.keys(value).every((word) => SCHEMA_WORDS.has(word));
}

function unique(words: readonly unknown[]): readonly unknown[] {
  return [...new Set(words)];
}
