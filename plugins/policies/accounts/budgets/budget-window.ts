import { type BudgetHold, type BudgetRule, formatUsd, GatewayError, type Target } from '../../../../contract/index.ts';
import { type CalendarWindow, windowAt, windowId } from '../../kit/index.ts';

/** Clock of the budgets, in Unix milliseconds. */
export type BudgetClock = () => number;

/** Scope of a budget: all calls, or those of a user, a key, a tag or a plan. */
export type BudgetScope = 'all' | 'user' | 'key' | 'tag' | 'plan';

/** Owner of a budget: an account, a key or an end user. A rotated key is named by the first key of its chain. */
export type BudgetOwner = { readonly account: string } | { readonly key: string } | { readonly end_user: string };

/** End user of a rule that gives each end user the amount. */
export const EACH = '*';

/** Temporary raise of a budget. It applies until its end, in every window. */
export interface Raise {
  /** Nano-dollars. */
  readonly amount: number;
  /** Unix milliseconds. */
  readonly until: number;
}

/** Budget at one moment. */
export interface CountedBudget {
  readonly rule: BudgetRule;
  /** Models of its rule: the name, and the targets if it is an alias. */
  readonly models?: readonly string[];
  readonly scope: BudgetScope;
  /** Owner, if each account or key has its own budget. */
  readonly owner?: BudgetOwner;
  /** Ledger id of its window. */
  readonly id: string;
  readonly window: CalendarWindow;
  /** Nano-dollars, including raises. */
  readonly limit: number;
  /** Nano-dollars that raises add now. */
  readonly raised: number;
  readonly hold: BudgetHold;
  /** Creation time of a budget that was created inside this window; undefined for others. */
  readonly since?: number | undefined;
}

/** Returns a budget in its current window, computed once per window. */
export type BudgetCounter = (now: number) => CountedBudget;

/** Time that the ledger keeps a past window: charges may be corrected up to 30 days later. */
const KEEP_MS = 35 * 86_400_000;

interface CounterParts {
  /** Prefix of the ledger id. Budgets with the same prefix, name and period share one amount. */
  readonly prefix: string;
  readonly rule: BudgetRule;
  readonly scope: BudgetScope;
  readonly owner?: BudgetOwner;
  readonly raises?: readonly Raise[];
  readonly aliases?: Aliases;
  /** Unix milliseconds at which the budget was created, if known. */
  readonly since?: number | undefined;
}

/** Tolerated difference of clocks. A budget that began with its window has nothing to add. */
const CLOCKS_MS = 60_000;

/** Targets of aliases, as `provider/model`. */
export type Aliases = ReadonlyMap<string, readonly string[]>;

export function createCounter({
  prefix,
  rule,
  scope,
  owner,
  raises = [],
  aliases,
  since = 0,
}: CounterParts): BudgetCounter {
  const { model } = rule;
  const models = model === undefined ? {} : { models: [model, ...(aliases?.get(model) ?? [])] };
  let known: CountedBudget | undefined;
  let from = 0;
  let to = 0;
  return (now) => {
    if (known && now >= from && now < to) return known;
    const window = windowAt(rule, now);
    const active = raises.filter(({ until }) => until > now);
    const raised = active.reduce((sum, { amount }) => sum + amount, 0);
    const limit = rule.amount + raised;
    const { end } = window;
    const isEndless = end === Number.POSITIVE_INFINITY;
    const id = windowId(prefix, rule, window);
    const hold = isEndless ? { id, limit } : { id, limit, until: end + KEEP_MS };
    known = Object.freeze({
      rule,
      ...models,
      scope,
      ...(owner && { owner }),
      id,
      window,
      limit,
      raised,
      hold: Object.freeze(hold),
      since: since > 0 && since > window.start - CLOCKS_MS ? since : undefined,
    });
    from = now;
    to = Math.min(end, ...active.map(({ until }) => until));
    return known;
  };
}

/** Removes the prefix `tg_` that key lists show. */
export function keyIdOf(key: string): string {
  return key.startsWith('tg_') ? key.slice(3) : key;
}

/** Returns the narrowest scope that a rule names. */
export function scopeOf({ user, key, tag, plan }: BudgetRule): BudgetScope {
  if (key !== undefined) return 'key';
  if (user !== undefined) return 'user';
  if (tag !== undefined) return 'tag';
  return plan === undefined ? 'all' : 'plan';
}

/** Checks if a budget counts calls to this target. Its models are named as by the provider or as in requests. */
export function countsTarget({ rule, models }: Pick<CountedBudget, 'rule' | 'models'>, target: Target): boolean {
  if (rule.provider !== undefined && rule.provider !== target.provider) return false;
  if (!models) return true;
  const names = [target.model, `${target.provider}/${target.model}`];
  return models.some((model) =>
    names.some((name) => (model.endsWith('*') ? name.startsWith(model.slice(0, -1)) : name === model)),
  );
}

/** Checks if a budget is limited to a provider or model. */
export function isByTarget({ provider, model }: BudgetRule): boolean {
  return provider !== undefined || model !== undefined;
}

const DAY_MS = 86_400_000;

/** Call that exceeds a budget. */
export interface OverBudget {
  /** Spent and held amount of the budget before the call. */
  readonly used: number;
  /** Maximum cost of the call. */
  readonly amount: number;
  /** Number of output tokens that the rest of the budget covers; undefined if unknown. */
  readonly affordable: number | undefined;
}

/** Returns advice for the caller of a call that is too expensive. */
export function lessOf(affordable: number | undefined): string {
  if (affordable === 0) return 'send a shorter prompt';
  return `ask for ${affordable === undefined ? 'fewer' : `at most ${affordable}`} tokens with "max_tokens"`;
}

/** Creates the error for a call that exceeds a budget. */
export function refusalOf(budget: CountedBudget, { used, amount, affordable }: OverBudget, now: number): GatewayError {
  const { rule, limit, window } = budget;
  const left = Math.max(limit - used, 0);
  const resets = resetsAt(budget);
  const headers: Record<string, string> = {};
  // Round up to whole seconds. Omit delays over one day: no client waits that long.
  const waitMs = window.end - now;
  if (waitMs <= DAY_MS && amount <= rule.amount) headers['retry-after'] = String(Math.max(Math.ceil(waitMs / 1000), 1));
  return new GatewayError(
    'insufficient_balance',
    `The budget "${rule.name}" of ${formatUsd(limit)} USD ${PER[rule.every]} does not cover the call: ${formatUsd(left)} USD are left, and the call may cost ${formatUsd(amount)} USD. ${
      resets === null ? 'It does not reset.' : `It resets at ${resets}.`
    } ${lessOf(affordable).replace(/^./, (letter) => letter.toUpperCase())}${resets === null ? '' : ', or wait'}.`,
    { headers, refusedBy: `budget "${rule.name}"` },
  );
}

/** Time of the budget's next reset, in ISO 8601; null if it never resets. */
export function resetsAt({ window }: Pick<CountedBudget, 'window'>): string | null {
  return window.end === Number.POSITIVE_INFINITY ? null : isoSeconds(window.end);
}

/** Start of the budget's window; null if it has no start. */
export function startsAt({ window }: Pick<CountedBudget, 'window'>): string | null {
  return window.start === Number.NEGATIVE_INFINITY ? null : isoSeconds(window.start);
}

/** Formats an instant as ISO 8601 in UTC, to the second. */
export function isoSeconds(instant: number): string {
  return new Date(instant).toISOString().replace('.000Z', 'Z');
}

const PER = Object.freeze({ total: 'in all', hour: 'an hour', day: 'a day', week: 'a week', month: 'a month' });
