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
  /** Unix milliseconds at which its rule began to count what it counts. Set by {@link BudgetRecords.change}. */
  readonly since?: number;
}

/** Budget with its stored state. */
export interface NamedBudget {
  readonly name: string;
  /** Owner that may change it; `file` is the configuration. */
  readonly owner: 'file' | 'store';
  readonly rule: BudgetRule;
  readonly raises: readonly Raise[];
  /** Unix milliseconds at which it was created, if known. */
  readonly since?: number | undefined;
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
  /**
   * Stores when each budget of the configuration was first seen, those of its plans included. Budgets that were there
   * before the first call of this method have no such time.
   */
  recordConfigured(): Promise<void>;
  /** Returns when a budget of a configured plan was first seen, if known. */
  sinceOfPlan(plan: string, budget: string): number | undefined;
  /** Calls the listener after each change by this process. */
  onChange(listener: () => void): void;
}

type StoredBudgets = Readonly<Record<string, BudgetRecord>>;

/** Name and id of the single record with all budgets of the store, so readers see all changes or none. */
const BUDGETS = 'budgets';
const ALL = 'all';
/** Id of the record with the budgets of the configuration. */
const CONFIGURED = 'configured';
/** Maximum number of budgets in the store. */
const MAX_BUDGETS = 1000;

export function createBudgetRecords(api: Pick<PluginApi, 'books' | 'settings'>): BudgetRecords {
  const records = api.books.records<StoredBudgets>(BUDGETS);
  const seen = api.books.records<ConfiguredBudgets>(BUDGETS);
  let configured: ConfiguredBudgets = {};
  const ofFile = new Map(api.settings.budgets.map((rule) => [rule.name, rule]));
  const join = (name: string, record: BudgetRecord | undefined): NamedBudget | undefined => {
    const rule = ofFile.get(name);
    const raises = record?.raises ?? [];
    if (rule) return { name, owner: 'file', rule, raises, since: sinceOf(`budget ${name}`) };
    return record?.rule && { name, owner: 'store', rule: record.rule, raises, since: record.since };
  };
  const sinceOf = (name: string): number | undefined =>
    Object.hasOwn(configured, name) ? configured[name]?.since : undefined;
  return {
    async read() {
      const { version, value = {} } = await records.find(ALL);
      const names = [...new Set([...ofFile.keys(), ...Object.keys(value).sort()])];
      const budgets = names
        .map((name) => join(name, findOwnBudget(value, name)))
        .filter((budget) => budget !== undefined);
      return { version, budgets };
    },

    async change(name, make) {
      const changed = await records.change(ALL, (stored = {}) => {
        const made = withSince(findOwnBudget(stored, name), make(join(name, findOwnBudget(stored, name))));
        const { [name]: _former, ...others } = stored;
        if (made && Object.keys(others).length >= MAX_BUDGETS)
          throw new GatewayError('conflict', `The maximum of ${MAX_BUDGETS} budgets is reached. Delete one first.`);
        return made ? { ...others, [name]: made } : others;
      });
      return {
        before: join(name, findOwnBudget(changed.before ?? {}, name)),
        after: join(name, findOwnBudget(changed.value, name)),
      };
    },

    async recordConfigured() {
      const rules = configuredRules(api.settings);
      const { value } = await seen.find(CONFIGURED);
      configured = updateConfigured(value, rules);
      if (JSON.stringify(configured) === JSON.stringify(value)) return;
      configured = (await seen.change(CONFIGURED, (stored) => updateConfigured(stored, rules))).value;
    },

    sinceOfPlan: (plan, budget) => sinceOf(`plan ${plan} ${budget}`),

    onChange: (listener) => records.onChange(() => listener()),
  };
}

/** Budgets of the configuration when they were first seen, by `budget <name>` or `plan <plan> <name>`. */
interface ConfiguredBudgets {
  readonly [name: string]: {
    /** Text of its window and calls: a budget with another text begins again. */
    readonly counts: string;
    readonly since: number;
  };
}

function configuredRules({ budgets, plans }: PluginApi['settings']): readonly (readonly [string, BudgetRule])[] {
  const ofPlans = Object.entries(plans).flatMap(([plan, { budgets: own = [] }]) =>
    own.map((rule) => [`plan ${plan} ${rule.name}`, rule] as const),
  );
  return [...budgets.map((rule) => [`budget ${rule.name}`, rule] as const), ...ofPlans];
}

/** Without stored budgets, all are older than this record, and have no time. */
function updateConfigured(
  stored: ConfiguredBudgets | undefined,
  rules: readonly (readonly [string, BudgetRule])[],
): ConfiguredBudgets {
  const now = stored ? Date.now() : 0;
  const updated: Record<string, ConfiguredBudgets[string]> = {};
  for (const [name, rule] of rules) {
    const known = stored && Object.hasOwn(stored, name) ? stored[name] : undefined;
    const counts = whatCounts(rule);
    updated[name] = known?.counts === counts ? known : { counts, since: now };
  }
  return updated;
}

/** Sets the time of a budget that is new or counts something else. */
function withSince(before: BudgetRecord | undefined, after: BudgetRecord | undefined): BudgetRecord | undefined {
  if (!after?.rule) return after;
  const isSame = before?.rule && whatCounts(before.rule) === whatCounts(after.rule);
  const since = isSame ? before.since : Date.now();
  return since === undefined ? after : { ...after, since };
}

/** Text that differs for rules with other windows or other calls. */
function whatCounts({ every, timezone, startsOn, user, key, tag, plan, provider, model, endUser }: BudgetRule): string {
  const ofEndUser = endUser === undefined ? [] : [endUser];
  return JSON.stringify([every, timezone, startsOn, user, key, tag, plan, provider, model, ...ofEndUser]);
}

/** Entity tag of a budget; it differs after every change. */
export function entityTag({ owner, rule, raises }: NamedBudget): string {
  const text = JSON.stringify([owner, Object.entries(rule).sort(), raises]);
  return createHash('sha256').update(text).digest('base64url').slice(0, 22);
}

/** Names come from clients, so inherited properties such as `constructor` must not match. */
function findOwnBudget(stored: StoredBudgets, name: string): BudgetRecord | undefined {
  return Object.hasOwn(stored, name) ? stored[name] : undefined;
}

/** Formats a budget as operators write it. */
export function writtenBudget({ owner, rule, raises }: NamedBudget): object {
  const written = raises.map(({ amount, until }) => ({ amount_usd: formatUsd(amount), until: isoSeconds(until) }));
  return { ...(owner === 'store' && writeBudget(rule)), raises: written };
}
