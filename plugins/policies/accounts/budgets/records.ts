import { createHash } from 'node:crypto';
import { type BudgetRule, formatUsd, GatewayError, type PluginApi } from '../../../../contract/index.ts';
import { writeBudget } from '../../kit/index.ts';
import { isoSeconds, type Raise } from './budget-window.ts';

/**
 * Stored state of a budget. Budgets made at run time are stored whole; for configured budgets, only the raises are
 * stored.
 */
export interface BudgetRecord {
  readonly rule?: BudgetRule;
  readonly raises: readonly Raise[];
}

/** Budget with its stored state. */
export interface NamedBudget {
  readonly name: string;
  /** Owner that may change it; `file` is the configuration. */
  readonly owner: 'file' | 'store';
  readonly rule: BudgetRule;
  readonly raises: readonly Raise[];
}

/** All budgets at one moment. */
export interface BudgetSnapshot {
  /** Grows with every change in the store. */
  readonly version: number;
  /** Configured budgets in their order, then stored budgets by name. */
  readonly budgets: readonly NamedBudget[];
}

/** Budgets of the configuration and of the store. */
export interface BudgetRecords {
  read(): Promise<BudgetSnapshot>;
  /**
   * Changes a budget; undefined deletes it. `make` may throw to reject the change, and runs again after a conflicting
   * change.
   */
  change(
    name: string,
    make: (before: NamedBudget | undefined) => BudgetRecord | undefined,
  ): Promise<{ readonly before: NamedBudget | undefined; readonly after: NamedBudget | undefined }>;
  /** Calls the listener after each change by this process. */
  onChange(listener: () => void): void;
}

type StoredBudgets = Readonly<Record<string, BudgetRecord>>;

/** Name and id of the single record with all budgets of the store, so readers see all changes or none. */
const BUDGETS = 'budgets';
const ALL = 'all';
/** Maximum number of budgets in the store. */
const MAX_BUDGETS = 1000;

export function createBudgetRecords(api: Pick<PluginApi, 'books' | 'settings'>): BudgetRecords {
  const records = api.books.records<StoredBudgets>(BUDGETS);
  const ofFile = new Map(api.settings.budgets.map((rule) => [rule.name, rule]));
  const join = (name: string, record: BudgetRecord | undefined): NamedBudget | undefined => {
    const rule = ofFile.get(name);
    const raises = record?.raises ?? [];
    if (rule) return { name, owner: 'file', rule, raises };
    return record?.rule && { name, owner: 'store', rule: record.rule, raises };
  };
  return {
    async read() {
      const { version, value = {} } = await records.find(ALL);
      const names = [...new Set([...ofFile.keys(), ...Object.keys(value).sort()])];
      const budgets = names.map((name) => join(name, own(value, name))).filter((budget) => budget !== undefined);
      return { version, budgets };
    },

    async change(name, make) {
      const changed = await records.change(ALL, (stored = {}) => {
        const made = make(join(name, own(stored, name)));
        const { [name]: _former, ...others } = stored;
        if (made && Object.keys(others).length >= MAX_BUDGETS)
          throw new GatewayError('conflict', `There are ${MAX_BUDGETS} budgets, the most there can be; remove one.`);
        return made ? { ...others, [name]: made } : others;
      });
      return {
        before: join(name, own(changed.before ?? {}, name)),
        after: join(name, own(changed.value, name)),
      };
    },

    onChange: (listener) => records.onChange(() => listener()),
  };
}

/** Entity tag of a budget; it differs after every change. */
export function entityTag({ owner, rule, raises }: NamedBudget): string {
  const text = JSON.stringify([owner, Object.entries(rule).sort(), raises]);
  return createHash('sha256').update(text).digest('base64url').slice(0, 22);
}

/** Names come from clients, so inherited properties such as `constructor` must not match. */
function own(stored: StoredBudgets, name: string): BudgetRecord | undefined {
  return Object.hasOwn(stored, name) ? stored[name] : undefined;
}

/** Formats a budget as operators write it. */
export function writtenBudget({ owner, rule, raises }: NamedBudget): object {
  const written = raises.map(({ amount, until }) => ({ amount_usd: formatUsd(amount), until: isoSeconds(until) }));
  return { ...(owner === 'store' && writeBudget(rule)), raises: written };
}
