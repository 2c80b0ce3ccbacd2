import type { ModelCatalog, Principal, Target } from './call.ts';
import { GatewayError } from './errors.ts';
import { createFreshReads } from './fresh-reads.ts';
import { clip, isAllowed } from './model-names.ts';
import type { Plan, PluginApi } from './plugin.ts';
import type { Records } from './store.ts';

/** Plans that operators write at run time, in one record. */
export interface StoredPlans {
  readonly [name: string]: StoredPlan;
}

export interface StoredPlan {
  readonly plan: Plan;
  /** Increases with each change of this plan. */
  readonly version: number;
}

/** Name of the record of plans, and its only id. */
export const PLANS = 'plans';
export const ALL_PLANS = 'all';

/** Milliseconds until other nodes see a changed plan; this node sees it at once. */
const KNOWN_MS = 3000;

export interface NamedPlan {
  readonly name: string;
  readonly plan: Plan;
  /** Unix milliseconds of the last change of a plan in the store. */
  readonly since?: number;
}

/**
 * Rejects targets that are not among a plan's models. `requested` is the name that resolved to them: an allowed alias allows all of
 * its targets.
 */
export function assertInPlan(
  catalog: Pick<ModelCatalog, 'find'>,
  named: NamedPlan | undefined,
  targets: readonly Target[],
  { requested, param = 'model' }: { readonly requested?: string; readonly param?: string } = {},
): void {
  const models = named?.plan.models;
  if (!models) return;
  const refused = targets.find((target) => !isAllowed(catalog, { models }, target, requested));
  if (!refused) return;
  throw new GatewayError(
    'model_not_allowed',
    `The plan "${named.name}" does not include "${clip(refused.provider)}/${clip(refused.model)}". \`GET /v1/models\` lists the models that you may call.`,
    { param },
  );
}

/** All plans by name. Plans of the file come first and cannot be replaced by those in the store. */
export type PlanBook = ReadonlyMap<string, NamedPlan>;

/** Part of {@link PluginApi} for reading plans. */
export interface PlanApi {
  readonly settings: PluginApi['settings'];
  readonly stores: Pick<PluginApi['stores'], 'shared'>;
  readonly books: Pick<PluginApi['books'], 'records'>;
}

/** Reads the plans of the file and the cached plans of the store. */
export function createPlanBook({
  books: { records },
  settings,
}: Pick<PlanApi, 'books' | 'settings'>): () => PlanBook | Promise<PlanBook> {
  const stored = records<StoredPlans>(PLANS);
  let last: PlanBook | undefined;
  const read = async (): Promise<PlanBook> => {
    try {
      last = joinPlans((await stored.find(ALL_PLANS)).value ?? {}, settings.plans);
    } catch (error) {
      // Stale plans are better than none. The store is queried again after a delay, not by every call.
      if (!last) throw error;
    }
    return last;
  };
  const reads = createFreshReads(read, KNOWN_MS, 1);
  stored.onChange(reads.forget);
  return reads.get.bind(reads, ALL_PLANS);
}

function joinPlans(stored: StoredPlans, ofFile: Readonly<Record<string, Plan>>): PlanBook {
  const plans = new Map<string, NamedPlan>();
  // The version of a stored plan is the time of its change.
  for (const [name, { plan, version }] of Object.entries(stored)) plans.set(name, { name, plan, since: version });
  for (const [name, plan] of Object.entries(ofFile)) plans.set(name, { name, plan });
  return plans;
}

/** Data of an account in addition to its ledger. */
export interface AccountRecord {
  readonly plan?: string;
}

/** Name of the account records; formerly, the shared name of their documents. */
export const ACCOUNTS = 'accounts';

/** Milliseconds until every node sees a changed plan of an account; this node sees it at once. */
const PLAN_TTL_MS = 4000;

/** Finds the plan of a caller. */
export type PlanFinder = (principal: Principal) => NamedPlan | undefined | Promise<NamedPlan | undefined>;

/** Returns the key of an account's document: the store hashes user ids, so any text is valid. */
export function accountKey(account: string): string {
  return `account:${account}`;
}

/** Returns an account's record, or the document that precedes its first version. */
export async function findAccount(
  api: Pick<PlanApi, 'stores' | 'books'>,
  account: string,
): Promise<{ readonly version: number; readonly plan: string | undefined }> {
  const { version, value } = await api.books.records<AccountRecord>(ACCOUNTS).find(account);
  if (version > 0) return { version, plan: value?.plan };
  return { version, plan: (await api.stores.shared<AccountRecord>(ACCOUNTS).get(accountKey(account)))?.plan };
}

/**
 * Finds the plan of a caller: that of the key or token, else that of the account, else the default plan. Returns undefined without
 * a plan, which means no limit. Throws `permission_denied` if the caller's plan is missing and no other applies: an unknown name
 * must not lift the limits.
 */
export function createPlanFinder(api: PlanApi): PlanFinder {
  const { defaultPlan } = api.settings;
  const readBook = createPlanBook(api);
  const accounts = createFreshReads(async (account) => (await findAccount(api, account)).plan, PLAN_TTL_MS, 10_000);
  api.books.records<AccountRecord>(ACCOUNTS).onChange(accounts.forget);

  const choose = (book: PlanBook, wanted: string | undefined, given: string | undefined): NamedPlan | undefined => {
    const plan = book.get(given ?? NO_NAME) ?? book.get(defaultPlan ?? NO_NAME);
    if (plan || (wanted ?? given) === undefined) return plan;
    throw new GatewayError(
      'permission_denied',
      'The plan of this credential or its account no longer exists. Ask the operator to set another one.',
    );
  };
  const findIn = (book: PlanBook, { plan: wanted, account }: Principal): ReturnType<PlanFinder> => {
    const own = book.get(wanted ?? NO_NAME);
    if (own || book.size === 0) return own;
    const given = accounts.get(account);
    return given instanceof Promise ? given.then((plan) => choose(book, wanted, plan)) : choose(book, wanted, given);
  };
  return (principal) => {
    const book = readBook();
    return book instanceof Promise ? book.then((known) => findIn(known, principal)) : findIn(book, principal);
  };
}

/** Name that no plan can have. */
const NO_NAME = '\u0000';

/** Operator's settings and known data of a user. */
export interface UserRecord {
  /** Name from the identity provider or an operator. */
  readonly name?: string;
  /** Unix milliseconds; absent if the user is not blocked. */
  readonly blockedAt?: number;
  readonly reason?: string;
  /** Id that replaces the name while an erasure of the user is incomplete. */
  readonly erasedAs?: string;
}

/** Name of the user records. */
export const USERS = 'users';

/** Milliseconds for which another node may admit a blocked user; this node rejects at once. */
const BLOCKED_KNOWN_MS = 2000;

/** Throws `permission_denied` for a blocked user; synchronously if the user was looked up recently. */
export type RefuseBlocked = (userId: string) => void | Promise<void>;

/** Looks up users and caches briefly whether they are blocked. */
export function createBlockedUsers(users: Records<UserRecord>): RefuseBlocked {
  const reads = createFreshReads(async (id) => {
    void users.note(id);
    return (await users.find(id)).value?.blockedAt !== undefined;
  }, BLOCKED_KNOWN_MS);
  users.onChange(reads.forget);
  return (userId) => {
    const isBlocked = reads.get(userId);
    if (typeof isBlocked !== 'boolean') return isBlocked.then(refuseBlocked);
    if (isBlocked) refuseBlocked(isBlocked);
  };
}

function refuseBlocked(isBlocked: boolean): void {
  if (!isBlocked) return;
  throw new GatewayError(
    'permission_denied',
    'An operator of this gateway blocked this user with all keys and tokens. Ask them to unblock it.',
  );
}
