import type { ErrorObject } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { Schema } from '../types/json.ts';
import { FORMATS } from './formats.ts';

export type Validator = Ajv2020;

export type SchemaError = ErrorObject<string, Readonly<Record<string, unknown>>>;

/** Formats of JSON Schema that third-party schemas may name; they annotate and are not checked. */
const ANNOTATIONS: readonly string[] = [
  'uri',
  'uri-reference',
  'email',
  'hostname',
  'date-time',
  'date',
  'regex',
  'ipv4',
  'ipv6',
  'uuid',
];

/**
 * Ajv as every configuration schema is compiled: strict, all errors, defaults applied, our keyword and formats known.
 * Compiling finds what is wrong with a schema; checking it by the meta-schema before would cost 30 ms of every start.
 */
export function createValidator(): Validator {
  const ajv = new Ajv2020({
    strict: true,
    // `anyOf: [{ required: […] }]` is how a schema says "one of these".
    strictRequired: false,
    validateSchema: false,
    allErrors: true,
    verbose: true,
    useDefaults: true,
    allowUnionTypes: true,
    addUsedSchema: false,
    logger: false,
  });
  ajv.addKeyword({ keyword: 'secret', schemaType: 'boolean' });
  // Ajv's own `format` sees either texts or numbers; ours sees both, as `money` and `size` need.
  ajv.removeKeyword('format');
  ajv.addKeyword({ keyword: 'format', schemaType: 'string', compile: compileFormat });
  return ajv;
}

/** Checks a value, filling in defaults in place; the errors as Ajv tells them. Throws when the schema itself is wrong. */
export function findErrors(validator: Validator, schema: Schema, value: unknown): readonly SchemaError[] {
  const validate = validator.compile(schema);
  return validate(value) ? [] : ((validate.errors ?? []) as unknown as SchemaError[]);
}

function compileFormat(name: string): (value: unknown) => boolean {
  const format = FORMATS[name];
  if (!format && !ANNOTATIONS.includes(name)) throw new Error(`unknown format "${name}"`);
  return (value) => !format || (typeof value !== 'string' && typeof value !== 'number') || format.accepts(value);
}
