import {
  isObject,
  type Principal,
  parseJson,
  type RouteContext,
  readObject,
  type Schema,
} from '../../../contract/index.ts';
import { hasScope } from '../../policies/kit/index.ts';
import { toolName } from '../names.ts';
import { sendOwn } from './own-request.ts';

/** Operation of the admin API, as the OpenAPI document of this gateway describes it. */
export interface AdminOperation {
  /** Method and path in one word: `get_keys`, `post_keys_by_id_block`. */
  readonly name: string;
  readonly method: string;
  /** `/api/core/admin/keys/{id}`. */
  readonly path: string;
  readonly summary: string;
  readonly description: string;
  /** Scope that its caller needs. */
  readonly scope: string;
  /** Names in the path. */
  readonly inPath: readonly string[];
  /** Schema of its parameters, in the path and the query. */
  readonly parameters: Schema;
  /** Schema of its body; undefined if it accepts none. */
  readonly body: Schema | undefined;
  readonly isBodyRequired: boolean;
}

/** Operations of the admin API. */
export interface AdminOperations {
  /** Operations that change nothing, each a tool. */
  readonly reads: ReadonlyMap<string, AdminOperation>;
  /** Operations that a caller may propose. */
  readonly changes: ReadonlyMap<string, AdminOperation>;
  /** Returns the operation that reads the object of a change; undefined for a new object, and for one that cannot be read. */
  objectOf(change: AdminOperation): AdminOperation | undefined;
}

const ADMIN = '/api/core/admin/';

/** Paths of the console alone, and those that decide about proposed changes. */
const EXCLUDED = /^\/api\/core\/admin\/(?:console|changes\/\{id\}\/)/;

/** Health of the gateway, which needs no right of its own. */
const HEALTH = '/readyz';

/** Scope of operations that call models: they answer no question about the gateway. */
const CALLS_MODELS = 'models:call';

/** Parameters by which a list is no JSON document, or does not end. */
const OTHER_FORMS: ReadonlySet<string> = new Set(['format', 'follow']);

/** Rows of a list, unless the caller names another number. */
export const DEFAULT_ROWS = 25;
const MAX_DOCUMENT = 32 * 1024 * 1024;

/** Reads the operations of this gateway from its OpenAPI document. */
export async function readOperations(ctx: RouteContext): Promise<AdminOperations> {
  const { text } = await sendOwn(ctx, { method: 'GET', path: '/openapi.json', maxBytes: MAX_DOCUMENT });
  const all = Object.entries(readObject(readObject(parseJson(text))['paths'])).flatMap(([path, methods]) =>
    Object.entries(readObject(methods)).flatMap(([method, row]) => readOperation(method, path, readObject(row)) ?? []),
  );
  const isRead = ({ method }: AdminOperation): boolean => method === 'GET';
  const byName = (operations: readonly AdminOperation[]) => new Map(operations.map((each) => [each.name, each]));
  const readers = new Map(all.filter(isRead).map((operation) => [operation.path, operation]));
  return {
    reads: byName(all.filter(isRead)),
    changes: byName(all.filter((operation) => !isRead(operation))),
    objectOf({ method, path }) {
      const parent = path.slice(0, path.lastIndexOf('/'));
      // A POST to a list creates something that does not exist yet.
      const isList = !path.endsWith('}');
      const own = method === 'POST' && isList ? undefined : readers.get(path);
      return own ?? (parent.endsWith('}') ? readers.get(parent) : undefined);
    },
  };
}

function readOperation(word: string, path: string, row: Readonly<Record<string, unknown>>): AdminOperation | undefined {
  const method = word.toUpperCase();
  const isHealth = path === HEALTH && method === 'GET';
  if (!isHealth && (!path.startsWith(ADMIN) || EXCLUDED.test(path))) return undefined;
  const scope = isHealth ? 'any' : scopeOf(row['security']);
  if (scope === undefined || scope === CALLS_MODELS || !isJson(row['responses'])) return undefined;
  const parameters = (Array.isArray(row['parameters']) ? row['parameters'] : [])
    .map(readObject)
    .filter(({ name }) => !OTHER_FORMS.has(String(name)));
  const body = isObject(row['requestBody']) ? schemaOf(row['requestBody']) : undefined;
  const inPath = parameters.filter((each) => each['in'] === 'path').map(({ name }) => String(name));
  return {
    name: nameOf(method, isHealth ? '/health' : path.slice(ADMIN.length - 1)),
    method,
    path,
    summary: String(row['summary']),
    description: typeof row['description'] === 'string' ? row['description'] : '',
    scope,
    inPath,
    parameters: {
      type: 'object',
      additionalProperties: false,
      required: parameters.filter(({ required }) => required === true).map(({ name }) => String(name)),
      properties: Object.fromEntries(parameters.map(({ name, schema }) => [String(name), shownSchema(name, schema)])),
    },
    body,
    isBodyRequired: isObject(row['requestBody']) && row['requestBody']['required'] === true,
  };
}

/** `GET /keys/{id}` as `get_keys_by_id`. */
function nameOf(method: string, path: string): string {
  const words = path.replace(/\{(\w+)\}/g, 'by_$1').replace(/[^A-Za-z0-9]+/g, '_');
  return toolName(`${method.toLowerCase()}${words}`);
}

/** Scope of an operation for keys; undefined for one that accepts no key. */
function scopeOf(security: unknown): string | undefined {
  const [first] = Array.isArray(security) ? security : [];
  if (!isObject(first) || !Array.isArray(first['apiKey'])) return undefined;
  const [scope = 'any'] = first['apiKey'];
  return String(scope);
}

function isJson(responses: unknown): boolean {
  const content = isObject(responses) && isObject(responses['200']) ? responses['200']['content'] : undefined;
  return isObject(content) && content['application/json'] !== undefined;
}

function schemaOf({ content }: Readonly<Record<string, unknown>>): Schema | undefined {
  const json = isObject(content) ? content['application/json'] : undefined;
  return isObject(json) && isObject(json['schema']) ? json['schema'] : undefined;
}

/** Lists are shorter for a model than for a program. */
function shownSchema(name: unknown, schema: unknown): Schema {
  const given = isObject(schema) ? schema : {};
  return name === 'limit' ? { ...given, description: `Number of rows. Default: ${DEFAULT_ROWS}.` } : given;
}

/** Returns whether a caller may run an operation. */
export function mayRun(principal: Principal, { scope }: Pick<AdminOperation, 'scope'>): boolean {
  return scope === 'admin' ? principal.isAdmin === true : hasScope(principal, scope);
}

type Parameters = Readonly<Record<string, string>>;

/** Reads parameters as texts, as a URL has them. Models write numbers and booleans, too. */
export function readParameters(given: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => [
      name,
      typeof value === 'number' || typeof value === 'boolean' ? String(value) : value,
    ]),
  );
}

/** Path and query of an operation with its parameters, which were checked. */
export function urlOf({ path, inPath }: AdminOperation, parameters: Parameters): string {
  const place = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(parameters[name] ?? ''));
  const query = Object.entries(parameters).filter(([name]) => !inPath.includes(name));
  return query.length === 0 ? place : `${place}?${new URLSearchParams(query)}`;
}
