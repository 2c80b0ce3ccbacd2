import { GatewayError, type PluginApi, type RouteContext } from '../../../core/index.ts';
import { prefixOf, readKeyId } from './format.ts';
import type { Keyring } from './keyring.ts';
import { narrow } from './narrow.ts';
import { hashUser, type KeyRecord, type StoredKey } from './records.ts';
import { CREATE_BODY, readKeyRequest } from './request.ts';
import { ISSUED, KEY_ID, LIST, REVOKED } from './route-schemas.ts';

/** The permission that a token needs; the jwt plugin says which claim value gives it. */
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
      description: `How long the old key goes on working; ${DEFAULT_OVERLAP_SECONDS} unless told, 0 revokes it at once.`,
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
    limit: { type: 'string', pattern: '^([1-9]|[1-9][0-9]|100)$', description: '1 to 100; 20 unless told.' },
    after: { ...KEY_ID, description: 'The id of the last key of the page before.' },
  },
} as const;

/** Registers the four routes of key management. */
export function registerRoutes(api: PluginApi, keyring: Keyring, creationsPerHour: number): void {
  const guarded = { auth: ['token'], permission: PERMISSION } as const;

  api.route({
    method: 'POST',
    path: `${PATH}/create`,
    summary: 'Make an API key',
    description: 'The key is in this answer and nowhere else. It never gets more than the token that makes it has.',
    ...guarded,
    body: CREATE_BODY,
    bodyOptional: true,
    responses: { 200: { description: 'The new key, once.', schema: ISSUED } },
    async handler(ctx) {
      const now = Date.now();
      const { principal, body } = ctx.state;
      const limits = narrow(readKeyRequest(body, now), principal);
      await countCreation(api, principal.userId, creationsPerHour, now);
      const { text, info } = await keyring.create(principal, limits, now);
      answer(ctx, {
        message: 'The API key was made. Keep it: it cannot be shown again.',
        api_key: text,
        api_key_info: info,
      });
    },
  });

  api.route({
    method: 'GET',
    path: PATH,
    summary: 'List your API keys, oldest first',
    ...guarded,
    query: LIST_QUERY,
    responses: { 200: { description: 'Keys that were not deleted.', schema: LIST } },
    async handler(ctx) {
      const { userId } = ctx.state.principal;
      // As the validator saw it: of a name that came twice, Koa's own `ctx.query` also has the value nobody checked.
      const { after, limit = '20' } = Object.fromEntries(new URLSearchParams(ctx.querystring));
      const last = after === undefined ? undefined : await findOwn(keyring, after, userId, 'after');
      const { keys, hasMore } = await keyring.list(userId, {
        limit: Number(limit),
        ...(last && { after: last.record }),
      });
      answer(ctx, { object: 'list', data: await Promise.all(keys.map(keyring.describe)), has_more: hasMore });
    },
  });

  api.route({
    method: 'DELETE',
    path: PATH,
    summary: 'Revoke an API key',
    description: 'It stops working here at once and on every node within five seconds. Deleting twice is fine.',
    ...guarded,
    body: DELETE_BODY,
    responses: { 200: { description: 'The revoked key.', schema: REVOKED } },
    async handler(ctx) {
      const key = await findOwn(keyring, ctx.state.body.id, ctx.state.principal.userId, 'id');
      const revoked = await keyring.revoke(key, Date.now());
      answer(ctx, {
        message: `The API key ${prefixOf(key.record.id)} is revoked.`,
        api_key_info: await keyring.describe(revoked),
      });
    },
  });

  api.route({
    method: 'POST',
    path: `${PATH}/rotate`,
    summary: 'Replace an API key by a new one',
    description:
      'The new key has the name, limits and rest of the budget of the old one, which goes on working for the overlap.',
    ...guarded,
    body: ROTATE_BODY,
    responses: { 200: { description: 'The new key, once.', schema: ISSUED } },
    async handler(ctx) {
      const now = Date.now();
      const { principal, body } = ctx.state;
      const old = await findOwn(keyring, body.id, principal.userId, 'id');
      const creator = { ...principal, ...planOf(principal.plan ?? old.record.plan) };
      const limits = narrow(limitsOf(old.record), creator);
      await countCreation(api, principal.userId, creationsPerHour, now);
      const overlapSeconds = body.overlap_seconds ?? DEFAULT_OVERLAP_SECONDS;
      const { text, info } = await keyring.rotate(old, limits, overlapSeconds * 1000, now);
      const rest = overlapSeconds === 0 ? 'is revoked' : `works for ${overlapSeconds} more seconds`;
      answer(ctx, {
        message: `The API key was replaced; ${prefixOf(old.record.id)} ${rest}. Keep the new one: it cannot be shown again.`,
        api_key: text,
        api_key_info: info,
      });
    },
  });
}

function answer(ctx: RouteContext<unknown>, body: object): void {
  ctx.set('cache-control', 'no-store');
  ctx.body = body;
}

/** Somebody else's key is as unknown as one that never was. */
async function findOwn(keyring: Keyring, reference: string, userId: string, param: string): Promise<StoredKey> {
  const id = readKeyId(reference);
  const key = id === undefined ? undefined : await keyring.find(id);
  if (key?.record.userId === userId) return key;
  throw new GatewayError('not_found', 'You have no API key with this id. The list of your keys shows their ids.', {
    param,
  });
}

function limitsOf({
  name,
  expiresAt,
  plan,
  models,
  providers,
  rpm,
  tpm,
  budget,
}: KeyRecord): Parameters<typeof narrow>[0] {
  return {
    name,
    ...(expiresAt !== undefined && { expiresAt }),
    ...planOf(plan),
    ...(models && { models }),
    ...(providers && { providers }),
    ...(rpm !== undefined && { rpm }),
    ...(tpm !== undefined && { tpm }),
    ...(budget !== undefined && { budget }),
  };
}

function planOf(plan: string | undefined): { readonly plan?: string } {
  return plan === undefined ? {} : { plan };
}

/** Revoked keys stay in the store, so making and deleting them without end would fill it. */
async function countCreation(api: PluginApi, userId: string, limit: number, now: number): Promise<void> {
  const window = { key: `keys-made:${hashUser(userId)}`, limit, windowMs: HOUR_MS, amount: 1 };
  const { refused, states } = await api.stores.counters.take([window], now);
  if (refused === undefined) return;
  const retryAfterMs = states[0]?.resetMs ?? HOUR_MS;
  throw new GatewayError('rate_limited', `A user may make ${limit} API keys an hour. Try again later.`, {
    retryAfterMs,
  });
}
