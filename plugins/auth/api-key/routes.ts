import {
  type Counters,
  GatewayError,
  type PluginApi,
  type PluginConfig,
  type Principal,
  type RouteContext,
  type UserLimits,
} from '../../../contract/index.ts';
import { auditActor } from '../../policies/kit/index.ts';
import { omitUndefined } from '../kit/omit-undefined.ts';
import { prefixOf, readKeyId } from './format.ts';
import { type ApiKeyInfo, ISSUED, KEY_ID, LIST, REVOKED, shownInAudit } from './info.ts';
import { hashUser } from './key-index.ts';
import { narrow } from './key-limits.ts';
import { type Keyring, mapKeys, type Owner } from './manage-keys.ts';
import { type KeyLimits, limitsOf, type StoredKey } from './records.ts';
import { CREATE_BODY, type KeyRequest, readKeyRequest } from './request.ts';

/** Permission that a token needs; the jwt plugin maps a claim value to it. */
const PERMISSION = 'keys:write';
const PATH = '/api/core/api_keys';
const HOUR_MS = 3_600_000;
const DEFAULT_OVERLAP_SECONDS = 3600;

const ROTATE_BODY = {
  type: 'object',
  required: ['id'],
  additionalProperties: false,
  properties: {
    id: KEY_ID,
    overlap_seconds: {
      type: ['integer', 'null'],
      minimum: 0,
      maximum: 30 * 86_400,
      description: `Seconds for which the old key remains valid. 0 revokes it immediately. Default: ${DEFAULT_OVERLAP_SECONDS}.`,
    },
  },
} as const;

const DELETE_BODY = {
  type: 'object',
  required: ['id'],
  additionalProperties: false,
  properties: { id: KEY_ID },
} as const;

const LIST_QUERY = {
  type: 'object',
  additionalProperties: false,
  properties: {
    limit: { type: 'string', pattern: '^([1-9]|[1-9][0-9]|100)$', description: '1 to 100. Default: 20.' },
    after: { ...KEY_ID, description: 'Id of the last key of the previous page.' },
  },
} as const;

/** Dependencies of the handlers. */
interface Deps {
  readonly keyring: Keyring;
  readonly counters: Counters;
  readonly creationsPerHour: number;
  /** Throws for an unknown plan, provider or model. */
  readonly check: (limits: KeyLimits) => Promise<void>;
  /** Records users' changes of their keys. A failure is logged, and the user still gets the key. */
  readonly note: (ctx: RouteContext<unknown>, action: string, info: ApiKeyInfo, from?: string) => Promise<void>;
}

/** Registers the four routes of key management. */
export function registerRoutes(api: PluginApi, parts: Omit<Deps, 'counters' | 'note'>): void {
  const note: Deps['note'] = (ctx, action, info, from) =>
    api.operators
      .audit({
        actor: auditActor(ctx),
        action,
        subject: from ?? info.prefix,
        after: from === undefined ? shownInAudit(info) : { successor: info.prefix },
      })
      .catch(() => undefined);
  const deps = { ...parts, counters: api.stores.counters, note };
  const guarded = { auth: ['token'], permission: PERMISSION } as const;
  api.route({
    method: 'POST',
    path: `${PATH}/create`,
    summary: 'Create an API key',
    description:
      'The key is only in this response; it is not stored. It cannot exceed the rights of the token that creates it.',
    ...guarded,
    body: CREATE_BODY,
    bodyOptional: true,
    responses: { 200: { description: 'The new key; it is shown only once.', schema: ISSUED } },
    handler: (ctx) => createKey(ctx, deps),
  });
  api.route({
    method: 'GET',
    path: PATH,
    summary: 'List your API keys, oldest first',
    ...guarded,
    query: LIST_QUERY,
    responses: { 200: { description: 'Keys that were not deleted.', schema: LIST } },
    handler: (ctx) => listKeys(ctx, deps),
  });
  api.route({
    method: 'DELETE',
    path: PATH,
    summary: 'Revoke an API key',
    description: 'Takes effect here immediately and on every node within 5 seconds. Deleting twice is not an error.',
    ...guarded,
    body: DELETE_BODY,
    responses: { 200: { description: 'The revoked key.', schema: REVOKED } },
    handler: (ctx) => revokeKey(ctx, deps),
  });
  api.route({
    method: 'POST',
    path: `${PATH}/rotate`,
    summary: 'Rotate an API key',
    description:
      'The new key has the name, limits and budget of the old one and shares them. The old key remains valid for the overlap.',
    ...guarded,
    body: ROTATE_BODY,
    responses: { 200: { description: 'The new key; it is shown only once.', schema: ISSUED } },
    handler: (ctx) => rotateKey(ctx, deps),
  });
}

async function createKey(ctx: RouteContext<KeyRequest | undefined>, deps: Deps): Promise<void> {
  const now = Date.now();
  const { principal, body } = ctx.state;
  const wanted = readKeyRequest(body, now);
  const limits = narrow(wanted, principal);
  await deps.check(wanted);
  await countCreation(deps, principal.userId, now);
  const { text, info } = await deps.keyring.create(ownerOf(principal), limits, now);
  await deps.note(ctx, 'key.create', info);
  const message = 'API key created. Store it now; it is shown only once.';
  respond(ctx, { message, api_key: text, api_key_info: info });
}

async function listKeys(ctx: RouteContext, { keyring }: Deps): Promise<void> {
  const { userId } = ctx.state.principal;
  // Same value as seen by the validator: for a repeated name, Koa's `ctx.query` also contains the unchecked one.
  const { after, limit = '20' } = Object.fromEntries(new URLSearchParams(ctx.querystring));
  const last = after === undefined ? undefined : await findOwn(keyring, after, userId, 'after');
  const page = { limit: Number(limit), ...(last && { after: last.record }) };
  const { keys, hasMore } = await keyring.list(userId, page);
  respond(ctx, { object: 'list', data: await mapKeys(keys, keyring.describe), has_more: hasMore });
}

async function revokeKey(ctx: RouteContext<PluginConfig<typeof DELETE_BODY>>, { keyring, note }: Deps): Promise<void> {
  const key = await findOwn(keyring, ctx.state.body.id, ctx.state.principal.userId, 'id');
  const revoked = await keyring.revoke(key, Date.now());
  const info = await keyring.describe(revoked);
  // Deleting again is not a change.
  if (key.revokedAt === undefined) await note(ctx, 'key.revoke', info);
  respond(ctx, { message: `The API key ${prefixOf(key.record.id)} is revoked.`, api_key_info: info });
}

async function rotateKey(ctx: RouteContext<PluginConfig<typeof ROTATE_BODY>>, deps: Deps): Promise<void> {
  const now = Date.now();
  const { principal, body } = ctx.state;
  const old = await findOwn(deps.keyring, body.id, principal.userId, 'id');
  // A token without a plan may pass on that of the old key; the same applies to tools.
  const { plan = old.record.plan, serverTools = old.record.serverTools } = principal;
  const creator = { ...principal, ...omitUndefined({ plan, serverTools }) };
  const { tags } = old.record;
  const userLimits = userLimitsOf(principal);
  const limits = { ...narrow(limitsOf(old.record), creator), ...omitUndefined({ tags }) };
  await countCreation(deps, principal.userId, now);
  const overlapSeconds = body.overlap_seconds ?? DEFAULT_OVERLAP_SECONDS;
  const { text, info } = await deps.keyring.rotate(
    old,
    { limits, ...omitUndefined({ userLimits }) },
    overlapSeconds * 1000,
    now,
  );
  await deps.note(ctx, 'key.rotate', info, prefixOf(old.record.id));
  const rest = overlapSeconds === 0 ? 'is revoked' : `remains valid for ${overlapSeconds} seconds`;
  const message = `API key rotated; ${prefixOf(old.record.id)} ${rest}. Store the new key now; it is shown only once.`;
  respond(ctx, { message, api_key: text, api_key_info: info });
}

function ownerOf(principal: Principal): Owner {
  const { userId, account } = principal;
  return { userId, account, ...omitUndefined({ userLimits: userLimitsOf(principal) }) };
}

/** Rates and budget of a token apply to its user over all keys, however many there are. */
function userLimitsOf({ rpm, tpm, budget }: Principal): UserLimits | undefined {
  const limits = omitUndefined({ rpm, tpm, budget });
  return Object.keys(limits).length > 0 ? limits : undefined;
}

function respond(ctx: RouteContext, body: object): void {
  ctx.set('cache-control', 'no-store');
  ctx.body = body;
}

/** Another user's key is reported like an unknown one. */
async function findOwn(keyring: Keyring, reference: string, userId: string, param: string): Promise<StoredKey> {
  const id = readKeyId(reference);
  const key = id === undefined ? undefined : await keyring.find(id);
  if (key?.record.userId === userId) return key;
  throw new GatewayError('not_found', 'API key not found. The list of your keys shows their ids.', {
    param,
  });
}

/** Limits creations: revoked keys stay in the store, so endless creation and deletion would fill it. */
export async function countCreation(
  { counters, creationsPerHour: limit }: Pick<Deps, 'counters' | 'creationsPerHour'>,
  userId: string,
  now: number,
): Promise<void> {
  const window = { key: `keys-made:${hashUser(userId)}`, limit, windowMs: HOUR_MS, amount: 1 };
  const { refused, states } = await counters.take([window], now);
  if (refused === undefined) return;
  const retryAfterMs = states[0]?.resetMs ?? HOUR_MS;
  throw new GatewayError('rate_limited', `Limit of ${limit} new API keys per user and hour reached. Try again later.`, {
    retryAfterMs,
  });
}
