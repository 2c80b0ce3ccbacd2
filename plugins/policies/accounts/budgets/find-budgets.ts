import {
  type Call,
  formatUsd,
  type GatewayError,
  type Ledger,
  type Log,
  type PlanFinder,
  type PluginApi,
  type Principal,
  type Target,
} from '../../../../contract/index.ts';
import { KEY_ORIGINS, type KeyOrigin } from '../../kit/index.ts';
import type { AccountRaises } from './account-raises.ts';
import { type BudgetTable, type CallBudgetList, createBudgetTable } from './budget-table.ts';
import {
  type Aliases,
  type BudgetClock,
  type CountedBudget,
  keyIdOf,
  type OverBudget,
  refusalOf,
  resetsAt,
} from './budget-window.ts';
import type { Notices } from './notices.ts';
import { type Openings, STALE_MS } from './openings.ts';
import type { BudgetRecords, NamedBudget } from './records.ts';

/** Current budgets of the configuration and the store. */
export interface BudgetBook {
  /**
   * Returns the budgets of a caller. With `targets`, omits budgets of a provider or model that none of the targets
   * matches.
   */
  find(caller: BudgetCaller, now: number, targets?: readonly Target[]): CallBudgetList | Promise<CallBudgetList>;
  /** Reads the store's budgets again if they changed. Rejects if the store does not respond. */
  refresh(): Promise<void>;
  /** Adds the opening amounts of budgets that calls share, and updates those of all. Never rejects. */
  updateOpenings(now: number): Promise<void>;
  /** Resolves once the latest change by this process is counted, with what its window has spent. Never rejects. */
  applied(): Promise<void>;
}

export interface BudgetCaller {
  readonly principal: Principal;
  readonly tags: readonly string[];
  readonly endUser?: string | undefined;
}

interface BookParts {
  readonly records: Pick<BudgetRecords, 'read' | 'onChange' | 'sinceOfPlan'>;
  readonly raises: Pick<AccountRaises, 'read' | 'onChange'>;
  readonly findPlan: PlanFinder;
  /** Returns the first key of a rotation chain; the key itself if it was never rotated. */
  readonly firstKeyOf: (keyId: string) => Promise<string>;
  /** Targets of the configured aliases. */
  readonly aliases?: () => Aliases;
  /** Adds what was spent before a budget was created; absent if budgets start at zero. */
  readonly openings?: Openings;
}

/** Poll interval for budget changes in the store. A change takes effect everywhere within five seconds. */
export const REFRESH_MS = 2000;
/** Lifetime of a cached first key of a rotation chain. */
const ORIGINS_MS = 60_000;

export function createBudgetBook(parts: BookParts): BudgetBook {
  const { records, raises, findPlan, firstKeyOf, aliases, openings } = parts;
  let table: BudgetTable | undefined;
  let version = '';
  let readAt = 0;
  /** Time of the last successful read, by the monotonic clock. */
  let confirmedAt = Number.NEGATIVE_INFINITY;
  let running: Promise<void> | undefined;

  const read = async (): Promise<void> => {
    const startedAt = performance.now();
    await readCurrent();
    confirmedAt = startedAt;
  };
  const readCurrent = async (): Promise<void> => {
    const [shared, own] = await Promise.all([records.read(), raises.read()]);
    const current = `${shared.version} ${own.version}`;
    const now = Date.now();
    if (table && current === version && Math.abs(now - readAt) < ORIGINS_MS) return;
    table = createBudgetTable({
      shared: await Promise.all(shared.budgets.map(withOrigin)),
      accountRaises: own.raises,
      aliases: aliases?.(),
      sinceOfPlan: records.sinceOfPlan,
    });
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
    caller: BudgetCaller,
    found: ReturnType<PlanFinder>,
    now: number,
    targets: readonly Target[] | undefined,
  ): Promise<CallBudgetList> => {
    const plan = await found;
    if (!table || !isCurrent()) await refresh();
    const current = table ?? createBudgetTable({ shared: [] });
    return open(current.of(caller.principal, plan).find(now, caller, targets));
  };

  /** Other processes may have created a budget since an older read. */
  const isCurrent = (): boolean => performance.now() - confirmedAt < STALE_MS;

  /** Waits for missing opening amounts. */
  const open = (found: CallBudgetList): CallBudgetList | Promise<CallBudgetList> => {
    if (!openings) return found;
    let waits: Promise<void>[] | undefined;
    for (const budget of found.windows) {
      const wait = budget.since === undefined ? undefined : openings.open(budget);
      if (!wait) continue;
      waits ??= [];
      waits.push(wait);
    }
    return waits ? Promise.all(waits).then(() => found) : found;
  };

  const updateOpenings = async (now: number): Promise<void> => {
    if (!openings) return;
    const created = (table?.shared(now) ?? []).filter(({ since }) => since !== undefined);
    await Promise.allSettled(created.map(async (budget) => openings.open(budget)));
    await openings.update();
  };

  let applied = Promise.resolve();
  const apply = async (): Promise<void> => {
    try {
      // A refresh that runs already may have read the budgets before the change.
      await running?.catch(() => undefined);
      await refresh();
      await updateOpenings(Date.now());
    } catch {
      // The next call, or the next refresh, reads the store again.
    }
  };
  for (const each of [records, raises])
    each.onChange(() => {
      applied = apply();
    });
  return {
    refresh,
    find(caller, now, targets) {
      const { principal } = caller;
      const { requestTags } = principal;
      const counted = requestTags ? withoutTags(caller, requestTags) : caller;
      const plan = findPlan(principal);
      if (table && isCurrent() && !(plan instanceof Promise))
        return open(table.of(principal, plan).find(now, counted, targets));
      return findLater(counted, plan, now, targets);
    },
    updateOpenings,
    applied: () => applied,
  };
}

function withoutTags({ principal, tags, endUser }: BudgetCaller, omitted: readonly string[]): BudgetCaller {
  return { principal, tags: tags.filter((tag) => !omitted.includes(tag)), endUser };
}

/** Creates a lookup of the first key in a rotation chain. */
export function createKeyOrigins(api: Pick<PluginApi, 'books'>): BookParts['firstKeyOf'] {
  const origins = api.books.records<KeyOrigin>(KEY_ORIGINS);
  return async (keyId) => (await origins.find(keyId)).value?.first ?? keyId;
}

/** Refreshes a book periodically from the gateway's start to its shutdown. */
export function keepCurrent(
  api: Pick<PluginApi, 'onReady' | 'onClose'> & { readonly log: Log },
  { book, records, now }: { readonly book: BudgetBook; readonly records: BudgetRecords; readonly now: BudgetClock },
): void {
  api.onReady(async () => {
    let isAway = false;
    let isRecorded = false;
    const refresh = async (): Promise<void> => {
      try {
        if (!isRecorded) await records.recordConfigured();
        isRecorded = true;
        await book.refresh();
        isAway = false;
      } catch (error) {
        if (!isAway) api.log.warn({ err: error }, 'the budgets in the store could not be read; retried every 2 s');
        isAway = true;
        return;
      }
      void book.updateOpenings(now());
    };
    await refresh();
    const timer = setInterval(() => void refresh(), REFRESH_MS);
    timer.unref();
    api.onClose(() => clearInterval(timer));
  });
}

/** Budget operations for a call. */
export interface CallBudgets {
  /** Returns the budgets that count a call, in their current windows. */
  find(call: Call, now: number): ReturnType<BudgetBook['find']>;
  /** Returns the budgets that count a call answered by an `answer` hook: none of a provider or model. */
  findWithoutTarget(call: Call, now: number): ReturnType<BudgetBook['find']>;
  /** Warns the caller of exceeded soft limits. `used` includes the call's own hold, which is `amount`. */
  recordHold(call: Call, hold: BudgetsHeld): void;
  /** Creates the error for a call that exceeds a budget. */
  refuse(budget: CountedBudget, over: OverBudget): GatewayError;
  /** Sends operators the notices that a settled call causes, once each. Never rejects. */
  recordSettled(hold: BudgetsHeld): Promise<void>;
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
    findWithoutTarget: (call, at) => book.find(call, at, []),

    recordHold(call, { budgets, used, amount }) {
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

    async recordSettled({ budgets, used }) {
      const near = budgets.filter(
        (budget, at) =>
          (isSoft(budget, used[at] ?? 0) && !notices.isSent('soft_limit', budget)) ||
          ((used[at] ?? 0) >= budget.limit && !notices.isSent('used_up', budget)),
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
