/** What the processes of one gateway tell each other. */
export type WorkerMessage =
  | { readonly tollgate: 'ready' }
  | { readonly tollgate: 'drain' | 'stop' }
  | { readonly tollgate: 'gather'; readonly id: number; readonly topic: string }
  | { readonly tollgate: 'read'; readonly id: number; readonly topic: string }
  | { readonly tollgate: 'answer'; readonly id: number; readonly value: unknown }
  | { readonly tollgate: 'gathered'; readonly id: number; readonly values: readonly unknown[] };

/** How long the workers have to answer; one that does not is left out. */
export const GATHER_MS = 2000;

/** Asks every worker of this gateway about something. */
export interface Gatherer {
  /** Names what this process answers about a topic; the function asks them all. With one process it asks itself. */
  gather<T>(topic: string, read: () => T | Promise<T>): () => Promise<readonly T[]>;
}

/** For a gateway of one process. */
export const ALONE: Gatherer = Object.freeze({
  gather<T>(_topic: string, read: () => T | Promise<T>) {
    return async () => [await read()];
  },
});

/** For a worker: answers what other workers ask, and asks them through the primary process. */
export function createGatherer(): Gatherer {
  const readers = new Map<string, () => unknown>();
  const asked = new Map<number, (values: readonly unknown[]) => void>();
  let lastId = 0;
  let listens = false;

  const listen = (): void => {
    if (listens) return;
    listens = true;
    process.on('message', async (message: WorkerMessage | null) => {
      if (message?.tollgate === 'gathered') asked.get(message.id)?.(message.values);
      if (message?.tollgate !== 'read') return;
      const value = await Promise.resolve(readers.get(message.topic)?.()).catch(() => undefined);
      tell({ tollgate: 'answer', id: message.id, value });
    });
  };

  return {
    gather<T>(topic: string, read: () => T | Promise<T>): () => Promise<readonly T[]> {
      readers.set(topic, read);
      listen();
      return () =>
        new Promise<readonly T[]>((resolve) => {
          lastId += 1;
          const id = lastId;
          const done = (values: readonly unknown[]): void => {
            clearTimeout(timer);
            asked.delete(id);
            resolve(values as readonly T[]);
          };
          // The primary is gone, so this worker is on its way out: its own answer is what is left.
          const timer = setTimeout(async () => done([await read()]), 2 * GATHER_MS);
          asked.set(id, done);
          tell({ tollgate: 'gather', id, topic });
        });
    },
  };
}

/** Sends to the primary process; nothing happens when it is gone. */
export function tell(message: WorkerMessage): void {
  if (process.connected) process.send?.(message, undefined, {}, () => {});
}
