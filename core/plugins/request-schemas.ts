import type { ErrorObject } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { Schema } from '../contract/json.ts';
import type { Route } from '../contract/plugin.ts';
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

/** What was compiled, by the text of the schema. */
interface Compiled {
  /** The text of the schemas that others refer to. */
  readonly shared: string;
  readonly validators: ReadonlyMap<string, Validate>;
}

/**
 * Compiles the schemas of one configuration after the other. Each has mostly those of the one before: compiling all of them anew
 * would keep a process that serves calls from doing so for most of a second.
 */
export class SchemaCompiler {
  #former: Compiled | undefined;

  /** `schemas` are those that others refer to by their `$id`. Throws a PluginError for one that is wrong. */
  begin(schemas: readonly Owned<Schema>[]): RequestSchemas {
    const shared = JSON.stringify(schemas);
    const former = this.#former?.shared === shared ? this.#former : undefined;
    let ajv = former ? undefined : createAjv(schemas);
    const validators = new Map<string, Validate>();
    this.#former = { shared, validators };
    const compile = (schema: Schema): Validate => {
      ajv ??= createAjv(schemas);
      const validate = ajv.compile(schema);
      return (value) => (validate(value) ? undefined : validate.errors?.[0]);
    };
    return {
      compile(owner, schema, what) {
        const text = JSON.stringify(schema);
        const known = validators.get(text) ?? former?.validators.get(text);
        const validate = known ?? asOwner(owner, what, () => compile(schema));
        validators.set(text, validate);
        return validate;
      },
    };
  }
}

/** Compiles the schemas of one configuration. */
export function createRequestSchemas(schemas: readonly Owned<Schema>[]): RequestSchemas {
  return new SchemaCompiler().begin(schemas);
}

/** Makes the one Ajv of all requests. */
function createAjv(schemas: readonly Owned<Schema>[]): Ajv2020 {
  const ajv = new Ajv2020({
    strict: true,
    // The optimiser takes half of what compiling takes, a third of a start.
    code: { optimize: false },
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
