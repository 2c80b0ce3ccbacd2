import {
  type BudgetRule,
  type Call,
  formatUsd,
  type GatewayError,
  type Ledger,
  type Log,
  type NamedPlan,
  type PlanFinder,
  type PluginApi,
  type Principal,
  type Target,
} from '../../../../contract/index.ts';
import { KEY_ORIGINS, type KeyOrigin, keyWindowPrefix } from '../../kit/index.ts';
import type { AccountRaise, AccountRaises } from './account-raises.ts';
import {
  type Aliases,
  type BudgetCounter,
  type BudgetOwner,
  type CountedBudget,
  countsTarget,
  createCounter,
  isByTarget,
  type OverBudget,
  type Raise,
  refusalOf,
  resetsAt,
  scopeOf,
} from './budget-window.ts';
import type { Notices } from './notices.ts';
import type { BudgetRecords, NamedBudget } from './records.ts';

/** Current budgets of the configuration and the store. */
export interface BudgetBook {
  /**
   * Returns the budgets of a caller. With `targets`, omits budgets of a provider or model that none of the targets
   * matches.
   */
  find(
    caller: BudgetCaller,
    now: number,
    targets?: readonly Target[],
  ): readonly CountedBudget[] | Promise<readonly CountedBudget[]>;
  /** Reads the store's budgets again if they changed. Rejects if the store does not respond. */
  refresh(): Promise<void>;
}

export interface BudgetCaller {
  readonly principal: Principal;
  readonly tags: readonly string[];
}

interface BookParts {
  readonly records: Pick<BudgetRecords, 'read' | 'onChange'>;
  readonly raises: Pick<AccountRaises, 'read' | 'onChange'>;
  readonly findPlan: PlanFinder;
  /** Returns the first key of a rotation chain; the key itself if it was never rotated. */
  readonly firstKeyOf: (keyId: string) => Promise<string>;
  /** Targets of the configured aliases. */
  readonly aliases?: () => Aliases;
}

/** Poll interval for budget changes in the store. A change takes effect everywhere within five seconds. */
export const REFRESH_MS = 2000;
/** Lifetime of a cached first key of a rotation chain. */
const ORIGINS_MS = 60_000;

export function createBudgetBook({ records, raises, findPlan, firstKeyOf, aliases }: BookParts): BudgetBook {
  let matcher: BudgetMatcher | undefined;
  let version = '';
  let readAt = 0;
  let running: Promise<void> | undefined;

  const read = async (): Promise<void> => {
    const [shared, own] = await Promise.all([records.read(), raises.read()]);
    const current = `${shared.version} ${own.version}`;
    const now = Date.now();
    if (matcher && current === version && Math.abs(now - readAt) < ORIGINS_MS) return;
    matcher = createMatcher(await Promise.all(shared.budgets.map(withOrigin)), own.raises, aliases?.());
    version = current;
    readAt = now;
  };
  const withOrigin = async (budget: NamedBudget) => {
    const { key } = budget.rule;
    return key === undefined ? budget : { ...budget, limitsId: await firstKeyOf(keyIdOf(key)) };
  };
  const refresh = (): Promise<void> => {
    running ??= read().finally(() => {
      running = undefined;
    });
    return running;
  };

  const findLater = async (
    { principal, tags }: BudgetCaller,
    found: ReturnType<PlanFinder>,
    now: number,
    targets: readonly Target[] | undefined,
  ): Promise<readonly CountedBudget[]> => {
    const plan = await found;
    if (!matcher) await refresh();
    return matcher?.find({ principal, tags, plan }, now, targets) ?? [];
  };

  for (const each of [records, raises]) each.onChange(() => void refresh().catch(() => undefined));
  return {
    refresh,
    find({ principal, tags }, now, targets) {
      const plan = findPlan(principal);
      if (matcher && !(plan instanceof Promise)) return matcher.find({ principal, tags, plan }, now, targets);
      return findLater({ principal, tags }, plan, now, targets);
    },
  };
}

/** Creates a lookup of the first key in a rotation chain. */
export function createKeyOrigins(api: Pick<PluginApi, 'books'>): BookParts['firstKeyOf'] {
  const origins = api.books.records<KeyOrigin>(KEY_ORIGINS);
  return async (keyId) => (await origins.find(keyId)).value?.first ?? keyId;
}

/** Refreshes a book periodically from the gateway's start to its shutdown. */
export function keepCurrent(
  api: Pick<PluginApi, 'onReady' | 'onClose'> & { readonly log: Log },
  book: BudgetBook,
): void {
  api.onReady(async () => {
    let isAway = false;
    const refresh = async (): Promise<void> => {
      try {
        await book.refresh();
        isAway = false;
      } catch (error) {
        if (!isAway)
          api.log.warn({ err: error }, 'the budgets of the store could not be read; those known hold meanwhile');
        isAway = true;
      }
    };
    await refresh();
    const timer = setInterval(() => void refresh(), REFRESH_MS);
    timer.unref();
    api.onClose(() => clearInterval(timer));
  });
}

/** Caller of a call. */
export interface Caller {
  readonly principal: Principal;
  readonly tags: readonly string[];
  readonly plan: NamedPlan | undefined;
}

/** Budget shared by all matching calls. */
export interface SharedBudget {
  readonly rule: BudgetRule;
  readonly raises: readonly Raise[];
  /** Id that counts for the rule's key: the first key of its rotation chain. */
  readonly limitsId?: string | undefined;
}

interface Shared extends SharedBudget {
  readonly counter: BudgetCounter;
}

/** Finds the budgets of calls. */
export interface BudgetMatcher {
  /**
   * Returns the budgets that count a call. With `targets`, omits budgets of a provider or model that none of the
   * targets matches.
   */
  find(caller: Caller, now: number, targets?: readonly Target[]): readonly CountedBudget[];
}

const NO_BUDGETS: readonly CountedBudget[] = Object.freeze([]);

/** Ledger prefix of shared budgets. */
export const SHARED = 'shared';

/** Maximum number of cached accounts and keys with their own budgets. */
const MAX_OWNERS = 10_000;

/** Creates a matcher. Indexes the shared budgets by user, key or tag, so that a call checks only few of many. */
export function createMatcher(
  budgets: readonly SharedBudget[],
  accountRaises: readonly AccountRaise[] = [],
  aliases: Aliases = new Map(),
): BudgetMatcher {
  const shared = budgets.map((budget): Shared => {
    const { rule, raises } = budget;
    return { ...budget, counter: createCounter({ prefix: SHARED, rule, scope: scopeOf(rule), raises, aliases }) };
  });
  const byName = new Map<string, Shared[]>();
  const others: Shared[] = [];
  for (const budget of shared) {
    const names = namesOf(budget);
    for (const name of names) byName.set(name, [...(byName.get(name) ?? []), budget]);
    if (names.length === 0) others.push(budget);
  }
  const owned = createOwned(aliases);
  const raised = groupRaises(accountRaises);

  return {
    find(caller, now, targets) {
      const { principal, tags, plan } = caller;
      const { userId, account, keyId, limitsId = keyId, budgets: ofKey } = principal;
      if (others.length === 0 && byName.size === 0 && !ofKey && !plan?.plan.budgets) return NO_BUDGETS;
      const found = new Set<CountedBudget>();
      const note = ({ rule, counter }: Pick<Shared, 'rule' | 'counter'>): void => {
        const budget = counter(now);
        if (targets && isByTarget(rule) && !targets.some((target) => countsTarget(budget, target))) return;
        found.add(budget);
      };
      const noteShared = (budget: Shared): void => {
        if (matches(budget, caller)) note(budget);
      };
      if (ofKey && limitsId !== undefined)
        for (const each of owned(ofKey, { prefix: keyWindowPrefix(limitsId), scope: 'key', owner: { key: limitsId } }))
          note(each);
      if (plan?.plan.budgets) {
        const prefix = `plan:${encodeURIComponent(plan.name)}:${account}`;
        for (const each of owned(plan.plan.budgets, {
          prefix,
          scope: 'plan',
          owner: { account },
          raised: raised.get(account),
        }))
          note(each);
      }
      for (const budget of others) noteShared(budget);
      if (byName.size === 0) return [...found];
      for (const name of [`user ${userId}`, `key ${keyId}`, `key ${limitsId}`, ...tags.map((tag) => `tag ${tag}`)])
        for (const budget of byName.get(name) ?? []) noteShared(budget);
      return [...found];
    },
  };
}

/** Creates a cache of budgets that each account of a plan, or each key, has separately. */
function createOwned(aliases: Aliases) {
  const known = new Map<string, { readonly rules: readonly BudgetRule[]; readonly counters: readonly Owned[] }>();
  return (rules: readonly BudgetRule[], whose: Whose): readonly Owned[] => {
    const { prefix, raised, ...parts } = whose;
    const found = known.get(prefix);
    if (found?.rules === rules) return found.counters;
    const counters = rules.map(
      (rule): Owned => ({
        rule,
        counter: createCounter({ ...parts, prefix, rule, raises: raised?.get(rule.name) ?? [], aliases }),
      }),
    );
    if (known.size >= MAX_OWNERS) known.clear();
    known.set(prefix, { rules, counters });
    return counters;
  };
}

interface Whose {
  readonly prefix: string;
  readonly scope: 'key' | 'plan';
  readonly owner: BudgetOwner;
  /** Raises by budget name. */
  readonly raised?: ReadonlyMap<string, readonly Raise[]> | undefined;
}

/** Groups raises by account and budget name. */
function groupRaises(all: readonly AccountRaise[]): ReadonlyMap<string, ReadonlyMap<string, readonly Raise[]>> {
  const byAccount = new Map<string, Map<string, readonly Raise[]>>();
  for (const { account, budget, raises } of all) {
    const own = byAccount.get(account) ?? new Map<string, readonly Raise[]>();
    byAccount.set(account, own.set(budget, raises));
  }
  return byAccount;
}

interface Owned {
  readonly rule: BudgetRule;
  readonly counter: BudgetCounter;
}

/**
 * Index names of a budget, by its most selective field. Only calls with one of them can match. A key has two: its own
 * id and the id that counts for it.
 */
function namesOf({ rule: { user, key, tag }, limitsId }: SharedBudget): readonly string[] {
  if (key !== undefined) return [...new Set([`key ${keyIdOf(key)}`, `key ${limitsId ?? keyIdOf(key)}`])];
  if (user !== undefined) return [`user ${user}`];
  return tag === undefined ? [] : [`tag ${tag}`];
}

function matches({ rule, limitsId }: SharedBudget, { principal, tags, plan }: Caller): boolean {
  const { user, key, tag } = rule;
  if (user !== undefined && user !== principal.userId) return false;
  if (tag !== undefined && !tags.includes(tag)) return false;
  if (rule.plan !== undefined && rule.plan !== plan?.name) return false;
  if (key === undefined) return true;
  const own: readonly unknown[] = [principal.keyId, principal.limitsId];
  return own.includes(keyIdOf(key)) || (limitsId !== undefined && own.includes(limitsId));
}

/** Removes the prefix `tg_` that key lists show. */
export function keyIdOf(key: string): string {
  return key.startsWith('tg_') ? key.slice(3) : key;
}

/** Budget operations for a call. */
export interface CallBudgets {
  /** Returns the budgets that count a call, in their current windows. */
  find(call: Call, now: number): ReturnType<BudgetBook['find']>;
  /** Returns the budgets that count a call answered by an `answer` hook, so without a provider. */
  findWithoutTarget(call: Call, now: number): Promise<readonly CountedBudget[]>;
  /** Warns the caller of exceeded soft limits. `used` includes the call's own hold, which is `amount`. */
  noteHeld(call: Call, hold: BudgetsHeld): void;
  /** Creates the error for a call that exceeds a budget. */
  refuse(budget: CountedBudget, over: OverBudget): GatewayError;
  /** Sends operators the notices that a settled call causes, once each. Never rejects. */
  noteSettled(hold: BudgetsHeld): Promise<void>;
}

/** Budgets of an admitted call, with the spent and held amount of each, including the call. */
export interface BudgetsHeld {
  readonly budgets: readonly CountedBudget[];
  readonly used: readonly number[];
  readonly amount: number;
}

interface Parts {
  readonly book: BudgetBook;
  readonly notices: Notices;
  readonly ledger: Pick<Ledger, 'budgets'>;
  /** Unix milliseconds of the clock that all processes of the store share. */
  readonly now: () => number;
}

const WARNING = 'x-tollgate-budget-warning';

export function createCallBudgets({ book, notices, ledger, now }: Parts): CallBudgets {
  return {
    find: (call, at) => book.find(call, at, call.targets),
    async findWithoutTarget(call, at) {
      return (await book.find(call, at)).filter(({ rule }) => !isByTarget(rule));
    },

    noteHeld(call, { budgets, used, amount }) {
      const warnings = budgets.flatMap((budget, at): readonly string[] => {
        const before = (used[at] ?? 0) - amount;
        return isSoft(budget, before) ? [warningOf(budget, before)] : [];
      });
      if (warnings.length > 0) call.headers.set(WARNING, warnings.join(', '));
    },

    refuse(budget, over) {
      // If the budget is hardly used, the call is too large. That is no reason for a notice.
      if (over.used * 2 >= budget.limit) void notices.tell('used_up', budget, over.used);
      return refusalOf(budget, over, now());
    },

    async noteSettled({ budgets, used }) {
      const near = budgets.filter(
        (budget, at) =>
          (isSoft(budget, used[at] ?? 0) && !notices.isTold('soft_limit', budget)) ||
          ((used[at] ?? 0) >= budget.limit && !notices.isTold('used_up', budget)),
      );
      if (near.length === 0) return;
      const states = await ledger.budgets(near.map(({ id }) => id)).catch(() => []);
      for (const [at, { spent }] of states.entries()) {
        const budget = near[at];
        if (!budget) continue;
        if (isSoft(budget, spent)) await notices.tell('soft_limit', budget, spent);
        if (spent >= budget.limit) await notices.tell('used_up', budget, spent);
      }
    },
  };
}

function isSoft({ rule: { soft } }: CountedBudget, used: number): boolean {
  return soft !== undefined && used >= soft;
}

/** `search 18.20/20.00 resets 2026-12-01T00:00:00Z`. */
function warningOf(budget: CountedBudget, used: number): string {
  const { rule, limit } = budget;
  return `${rule.name} ${formatUsd(used)}/${formatUsd(limit)} resets ${resetsAt(budget) ?? 'never'}`;
}
