import type { Schema } from '../contract/json.ts';
import type { Route } from '../contract/plugin.ts';
import type { RequestSchemas, Validate } from '../plugins/request-schemas.ts';

/** Compiles the schema of a route's body or query; undefined when it has none. Throws a PluginError for one that is wrong. */
export type CompileRoute = (owner: string, route: Route, what: 'body' | 'query') => Validate | undefined;

/** Compiles the schemas of routes, with those of all other requests of their generation. */
export function createRouteCompiler(requests: RequestSchemas): CompileRoute {
  return (owner, route, what) => {
    const schema = route[what] as Schema | undefined;
    return schema && requests.compile(owner, schema, `the ${what} schema of ${route.method} ${route.path}`);
  };
}
