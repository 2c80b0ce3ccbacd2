import type { PluginApi } from '../contract/api.ts';
import type { Plan } from '../contract/settings.ts';
import { createFreshReads } from '../plugins/fresh-reads.ts';

/** The plans that operators put at run time, in one record. */
export interface StoredPlans {
  readonly [name: string]: StoredPlan;
}

export interface StoredPlan {
  readonly plan: Plan;
  /** Grows with each change of this plan. */
  readonly version: number;
}

/** The name of the record of plans, and its only id. */
export const PLANS = 'plans';
export const ALL_PLANS = 'all';

/** How long a plan that was put may take to reach another node, in milliseconds; this one knows at once. */
const KNOWN_MS = 3000;

export interface NamedPlan {
  readonly name: string;
  readonly plan: Plan;
}

/** All plans by name: those of the file first, which nothing in the store replaces. */
export type PlanBook = ReadonlyMap<string, NamedPlan>;

/** Reads the plans: those of the file, and those of the store as they were a moment ago. */
export function createPlanBook({
  records,
  settings,
}: Pick<PluginApi, 'records' | 'settings'>): () => PlanBook | Promise<PlanBook> {
  const stored = records<StoredPlans>(PLANS);
  let last: PlanBook | undefined;
  const reads = createFreshReads(async () => {
    try {
      last = joinPlans((await stored.find(ALL_PLANS)).value ?? {}, settings.plans);
    } catch (error) {
      // Plans of a moment ago are better than none; nobody waits for the store again before it is asked again.
      if (!last) throw error;
    }
    return last;
  }, KNOWN_MS);
  stored.onChange(reads.forget);
  return () => reads.get(ALL_PLANS);
}

function joinPlans(stored: StoredPlans, ofFile: Readonly<Record<string, Plan>>): PlanBook {
  const rows = [...Object.entries(stored).map(([name, { plan }]) => [name, plan] as const), ...Object.entries(ofFile)];
  return new Map(rows.map(([name, plan]): [string, NamedPlan] => [name, { name, plan }]));
}
