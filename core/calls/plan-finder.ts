import type { Principal } from '../contract/call.ts';
import { GatewayError } from '../contract/errors.ts';
import type { PluginApi } from '../contract/plugin.ts';
import { createFreshReads } from '../plugins/fresh-reads.ts';
import { createPlanBook, type NamedPlan, type PlanBook } from './plan-book.ts';

/** What an account is beside its ledger. */
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
  api: Pick<PluginApi, 'shared' | 'records'>,
  account: string,
): Promise<{ readonly version: number; readonly plan: string | undefined }> {
  const { version, value } = await api.records<AccountRecord>(ACCOUNTS).find(account);
  if (version > 0) return { version, plan: value?.plan };
  return { version, plan: (await api.shared<AccountRecord>(ACCOUNTS).get(accountKey(account)))?.plan };
}

/**
 * The plan that applies to a caller: the one of the key or token, else the one an operator gave the account, else the
 * default plan. Undefined when there is none: no plan, no limit. Throws `permission_denied` for a caller whose plan is not
 * there (any more) when no other one applies: a name that limits nothing must not lift the limits.
 */
export function createPlanFinder(api: Pick<PluginApi, 'shared' | 'settings' | 'records'>): PlanFinder {
  const { defaultPlan } = api.settings;
  const readBook = createPlanBook(api);
  const accounts = createFreshReads(async (account) => (await findAccount(api, account)).plan, PLAN_TTL_MS, 10_000);
  api.records<AccountRecord>(ACCOUNTS).onChange(accounts.forget);

  const choose = (book: PlanBook, wanted: string | undefined, given: string | undefined): NamedPlan | undefined => {
    const plan = named(book, given) ?? named(book, defaultPlan);
    const lost = wanted ?? given;
    if (plan || lost === undefined) return plan;
    throw new GatewayError(
      'permission_denied',
      'The plan of this credential or its account is not one of this gateway any more: its operator has to name another.',
    );
  };
  const findIn = (book: PlanBook, principal: Principal): ReturnType<PlanFinder> => {
    if (book.size === 0) return undefined;
    const own = named(book, principal.plan);
    if (own) return own;
    const given = accounts.get(principal.account);
    if (!(given instanceof Promise)) return choose(book, principal.plan, given);
    return given.then((plan) => choose(book, principal.plan, plan));
  };
  return (principal) => {
    const book = readBook();
    return book instanceof Promise ? book.then((known) => findIn(known, principal)) : findIn(book, principal);
  };
}

function named(book: PlanBook, name: string | undefined): NamedPlan | undefined {
  return name === undefined ? undefined : book.get(name);
}
