/** Period after which a budget resets. */
export type BudgetPeriod = 'total' | 'hour' | 'day' | 'week' | 'month';

export type Weekday = 'sunday' | 'monday' | 'tuesday' | 'wednesday' | 'thursday' | 'friday' | 'saturday';

/** Filters of a budget. A call counts if it matches all of them. */
export interface BudgetFilter {
  readonly user?: string;
  /** Public id of an API key; includes the keys that replace it. */
  readonly key?: string;
  /** `name=value`. */
  readonly tag?: string;
  readonly plan?: string;
  /** End user of the caller's application; `*` gives each end user an amount of its own. Only with a user, key or tag. */
  readonly endUser?: string;
  readonly provider?: string;
  /** Model as its provider names it; a `*` at the end makes it a prefix. */
  readonly model?: string;
}

/** Spending limit per calendar period. Amounts are whole nano-dollars. */
export interface BudgetRule extends BudgetFilter {
  readonly name: string;
  readonly amount: number;
  readonly every: BudgetPeriod;
  /** IANA time zone. */
  readonly timezone: string;
  /** First day of a week (default: monday) or of a month (default: 1; at most 28, which every month has). */
  readonly startsOn?: Weekday | number;
  /** Amount that triggers a warning. */
  readonly soft?: number;
}
