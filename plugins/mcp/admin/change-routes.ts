import {
  GatewayError,
  type PluginApi,
  type Principal,
  parseJson,
  type Route,
  type RouteContext,
  type Schema,
} from '../../../contract/index.ts';
import { auditActor, FOR_OPERATORS, listOf, PAGE_QUERY, readPage, sendList } from '../../policies/kit/index.ts';
import { type Change, type ChangeBook, deciderOf, type StoredChange } from './change-book.ts';
import { mayRun } from './operations.ts';
import { errorOf, sendOwn } from './own-request.ts';
import { readVersion } from './propose.ts';

const PATH = '/api/core/admin/changes';
const MAX_RESULT = 1024 * 1024;

const DECIDER: Schema = {
  type: ['object', 'null'],
  properties: { user_id: { type: 'string' }, key_id: { type: ['string', 'null'] } },
};

const CHANGE: Schema = {
  type: 'object',
  required: ['id', 'state', 'operation', 'summary', 'scope', 'method', 'path', 'body', 'before', 'differences'],
  properties: {
    id: { type: 'string' },
    state: { enum: ['open', 'confirmed', 'rejected', 'failed'] },
    operation: { type: 'string', description: 'Name of the operation.' },
    summary: { type: 'string', description: 'What the operation does.' },
    scope: { type: 'string', description: 'Scope that confirms it.' },
    method: { type: 'string' },
    path: { type: 'string', description: 'Path and query of the route.' },
    body: { type: ['object', 'null'] },
    before: { description: 'The object before the change; null for a new one.' },
    differences: {
      type: 'array',
      items: { type: 'object', required: ['field'], properties: { field: { type: 'string' }, before: {}, after: {} } },
    },
    reason: { type: ['string', 'null'] },
    proposed_by: DECIDER,
    created_at: { type: 'string' },
    expires_at: { type: 'string' },
    decided_by: DECIDER,
    problem: { type: ['string', 'null'], description: 'Reason of the failure.' },
  },
};

interface ChangeDeps {
  readonly api: PluginApi;
  readonly book: ChangeBook;
}

/** Routes that list, confirm and reject proposed changes. */
export function registerChanges({ api, book }: ChangeDeps): void {
  const route = (row: Pick<Route, 'method' | 'path' | 'summary' | 'responses' | 'handler'> & Partial<Route>): void =>
    api.route({ ...FOR_OPERATORS, scope: 'any', ...row });
  const find = async (ctx: RouteContext): Promise<StoredChange> => {
    const stored = await book.find(ctx.params['id'] ?? '');
    if (stored && maySee(ctx.state.principal, stored.change)) return stored;
    throw new GatewayError('not_found', 'There is no such change. It may have expired.');
  };
  const one = { 200: { description: 'The change.', schema: CHANGE } };
  route({
    method: 'GET',
    path: PATH,
    summary: 'List proposed changes that the caller may confirm, or has proposed',
    query: { type: 'object', additionalProperties: false, properties: PAGE_QUERY },
    responses: { 200: { description: 'Changes, newest first.', schema: listOf(CHANGE) } },
    handler: async (ctx) => {
      const { limit, after } = readPage(ctx);
      const changes = (await book.list()).filter((change) => maySee(ctx.state.principal, change));
      const start = after === undefined ? 0 : changes.findIndex(({ id }) => id === after) + 1;
      const page = changes.slice(start, start + limit);
      sendList(ctx, page, start + limit < changes.length ? page.at(-1)?.id : undefined);
    },
  });
  route({
    method: 'GET',
    path: `${PATH}/:id`,
    summary: 'Show a proposed change',
    responses: one,
    async handler(ctx) {
      ctx.set('cache-control', 'no-store');
      ctx.body = (await find(ctx as RouteContext)).change;
    },
  });
  route({
    method: 'POST',
    path: `${PATH}/:id/confirm`,
    summary: 'Confirm a proposed change, and make it',
    description:
      'Runs the operation with the rights of this caller, once. It needs the scope of the operation, and another credential than that of the proposal. An object that has changed since is 412.',
    responses: {
      200: {
        description: 'The change, and the response of its operation.',
        schema: { type: 'object', required: ['change', 'result'], properties: { change: CHANGE, result: {} } },
      },
    },
    async handler(ctx) {
      ctx.set('cache-control', 'no-store');
      ctx.body = await confirm({ api, book }, ctx as RouteContext, await find(ctx as RouteContext));
    },
  });
  route({
    method: 'POST',
    path: `${PATH}/:id/reject`,
    summary: 'Reject a proposed change, or withdraw an own one',
    responses: one,
    async handler(ctx) {
      ctx.set('cache-control', 'no-store');
      const stored = await find(ctx as RouteContext);
      const by = deciderOf(ctx.state.principal);
      const change = await book.decide(stored, by, async () => ({ state: 'rejected', problem: null }));
      await audit(api, ctx as RouteContext, 'reject', change);
      ctx.body = change;
    },
  });
}

/** Changes are shown to their proposer, and to those who may confirm them. */
function maySee(principal: Principal, change: Change): boolean {
  return mayRun(principal, change) || isProposer(principal, change);
}

/** A session of the console is the person, not the program with the same user. */
function isProposer(principal: Principal, { proposed_by: { user_id, key_id } }: Change): boolean {
  return principal.userId === user_id && (principal.keyId ?? null) === key_id && principal.credential !== 'session';
}

async function confirm({ api, book }: ChangeDeps, ctx: RouteContext, stored: StoredChange) {
  const { principal } = ctx.state;
  const { change, objectPath, version } = stored;
  if (!mayRun(principal, change))
    throw new GatewayError(
      'permission_denied',
      `Only an operator with the scope "${change.scope}" confirms this change.`,
    );
  const { key_id } = change.proposed_by;
  // A session that began with the proposer's key is the proposer, too.
  if (isProposer(principal, change) || (key_id !== null && principal.keyId === key_id))
    throw new GatewayError(
      'permission_denied',
      'The key or token that proposed a change cannot confirm it. Sign in at the console, or use another one.',
    );
  let failure: GatewayError | undefined;
  let result: unknown = null;
  const next = await book.decide(stored, deciderOf(principal), async () => {
    const object = objectPath === undefined ? undefined : await readVersion(ctx, objectPath);
    if (object && object.version !== version) {
      failure = new GatewayError(
        'precondition_failed',
        'The object has changed since this change was proposed. Have it proposed again.',
      );
      return { state: 'failed', problem: failure.message };
    }
    const isOwnVersion = object?.etag !== undefined && change.path === objectPath;
    const { method, path, body } = change;
    const reply = await sendOwn(ctx, {
      method,
      path,
      body: body ?? undefined,
      ...(isOwnVersion && { headers: { 'if-match': object.etag } }),
      maxBytes: MAX_RESULT,
    });
    if (reply.status < 300) {
      result = parseJson(reply.text) ?? null;
      return { state: 'confirmed', problem: null };
    }
    failure = errorOf(reply);
    // Nothing happened, and another operator may have the right.
    if (NOT_RUN.has(reply.status)) throw failure;
    return { state: 'failed', problem: failure.message };
  });
  await audit(api, ctx, failure ? 'fail' : 'confirm', next);
  if (failure) throw failure;
  return { change: next, result };
}

const NOT_RUN: ReadonlySet<number> = new Set([401, 403, 429]);

/** The operation has an entry of its own, by the confirmer. */
function audit(
  { operators }: PluginApi,
  ctx: RouteContext,
  word: 'confirm' | 'reject' | 'fail',
  { id, operation, path, proposed_by, reason, problem }: Change,
): Promise<void> {
  const after = { operation, path, proposed_by, reason, ...(problem !== null && { problem }) };
  return operators.audit({ actor: auditActor(ctx), action: `change.${word}`, subject: id, after });
}
