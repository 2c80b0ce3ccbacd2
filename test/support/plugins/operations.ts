import { readdirSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { PACKAGE_ROOT } from '../../../config/package-root.ts';
import type { JsonObject, OperationDefinition, OperationRoute, Plugin, Schema } from '../../../contract/index.ts';
import { readArray, readObject } from '../../../contract/index.ts';

const FOLDER = path.join(PACKAGE_ROOT, 'plugins/operations');

/** Definitions that the built-in plugins of kind `operation` register. */
export async function loadOperations(): Promise<readonly OperationDefinition[]> {
  const found: OperationDefinition[] = [];
  const api = new Proxy({} as Record<string, unknown>, {
    get: (_target, name) => (name === 'operation' ? (each: OperationDefinition) => void found.push(each) : ANYTHING),
  });
  for (const { name } of readdirSync(FOLDER, { withFileTypes: true })) {
    if (name === 'kit') continue;
    const file = name.endsWith('.ts') ? name : `${name}/index.ts`;
    const module = (await import(pathToFileURL(path.join(FOLDER, file)).href)) as { readonly default: Plugin };
    const { configSchema, setup } = module.default;
    await setup(api as never, defaultsOf(configSchema) as never);
  }
  return found;
}

function defaultsOf(schema: unknown): JsonObject {
  const properties = Object.entries(readObject(readObject(schema)['properties']));
  return Object.fromEntries(properties.map(([name, property]) => [name, readObject(property)['default']]));
}

/** Value of which every member exists, and every call returns such a value. */
const ANYTHING: unknown = new Proxy(() => undefined, {
  get: (_target, name) => (name === Symbol.toPrimitive || name === 'then' ? undefined : ANYTHING),
  apply: () => ANYTHING,
});

/** Way into an operation: a path, with a request and a response by the examples of its schemas. */
export interface WayIn {
  readonly operation: OperationDefinition;
  readonly path: string;
  readonly isForm: boolean;
  readonly request: JsonObject;
  /** Form fields of files. */
  readonly files: readonly string[];
  readonly response: JsonObject;
}

/** Returns all ways into an operation by its routes. Throws if a schema has no example. */
export function waysInto(operation: OperationDefinition): readonly WayIn[] {
  return (operation.routes ?? []).flatMap((route) => {
    const { path: end, otherPaths = [], files = {} } = route;
    const paths = [...(end === undefined ? [] : [`/v1/${end}`, `/api/core/{provider}/${end}`]), ...otherPaths];
    return paths.map((at) => ({
      operation,
      path: at,
      isForm: route.files !== undefined,
      request: exampleOf(route.body ?? operation.request, `the body of ${at}`),
      files: Object.entries(files).flatMap(([name, { field = name, optional }]) => (optional ? [] : [field])),
      response: responseOf(operation, route, at),
    }));
  });
}

function responseOf(operation: OperationDefinition, route: OperationRoute, at: string): JsonObject {
  const own = operation.routes?.find(({ response }) => readArray(response?.schema['examples']).length > 0);
  const schema = route.response?.schema ?? operation.response ?? {};
  const hasExample = readArray(schema['examples']).length > 0;
  // Other formats of a response are written from the operation's own.
  return exampleOf(hasExample ? schema : (own?.response?.schema ?? schema), `the response of ${at}`);
}

function exampleOf(schema: Schema, what: string): JsonObject {
  const [example] = readArray(schema['examples']);
  if (example === undefined) throw new Error(`${what} has no example: add \`examples\` to its schema`);
  return readObject(example);
}
