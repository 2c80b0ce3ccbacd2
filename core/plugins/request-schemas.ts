import type { ErrorObject } from 'ajv';
import type { Ajv2020, CodeOptions, ValidateFunction } from 'ajv/dist/2020.js';
import { createValidatorFinder, type Formats, loadAjv } from '../config/compiled-ahead.ts';
import { SETTINGS_FORMATS } from '../config/validate.ts';
import type { Schema } from '../contract/json.ts';
import type { Route } from '../contract/plugin.ts';
import { type Owned, PluginError } from './registry.ts';

function asOwner<T>(owner: string, what: string, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    if (cause instanceof PluginError) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new PluginError(owner, `${what} does not compile: ${reason}`, { cause });
  }
}

/** The first error of a value; undefined when it fits. */
export type Validate = (value: unknown) => ErrorObject | undefined;

/** Compiles the schemas of requests. */
export interface RequestSchemas {
  /** Throws a PluginError for a schema that is wrong. */
  compile(owner: string, schema: Schema, what: string): Validate;
  /** The JSON texts of the schemas that were compiled. */
  texts(): readonly string[];
}

/** Formats of JSON Schema and those of the configuration; any other name is refused at start. */
export const REQUEST_FORMATS: Formats = Object.freeze({
  date: (text) => isDate(text),
  'date-time': (text) => DATE_TIME.test(text) && isDate(text.slice(0, 10)) && !Number.isNaN(Date.parse(text)),
  email: (text) => /^[^\s@]+@[^\s@]+$/.test(text),
  uri: (text) => /^[a-z][a-z\d+.-]*:/i.test(text) && URL.canParse(text),
  uuid: (text) => /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text),
  ...SETTINGS_FORMATS,
});

const DATE_TIME = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/;

function isDate(text: string): boolean {
  const time = Date.parse(text);
  return /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(time) && new Date(time).toISOString().startsWith(text);
}

const findValidator = createValidatorFinder('requests', REQUEST_FORMATS);

/** A reference to another schema: what a text with one means is known only with the others. */
export const REFERS_TO_OTHERS = /"\$(?:ref|dynamicRef)":"[^#]/;

/** Compiles the schemas of one configuration; `schemas` are those that others refer to by their `$id`. Throws a PluginError for one that is wrong. */
export function createRequestSchemas(schemas: readonly Owned<Schema>[]): RequestSchemas {
  const others = JSON.stringify(schemas.map(({ value }) => value));
  const texts = new Set<string>();
  const textsById = new Map<unknown, string>();
  let ajv: Ajv2020 | undefined;
  const compile = (schema: Schema): ValidateFunction => {
    ajv ??= createRequestAjv(schemas);
    return ajv.compile(schema);
  };
  const find = (owner: string, schema: Schema, what: string): ValidateFunction => {
    const text = JSON.stringify(schema);
    const { $id } = schema;
    return asOwner(owner, what, () => {
      // Ajv sees only those that nobody knew.
      if ($id !== undefined && (textsById.get($id) ?? text) !== text)
        throw new TypeError(`another schema has the $id "${String($id)}"`);
      textsById.set($id, text);
      texts.add(text);
      return findValidator(REFERS_TO_OTHERS.test(text) ? text + others : text, () => compile(schema));
    });
  };
  // One that is wrong stops the start, even when nothing refers to it.
  for (const { owner, value } of schemas) find(owner, value, `the schema "${value.$id}"`);
  return {
    compile(owner, schema, what) {
      const validate = find(owner, schema, what);
      return (value) => (validate(value) ? undefined : validate.errors?.[0]);
    },
    texts: () => [...texts],
  };
}

/** Makes the one Ajv of all requests. `code` is how the build has it write code. */
export function createRequestAjv(
  schemas: readonly Owned<Schema>[],
  // The optimiser takes half of what compiling takes, a third of a start.
  code: CodeOptions = { optimize: false },
): Ajv2020 {
  const { Ajv2020 } = loadAjv();
  const ajv = new Ajv2020({
    strict: true,
    code,
    strictTypes: false,
    strictRequired: false,
    // A `required` name such as `constructor` must not be satisfied by a prototype.
    ownProperties: true,
    allowUnionTypes: true,
    formats: REQUEST_FORMATS,
  });
  for (const { owner, value } of schemas) asOwner(owner, `the schema "${value.$id}"`, () => ajv.addSchema(value));
  return ajv;
}

/** Compiles the schema of a route's body or query; undefined when it has none. Throws a PluginError for one that is wrong. */
export type CompileRoute = (owner: string, route: Route, what: 'body' | 'query') => Validate | undefined;

/** Compiles the schemas of routes, with those of all other requests of their generation. */
export function createRouteCompiler(requests: RequestSchemas): CompileRoute {
  return (owner, route, what) => {
    const schema = route[what] as Schema | undefined;
    return schema && requests.compile(owner, schema, `the ${what} schema of ${route.method} ${route.path}`);
  };
}
