import { createHash } from 'node:crypto';
import { type BudgetRule, formatUsd, GatewayError, type PluginApi } from '../../../../contract/index.ts';
import { writeBudget } from '../../kit/index.ts';
import { isoSeconds, type Raise } from './budget-window.ts';

/** What the store has of a budget: the whole of one that was made at run time, or the raises alone of one of the configuration's. */
export interface BudgetRecord {
  readonly rule?: BudgetRule;
  readonly raises: readonly Raise[];
}

/** A budget with what the store says of it. */
export interface NamedBudget {
  readonly name: string;
  /** Who may change it: `file` is the configuration. */
  readonly owner: 'file' | 'store';
  readonly rule: BudgetRule;
  readonly raises: readonly Raise[];
}

/** All budgets at one moment. */
export interface BudgetSnapshot {
  /** Grows with every change of those of the store. */
  readonly version: number;
  /** Those of the configuration in its order, then those of the store by name. */
  readonly budgets: readonly NamedBudget[];
}

/** The budgets of the configuration and of the store. */
export interface BudgetRecords {
  read(): Promise<BudgetSnapshot>;
  /** Makes one of what it was; undefined removes it. `make` throws where that may not be, and runs again when another change came first. */
  change(
    name: string,
    make: (before: NamedBudget | undefined) => BudgetRecord | undefined,
  ): Promise<{ readonly before: NamedBudget | undefined; readonly after: NamedBudget | undefined }>;
  /** Calls when this process changed one. */
  onChange(listener: () => void): void;
}

type StoredBudgets = Readonly<Record<string, BudgetRecord>>;

/** The name of the one record that has all budgets of the store, and its id: who reads it sees all changes or none. */
const BUDGETS = 'budgets';
const ALL = 'all';
/** How many budgets the store may have. */
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

/** The entity tag of a budget: another one for every change of it. */
export function entityTag({ owner, rule, raises }: NamedBudget): string {
  const text = JSON.stringify([owner, Object.entries(rule).sort(), raises]);
  return createHash('sha256').update(text).digest('base64url').slice(0, 22);
}

/** Names come from strangers: `constructor` is none that an object has. */
function own(stored: StoredBudgets, name: string): BudgetRecord | undefined {
  return Object.hasOwn(stored, name) ? stored[name] : undefined;
}

/** As operators wrote it. */
export function writtenBudget({ owner, rule, raises }: NamedBudget): object {
  const written = raises.map(({ amount, until }) => ({ amount_usd: formatUsd(amount), until: isoSeconds(until) }));
  return { ...(owner === 'store' && writeBudget(rule)), raises: written };
}
