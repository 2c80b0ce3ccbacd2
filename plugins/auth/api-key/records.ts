import {
  type BudgetRule,
  GatewayError,
  isGatewayError,
  isObject,
  type Log,
  type PluginApi,
  type RecordVersion,
  type UserLimits,
} from '../../../contract/index.ts';
import type { Role, Scope } from '../../policies/kit/index.ts';
import { omitUndefined } from '../kit/omit-undefined.ts';

/** What a key allows. Times are Unix milliseconds, money is nano-dollars; an absent field sets no limit. */
export interface KeyLimits {
  readonly name: string;
  readonly expiresAt?: number;
  readonly plan?: string;
  readonly models?: readonly string[];
  readonly providers?: readonly string[];
  /** Tools that a vendor runs with the operator's account; none unless set, but those of its plan. */
  readonly serverTools?: readonly string[];
  readonly rpm?: number;
  readonly tpm?: number;
  readonly budget?: number;
  readonly budgets?: readonly BudgetRule[];
  /** Where it may be used from: addresses and networks, as `10.0.0.0/8`. */
  readonly addresses?: readonly string[];
  /** What its calls are booked under, as `team=search`. */
  readonly tags?: readonly string[];
}

/** What makes a key an operator's: the scopes of the role, and those that it names. */
export interface KeyRights {
  readonly role?: Role;
  readonly scopes?: readonly Scope[];
}

/** Whether a key is an operator's. */
export function isOfOperator({ role, scopes }: KeyRights): boolean {
  return (role ?? scopes) !== undefined;
}

/** One stored key. Never changed once written; what happens to it later is written beside it. */
export interface KeyRecord extends KeyLimits, KeyRights {
  readonly version: 1;
  readonly id: string;
  readonly userId: string;
  readonly account: string;
  /** Hex of the HMAC of the whole key. */
  readonly hash: string;
  /** Which pepper the hash is under. */
  readonly pepperId: string;
  readonly createdAt: number;
  /** The first key of those that replaced one another, whose limits and budget this one shares; absent for that key itself. */
  readonly limitsId?: string;
  /** What its user may use over all keys. */
  readonly userLimits?: UserLimits;
}

/** What the limits and the budget of a key are counted under. */
export function limitsIdOf({ id, limitsId }: KeyRecord): string {
  return limitsId ?? id;
}

/** What operators made of a key: the limits in place of those it was made with, and whether it is blocked. */
export interface KeyEdit {
  readonly limits: KeyLimits;
  /** Unix milliseconds; absent for a key that is not blocked. */
  readonly blockedAt?: number;
  readonly blockReason?: string;
}

/** A record with what happened to it since. */
export interface StoredKey {
  /** With the limits that hold now. */
  readonly record: KeyRecord;
  /** How often operators changed it. */
  readonly version: number;
  readonly blockedAt?: number;
  readonly blockReason?: string;
  readonly revokedAt?: number;
  /** The end of the overlap, when the key was rotated. */
  readonly retiredAt?: number;
  /** The record's own expiry, or the end of the overlap when the key was rotated. */
  readonly expiresAt?: number;
}

/**
 * The documents of keys. A key, its revocation and its retirement are three documents, each written by one operation
 * alone: no operation reads a document, changes it and writes it back, so none can undo what another did meanwhile. What
 * operators change of a key is a record of its own, whose changes come one after the other.
 */
export interface KeyRecords {
  find(id: string): Promise<StoredKey | undefined>;
  add(record: KeyRecord): Promise<void>;
  remove(id: string): Promise<void>;
  revoke(key: StoredKey, now: number): Promise<StoredKey>;
  /** Gives a key an end, unless it has a sooner one. */
  retire(key: StoredKey, expiresAt: number): Promise<void>;
  /** Changes limits and blocking; with `expected` only from that version, else on top of what others changed. */
  edit(key: StoredKey, make: (edit: KeyEdit) => KeyEdit, expected?: number): Promise<EditedKey>;
  markUsed(id: string, now: number): Promise<void>;
  lastUsed(id: string): Promise<number | undefined>;
  /** Removes a key with all that was written beside it. */
  erase(key: StoredKey): Promise<void>;
}

/** A key before and after a change. */
export interface EditedKey {
  readonly before: StoredKey;
  readonly after: StoredKey;
}

/** Revoked and expired keys are told apart from unknown ones for this long. */
const REMEMBER_MS = 400 * 86_400_000;

export function createRecords(api: Pick<PluginApi, 'keyv' | 'log' | 'records'>): KeyRecords {
  const { edits, keys, revoked, retired, used } = openDocuments(api);
  return {
    async find(id) {
      // Not `getMany`: over an adapter without one, Keyv turns a failed read into "absent", and a revocation into nothing.
      const [value, revocation, retirement, edit] = await withStore(() =>
        Promise.all([keys.get(id), revoked.get(id), retired.get(id), edits.find(id)]),
      );
      const record = readRecord(value, id, api.log);
      if (edit.version > 0 && !isEdit(edit.value)) return refuseDamaged(id, api.log);
      return record && joinKey(record, readTime(revocation), readTime(retirement), edit);
    },

    async add(record) {
      await writeStore(() => keys.set(record.id, record, lifetime(record.expiresAt, record.createdAt)));
    },

    async remove(id) {
      await withStore(() => keys.delete(id));
    },

    async revoke(key, now) {
      if (key.revokedAt !== undefined) return key;
      await writeStore(() => revoked.set(key.record.id, { at: now }, lifetime(key.record.expiresAt ?? Infinity, now)));
      return { ...key, revokedAt: now };
    },

    async retire({ record }, expiresAt) {
      await writeStore(() =>
        retired.set(record.id, { at: expiresAt }, lifetime(record.expiresAt ?? Infinity, expiresAt)),
      );
    },

    edit: (key, make, expected) => editKey({ edits, keys }, key, make, expected),

    async markUsed(id, now) {
      await writeStore(() => used.set(id, now, REMEMBER_MS));
    },

    async lastUsed(id) {
      const at = await withStore(() => used.get(id));
      return typeof at === 'number' ? at : undefined;
    },

    async erase({ record: { id }, version }) {
      if (version > 0) await edits.change(id, () => ({ limits: { name: '' } }));
      // The key first: without it nobody reads the others.
      for (const documents of [keys, revoked, retired, used]) await withStore(() => documents.delete(id));
    },
  };
}

/** Where each document is. */
function openDocuments(api: Pick<PluginApi, 'keyv' | 'records'>) {
  return {
    edits: api.records<KeyEdit>('key-edits'),
    keys: api.keyv('keys'),
    revoked: api.keyv<{ at: number }>('keys-revoked'),
    retired: api.keyv<{ at: number }>('keys-retired'),
    used: api.keyv<number>('keys-used'),
  };
}

async function editKey(
  { edits, keys }: Pick<ReturnType<typeof openDocuments>, 'edits' | 'keys'>,
  { record, revokedAt, retiredAt }: StoredKey,
  make: (edit: KeyEdit) => KeyEdit,
  expected?: number,
): Promise<EditedKey> {
  const { id } = record;
  // A key with an end is kept for a time after that, and the end may be another now, or none: kept for ever from here on.
  const value = await withStore(() => keys.get(id));
  if (value !== undefined) await writeStore(() => keys.set(id, value));
  const changed = await edits.change(id, (edit) => make(edit ?? { limits: limitsOf(record) }), expected);
  const join = (edit: RecordVersion<KeyEdit>): StoredKey => joinKey(record, revokedAt, retiredAt, edit);
  return {
    before: join({ version: changed.version - 1, value: changed.before }),
    after: join(changed),
  };
}

/** Whether a key works no more. */
export function isEnded({ revokedAt, expiresAt }: StoredKey, now: number): boolean {
  return revokedAt !== undefined || (expiresAt !== undefined && expiresAt <= now);
}

function joinKey(
  made: KeyRecord,
  revokedAt: number | undefined,
  retiredAt: number | undefined,
  { version, value }: RecordVersion<KeyEdit>,
): StoredKey {
  const record = value ? { ...withoutLimits(made), ...value.limits } : made;
  const expiresAt = Math.min(record.expiresAt ?? Infinity, retiredAt ?? Infinity);
  const { blockedAt, blockReason } = value ?? {};
  return {
    record,
    version,
    ...omitUndefined({ revokedAt, retiredAt, expiresAt: expiresAt === Infinity ? undefined : expiresAt }),
    ...omitUndefined({ blockedAt, blockReason }),
  };
}

/** What a key may, apart from whose it is. */
export function limitsOf(record: KeyRecord): KeyLimits {
  const { name, expiresAt, plan, models, providers, serverTools, rpm, tpm, budget, budgets, addresses, tags } = record;
  return {
    name,
    ...omitUndefined({ expiresAt, plan, models, providers, serverTools, rpm, tpm, budget, budgets, addresses, tags }),
  };
}

function withoutLimits(record: KeyRecord): Omit<KeyRecord, keyof KeyLimits> {
  const { version, id, userId, account, role, scopes, hash, pepperId, createdAt, limitsId, userLimits } = record;
  return {
    ...{ version, id, userId, account, hash, pepperId, createdAt },
    ...omitUndefined({ role, scopes, limitsId, userLimits }),
  };
}

function isEdit(value: KeyEdit | undefined): boolean {
  // oxlint-disable-next-line typescript/no-unnecessary-condition -- a store returns what was once written
  return isObject(value) && isObject(value.limits) && typeof value.limits.name === 'string';
}

/** When it happened. A damaged document still says that it did: the key was revoked, or retired, long ago. */
function readTime(document: { at: number } | undefined): number | undefined {
  // oxlint-disable-next-line typescript/no-unnecessary-condition -- a store returns what was once written
  if (document === undefined || document === null) return undefined;
  return typeof document.at === 'number' ? document.at : 0;
}

/** A key that may still work is kept for ever; one with an end is kept long enough to say that it ended. */
function lifetime(expiresAt: number | undefined, now: number): number | undefined {
  if (expiresAt === undefined || expiresAt === Infinity) return undefined;
  return Math.max(expiresAt - now, 0) + REMEMBER_MS;
}

/** A document that is not a key (damaged, or written by something else) denies, and is told to the operator. */
function readRecord(value: unknown, id: string, log: Log): KeyRecord | undefined {
  if (value === undefined || value === null) return undefined;
  const record = value as KeyRecord;
  const sound =
    // oxlint-disable-next-line typescript/no-unnecessary-condition -- a store returns what was once written
    record.version === 1 &&
    record.id === id &&
    typeof record.userId === 'string' &&
    typeof record.account === 'string' &&
    typeof record.hash === 'string' &&
    /^[0-9a-f]{64}$/.test(record.hash);
  if (sound) return record;
  return refuseDamaged(id, log);
}

function refuseDamaged(id: string, log: Log): undefined {
  log.error({ keyId: id }, 'The stored document of an API key is damaged; the key is rejected.');
}

/** Runs a store operation; whatever it throws becomes `store_unavailable`: unknown is never absent. */
export async function withStore<T>(operation: () => Promise<T>): Promise<T> {
  try {
    return await operation();
  } catch (cause) {
    if (isGatewayError(cause)) throw cause;
    throw unavailable(cause);
  }
}

/** As {@link withStore}, for writes that resolve with false when they were not done. */
async function writeStore(operation: () => Promise<boolean>): Promise<void> {
  if (!(await withStore(operation))) throw unavailable(undefined);
}

function unavailable(cause: unknown): GatewayError {
  return new GatewayError(
    'store_unavailable',
    'The store of API keys does not respond, so this key cannot be checked. Try again shortly.',
    { retryAfterMs: 1000, cause },
  );
}
