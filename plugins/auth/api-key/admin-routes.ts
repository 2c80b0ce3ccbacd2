import type { PluginApi, PluginConfig, Route, RouteContext } from '../../../core/index.ts';
import {
  auditActor,
  FOR_OPERATORS,
  listOf,
  matchVersion,
  PAGE_QUERY,
  readPage,
  sendList,
  sendVersion,
} from '../../../core/operators.ts';
import { prefixOf } from './format.ts';
import { ISSUED, KEY_INFO } from './info.ts';
import type { KeyOperations } from './key-operations.ts';
import type { Keyring } from './keyring.ts';
import { mapKeys } from './map-keys.ts';
import type { StoredKey } from './records.ts';
import { OPERATORS_BODY } from './request.ts';

const PATH = '/api/core/admin/keys';
const DEFAULT_OVERLAP_SECONDS = 3600;
const USER = { type: 'string', minLength: 1, maxLength: 256, pattern: '^[^\\u0000-\\u001f\\u007f]+$' } as const;

const CREATE_BODY = {
  ...OPERATORS_BODY,
  required: ['user_id'],
  examples: [{ user_id: 'u_42', name: 'laptop' }],
  properties: {
    user_id: { ...USER, description: 'Whose key it is.' },
    account: { ...USER, description: 'Who pays; the user unless given.' },
    role: { enum: ['admin', null], description: '`admin` makes a key for operators.' },
    ...OPERATORS_BODY.properties,
  },
} as const;

const UPDATE_BODY = { ...OPERATORS_BODY, minProperties: 1, examples: [{ rpm: 120, models: null }] } as const;

const REASON = { type: 'string', maxLength: 200, pattern: '^[^\\u0000-\\u001f\\u007f]*$' } as const;
const BLOCK_BODY = {
  type: 'object',
  additionalProperties: false,
  properties: { reason: { ...REASON, description: 'Why; shown to operators.' } },
} as const;

const ROTATE_BODY = {
  type: 'object',
  additionalProperties: false,
  properties: {
    overlap_seconds: {
      type: 'integer',
      minimum: 0,
      maximum: 30 * 86_400,
      description: `How long the old key goes on working; ${DEFAULT_OVERLAP_SECONDS} by default, 0 revokes it at once.`,
    },
  },
} as const;

interface Deps {
  readonly keyring: Keyring;
  readonly operations: KeyOperations;
}

/** `/api/core/admin/keys`: all keys, for operators. */
export function registerAdminRoutes(api: PluginApi, deps: Deps): void {
  for (const route of [...readRoutes(deps), ...lifeRoutes(deps)]) api.route(route);
  api.route({
    ...FOR_OPERATORS,
    method: 'POST',
    path: PATH,
    summary: 'Make an API key for any user',
    description: 'The key is in this response and nowhere else.',
    body: CREATE_BODY,
    responses: { 200: { description: 'The new key, once.', schema: ISSUED } },
    async handler(ctx) {
      const { user_id, account, role, ...wanted } = ctx.state.body;
      const owner = { userId: user_id, account: account ?? user_id, ...(role === 'admin' && { role }) };
      const { text, info } = await deps.operations.create(auditActor(ctx), owner, wanted, Date.now());
      const message = 'The API key was made. Keep it: it cannot be shown again.';
      sendVersion(ctx, 0, { message, api_key: text, api_key_info: info });
    },
  });
  api.route({
    ...FOR_OPERATORS,
    method: 'PATCH',
    path: `${PATH}/:id`,
    summary: 'Change what an API key may do',
    description:
      'What the body names is set, null takes it away, the rest stays. `If-Match` refuses the change of another version.',
    body: UPDATE_BODY,
    responses: { 200: { description: 'The key since.', schema: KEY_INFO } },
    async handler(ctx) {
      const { key, expected } = await findFor(ctx, deps);
      await send(ctx, deps, await deps.operations.update(auditActor(ctx), key, ctx.state.body, Date.now(), expected));
    },
  });
}

function readRoutes(deps: Deps): readonly Route[] {
  const list: Route = {
    ...FOR_OPERATORS,
    method: 'GET',
    path: PATH,
    summary: 'List API keys, oldest first',
    query: {
      type: 'object',
      additionalProperties: false,
      properties: { ...PAGE_QUERY, user: { ...USER, description: 'Of this user only, without revoked ones.' } },
    },
    responses: { 200: { description: 'A page of keys.', schema: listOf(KEY_INFO) } },
    async handler(ctx) {
      const { limit, after, query } = readPage(ctx);
      const last = after === undefined ? undefined : await deps.operations.find(after);
      const { keys, hasMore } = await deps.keyring.list(query['user'], { limit, ...(last && { after: last.record }) });
      const data = await mapKeys(keys, deps.keyring.describe);
      sendList(ctx, data, hasMore ? keys.at(-1)?.record.id : undefined);
    },
  };
  const show: Route = {
    ...FOR_OPERATORS,
    method: 'GET',
    path: `${PATH}/:id`,
    summary: 'Show an API key, with what is spent and left of its budgets',
    responses: { 200: { description: 'The key, with its version as ETag.', schema: KEY_INFO } },
    async handler(ctx) {
      const key = await deps.operations.find(idOf(ctx));
      sendVersion(ctx, versionOf(key), await deps.keyring.describeSpending(key));
    },
  };
  return [list, show];
}

/** Blocking, rotating and revoking. */
function lifeRoutes(deps: Deps): readonly Route[] {
  const { operations } = deps;
  const post = (
    word: string,
    summary: string,
    body: object,
    act: (ctx: RouteContext<unknown>) => Promise<void>,
  ): Route => ({
    ...FOR_OPERATORS,
    method: 'POST',
    path: `${PATH}/:id/${word}`,
    summary,
    body,
    bodyOptional: true,
    responses: { 200: { description: 'The key since.', schema: word === 'rotate' ? ISSUED : KEY_INFO } },
    handler: (ctx) => act(ctx),
  });
  const block = async (ctx: RouteContext<unknown>): Promise<void> => {
    const { key, expected } = await findFor(ctx, deps);
    const { reason } = (ctx.state.body ?? {}) as PluginConfig<typeof BLOCK_BODY>;
    await send(ctx, deps, await operations.block(auditActor(ctx), key, reason, Date.now(), expected));
  };
  const unblock = async (ctx: RouteContext<unknown>): Promise<void> => {
    const { key, expected } = await findFor(ctx, deps);
    await send(ctx, deps, await operations.unblock(auditActor(ctx), key, expected));
  };
  const rotate = async (ctx: RouteContext<unknown>): Promise<void> => {
    const { key } = await findFor(ctx, deps);
    const body = (ctx.state.body ?? {}) as PluginConfig<typeof ROTATE_BODY>;
    const seconds = body.overlap_seconds ?? DEFAULT_OVERLAP_SECONDS;
    const { text, info } = await operations.rotate(auditActor(ctx), key, seconds * 1000, Date.now());
    const rest = seconds === 0 ? 'is revoked' : `works for ${seconds} more seconds`;
    const message = `The API key was replaced; ${prefixOf(key.record.id)} ${rest}. Keep the new one: it cannot be shown again.`;
    sendVersion(ctx, 0, { message, api_key: text, api_key_info: info });
  };
  const revoke = async (ctx: RouteContext<unknown>): Promise<void> => {
    const { key } = await findFor(ctx, deps);
    await send(ctx, deps, await operations.revoke(auditActor(ctx), key, Date.now()));
  };
  const nothing = { type: 'object', additionalProperties: false, properties: {} };
  return [
    post('block', 'Block an API key until it is unblocked', BLOCK_BODY, block),
    post('unblock', 'Unblock an API key', nothing, unblock),
    post('rotate', 'Replace an API key by a new one that shares its limits and budgets', ROTATE_BODY, rotate),
    post('revoke', 'Revoke an API key for good', nothing, revoke),
  ];
}

/** The key of the path, held to `If-Match`. */
async function findFor(
  ctx: RouteContext<unknown>,
  { operations }: Deps,
): Promise<{ readonly key: StoredKey; readonly expected?: number }> {
  const key = await operations.find(idOf(ctx));
  return { key, ...(matchVersion(ctx, versionOf(key)) && { expected: key.version }) };
}

async function send(ctx: RouteContext<unknown>, { keyring }: Deps, key: StoredKey): Promise<void> {
  sendVersion(ctx, versionOf(key), await keyring.describe(key));
}

/** A key that ended is another version than it was before. */
function versionOf({ version, revokedAt, retiredAt }: StoredKey): string {
  return [
    version,
    ...(retiredAt === undefined ? [] : ['rotated']),
    ...(revokedAt === undefined ? [] : ['revoked']),
  ].join('-');
}

function idOf({ params }: Pick<RouteContext<unknown>, 'params'>): string {
  return params['id'] ?? '';
}
