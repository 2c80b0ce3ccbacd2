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

/** The budgets that count now, as the configuration and the store have them. */
export interface BudgetBook {
  /** The budgets of a caller; with `targets`, of those for a provider or a model only the ones that one of these is of. */
  find(
    caller: BudgetCaller,
    now: number,
    targets?: readonly Target[],
  ): readonly CountedBudget[] | Promise<readonly CountedBudget[]>;
  /** Reads the store's budgets where they changed. Rejects when the store does not answer. */
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
  /** The first key of those that replaced one another; the key itself where none did. */
  readonly firstKeyOf: (keyId: string) => Promise<string>;
  /** What the aliases of the configuration stand for. */
  readonly aliases?: () => Aliases;
}

/** How often the store is asked whether budgets changed: a change holds everywhere within five seconds. */
export const REFRESH_MS = 2000;
/** How often it is looked up anew which key a rotated one goes back to. */
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

/** Answers the key that a key goes back to. */
export function createKeyOrigins(api: Pick<PluginApi, 'books'>): BookParts['firstKeyOf'] {
  const origins = api.books.records<KeyOrigin>(KEY_ORIGINS);
  return async (keyId) => (await origins.find(keyId)).value?.first ?? keyId;
}

/** Keeps a book current from when the gateway is ready until it closes. */
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

/** Whose call it is. */
export interface Caller {
  readonly principal: Principal;
  readonly tags: readonly string[];
  readonly plan: NamedPlan | undefined;
}

/** A budget that all calls share which match it. */
export interface SharedBudget {
  readonly rule: BudgetRule;
  readonly raises: readonly Raise[];
  /** What the key of the rule is counted under: the first of the keys that replaced one another. */
  readonly limitsId?: string | undefined;
}

interface Shared extends SharedBudget {
  readonly counter: BudgetCounter;
}

/** Finds the budgets of calls. */
export interface BudgetMatcher {
  /** Those that count a call; with `targets`, of those for a provider or a model only the ones that one of them is of. */
  find(caller: Caller, now: number, targets?: readonly Target[]): readonly CountedBudget[];
}

const NO_BUDGETS: readonly CountedBudget[] = Object.freeze([]);

/** What the ledger counts shared budgets under. */
export const SHARED = 'shared';

/** How many accounts and keys with budgets of their own are remembered. */
const MAX_OWNERS = 10_000;

/** Sorts the shared budgets by the user, key or tag that they name, so that a call looks at few of many. */
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

/** Budgets that each account of a plan, or each key, has for itself. */
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
  /** Its raises by the name of the budget. */
  readonly raised?: ReadonlyMap<string, readonly Raise[]> | undefined;
}

/** Raises by account, and by the name of the budget. */
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

/** The most telling name of a budget: only calls with it can match. A key goes by its own id and by the one that it is counted under. */
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

/** Lists of keys show ids behind `tg_`. */
export function keyIdOf(key: string): string {
  return key.startsWith('tg_') ? key.slice(3) : key;
}

/** What the books do about the budgets of a call. */
export interface CallBudgets {
  /** The budgets that count it, in the windows of this moment. */
  find(call: Call, now: number): ReturnType<BudgetBook['find']>;
  /** Those that count a call which an `answer` hook responded to, so that no provider did. */
  findWithoutTarget(call: Call, now: number): Promise<readonly CountedBudget[]>;
  /** Warns the caller of soft limits that are passed. `used` has what the call holds itself, which is `amount`. */
  noteHeld(call: Call, hold: BudgetsHeld): void;
  /** The error for a call that one of them does not cover. */
  refuse(budget: CountedBudget, over: OverBudget): GatewayError;
  /** Tells operators once what a settled call has led to. Never rejects. */
  noteSettled(hold: BudgetsHeld): Promise<void>;
}

/** The budgets of a call that was let through, and what each has spent and held with it. */
export interface BudgetsHeld {
  readonly budgets: readonly CountedBudget[];
  readonly used: readonly number[];
  readonly amount: number;
}

interface Parts {
  readonly book: BudgetBook;
  readonly notices: Notices;
  readonly ledger: Pick<Ledger, 'budgets'>;
  /** Unix milliseconds, by the clock that all processes of the store share. */
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
      // A call that is too large for a budget that is hardly used says nothing about the budget.
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
