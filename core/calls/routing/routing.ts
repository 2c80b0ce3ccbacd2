import type { RoutingState } from '../../contract/routing.ts';
import { HealthBook } from './health-book.ts';
import { RetryBudget } from './retry-budget.ts';
import { StickyTargets } from './sticky-targets.ts';

/** What the choice of targets remembers. It outlives a change of the configuration. */
export interface Routing {
  readonly health: HealthBook;
  readonly budget: RetryBudget;
  readonly sticky: StickyTargets;
  /** Learns from other workers and nodes now and then; no call waits for it. */
  refresh(): void;
}

export function createRouting(share: (health: HealthBook) => () => void = () => () => {}): Routing {
  const health = new HealthBook();
  return { health, budget: new RetryBudget(), sticky: new StickyTargets(), refresh: share(health) };
}

export function describeRouting({ health, budget }: Routing): RoutingState {
  return { targets: health.reports(), retries: budget.state };
}
