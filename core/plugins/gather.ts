import { isGatewayError } from '../../contract/errors.ts';
import type { PartReport } from '../../contract/gateway.ts';
import type { Store } from '../../contract/store.ts';
import type { HookBook, HookCounts } from './hook-guard.ts';
import type { Registry } from './registry.ts';

/** Readers of this process's reports, by topic. */
export type Readers = ReadonlyMap<string, () => unknown>;

/** Requests the reports on a topic from every worker of this gateway. */
export interface Gatherer {
  /** Sets the readers of this process: those of the live generation. */
  serve(readers: Readers): void;
  /** Returns the reports of all workers on a topic; a single process queries itself. */
  gather(topic: string): Promise<readonly unknown[]>;
}

/** For a gateway of one process. */
export function createLocalGatherer(): Gatherer {
  let readers: Readers = new Map();
  return {
    serve(given) {
      readers = given;
    },
    gather: async (topic) => [await readers.get(topic)?.()],
  };
}

/** Topic of the state of a gateway's processes. */
export const PROCESS_TOPIC = 'core.process';

/** State of one process of a gateway. */
export interface ProcessState {
  /** `ok`, or the problem of its store, without confidential details. */
  readonly store: string;
  /** Hook counts of plugins since it started. */
  readonly hooks: readonly HookCounts[];
  /** Parts of plugins in this process. */
  readonly parts: readonly (PartReport & { readonly plugin: string })[];
}

export async function describeProcess(
  store: Store,
  book: HookBook,
  registry: Pick<Registry, 'parts'>,
): Promise<ProcessState> {
  const parts = [...registry.parts].flatMap(([plugin, { value }]) => value().map((part) => ({ ...part, plugin })));
  return { store: await describeStore(store), hooks: book.all(), parts };
}

/** Returns `ok`, or the problem of a store, without confidential details. */
export function describeStore(store: Store): Promise<string> {
  return store.health().then(
    () => 'ok',
    (error: unknown) => (isGatewayError(error) ? error.message : 'The store failed; see the log.'),
  );
}
