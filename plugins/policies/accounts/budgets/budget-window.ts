import { type BudgetHold, type BudgetRule, formatUsd, GatewayError, type Target } from '../../../../contract/index.ts';
import { type CalendarWindow, windowAt, windowId } from '../../kit/index.ts';

/** The clock that budgets go by, in Unix milliseconds. */
export type BudgetClock = () => number;

/** Whose budget it is: that of all calls, or of those of a user, a key, a tag or a plan. */
export type BudgetScope = 'all' | 'user' | 'key' | 'tag' | 'plan';

/** The account or key (by the first of those that replaced one another) that a budget belongs to. */
export type BudgetOwner = { readonly account: string } | { readonly key: string };

/** More money for a while: it counts until its end, whichever window that is in. */
export interface Raise {
  /** Nano-dollars. */
  readonly amount: number;
  /** Unix milliseconds. */
  readonly until: number;
}

/** A budget at one moment. */
export interface CountedBudget {
  readonly rule: BudgetRule;
  /** The models of its rule: the name, and where it is an alias the targets of that. */
  readonly models?: readonly string[];
  readonly scope: BudgetScope;
  /** Whose it is, where each account or key has its own. */
  readonly owner?: BudgetOwner;
  /** The ledger's id of its window. */
  readonly id: string;
  readonly window: CalendarWindow;
  /** Nano-dollars, raises included. */
  readonly limit: number;
  /** Nano-dollars that raises add at the moment. */
  readonly raised: number;
  readonly hold: BudgetHold;
}

/** Finds a budget's window, which it computes once a window. */
export type BudgetCounter = (now: number) => CountedBudget;

/** How long the ledger keeps a window that is over: a charge may be corrected up to 30 days later. */
const KEEP_MS = 35 * 86_400_000;

interface CounterParts {
  /** What the ledger counts it under: two budgets with one prefix, name and period are one. */
  readonly prefix: string;
  readonly rule: BudgetRule;
  readonly scope: BudgetScope;
  readonly owner?: BudgetOwner;
  readonly raises?: readonly Raise[];
  readonly aliases?: Aliases;
}

/** What aliases stand for: `provider/model`. */
export type Aliases = ReadonlyMap<string, readonly string[]>;

export function createCounter({ prefix, rule, scope, owner, raises = [], aliases }: CounterParts): BudgetCounter {
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
    });
    from = now;
    to = Math.min(end, ...active.map(({ until }) => until));
    return known;
  };
}

/** What a budget counts that names more than one thing is told by the narrowest of them. */
export function scopeOf({ user, key, tag, plan }: BudgetRule): BudgetScope {
  if (key !== undefined) return 'key';
  if (user !== undefined) return 'user';
  if (tag !== undefined) return 'tag';
  return plan === undefined ? 'all' : 'plan';
}

/** Whether a budget counts what this target does; its models are named as the provider knows them, or as requests do. */
export function countsTarget({ rule, models }: Pick<CountedBudget, 'rule' | 'models'>, target: Target): boolean {
  if (rule.provider !== undefined && rule.provider !== target.provider) return false;
  if (!models) return true;
  const names = [target.model, `${target.provider}/${target.model}`];
  return models.some((model) =>
    names.some((name) => (model.endsWith('*') ? name.startsWith(model.slice(0, -1)) : name === model)),
  );
}

/** Whether a budget counts some targets only. */
export function isByTarget({ provider, model }: BudgetRule): boolean {
  return provider !== undefined || model !== undefined;
}

const DAY_MS = 86_400_000;

/** A call that a budget does not cover. */
export interface OverBudget {
  /** What of the budget was spent and held before the call. */
  readonly used: number;
  /** The most that the call may cost. */
  readonly amount: number;
  /** The output tokens that what is left pays for; undefined where that is not known. */
  readonly affordable: number | undefined;
}

/** What a caller can do about a call that costs too much. */
export function lessOf(affordable: number | undefined): string {
  if (affordable === 0) return 'send a shorter prompt';
  return `ask for ${affordable === undefined ? 'fewer' : `at most ${affordable}`} tokens with "max_tokens"`;
}

/** The refusal of a call that a budget does not cover. */
export function refusalOf(budget: CountedBudget, { used, amount, affordable }: OverBudget, now: number): GatewayError {
  const { rule, limit, window } = budget;
  const left = Math.max(limit - used, 0);
  const resets = resetsAt(budget);
  const headers: Record<string, string> = {};
  // In whole seconds, and not a second early. Of more than a day nobody waits for.
  const waitMs = window.end - now;
  if (waitMs <= DAY_MS && amount <= rule.amount) headers['retry-after'] = String(Math.max(Math.ceil(waitMs / 1000), 1));
  return new GatewayError(
    'insufficient_balance',
    `The budget "${rule.name}" of ${formatUsd(limit)} USD ${PER[rule.every]} does not cover the call: ${formatUsd(left)} USD are left, and the call may cost ${formatUsd(amount)} USD. ${
      resets === null ? 'It does not begin anew.' : `It begins anew at ${resets}.`
    } ${lessOf(affordable).replace(/^./, (letter) => letter.toUpperCase())}${resets === null ? '' : ', or wait'}.`,
    { headers, refusedBy: `budget "${rule.name}"` },
  );
}

/** When a budget begins anew, as people and programs read it; null for one that never does. */
export function resetsAt({ window }: Pick<CountedBudget, 'window'>): string | null {
  return window.end === Number.POSITIVE_INFINITY ? null : isoSeconds(window.end);
}

/** When a budget's window began; null for one without a beginning. */
export function startsAt({ window }: Pick<CountedBudget, 'window'>): string | null {
  return window.start === Number.NEGATIVE_INFINITY ? null : isoSeconds(window.start);
}

/** ISO 8601 in UTC, to the second. */
export function isoSeconds(instant: number): string {
  return new Date(instant).toISOString().replace('.000Z', 'Z');
}

const PER = Object.freeze({ total: 'in all', hour: 'an hour', day: 'a day', week: 'a week', month: 'a month' });
