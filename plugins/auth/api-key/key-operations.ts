import { type AuditActor, GatewayError, type PluginApi } from '../../../core/index.ts';
import { omitUndefined } from '../kit/omit-undefined.ts';
import { prefixOf, readKeyId } from './format.ts';
import { type ApiKeyInfo, describeNewKey, shownInAudit } from './info.ts';
import type { IssuedKey, Keyring, Owner } from './keyring.ts';
import { type EditedKey, type KeyEdit, type KeyLimits, limitsOf, type StoredKey } from './records.ts';
import { type KeyRequest, readKeyChange, readKeyRequest } from './request.ts';

/** What the admin API and the command line do with keys, each written down in the audit log. */
export interface KeyOperations {
  /** Throws `not_found` for a key that there is not. */
  find(reference: string): Promise<StoredKey>;
  create(actor: AuditActor, owner: Owner, wanted: KeyRequest, now: number): Promise<IssuedKey>;
  update(actor: AuditActor, key: StoredKey, wanted: KeyRequest, now: number, expected?: number): Promise<StoredKey>;
  block(
    actor: AuditActor,
    key: StoredKey,
    reason: string | undefined,
    now: number,
    expected?: number,
  ): Promise<StoredKey>;
  unblock(actor: AuditActor, key: StoredKey, expected?: number): Promise<StoredKey>;
  /** The successor has all that the old one has, its role too. */
  rotate(actor: AuditActor, key: StoredKey, overlapMs: number, now: number): Promise<IssuedKey>;
  revoke(actor: AuditActor, key: StoredKey, now: number): Promise<StoredKey>;
}

export interface OperationsParts {
  readonly keyring: Keyring;
  /** Throws for a plan, a provider, a model or a tag that there is not. */
  readonly check: (limits: KeyLimits) => Promise<void>;
  readonly audit: PluginApi['audit'];
}

export function createKeyOperations({ keyring, check, audit }: OperationsParts): KeyOperations {
  const edited = async (actor: AuditActor, action: string, { before, after }: EditedKey): Promise<StoredKey> => {
    await audit({ actor, action, subject: prefixOf(after.record.id), before: shown(before), after: shown(after) });
    return after;
  };
  return {
    find: (reference) => findKey(keyring, reference),

    async create(actor, owner, wanted, now) {
      const limits = readKeyRequest(wanted, now);
      await check(limits);
      const issued = await keyring.create(owner, limits, now);
      await audit({ actor, action: 'key.create', subject: issued.info.prefix, after: shownInAudit(issued.info) });
      return issued;
    },

    async update(actor, key, wanted, now, expected) {
      const { set, apply } = readKeyChange(wanted, now);
      // A model's name alone is looked for at the providers that the key is bound to.
      const { providers } = apply(limitsOf(key.record));
      await check({ ...set, ...(set.models && omitUndefined({ providers })) });
      const change = await keyring.edit(key, (edit) => ({ ...edit, limits: apply(edit.limits) }), expected);
      return edited(actor, 'key.update', change);
    },

    async block(actor, key, reason, now, expected) {
      const change = await keyring.edit(key, (edit) => blocked(edit, reason, now), expected);
      return edited(actor, 'key.block', change);
    },

    async unblock(actor, key, expected) {
      return edited(actor, 'key.unblock', await keyring.edit(key, ({ limits }) => ({ limits }), expected));
    },

    async rotate(actor, key, overlapMs, now) {
      const { role, userLimits } = key.record;
      const successor = { limits: limitsOf(key.record), ...omitUndefined({ role, userLimits }) };
      const issued = await keyring.rotate(key, successor, overlapMs, now);
      const after = { successor: issued.info.prefix, overlap_seconds: overlapMs / 1000 };
      await audit({ actor, action: 'key.rotate', subject: prefixOf(key.record.id), after });
      return issued;
    },

    async revoke(actor, key, now) {
      const revoked = await keyring.revoke(key, now);
      // Revoking twice is no change.
      if (key.revokedAt === undefined) return edited(actor, 'key.revoke', { before: key, after: revoked });
      return revoked;
    },
  };
}

async function findKey(keyring: Pick<Keyring, 'find'>, reference: string): Promise<StoredKey> {
  const id = readKeyId(reference);
  const key = id === undefined ? undefined : await keyring.find(id);
  if (key) return key;
  throw new GatewayError(
    'not_found',
    `There is no such API key${id === undefined ? '' : ` ${prefixOf(id)}`} in this store. "tollgate keys list" shows them.`,
  );
}

/** Blocked twice is blocked since the first time. */
function blocked({ limits, blockedAt }: KeyEdit, reason: string | undefined, now: number): KeyEdit {
  return { limits, blockedAt: blockedAt ?? now, ...omitUndefined({ blockReason: reason }) };
}

function shown(key: StoredKey): object {
  const info: ApiKeyInfo = describeNewKey(key);
  return shownInAudit(info);
}
