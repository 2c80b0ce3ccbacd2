import { GatewayError, type PluginApi } from '../../../contract/index.ts';
import {
  auditActor,
  beyondTeam,
  createTeamRoutes,
  listOf,
  type OwnTeam,
  PAGE_QUERY,
  readPage,
  refuseOtherTag,
  sendList,
} from '../../policies/kit/index.ts';
import { omitUndefined } from '../kit/omit-undefined.ts';
import { prefixOf, readKeyId } from './format.ts';
import { ISSUED, KEY_INFO, shownInAudit } from './info.ts';
import { memberOf, placeOf } from './key-index.ts';
import { narrow } from './key-limits.ts';
import { refuseMore, rightsOfKey } from './key-rights.ts';
import { type Keyring, mapKeys } from './manage-keys.ts';
import { isOfOperator, type KeyLimits, limitsOf, type StoredKey } from './records.ts';
import { OPERATORS_BODY, readKeyRequest, refuseHidden } from './request.ts';
import { SEARCH_NOTE, searchKeys } from './search-keys.ts';

const CREATE_BODY = {
  ...OPERATORS_BODY,
  examples: [{ name: 'batch jobs', rpm: 60 }],
  properties: {
    user_id: {
      type: 'string',
      minLength: 1,
      maxLength: 256,
      description: 'User of the key: a member of the team. Default: the team itself, by its tag.',
    },
    ...OPERATORS_BODY.properties,
    tags: { ...OPERATORS_BODY.properties.tags, description: 'Tag of the team; the key always has it.' },
  },
} as const;

const DEFAULT_OVERLAP_SECONDS = 3600;
const ROTATE_BODY = {
  type: 'object',
  additionalProperties: false,
  properties: { overlap_seconds: { type: 'integer', minimum: 0, maximum: 30 * 86_400 } },
} as const;

const ISSUED_ONCE = { 200: { description: 'The new key; it is shown only once.', schema: ISSUED } } as const;

interface Parts {
  readonly keyring: Keyring;
  /** Throws for an unknown plan, provider or model. */
  readonly check: (limits: KeyLimits) => Promise<void>;
  /** Counts creations of keys by maker; throws above the hourly limit. */
  readonly countCreation: (maker: string, now: number) => Promise<void>;
}

/** Routes for owners: keys with the tag of their team. */
export function registerTeamKeys(api: PluginApi, { keyring, check, countCreation }: Parts): void {
  const route = createTeamRoutes(api);
  route({
    method: 'GET',
    path: '/keys',
    summary: 'List the keys with the tag of your team, oldest first',
    description: SEARCH_NOTE,
    query: { type: 'object', additionalProperties: false, properties: PAGE_QUERY },
    responses: { 200: { description: 'Page of keys.', schema: listOf(KEY_INFO) } },
    async handler(ctx, { tag }) {
      const { limit, after } = readPage(ctx);
      const last = after && (placeOf(after) ?? (await findOwn(keyring, after, tag)).record);
      const { keys, next } = await searchKeys(keyring, { tag }, { limit, ...(last && { after: last }) });
      // A page may end at a key of others: its place says nothing about it, and needs no look-up.
      const cursor = next && (next.tags?.includes(tag) ? next.id : memberOf(next));
      sendList(ctx, await mapKeys(keys, keyring.describe), cursor);
    },
  });
  route({
    method: 'POST',
    path: '/keys',
    summary: 'Create a key for your team',
    body: CREATE_BODY,
    description:
      'The key is only in this response; it is not stored. It has the tag of the team and cannot exceed the team’s rights.',
    bodyOptional: true,
    responses: ISSUED_ONCE,
    async handler(ctx, own) {
      const now = Date.now();
      const { user_id = own.tag, ...wanted } = { ...ctx.state.body };
      for (const each of wanted.tags ?? []) refuseOtherTag(each, own.tag, 'tags');
      const requested = readKeyRequest(wanted, now);
      const limits = limitsWithin(requested, own);
      refuseStranger(user_id, own);
      await check(requested);
      await countCreation(`team ${own.tag}`, now);
      const key = await keyring.create({ userId: user_id, account: accountOf(own) }, limits, now);
      await api.operators.audit({
        actor: auditActor(ctx),
        action: 'key.create',
        subject: key.info.prefix,
        after: shownInAudit(key.info),
      });
      send(ctx, { message: 'API key created. Store it now; it is shown only once.', ...shown(key) });
    },
  });
  registerChanges(api, route, { keyring, countCreation });
}

/** Routes that rotate and revoke keys of a team. */
function registerChanges(
  api: PluginApi,
  route: ReturnType<typeof createTeamRoutes>,
  { keyring, countCreation }: Omit<Parts, 'check'>,
): void {
  route({
    method: 'POST',
    path: '/keys/:id/rotate',
    summary: 'Rotate a key that owners of your team created',
    body: ROTATE_BODY,
    bodyOptional: true,
    responses: ISSUED_ONCE,
    async handler(ctx, own) {
      const now = Date.now();
      const old = await findOwn(keyring, ctx.params['id'] ?? '', own.tag);
      refuseOperators(old, own);
      const { overlap_seconds: seconds = DEFAULT_OVERLAP_SECONDS } = { ...ctx.state.body };
      await countCreation(`team ${own.tag}`, now);
      const limits = limitsWithin(limitsOf(old.record), own);
      const { userLimits } = old.record;
      const key = await keyring.rotate(old, { limits, ...omitUndefined({ userLimits }) }, seconds * 1000, now);
      const prefix = prefixOf(old.record.id);
      const after = { successor: key.info.prefix, overlap_seconds: seconds };
      await api.operators.audit({ actor: auditActor(ctx), action: 'key.rotate', subject: prefix, after });
      const rest = seconds === 0 ? 'is revoked' : `remains valid for ${seconds} seconds`;
      send(ctx, {
        message: `API key rotated; ${prefix} ${rest}. Store the new key now; it is shown only once.`,
        ...shown(key),
      });
    },
  });
  route({
    method: 'POST',
    path: '/keys/:id/revoke',
    summary: 'Revoke a key with the tag of your team permanently',
    responses: { 200: { description: 'The revoked key.', schema: KEY_INFO } },
    async handler(ctx, { tag }) {
      const key = await findOwn(keyring, ctx.params['id'] ?? '', tag);
      refuseMore(ctx.state.principal, rightsOfKey(key.record), 'revoke a key');
      const info = await keyring.describe(await keyring.revoke(key, Date.now()));
      // Revoking again is not a change.
      if (key.revokedAt === undefined)
        await api.operators.audit({
          actor: auditActor(ctx),
          action: 'key.revoke',
          subject: info.prefix,
          after: shownInAudit(info),
        });
      send(ctx, info);
    },
  });
}

function send(ctx: { set(name: string, value: string): void; body: unknown }, body: object): void {
  ctx.set('cache-control', 'no-store');
  ctx.body = body;
}

function shown({ text, info }: Awaited<ReturnType<Keyring['create']>>) {
  return { api_key: text, api_key_info: info };
}

/** A key of another team is reported like an unknown one. */
async function findOwn(keyring: Pick<Keyring, 'find'>, reference: string, tag: string): Promise<StoredKey> {
  const id = readKeyId(reference);
  const key = id === undefined ? undefined : await keyring.find(id);
  if (key?.record.tags?.includes(tag)) return key;
  throw new GatewayError('not_found', `API key with the tag "${tag}" not found.`, { param: 'id' });
}

function accountOf({ tag, team }: OwnTeam): string {
  return team.account ?? tag;
}

/**
 * Restricts the users for whom owners create keys: a key acts as its user, including the user's own budgets and limits.
 */
function refuseStranger(userId: string, { tag, team: { members = [] } }: OwnTeam): void {
  refuseHidden('user_id', userId);
  if (userId === tag || members.includes(userId) || members.includes('*')) return;
  throw beyondTeam('user_id', members.length === 0 ? `"${tag}" alone` : 'its members and itself');
}

/**
 * A successor has all rights of the key, so keys with more rights, created by operators, can only be rotated by
 * operators.
 */
function refuseOperators({ record }: StoredKey, own: OwnTeam): void {
  const { tags = [], account, userId } = record;
  const isPlain = tags.length === 1 && account === accountOf(own) && !isOfOperator(record);
  if (!isPlain)
    throw new GatewayError(
      'permission_denied',
      `The key ${prefixOf(record.id)} exceeds the rights of owners of "${own.tag}" (account, tag or right). Ask an operator to rotate it.`,
    );
  refuseStranger(userId, own);
}

/** Restricts a key's limits to those of its team; throws if they exceed them. */
function limitsWithin(wanted: KeyLimits, { tag, team }: OwnTeam): KeyLimits {
  const { plan } = wanted;
  if (plan !== undefined && !team.plans?.includes(plan))
    throw beyondTeam(
      'plan',
      team.plans ? team.plans.join(', ') : 'none; keys of the team have the plan of its account',
    );
  const { models, providers, server_tools: tools = [] } = team;
  // Tools on the operator's account are only granted on request.
  const serverTools = wanted.serverTools && tools;
  return { ...narrow(wanted, omitUndefined({ plan, models, providers, serverTools })), tags: [tag] };
}
