import type { Log, NamedPlan, PlanFinder, PluginApi, Principal, Target } from '../../../../core/index.ts';
import { KEY_ORIGINS, type KeyOrigin } from '../../kit/index.ts';
import type { AccountRaises } from './account-raises.ts';
import type { CountedBudget } from './counted.ts';
import { type BudgetMatcher, createMatcher, keyIdOf } from './match.ts';
import type { BudgetRecords, NamedBudget } from './records.ts';

/** The budgets that count now, as the configuration and the store have them. */
export interface BudgetBook {
  /** The budgets of a caller; with `targets`, of those for a provider or a model only the ones that one of these is of. */
  find(caller: BudgetCaller, now: number, targets?: readonly Target[]): Promise<readonly CountedBudget[]>;
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
}

/** How often the store is asked whether budgets changed: a change holds everywhere within five seconds. */
export const REFRESH_MS = 2000;
/** How often it is looked up anew which key a rotated one goes back to. */
const ORIGINS_MS = 60_000;

export function createBudgetBook({ records, raises, findPlan, firstKeyOf }: BookParts): BudgetBook {
  let matcher: BudgetMatcher | undefined;
  let version = '';
  let readAt = 0;
  let running: Promise<void> | undefined;

  const read = async (): Promise<void> => {
    const [shared, own] = await Promise.all([records.read(), raises.read()]);
    const current = `${shared.version} ${own.version}`;
    const now = Date.now();
    if (matcher && current === version && Math.abs(now - readAt) < ORIGINS_MS) return;
    matcher = createMatcher(await Promise.all(shared.budgets.map(withOrigin)), own.raises);
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

  for (const each of [records, raises]) each.onChange(() => void refresh().catch(() => undefined));
  return {
    refresh,
    async find(caller, now, targets) {
      const found = findPlan(caller.principal);
      const plan: NamedPlan | undefined = found instanceof Promise ? await found : found;
      if (!matcher) await refresh();
      return matcher?.find({ ...caller, plan }, now, targets) ?? [];
    },
  };
}

/** Answers the key that a key goes back to. */
export function createKeyOrigins(api: Pick<PluginApi, 'records'>): BookParts['firstKeyOf'] {
  const origins = api.records<KeyOrigin>(KEY_ORIGINS);
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
