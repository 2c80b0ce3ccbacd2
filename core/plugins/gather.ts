import { isGatewayError } from '../../contract/errors.ts';
import type { Store } from '../../contract/store.ts';
import type { HookBook, HookCounts } from './hook-guard.ts';

/** What this process answers, by topic. */
export type Readers = ReadonlyMap<string, () => unknown>;

/** Requests the values of a topic from every worker of this gateway. */
export interface Gatherer {
  /** From now on this process answers with these: those of the live generation. */
  serve(readers: Readers): void;
  /** What all workers answer about a topic; with one process it asks itself. */
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

/** The topic under which the processes of one gateway tell how they do. */
export const PROCESS_TOPIC = 'core.process';

/** How one process of a gateway does. */
export interface ProcessState {
  /** `ok`, or what is wrong with its store, in words that anyone may read. */
  readonly store: string;
  /** What hooks of plugins came to since it started. */
  readonly hooks: readonly HookCounts[];
}

export async function describeProcess(store: Store, book: HookBook): Promise<ProcessState> {
  return { store: await describeStore(store), hooks: book.all() };
}

/** `ok`, or what is wrong with a store, in words that anyone may read. */
export function describeStore(store: Store): Promise<string> {
  return store.health().then(
    () => 'ok',
    (error: unknown) => (isGatewayError(error) ? error.message : 'The store failed; see the log.'),
  );
}
