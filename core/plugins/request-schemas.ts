import type { ErrorObject } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { FORMATS } from '../config/formats.ts';
import type { Schema } from '../contract/json.ts';

/** The first error of a value; undefined when it fits. */
export type Validate = (value: unknown) => ErrorObject | undefined;

/** Compiles the schemas of requests. */
export interface RequestSchemas {
  /** Throws for a schema that is wrong. */
  compile(schema: Schema): Validate;
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

/** Makes the one Ajv of all requests; `schemas` are those that others refer to by their `$id`. */
export function createRequestSchemas(schemas: readonly Schema[]): RequestSchemas {
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
  for (const schema of schemas) ajv.addSchema(schema);
  return {
    compile(schema) {
      const validate = ajv.compile(schema);
      return (value) => (validate(value) ? undefined : validate.errors?.[0]);
    },
  };
}
