import type { ErrorObject } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { Schema } from '../contract/json.ts';
import { FORMATS } from '../contract/units.ts';
import { type Owned, PluginError } from './registry.ts';

function asOwner<T>(owner: string, what: string, work: () => T): T {
  try {
    return work();
  } catch (cause) {
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
}

/** Formats of JSON Schema that are checked beside those of the configuration; any other name is refused at start. */
const STANDARD_FORMATS: Readonly<Record<string, (text: string) => boolean>> = Object.freeze({
  date: (text) => isDate(text),
  'date-time': (text) => DATE_TIME.test(text) && isDate(text.slice(0, 10)) && !Number.isNaN(Date.parse(text)),
  email: (text) => /^[^\s@]+@[^\s@]+$/.test(text),
  uri: (text) => /^[a-z][a-z\d+.-]*:/i.test(text) && URL.canParse(text),
  uuid: (text) => /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text),
});

const DATE_TIME = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/;

function isDate(text: string): boolean {
  const time = Date.parse(text);
  return /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(time) && new Date(time).toISOString().startsWith(text);
}

/**
 * Makes the one Ajv of all requests; `schemas` are those that others refer to by their `$id`. Throws a PluginError for one that
 * is wrong.
 */
export function createRequestSchemas(schemas: readonly Owned<Schema>[]): RequestSchemas {
  const ajv = new Ajv2020({
    strict: true,
    strictTypes: false,
    strictRequired: false,
    // A `required` name such as `constructor` must not be satisfied by a prototype.
    ownProperties: true,
    allowUnionTypes: true,
    formats: {
      ...STANDARD_FORMATS,
      ...Object.fromEntries(
        Object.entries(FORMATS).map(([name, { accepts }]) => [name, (text: string) => accepts(text)]),
      ),
    },
  });
  for (const { owner, value } of schemas) asOwner(owner, `the schema "${value.$id}"`, () => ajv.addSchema(value));
  return {
    compile(owner, schema, what) {
      const validate = asOwner(owner, what, () => ajv.compile(schema));
      return (value) => (validate(value) ? undefined : validate.errors?.[0]);
    },
  };
}
