import type { RoutingState } from '../../contract/routing.ts';
import { HealthBook } from './health-book.ts';
import { Hedges } from './hedges.ts';
import { RetryBudget } from './retries.ts';
import type { SharedHealth } from './share-health.ts';
import { StickyTargets } from './sticky-targets.ts';
import { WaitingAttempts } from './waiting-attempts.ts';

/** What the choice of targets remembers. It outlives a change of the configuration. */
export interface Routing {
  readonly health: HealthBook;
  readonly budget: RetryBudget;
  readonly sticky: StickyTargets;
  readonly waiting: WaitingAttempts;
  readonly hedges: Hedges;
  /** Absent where nobody else can open the store. */
  readonly shared: SharedHealth | undefined;
}

export function createRouting(share?: (health: HealthBook) => SharedHealth): Routing {
  const health = new HealthBook();
  return {
    ...{ health, budget: new RetryBudget(), sticky: new StickyTargets(), waiting: new WaitingAttempts() },
    hedges: new Hedges(),
    shared: share?.(health),
  };
}

export function describeRouting({ health, budget }: Routing): RoutingState {
  return { targets: health.reports(), retries: budget.state };
}
