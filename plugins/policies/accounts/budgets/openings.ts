import {
  isGatewayError,
  type Ledger,
  type Log,
  type PlanFinder,
  type ReportDimension,
  type ReportQuery,
  type ReportRow,
} from '../../../../contract/index.ts';
import { keyBudgetId } from '../../kit/index.ts';
import { isStoreFailure } from '../../kit/write-queue.ts';
import { type BudgetClock, type CountedBudget, countsTarget, keyIdOf } from './budget-window.ts';

/** Opening amounts: what calls spent in the window of a budget before the budget was created. */
export interface Openings {
  /**
   * Returns a promise if the opening amount is missing; undefined if a call may use the budget now. Rejects if the store
   * does not respond.
   */
  open(budget: CountedBudget): Promise<void> | undefined;
  /** Adds calls that have settled since the last time. Never rejects. */
  update(): Promise<void>;
}

interface Parts {
  readonly ledger: Pick<Ledger, 'balance' | 'budgets' | 'openBudget' | 'report'>;
  readonly now: BudgetClock;
  readonly findPlan: PlanFinder;
  /** Returns the first key of a rotation chain. */
  readonly firstKeyOf: (keyId: string) => Promise<string>;
  readonly log: Log;
}

/**
 * Time from the creation of a budget until all processes count it. A process refuses calls if it has not read the
 * budgets for {@link STALE_MS}.
 */
const KNOWN_MS = 6000;
/** Maximum age of the budgets that a call may use. */
export const STALE_MS = 5000;
/** Maximum wait of a call for an opening amount. A longer report is added later. */
const LONGEST_WAIT_MS = 5000;
/** First and longest delay between two updates, and time after which all earlier calls have settled, batches included. */
const FIRST_UPDATE_MS = 1000;
const LONGEST_UPDATE_MS = 3_600_000;
const SETTLED_MS = 26 * 3_600_000;
/** Maximum number of budgets whose beginning is cached, and of keys or accounts that one opening amount looks up. */
const MAX_OPENED = 10_000;
const MAX_LOOKED_UP = 2000;
/** Number of concurrent look-ups. */
const AT_ONCE = 16;

/** Budget that began inside its window. */
interface Opened {
  readonly budget: CountedBudget;
  readonly since: number;
  /** Wait of calls for the first amount; undefined afterwards. */
  pending: Promise<void> | undefined;
  /** Time of the next update; infinite after the last one. */
  nextAt: number;
  gapMs: number;
}

export function createOpenings({ ledger, now, findPlan, firstKeyOf, log }: Parts): Openings {
  const opened = new Map<string, Opened>();
  let isUpdating = false;

  const planName = async (account: string): Promise<string | undefined> => {
    try {
      return (await findPlan({ credential: 'key', userId: account, account }))?.name;
    } catch (error) {
      if (isGatewayError(error) && error.code === 'permission_denied') return undefined;
      throw error;
    }
  };

  /** Returns the amount that the settled calls of a budget before a time have spent. */
  const sumSpent = async ({ rule, models, owner, window }: CountedBudget, before: number): Promise<number> => {
    const from = Math.max(0, window.start);
    if (from >= before) return 0;
    const keyId = rule.key ?? (owner && 'key' in owner ? owner.key : undefined);
    const by: ReportDimension[] = [];
    if (models) by.push('provider', 'model');
    if (keyId !== undefined) by.push('key');
    if (rule.plan !== undefined) by.push('account');
    const query: Mutable<ReportQuery> = { edges: [from, before], by };
    if (rule.user !== undefined) query.userId = rule.user;
    if (rule.tag !== undefined) query.tag = rule.tag;
    if (rule.provider !== undefined) query.provider = rule.provider;
    if (owner && 'account' in owner) query.account = owner.account;
    let rows: readonly ReportRow[] = await ledger.report(query);
    if (models)
      rows = rows.filter(({ provider = '', model = '' }) => countsTarget({ rule, models }, { provider, model }));
    if (keyId !== undefined) {
      const named = keyIdOf(keyId);
      const first = await firstKeyOf(named);
      rows = await keepNamed(rows, 'key', async (key) => key === named || (await firstKeyOf(key)) === first);
    }
    if (rule.plan !== undefined)
      rows = await keepNamed(rows, 'account', async (account) => (await planName(account)) === rule.plan);
    return Number(rows.reduce((sum, { cost }) => sum + cost, 0n));
  };

  /** Avoids reports for accounts and keys that have spent nothing at all. */
  const hasSpent = async ({ owner }: CountedBudget): Promise<boolean> => {
    if (!owner) return true;
    if ('account' in owner) return (await ledger.balance(owner.account)).spent > 0;
    // Budgets of end users start at zero.
    if (!('key' in owner)) return false;
    const [total] = await ledger.budgets([keyBudgetId(owner.key)]);
    return (total?.spent ?? 0) > 0;
  };

  /** Adds the opening amount, or what is missing of it. */
  const add = async (entry: Opened): Promise<void> => {
    const { budget, since } = entry;
    const [state] = await ledger.budgets([budget.id]);
    const isOpen = state?.start?.since === since;
    const before = isOpen ? state.start.before : now() + KNOWN_MS;
    // An account or key has its own budget only once it makes calls. Sums of an account are those of all its plans.
    if (!isOpen && budget.scope === 'plan' && budget.owner && (state?.spent ?? 0) + (state?.held ?? 0) > 0) {
      entry.nextAt = Number.POSITIVE_INFINITY;
      return;
    }
    const spent = (await hasSpent(budget)) ? await sumSpent(budget, before) : 0;
    await ledger.openBudget?.({ id: budget.id, until: budget.hold.until, since, before, spent });
    plan(entry, before);
  };

  const plan = (entry: Opened, before: number): void => {
    const at = now();
    if (at < before) entry.nextAt = before + FIRST_UPDATE_MS;
    else {
      entry.gapMs = Math.min(entry.gapMs * 2, LONGEST_UPDATE_MS);
      entry.nextAt = at > before + SETTLED_MS ? Number.POSITIVE_INFINITY : at + entry.gapMs;
    }
  };

  const addFirst = async (entry: Opened): Promise<void> => {
    try {
      await add(entry);
    } catch (error) {
      if (isStoreFailure(error)) {
        opened.delete(entry.budget.id);
        throw error;
      }
      entry.nextAt = Number.POSITIVE_INFINITY;
      log.warn(
        { err: error, budget: entry.budget.rule.name },
        'the amount spent before a budget was created is unknown; the budget starts at zero',
      );
    } finally {
      entry.pending = undefined;
    }
  };

  return {
    open(budget) {
      const { id, since } = budget;
      if (since === undefined || !ledger.openBudget) return undefined;
      const known = opened.get(id);
      if (known?.since === since) return known.pending;
      if (opened.size >= MAX_OPENED) opened.clear();
      const nextAt = Number.POSITIVE_INFINITY;
      const entry: Opened = { budget, since, pending: undefined, nextAt, gapMs: FIRST_UPDATE_MS };
      opened.set(id, entry);
      const adding = addFirst(entry);
      adding.catch(() => undefined);
      entry.pending = withinTime(adding);
      return entry.pending;
    },
    async update() {
      if (isUpdating) return;
      isUpdating = true;
      const at = now();
      for (const entry of opened.values()) {
        if (entry.pending || entry.nextAt > at) continue;
        try {
          await add(entry);
        } catch (error) {
          entry.nextAt = at + LONGEST_WAIT_MS;
          log.debug({ err: error, budget: entry.budget.rule.name }, 'an opening amount was not updated; retried later');
        }
      }
      isUpdating = false;
    },
  };
}

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

/** Keeps the rows whose key or account counts, with a bounded number of look-ups. */
async function keepNamed(
  rows: readonly ReportRow[],
  dimension: 'key' | 'account',
  counts: (name: string) => Promise<boolean>,
): Promise<readonly ReportRow[]> {
  const names = [...new Set(rows.filter(({ cost }) => cost > 0n).map((row) => row[dimension] ?? '-'))];
  if (names.length > MAX_LOOKED_UP) throw new Error(`more than ${MAX_LOOKED_UP} of ${dimension} spent something`);
  const counted = new Set<string>();
  for (let at = 0; at < names.length; at += AT_ONCE)
    await Promise.all(
      names.slice(at, at + AT_ONCE).map(async (name) => {
        if (await counts(name)) counted.add(name);
      }),
    );
  return rows.filter((row) => counted.has(row[dimension] ?? '-'));
}

/** Resolves when the work is done, or after {@link LONGEST_WAIT_MS}. */
function withinTime(work: Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, LONGEST_WAIT_MS);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
