import type { Schema } from '../contract/json.ts';
import type { Route } from '../contract/plugin.ts';
import type { Owned } from '../plugins/registry.ts';
import { createRequestSchemas, type Validate } from '../plugins/request-schemas.ts';

/** Compiles the schema of a route's body or query; undefined when it has none. Throws a PluginError for one that is wrong. */
export type CompileRoute = (owner: string, route: Route, what: 'body' | 'query') => Validate | undefined;

/** Compiles the schemas of routes; `schemas` are those that others refer to by their `$id`. */
export function createRouteCompiler(schemas: readonly Owned<Schema>[]): CompileRoute {
  const requests = createRequestSchemas(schemas);
  return (owner, route, what) => {
    const schema = route[what] as Schema | undefined;
    return schema && requests.compile(owner, schema, `the ${what} schema of ${route.method} ${route.path}`);
  };
}
