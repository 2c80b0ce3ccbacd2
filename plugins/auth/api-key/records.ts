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

/** Limits of a key. Times are Unix milliseconds, money is nano-dollars; an absent field sets no limit. */
export interface KeyLimits {
  readonly name: string;
  readonly expiresAt?: number;
  readonly plan?: string;
  readonly models?: readonly string[];
  readonly providers?: readonly string[];
  /** Vendor-run tools on the operator's account; default: those of its plan alone. */
  readonly serverTools?: readonly string[];
  readonly rpm?: number;
  readonly tpm?: number;
  readonly budget?: number;
  readonly budgets?: readonly BudgetRule[];
  /** Addresses and networks from which it may be used, such as `10.0.0.0/8`. */
  readonly addresses?: readonly string[];
  /** Tags of its calls, such as `team=search`. */
  readonly tags?: readonly string[];
}

/** Rights of an operator's key: the scopes of the role, and the listed ones. */
export interface KeyRights {
  readonly role?: Role;
  readonly scopes?: readonly Scope[];
}

/** True for an operator's key. */
export function isOfOperator({ role, scopes }: KeyRights): boolean {
  return (role ?? scopes) !== undefined;
}

/** Stored key. Immutable; later changes are stored in separate documents. */
export interface KeyRecord extends KeyLimits, KeyRights {
  readonly version: 1;
  readonly id: string;
  readonly userId: string;
  readonly account: string;
  /** Hex of the HMAC of the full key. */
  readonly hash: string;
  /** Pepper of the hash. */
  readonly pepperId: string;
  readonly createdAt: number;
  /**
   * First of several keys that replaced one another, with which this one shares limits and budget; absent for the first
   * key itself.
   */
  readonly limitsId?: string;
  /** Limits of its user over all keys. */
  readonly userLimits?: UserLimits;
  /** Unix milliseconds of the last change of its budgets; absent if they are as old as the key. */
  readonly budgetsSince?: number;
}

/** Id under which a key's limits and budget are counted. */
export function limitsIdOf({ id, limitsId }: KeyRecord): string {
  return limitsId ?? id;
}

/** Changes by operators: limits that replace the original ones, and blocking. */
export interface KeyEdit {
  readonly limits: KeyLimits;
  readonly budgetsSince?: number;
  /** Unix milliseconds; absent if the key is not blocked. */
  readonly blockedAt?: number;
  readonly blockReason?: string;
}

/** Record with its later changes. */
export interface StoredKey {
  /** Record with the current limits. */
  readonly record: KeyRecord;
  /** Number of changes by operators. */
  readonly version: number;
  readonly blockedAt?: number;
  readonly blockReason?: string;
  readonly revokedAt?: number;
  /** End of the overlap, if the key was rotated. */
  readonly retiredAt?: number;
  /** Expiry of the record, or end of the overlap if the key was rotated. */
  readonly expiresAt?: number;
}

/**
 * Documents of keys. A key, its revocation and its retirement are three documents, each written by a single operation.
 * No operation reads, changes and writes back a document, so none can undo a concurrent one. Changes by operators are a
 * separate record with serialized updates.
 */
type RecordsApi = Pick<PluginApi, 'keyv' | 'log'> & { readonly books: Pick<PluginApi['books'], 'records'> };

export interface KeyRecords {
  find(id: string): Promise<StoredKey | undefined>;
  add(record: KeyRecord): Promise<void>;
  remove(id: string): Promise<void>;
  revoke(key: StoredKey, now: number): Promise<StoredKey>;
  /** Sets the expiry of a key, except when it has an earlier one. */
  retire(key: StoredKey, expiresAt: number): Promise<void>;
  /** Changes limits and blocking; with `expected` only from that version, else on top of concurrent changes. */
  edit(key: StoredKey, make: (edit: KeyEdit) => KeyEdit, expected?: number): Promise<EditedKey>;
  markUsed(id: string, now: number): Promise<void>;
  lastUsed(id: string): Promise<number | undefined>;
  /** Removes a key with all its documents. */
  erase(key: StoredKey): Promise<void>;
}

/** Key before and after a change. */
export interface EditedKey {
  readonly before: StoredKey;
  readonly after: StoredKey;
}

/** Time for which revoked and expired keys are distinguished from unknown ones. */
const REMEMBER_MS = 400 * 86_400_000;

export function createRecords(api: RecordsApi): KeyRecords {
  const { edits, keys, revoked, retired, used } = openDocuments(api);
  return {
    async find(id) {
      // Not `getMany`: over an adapter without it, Keyv turns a failed read into "absent", and would lose a revocation.
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
      // Delete the key first: without it the other documents are never read.
      for (const documents of [keys, revoked, retired, used]) await withStore(() => documents.delete(id));
    },
  };
}

/** Opens the documents. */
function openDocuments(api: Omit<RecordsApi, 'log'>) {
  return {
    edits: api.books.records<KeyEdit>('key-edits'),
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
  // A key with an expiry is deleted some time after it. The expiry may have changed or been removed, so the key is
  // stored without a time limit from here on.
  const value = await withStore(() => keys.get(id));
  if (value !== undefined) await writeStore(() => keys.set(id, value));
  const changed = await edits.change(
    id,
    (edit = { limits: limitsOf(record) }) => noteBudgets(edit, make(edit)),
    expected,
  );
  const join = (edit: RecordVersion<KeyEdit>): StoredKey => joinKey(record, revokedAt, retiredAt, edit);
  return {
    before: join({ version: changed.version - 1, value: changed.before }),
    after: join(changed),
  };
}

/** Adds the time of the change if an edit changes the budgets. */
function noteBudgets(before: KeyEdit, after: KeyEdit): KeyEdit {
  const isSame = JSON.stringify(before.limits.budgets) === JSON.stringify(after.limits.budgets);
  const budgetsSince = isSame ? before.budgetsSince : Date.now();
  return budgetsSince === undefined ? after : { ...after, budgetsSince };
}

/** True if a key is no longer valid. */
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
  const { blockedAt, blockReason, budgetsSince } = value ?? {};
  return {
    record: budgetsSince === undefined ? record : { ...record, budgetsSince },
    version,
    ...omitUndefined({ revokedAt, retiredAt, expiresAt: expiresAt === Infinity ? undefined : expiresAt }),
    ...omitUndefined({ blockedAt, blockReason }),
  };
}

/** Limits of a key, without its owner. */
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
    version,
    id,
    userId,
    account,
    hash,
    pepperId,
    createdAt,
    ...omitUndefined({ role, scopes, limitsId, userLimits }),
  };
}

function isEdit(value: KeyEdit | undefined): boolean {
  // oxlint-disable-next-line typescript/no-unnecessary-condition -- a store returns what was once written
  return isObject(value) && isObject(value.limits) && typeof value.limits.name === 'string';
}

/**
 * Time of the event. A damaged document still means that it happened: the key then counts as revoked or retired long
 * ago.
 */
function readTime(document: { at: number } | undefined): number | undefined {
  // oxlint-disable-next-line typescript/no-unnecessary-condition -- a store returns what was once written
  if (document === undefined || document === null) return undefined;
  return typeof document.at === 'number' ? document.at : 0;
}

/** A key that may be valid is stored without a time limit; one with an expiry long enough to report that it ended. */
function lifetime(expiresAt: number | undefined, now: number): number | undefined {
  if (expiresAt === undefined || expiresAt === Infinity) return undefined;
  return Math.max(expiresAt - now, 0) + REMEMBER_MS;
}

/** Denies access for a document that is not a key (damaged, or written by another program), and logs it. */
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

/** Runs a store operation; turns every error into `store_unavailable`: a failed read never counts as absent. */
export async function withStore<T>(operation: () => Promise<T>): Promise<T> {
  try {
    return await operation();
  } catch (cause) {
    if (isGatewayError(cause)) throw cause;
    throw unavailable(cause);
  }
}

/** Like {@link withStore}, for writes that resolve with false if they were not done. */
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
