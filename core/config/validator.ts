import type { ErrorObject } from 'ajv';
import type { Ajv2020 } from 'ajv/dist/2020.js';
import type { Schema } from '../contract/json.ts';
import { FORMATS } from './formats.ts';
import { loadAjv } from './load-ajv.ts';
import { compilePlain } from './plain-schema.ts';

/** Checks values by the schemas of a configuration. */
export interface Validator {
  /** The errors of a value as Ajv tells them; fills in its defaults, in place. Throws when the schema itself is wrong. */
  findErrors(schema: Schema, value: unknown): readonly SchemaError[];
}

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

/** Says yes by itself where it can, and loads Ajv for the rest: most starts do without it. */
export function createValidator(): Validator {
  let ajv: Ajv2020 | undefined;
  return {
    findErrors(schema, value) {
      if (compilePlain(schema)?.(value)) return [];
      ajv ??= createAjv();
      const validate = ajv.compile(schema);
      return validate(value) ? [] : ((validate.errors ?? []) as unknown as SchemaError[]);
    },
  };
}

/**
 * Ajv as every configuration schema is compiled: strict, all errors, defaults applied, our keyword and formats known.
 * Compiling finds what is wrong with a schema; checking it by the meta-schema before would cost 30 ms of every start.
 */
export function createAjv(): Ajv2020 {
  const ajv = new (loadAjv())({
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

function compileFormat(name: string): (value: unknown) => boolean {
  const format = FORMATS[name];
  if (!format && !ANNOTATIONS.includes(name)) throw new Error(`unknown format "${name}"`);
  return (value) => !format || (typeof value !== 'string' && typeof value !== 'number') || format.accepts(value);
}
