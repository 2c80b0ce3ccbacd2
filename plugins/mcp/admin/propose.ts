import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import {
  GatewayError,
  isObject,
  type PluginApi,
  parseJson,
  type RouteContext,
  type Schema,
} from '../../../contract/index.ts';
import { auditActor } from '../../policies/kit/index.ts';
import { type Change, type ChangeBook, type Difference, deciderOf } from './change-book.ts';
import { type AdminOperations, readParameters, urlOf } from './operations.ts';
import { errorOf, sendOwn } from './own-request.ts';

const MAX_OBJECT = 64 * 1024;

/** Arguments of the tool that proposes a change. */
export const PROPOSAL = {
  type: 'object',
  additionalProperties: false,
  required: ['operation'],
  properties: {
    operation: {
      type: 'string',
      maxLength: 64,
      description: 'Name of the operation, such as `post_keys_by_id_block`.',
    },
    parameters: { type: 'object', description: 'Parameters in the path and the query, such as `{"id":"tg_…"}`.' },
    body: { type: 'object', description: 'Body of the operation.' },
    reason: {
      type: 'string',
      maxLength: 500,
      pattern: '^[^\\u0000-\\u001f\\u007f]*$',
      description: 'Reason, in one line, for the operator who decides.',
    },
  },
} as const satisfies Schema;

interface Proposal {
  readonly operation: string;
  readonly parameters?: Readonly<Record<string, unknown>>;
  readonly body?: object;
  readonly reason?: string;
}

interface ProposeDeps {
  readonly api: PluginApi;
  readonly book: ChangeBook;
}

/** Stores a change of the caller after the checks of its operation. It changes nothing. */
export async function propose(
  { api, book }: ProposeDeps,
  ctx: RouteContext,
  operations: AdminOperations,
  given: unknown,
): Promise<Change> {
  assertValid(api, given, PROPOSAL, 'arguments');
  const { operation: name, parameters = {}, body, reason } = given as Proposal;
  const operation = operations.changes.get(name);
  if (!operation)
    throw new GatewayError('not_found', 'No operation with this name changes anything. get_operations lists them.');
  const texts = readParameters(parameters);
  assertValid(api, texts, operation.parameters, 'parameters');
  if (body && !operation.body) throw new GatewayError('invalid_request', `${name} accepts no body.`, { param: 'body' });
  if (operation.body && (body || operation.isBodyRequired)) assertValid(api, body ?? {}, operation.body, 'body');
  const values = texts as Readonly<Record<string, string>>;
  const reader = operations.objectOf(operation);
  const objectPath = reader && urlOf(reader, pick(values, reader.inPath));
  const object = objectPath === undefined ? undefined : await readVersion(ctx, objectPath);
  // Only PUT creates the object that it names.
  if (object?.version === MISSING && operation.method !== 'PUT')
    throw new GatewayError('not_found', `There is no object at ${objectPath}.`);
  const change = await book.put(
    {
      operation: name,
      summary: operation.summary,
      scope: operation.scope,
      method: operation.method,
      path: urlOf(operation, values),
      body: body ?? null,
      before: object?.value ?? null,
      differences: differencesOf(operation.method, object?.value, body),
      reason: reason ?? null,
      proposed_by: deciderOf(ctx.state.principal),
    },
    { objectPath, version: object?.version },
  );
  await api.operators.audit({
    actor: auditActor(ctx),
    action: 'change.propose',
    subject: change.id,
    after: { operation: name, path: change.path, body: change.body },
  });
  return change;
}

/** Throws `invalid_request` with the first problems of a value. */
export function assertValid(
  { operators: { validate } }: Pick<PluginApi, 'operators'>,
  value: unknown,
  schema: Schema,
  param: string,
): void {
  // It fills in defaults, which the route does itself.
  const problems = validate(structuredClone(value), schema);
  if (problems.length === 0) return;
  const shown = problems.slice(0, 5).map(({ pointer, message }) => `${param}${pointer} ${message}`);
  throw new GatewayError('invalid_request', `${shown.join('; ')}.`.slice(0, 1000), { param });
}

/** Version of an object that does not exist. */
export const MISSING = 'none';

/** Reads an object as the caller, with its version: its entity tag, else a hash of it. */
export async function readVersion(
  ctx: RouteContext,
  path: string,
): Promise<{ readonly version: string; readonly value: unknown; readonly etag: string | undefined }> {
  const reply = await sendOwn(ctx, { method: 'GET', path, maxBytes: MAX_OBJECT });
  const { status, etag, text, isWhole } = reply;
  if (status === 404) return { version: MISSING, value: null, etag: undefined };
  if (status !== 200) throw errorOf(reply);
  if (!isWhole) throw new GatewayError('request_too_large', 'The object is too large to propose a change of it.');
  const version = etag ?? createHash('sha256').update(text).digest('base64url');
  return { version, value: parseJson(text), etag };
}

/** Fields that differ. A POST runs an action, whose effect is in its summary. */
function differencesOf(method: string, before: unknown, body: object | undefined): readonly Difference[] {
  if (method === 'POST' || !body) return [];
  const now = isObject(before) ? before : {};
  return Object.entries(body).flatMap(([field, after]) => {
    const was = Object.hasOwn(now, field) ? now[field] : null;
    return isDeepStrictEqual(was, after) ? [] : [{ field, before: was, after }];
  });
}

function pick(values: Readonly<Record<string, string>>, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, values[name] ?? '']));
}
