import type { ModelRoute } from '../../config/model-routes.ts';
import type { ModelCatalog, Operation } from '../../contract/call.ts';
import type { ServerTools } from '../../contract/chat-tools.ts';
import type { PlanFinder } from '../../contract/plans.ts';
import type { Log } from '../../contract/plugin.ts';
import type { Offer } from '../../contract/provider.ts';
import type { Upstream } from '../../egress/upstream.ts';
import type { Aliases } from '../../models/catalog.ts';
import type { Routing } from '../../routing/health-book.ts';
import type { Pending } from '../plugins/attribution.ts';
import type { CompiledHooks } from '../plugins/compile-hooks.ts';
import type { RejectedFields } from './added-fields.ts';
import type { WholeOperation } from './declared-operation.ts';
import type { Routes } from './routes.ts';
import type { Seals } from './seals.ts';

/** Parts of one operation in one generation. */
export interface OperationParts {
  readonly hooks: CompiledHooks;
  readonly catalog: ModelCatalog;
  /** Meaning of model names. */
  readonly routes: Routes;
  /** By instance name. */
  readonly offers: ReadonlyMap<string, Offer>;
  /** Absent for chat, which core implements itself. */
  readonly definition?: WholeOperation;
}

/** Dependencies of every call; fixed for a generation. */
export interface CallDeps {
  readonly upstream: Upstream;
  readonly aliases: Aliases;
  /** Rules of the aliases, by name. */
  readonly routes: ReadonlyMap<string, ModelRoute>;
  readonly routing: Routing;
  readonly log: Log;
  readonly seals: Seals;
  /** Fields that targets rejected, and that the gateway had added. */
  readonly rejected: RejectedFields;
  readonly planOf: PlanFinder;
  /** Tools of servers that chats may name. Undefined if no plugin has any. */
  readonly serverTools: ServerTools | undefined;
  /** True if reports count calls by end user. */
  readonly tagsEndUsers: boolean;
  /** Running calls and the work after them, such as `finish` hooks. The end of the generation waits for them. */
  readonly pending: Pending;
  /** Fires if calls are still running when the closing generation has waited long enough. */
  readonly closing: AbortSignal;
  /** Throws for an operation that is not registered. */
  partsOf(operation: Operation): OperationParts;
  allParts(): Iterable<OperationParts>;
}
