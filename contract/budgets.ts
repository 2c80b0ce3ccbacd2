/** How often a budget begins anew. */
export type BudgetPeriod = 'total' | 'hour' | 'day' | 'week' | 'month';

export type Weekday = 'sunday' | 'monday' | 'tuesday' | 'wednesday' | 'thursday' | 'friday' | 'saturday';

/** What a call must be for a budget to count it: all that is named. */
export interface BudgetFilter {
  readonly user?: string;
  /** The public id of an API key; those that replace it count as the same. */
  readonly key?: string;
  /** `name=value`. */
  readonly tag?: string;
  readonly plan?: string;
  readonly provider?: string;
  /** A model as its provider knows it; with `*` at its end, all that begin so. */
  readonly model?: string;
}

/** What may be spent in each calendar period. Amounts are whole nano-dollars. */
export interface BudgetRule extends BudgetFilter {
  readonly name: string;
  readonly amount: number;
  readonly every: BudgetPeriod;
  /** An IANA name. */
  readonly timezone: string;
  /** The first day of a week (monday unless set), or of a month (1 unless set; at most 28, which every month has). */
  readonly startsOn?: Weekday | number;
  /** From how much on it is warned of. */
  readonly soft?: number;
}
