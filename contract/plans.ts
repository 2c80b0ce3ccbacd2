import type { ModelCatalog, Principal, Target } from './call.ts';
import { GatewayError } from './errors.ts';
import { createFreshReads } from './fresh-reads.ts';
import { clip, isAllowed } from './model-names.ts';
import type { Plan, PluginApi } from './plugin.ts';
import type { Records } from './store.ts';

/** The plans that operators put at run time, in one record. */
export interface StoredPlans {
  readonly [name: string]: StoredPlan;
}

export interface StoredPlan {
  readonly plan: Plan;
  /** Grows with each change of this plan. */
  readonly version: number;
}

/** The name of the record of plans, and its only id. */
export const PLANS = 'plans';
export const ALL_PLANS = 'all';

/** How long a plan that was put may take to reach another node, in milliseconds; this one knows at once. */
const KNOWN_MS = 3000;

export interface NamedPlan {
  readonly name: string;
  readonly plan: Plan;
}

/**
 * Refuses targets that a plan does not have among its models. `requested` is the name they came by: an alias that is among the models
 * allows all of its targets.
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

/** All plans by name: those of the file first, which nothing in the store replaces. */
export type PlanBook = ReadonlyMap<string, NamedPlan>;

/** What plans are read with: a part of {@link PluginApi}. */
export interface PlanApi {
  readonly settings: PluginApi['settings'];
  readonly stores: Pick<PluginApi['stores'], 'shared'>;
  readonly books: Pick<PluginApi['books'], 'records'>;
}

/** Reads the plans: those of the file, and those of the store as they were a moment ago. */
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
      // Plans of a moment ago are better than none; the store is asked again after a while, not by every call.
      if (!last) throw error;
    }
    return last;
  };
  const reads = createFreshReads(read, KNOWN_MS, 1);
  stored.onChange(reads.forget);
  return reads.get.bind(reads, ALL_PLANS);
}

function joinPlans(stored: StoredPlans, ofFile: Readonly<Record<string, Plan>>): PlanBook {
  const rows = [...Object.entries(stored).map(([name, { plan }]) => [name, plan] as const), ...Object.entries(ofFile)];
  return new Map(rows.map(([name, plan]): [string, NamedPlan] => [name, { name, plan }]));
}

/** What is kept of an account in addition to its ledger. */
export interface AccountRecord {
  readonly plan?: string;
}

/** The name of the accounts' records; before there were records, the shared name of their documents. */
export const ACCOUNTS = 'accounts';

/** How long a changed plan of an account may take to reach every node, in milliseconds; this one knows at once. */
const PLAN_TTL_MS = 4000;

/** Finds the plan that applies to a caller. */
export type PlanFinder = (principal: Principal) => NamedPlan | undefined | Promise<NamedPlan | undefined>;

/** The key of an account's document: user ids are hashed by the store, so any text may be one. */
export function accountKey(account: string): string {
  return `account:${account}`;
}

/** What an operator gave an account: its record, or the document that stands for version 0 of it. */
export async function findAccount(
  api: Pick<PlanApi, 'stores' | 'books'>,
  account: string,
): Promise<{ readonly version: number; readonly plan: string | undefined }> {
  const { version, value } = await api.books.records<AccountRecord>(ACCOUNTS).find(account);
  if (version > 0) return { version, plan: value?.plan };
  return { version, plan: (await api.stores.shared<AccountRecord>(ACCOUNTS).get(accountKey(account)))?.plan };
}

/**
 * The plan that applies to a caller: the one of the key or token, else the one an operator gave the account, else the
 * default plan. Undefined when there is none: no plan, no limit. Throws `permission_denied` for a caller whose plan is not
 * there (any more) when no other one applies: a name that limits nothing must not lift the limits.
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

/** No plan has it. */
const NO_NAME = '\u0000';

/** What operators set for a user, and what is known of one. */
export interface UserRecord {
  /** As the identity provider or an operator wrote it. */
  readonly name?: string;
  /** Unix milliseconds; absent for a user who is not blocked. */
  readonly blockedAt?: number;
  readonly reason?: string;
}

/** The name of the users' records. */
export const USERS = 'users';

/** How long another node may let a blocked user in, in milliseconds; this one forgets at once. */
const BLOCKED_KNOWN_MS = 2000;

/** Throws `permission_denied` for a user whom an operator blocked; at once for one who was looked up a moment ago. */
export type RefuseBlocked = (userId: string) => void | Promise<void>;

/** Looks users up, and remembers for a moment whether they are blocked. */
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
