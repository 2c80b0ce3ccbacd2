import type { ErrorObject } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { FORMATS } from '../config/formats.ts';
import type { Schema } from '../contract/json.ts';
import type { Route } from '../contract/plugin.ts';
import { PluginFault } from '../plugins/registry.ts';

/** The first error of a body or query; undefined when it has none. */
export type Validate = (value: unknown) => ErrorObject | undefined;

/** Compiles the schema of a route's body or query; undefined when it has none. Throws a PluginFault for one that is wrong. */
export type CompileRoute = (owner: string, route: Route, what: 'body' | 'query') => Validate | undefined;

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

/** Makes the one Ajv of all routes; `schemas` are those that others refer to by their `$id`. */
export function createRouteCompiler(schemas: readonly Schema[]): CompileRoute {
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
  return (owner, route, what) => {
    const schema = route[what] as Schema | undefined;
    if (!schema) return undefined;
    try {
      const validate = ajv.compile(schema);
      return (value) => (validate(value) ? undefined : validate.errors?.[0]);
    } catch (cause) {
      const message = `the ${what} schema of ${route.method} ${route.path} does not compile: ${(cause as Error).message}`;
      throw new PluginFault(owner, message, { cause });
    }
  };
}
