import { GatewayError, isObject, type Schema } from '../../../contract/index.ts';

/** Words of the plain shape with their schemas. */
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

/** Keywords next to `type` that make a nested object JSON Schema, and not a shape with a field `type`. */
const SCHEMA_WORDS = new Set(
  (
    'type title description enum const default examples format items prefixItems properties required additionalProperties ' +
    'minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength minItems maxItems uniqueItems ' +
    'minProperties maxProperties anyOf oneOf allOf nullable $ref pattern deprecated'
  ).split(' '),
);

/** Keywords of maps and lists whose values are not the types of a plain shape's fields. */
const OF_CONTAINERS: readonly string[] = [
  ...['additionalProperties', 'minProperties', 'maxProperties', 'required'],
  ...['items', 'prefixItems', 'minItems', 'maxItems', 'uniqueItems'],
];

/** Most fields of a plain shape are texts. */
function isKeyword(value: unknown): boolean {
  return value !== undefined && typeof value !== 'string';
}

/** True if a `response_model` is JSON Schema; anything else is a plain shape. */
export function isJsonSchema(value: Readonly<Record<string, unknown>>): boolean {
  if ('$schema' in value || '$ref' in value || '$defs' in value) return true;
  if (value['type'] === 'object' && isObject(value['properties'])) return true;
  if (value['type'] === 'array' && isObject(value['items'])) return true;
  if (isObject(value['properties']) && Array.isArray(value['required'])) return true;
  const words = Object.keys(value);
  // Example: `{"type": "object", "additionalProperties": {"type": "number"}}`, a map.
  if (['object', 'array'].includes(String(value['type'])) && OF_CONTAINERS.some((word) => isKeyword(value[word])))
    return words.every((word) => SCHEMA_WORDS.has(word));
  const combines = ['anyOf', 'oneOf', 'allOf'].some((word) => Array.isArray(value[word]));
  return combines && words.every((word) => SCHEMA_WORDS.has(word));
}

/**
 * Converts a plain shape to JSON Schema: `{"answer": "string", "steps": ["string"], "mood?": "calm | tense", "n": "int
 * - how many"}`. Grammar: docs/plugins/agents.md. Throws `invalid_request` with the path for an invalid shape.
 */
export function shapeToSchema(shape: unknown, param: string): Schema {
  if (typeof shape === 'string') return wordToSchema(shape, param);
  if (typeof shape === 'boolean') return { type: 'boolean' };
  if (typeof shape === 'number') return { type: 'number' };
  if (shape === null) return { type: 'null' };
  if (Array.isArray(shape)) return listToSchema(shape, param);
  if (!isObject(shape)) throw new GatewayError('invalid_request', `${param} is not a valid shape.`, { param });
  return isNestedSchema(shape) ? shape : objectToSchema(shape, param);
}

/** Converts an object; keys are required except those that end in `?`. */
export function objectToSchema(shape: Readonly<Record<string, unknown>>, param: string): Schema {
  const fields = Object.entries(shape).map(([key, value]) => {
    const optional = key.length > 1 && key.endsWith('?');
    const name = optional ? key.slice(0, -1) : key;
    return { name, optional, schema: shapeToSchema(value, `${param}.${name}`) };
  });
  if (fields.length === 0) {
    throw new GatewayError('invalid_request', `${param} has no fields. Use {"answer": "string"}.`, { param });
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
    `${param} is a list of ${list.length}. Use one element for "a list of these", or several strings for a choice.`,
    { param },
  );
}

/**
 * Parses `string`, `int?`, `string[]`, `a | b`, each with an optional ` - description`; any other text is the
 * description of a string.
 */
function wordToSchema(text: string, param: string): Schema {
  const described = /^([^:]{1,200}?)(?:\s+-\s+|:\s+)(.+)$/s.exec(text);
  const type = described?.[1] === undefined ? undefined : typeToSchema(described[1]);
  if (type && described?.[2]) return { ...type, description: described[2] };
  const whole = typeToSchema(text);
  if (whole) return whole;
  if (GENERIC.test(described?.[1] ?? text))
    throw new GatewayError('invalid_request', `${param} is an unknown type. Use "string[]" or ["string"] for a list.`, {
      param,
    });
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
  const generic = GENERIC.exec(word);
  if (generic) return genericToSchema(generic[1] ?? '', splitArguments(generic[2] ?? ''));
  if (word.includes('|')) return choiceToSchema(word.split('|').map((part) => part.trim()));
  return Object.hasOwn(TYPES, word.toLowerCase()) ? TYPES[word.toLowerCase()] : undefined;
}

/** `List[str]`, `Array<number>`, `Optional[int]`, `Dict[str, float]`: types as in typed languages. */
const GENERIC = /^([A-Za-z]{1,20})\s*[[<](.{1,500})[\]>]$/s;

/** Undefined for an unknown type, also as an argument. */
function genericToSchema(name: string, parts: readonly string[]): Schema | undefined {
  const [first, second] = parts.map((part) => typeToSchema(part));
  const lower = name.toLowerCase();
  if (LISTS.has(lower)) return parts.length === 1 && first ? { type: 'array', items: first } : undefined;
  if (MAPS.has(lower))
    return parts.length === 2 && second ? { type: 'object', additionalProperties: second } : undefined;
  if (lower === 'optional') return parts.length === 1 && first ? { anyOf: [first, { type: 'null' }] } : undefined;
  if (lower === 'union' || lower === 'literal') return choiceToSchema(parts);
  return undefined;
}

const LISTS: ReadonlySet<string> = new Set(['list', 'array', 'set', 'sequence', 'iterable', 'readonlyarray']);
const MAPS: ReadonlySet<string> = new Set(['dict', 'map', 'mapping', 'record']);

/** Splits the arguments of a generic type; commas inside brackets belong to nested types. */
function splitArguments(text: string): readonly string[] {
  const parts = [''];
  let depth = 0;
  for (const character of text) {
    if ('[<'.includes(character)) depth += 1;
    else if (']>'.includes(character)) depth -= 1;
    if (character === ',' && depth === 0) parts.push('');
    else parts.push(`${parts.pop() ?? ''}${character}`);
  }
  return parts.map((part) => part.trim());
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
