import type { ModelRoute } from '../../config/model-routes.ts';
import type { ModelCatalog, Operation } from '../../contract/call.ts';
import type { OperationDefinition } from '../../contract/operation.ts';
import type { PlanFinder } from '../../contract/plans.ts';
import type { Log } from '../../contract/plugin.ts';
import type { Offer } from '../../contract/provider.ts';
import type { Upstream } from '../../egress/upstream.ts';
import type { Aliases } from '../../models/catalog.ts';
import type { Routing } from '../../routing/health-book.ts';
import type { Pending } from '../plugins/attribution.ts';
import type { CompiledHooks } from '../plugins/compile-hooks.ts';
import type { Seals } from './seals.ts';

/** What one operation works with in one generation. */
export interface OperationParts {
  readonly hooks: CompiledHooks;
  readonly catalog: ModelCatalog;
  /** By instance name. */
  readonly offers: ReadonlyMap<string, Offer>;
  /** Absent for chat, which core does itself. */
  readonly definition?: OperationDefinition;
}

/** What every call works with; fixed for a generation. */
export interface CallDeps {
  readonly upstream: Upstream;
  readonly aliases: Aliases;
  /** The rules of the aliases, by name. */
  readonly routes: ReadonlyMap<string, ModelRoute>;
  readonly routing: Routing;
  readonly log: Log;
  readonly seals: Seals;
  readonly planOf: PlanFinder;
  /** Calls, and what goes on after them, such as `finish` hooks; the end of the generation waits for it. */
  readonly pending: Pending;
  /** Fires when the generation closes and has waited for its calls long enough. */
  readonly closing: AbortSignal;
  /** Throws for an operation that is not registered. */
  partsOf(operation: Operation): OperationParts;
  allParts(): Iterable<OperationParts>;
}
