import { readFileSync } from 'node:fs';
import path from 'node:path';
import { PACKAGE_ROOT } from '../config/package-root.ts';
import type { CredentialKind } from '../contract/call.ts';
import { ERRORS, type ErrorCode } from '../contract/errors.ts';
import type { Json, Schema } from '../contract/json.ts';
import type { Route } from '../contract/plugin.ts';
import { kindsTaken, SESSION_COOKIE } from '../contract/route.ts';

/** Route and the plugin that registered it. */
interface AttributedRoute {
  readonly owner: string;
  readonly value: Route;
}

/** Gateway facts: its version, and its URL for programs on this machine. */
interface About {
  readonly version: string;
  readonly url: string;
  /** Prefix of its paths; empty for none. */
  readonly basePath?: string;
}

/**
 * Creates the OpenAPI 3.1 document of the mounted routes. It contains the schemas used for validation, so the two
 * cannot drift.
 */
export function createOpenApi(
  routes: readonly AttributedRoute[],
  schemas: readonly Schema[],
  { version, url, basePath = '' }: About,
  credentials: ReadonlySet<CredentialKind> = KEYS_AND_TOKENS,
): Schema {
  const hasSessions = credentials.has('session');
  const paths: Record<string, Record<string, unknown>> = {};
  const components: Record<string, Schema> = { Error: ERROR_SCHEMA };
  for (const schema of schemas) register(components, schema);
  for (const { owner, value: route } of routes) {
    const place = openApiPath(route.path);
    paths[place] ??= {};
    paths[place][route.method.toLowerCase()] = {
      ...operation(owner, route, components, hasSessions),
      'x-codeSamples': [curlSample(route, components, url), ...samplesOf(place, url)],
    };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Tollgate',
      version,
      description: 'A gateway for language models. Errors have one format; docs/http.md lists the codes.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    ...(basePath !== '' && { servers: [{ url: basePath }] }),
    paths,
    components: {
      schemas: components,
      securitySchemes: {
        apiKey: { type: 'http', scheme: 'bearer', description: 'API key of this gateway: `tg_…`.' },
        apiKeyHeader: { type: 'apiKey', in: 'header', name: 'x-api-key' },
        token: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'JWT',
          description: 'Token of the identity provider.',
        },
        ...(hasSessions && { session: SESSION_SCHEME }),
      },
    },
  };
}

function operation(
  owner: string,
  route: Route,
  components: Record<string, Schema>,
  hasSessions: boolean,
): Record<string, unknown> {
  const { summary, description } = route;
  return {
    operationId: operationId(route),
    tags: [owner],
    summary,
    ...(description && { description }),
    security: kindsTaken(route)
      .filter((kind) => kind !== 'session' || hasSessions)
      .flatMap((kind) => SCHEMES[kind].map((scheme) => ({ [scheme]: scopesOf(route) }))),
    ...parameters(route),
    ...requestBody(route, components),
    responses: { ...responses(route, components), ...errorResponses(route) },
  };
}

const KEYS_AND_TOKENS: ReadonlySet<CredentialKind> = new Set(['key', 'token']);

/** Security schemes of each kind of credential. */
const SCHEMES: Readonly<Record<CredentialKind, readonly string[]>> = Object.freeze({
  key: ['apiKey', 'apiKeyHeader'],
  token: ['token'],
  session: ['session'],
});

/** Scope that the credential of an operator needs for the route; `admin` by default. */
function scopesOf({ role, scope = 'admin' }: Route): readonly string[] {
  return role === 'admin' && scope !== 'any' ? [scope] : [];
}

const SESSION_SCHEME = Object.freeze({
  type: 'apiKey',
  in: 'cookie',
  name: SESSION_COOKIE,
  description:
    'Session of a person who signed in with a browser. Over https, the name begins with `__Host-`. Changes are accepted only from pages of this gateway.',
});

/** Request body of a route: JSON, or a form with files. */
function requestBody(route: Route, components: Record<string, Schema>): { requestBody?: unknown } {
  if (!route.body && !route.form) return {};
  const given = (route.body ?? { type: 'object' }) as Schema;
  // Recursive schemas become components.
  const body = '$defs' in given ? { $id: operationId(route), ...given } : given;
  const schema = reference(components, body);
  const required = !route.bodyOptional;
  if (route.form) return { requestBody: { required, content: { 'multipart/form-data': { schema } } } };
  // Viewers show one of `examples`; RapiDoc would generate a body in addition to `example`.
  const examples = { example: { value: exampleOfBody(body, components) } };
  return { requestBody: { required, content: { 'application/json': { schema, examples } } } };
}

function exampleOfBody(body: Schema, components: Readonly<Record<string, Schema>>): Json {
  return exampleOf(body, (id) => components[componentName(id)]);
}

/** Sample code that calls a route, as shown by OpenAPI viewers. */
interface CodeSample {
  readonly lang: string;
  readonly label: string;
  readonly source: string;
}

function curlSample(route: Route, components: Readonly<Record<string, Schema>>, url: string): CodeSample {
  const { method, path: place, auth, body, form } = route;
  // Replace parameters by upper-case words: curl would expand braces as a pattern.
  const target = place.replaceAll(PARAMETER, (_, name: string) => name.toUpperCase()).replaceAll('\\', '');
  const example = body && !form ? JSON.stringify(exampleOfBody(body as Schema, components)) : undefined;
  const words = [
    `curl ${url}${target}`,
    ...(method === 'GET' || (method === 'POST' && (example !== undefined || form)) ? [] : [`-X ${method}`]),
    ...(auth === 'none' ? [] : ['-H "authorization: Bearer $TOLLGATE_API_KEY"']),
    ...(form ? ['-F file=@FILE'] : []),
    ...(example === undefined
      ? []
      : [`-H 'content-type: application/json'`, `-d '${example.replaceAll("'", "'\\''")}'`]),
  ];
  return { lang: 'Shell', label: 'curl', source: words.join(' \\\n  ') };
}

/** Row of `config/clients.json`. */
interface ClientSetup {
  readonly title: string;
  readonly route?: string;
  readonly steps: readonly { readonly lines: readonly string[] }[];
}

let setups: readonly ClientSetup[] | undefined;

/** Samples for a route by library, from the lines that were tested with it. */
function samplesOf(place: string, url: string): readonly CodeSample[] {
  const file = path.join(PACKAGE_ROOT, 'config', 'clients.json');
  setups ??= Object.values(JSON.parse(readFileSync(file, 'utf8')) as Readonly<Record<string, ClientSetup>>);
  return setups.flatMap(({ title, route, steps: [step] }) => {
    if (route !== place || !step) return [];
    const source = step.lines
      .join('\n')
      .replaceAll('{base}', url)
      .replaceAll("'{key}'", 'process.env.TOLLGATE_API_KEY')
      .replaceAll('{model}', 'echo/echo');
    return [{ lang: 'JavaScript', label: title, source }];
  });
}

function responses(route: Route, components: Record<string, Schema>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(route.responses).map(([status, response]) => {
      const { description, schema, contentType } =
        typeof response === 'string' ? { description: response, schema: undefined, contentType: undefined } : response;
      if (!schema && !contentType) return [status, { description }];
      return [
        status,
        {
          description,
          content: { [contentType ?? 'application/json']: schema ? { schema: reference(components, schema) } : {} },
        },
      ];
    }),
  );
}

/** Error statuses that a route of this kind may return. */
function errorResponses(route: Route): Record<string, unknown> {
  const codes: ErrorCode[] = ['internal_error'];
  if (route.auth !== 'none') codes.push('missing_api_key', 'permission_denied', 'store_unavailable', 'rate_limited');
  if (route.body || route.query) codes.push('invalid_request');
  if (route.body) codes.push('request_too_large', 'unsupported_media_type');
  const statuses = [...new Set(codes.map((code) => ERRORS[code].status))].sort();
  return Object.fromEntries(
    statuses.map((status) => [
      String(status),
      { description: 'Error.', content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } } },
    ]),
  );
}

function parameters(route: Route): { parameters?: unknown[] } {
  const inPath = [...route.path.matchAll(PARAMETER)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
  const properties = (route.query?.['properties'] ?? {}) as Record<string, Schema>;
  const required = (route.query?.['required'] ?? []) as string[];
  const inQuery = Object.entries(properties).map(([name, schema]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    schema,
  }));
  const all = [...inPath, ...inQuery];
  return all.length > 0 ? { parameters: all } : {};
}

/** `POST /api/core/:provider/chat/completions` as `post_api_core_provider_chat_completions`. */
function operationId(route: Route): string {
  return `${route.method.toLowerCase()}${route.path.replaceAll(/[^A-Za-z0-9]+/g, '_')}`.replace(/_$/, '');
}

/** `:name` or `*name`; `\\:` is a literal colon. */
const PARAMETER = /(?<!\\)[:*](\w+)/g;

/** Path of a route as documents and messages show it: `/v1/models/{id}`. */
export function openApiPath(path: string): string {
  return path.replaceAll(PARAMETER, '{$1}').replaceAll('\\', '');
}

/** Turns a schema with an `$id` into a component and refers to it; others stay inline. */
function reference(components: Record<string, Schema>, schema: Schema): Schema {
  return typeof schema['$id'] === 'string'
    ? { $ref: `#/components/schemas/${register(components, schema)}` }
    : rewriteRefs(schema, '#');
}

function register(components: Record<string, Schema>, schema: Schema): string {
  const name = componentName(String(schema['$id']));
  const { $id: _, ...rest } = schema;
  components[name] ??= rewriteRefs(rest, `#/components/schemas/${name}`);
  return name;
}

function componentName(id: string): string {
  return id.replace(/^.*[:/]/, '').replaceAll(/[^\w.-]/g, '_');
}

/**
 * Rewrites `$ref`s to ids of schemas into references to components. References within the schema point below its
 * position `root`.
 */
function rewriteRefs<T>(value: T, root: string): T {
  if (Array.isArray(value)) return value.map((child: unknown) => rewriteRefs(child, root)) as T;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, child]) =>
      key === '$ref' && typeof child === 'string'
        ? [key, child.startsWith('#') ? `${root}${child.slice(1)}` : `#/components/schemas/${componentName(child)}`]
        : [key, rewriteRefs(child, root)],
    ),
  ) as T;
}

const ERROR_SCHEMA: Schema = {
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['message', 'type', 'code', 'param'],
      properties: {
        message: { type: 'string' },
        type: { enum: [...new Set(Object.values(ERRORS).map(({ type }) => type))] },
        code: { enum: Object.keys(ERRORS) },
        param: { type: ['string', 'null'] },
        request_id: { type: 'string' },
      },
    },
  },
};

/** Examples by format, for texts without other constraints. */
const FORMAT_EXAMPLES: Readonly<Record<string, string>> = Object.freeze({
  date: '2026-01-31',
  'date-time': '2026-01-31T12:00:00Z',
  duration: '30s',
  email: 'somebody@example.com',
  money: '1.50',
  size: '1mb',
  uri: 'https://example.com',
  url: 'https://example.com',
  uuid: '123e4567-e89b-12d3-a456-426614174000',
});

/**
 * Example value of a schema: its first `examples`, else its default, else a minimal value by common keywords. Schemas
 * with other rules need their own `examples`. `find` returns the schema of a `$ref`.
 */
export function exampleOf(schema: Schema, find: (id: string) => Schema | undefined): Json {
  const { examples, default: preset, const: only, enum: choices, $ref: reference } = schema;
  if (Array.isArray(examples) && examples.length > 0) return examples[0] as Json;
  if (preset !== undefined) return preset as Json;
  if (only !== undefined) return only as Json;
  if (Array.isArray(choices)) return choices[0] as Json;
  if (typeof reference === 'string') return exampleOf(find(reference) ?? {}, find);
  const [branch] = ((schema['oneOf'] ?? schema['anyOf']) as readonly Schema[] | undefined) ?? [];
  if (branch) return exampleOf({ ...schema, oneOf: undefined, anyOf: undefined, ...branch }, find);
  return exampleOfType(schema, find);
}

function exampleOfType(schema: Schema, find: (id: string) => Schema | undefined): Json {
  const [type] = [schema['type']].flat();
  const least = (keyword: string): number => Number(schema[keyword] ?? 0);
  switch (type) {
    case 'object': {
      const properties = (schema['properties'] ?? {}) as Readonly<Record<string, Schema>>;
      const required = (schema['required'] ?? []) as readonly string[];
      return Object.fromEntries(required.map((name) => [name, exampleOf(properties[name] ?? {}, find)]));
    }
    case 'array':
      return Array.from({ length: least('minItems') }, () => exampleOf((schema['items'] ?? {}) as Schema, find));
    case 'integer':
    case 'number':
      return least('minimum');
    case 'boolean':
      return false;
    case 'null':
      return null;
    default:
      return FORMAT_EXAMPLES[String(schema['format'])] ?? 'text'.padEnd(least('minLength'), '.');
  }
}
