import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import type { Ajv2020, ErrorObject, Options } from 'ajv/dist/2020.js';
import { LRUCache } from 'lru-cache';
import { GatewayError, isObject, type Schema } from '../../../core/index.ts';
import { fitValue } from './fit-value.ts';
import { normaliseSchema } from './normalise-schema.ts';
import { isJsonSchema, objectToSchema } from './shape-schema.ts';

export type Checked =
  | { readonly ok: true; readonly value: unknown }
  /** `error` says what does not fit, in words a model can act on. */
  | { readonly ok: false; readonly error: string };

/** A schema that a model is given, and its responses are checked against. */
export interface CheckedSchema {
  /** Normalised: no `$ref`, known keywords only. */
  readonly schema: Schema;
  /** Takes off what strict mode added, then validates. */
  readonly check: (value: unknown) => Checked;
}

/** The most elements in one list of a response: what `uniqueItems` may have to compare. */
const MAX_LIST = 5000;

/** Formats that are checked; any other is a hint. Every expression is linear. */
const FORMATS = Object.freeze({
  date: /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])$/,
  'date-time': /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)$/,
  email: /^[^\s@]{1,64}@[^\s@]{1,255}$/,
  uri: /^[A-Za-z][A-Za-z0-9+.-]{0,30}:\S{1,8000}$/,
  uuid: /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i,
});

export interface SchemaReader {
  /** A `response_model`: JSON Schema, OpenAI's `response_format` wrapper, or a plain shape. */
  readModel(value: Readonly<Record<string, unknown>>, param: string): CheckedSchema;
  /** A JSON Schema. */
  readSchema(value: Schema, param: string): CheckedSchema;
}

/**
 * Makes a reader that remembers the last 200 compiled schemas. Throws `invalid_request` with the path of what cannot be
 * used. Each schema is compiled by an Ajv of its own: schemas of callers never meet, and never stay.
 */
export function createSchemaReader(): SchemaReader {
  const known = new LRUCache<string, CheckedSchema>({ max: 200 });
  let meta: Ajv2020 | undefined;
  const remember = (value: object, param: string, make: () => Schema): CheckedSchema => {
    const key = createHash('sha256').update(param).update('\0').update(JSON.stringify(value)).digest('base64url');
    const found = known.get(key);
    if (found) return found;
    meta ??= createAjv({ strict: false, logger: false, validateFormats: false });
    const made = compileSchema(make(), param, meta);
    known.set(key, made);
    return made;
  };
  return {
    readModel: (value, param) => remember(value, param, () => readAnySchema(value, param)),
    readSchema: (value, param) => remember(value, param, () => normaliseSchema(value, param)),
  };
}

/** Loads Ajv with the first schema that comes: it takes long, and a start does not need it. */
function createAjv(options: Options): Ajv2020 {
  const ajv = createRequire(import.meta.url)('ajv/dist/2020.js') as typeof import('ajv/dist/2020.js');
  return new ajv.Ajv2020(options);
}

function readAnySchema(value: Readonly<Record<string, unknown>>, param: string): Schema {
  const wrapped = value['type'] === 'json_schema' ? value['json_schema'] : undefined;
  const inner = isObject(wrapped) ? wrapped['schema'] : undefined;
  if (isObject(inner)) return normaliseSchema(inner, `${param}.json_schema.schema`);
  return normaliseSchema(isJsonSchema(value) ? value : objectToSchema(value, param), param);
}

function compileSchema(schema: Schema, param: string, meta: Ajv2020): CheckedSchema {
  if (!meta.validateSchema(schema)) {
    const error = meta.errors?.[0];
    const path = `${param}${toPath(error?.instancePath ?? '')}`;
    throw new GatewayError('invalid_request', `${path} ${error?.message ?? 'is no JSON Schema'}.`, { param: path });
  }
  const ajv = createAjv({
    strict: false,
    logger: false,
    meta: false,
    validateSchema: false,
    code: { optimize: false },
    formats: FORMATS,
  });
  const validate = compileWith(ajv, schema, param);
  return Object.freeze({
    schema,
    check(value: unknown): Checked {
      const fitted = fitValue(value, schema);
      if (hasLongList(fitted)) return { ok: false, error: `a list has over ${MAX_LIST} elements` };
      if (validate(fitted)) return { ok: true, value: fitted };
      return { ok: false, error: describeError(validate.errors?.[0]) };
    },
  });
}

function compileWith(ajv: Ajv2020, schema: Schema, param: string): ReturnType<Ajv2020['compile']> {
  try {
    return ajv.compile(schema);
  } catch (cause) {
    throw new GatewayError('invalid_request', `${param} is not a usable JSON Schema.`, { param, cause });
  }
}

function describeError(error: ErrorObject | undefined): string {
  if (!error) return 'it does not fit the schema';
  const where = toPath(error.instancePath).replace(/^\./, '') || 'the answer';
  const allowed = error.keyword === 'enum' ? `: ${JSON.stringify(error.params['allowedValues']).slice(0, 300)}` : '';
  return `${where} ${error.message ?? 'does not fit'}${allowed}`;
}

/** `/properties/a/anyOf/0` as `.properties.a.anyOf[0]`. */
function toPath(pointer: string): string {
  return pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((step) => (/^\d+$/.test(step) ? `[${step}]` : `.${step}`))
    .join('');
}

function hasLongList(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value) && value.length > MAX_LIST) return true;
  return Object.values(value).some(hasLongList);
}
