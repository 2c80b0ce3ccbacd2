import { storeClosed, storeUnavailable } from '../kit/failure.ts';
import { type Census, NOTICE_MS } from './census.ts';
import type { Writer } from './writer.ts';

/** What a process may keep in its memory while it is alone with the store. */
export interface Resident {
  /** Reads what it goes on from, inside a write transaction; what it answers runs right after the commit. */
  moveIn(isAlone: boolean): () => void;
  /** Writes all it keeps into the tables, inside a write transaction; what it answers runs right after the commit. */
  moveOut(): () => void;
  /** Does what is queued, outside of any transaction: it will be moved out. */
  flush?(): void;
}

export type Mode = 'alone' | 'together';

/** Whether this process is alone with the store: found out once, for everything that depends on it. */
export interface Presence {
  /** Those who are told; before anything runs. */
  add(resident: Resident): void;
  /** Runs an operation once it is known whether this process is alone. */
  run<T>(operation: (mode: Mode) => Promise<T>): Promise<T>;
  /** Moves everybody out, and refuses operations from now on. The store stays taken until {@link Presence.leave}. */
  close(): Promise<void>;
  /** Gives the store to others; after the last write. */
  leave(): void;
}

/** How long a process waits at its first operation for another one to share. */
const JOIN_MS = 2000;
/** How often a process that shares looks whether it is alone by now. */
const RETURN_MS = 5000;

/**
 * While one process is alone with the store, what would cost it a commit a call may live in its memory; as soon as
 * another one comes, everything moves to the tables and both work there. Moves happen inside write transactions, and
 * the store is shared only after the commit that moved everything out: there is no moment in which two decide.
 */
export function createPresence(writer: Writer, openCensus: () => Promise<Census>, returnMs = RETURN_MS): Presence {
  const residents: Resident[] = [];
  let census: Census | undefined;
  /** Undefined while it is being found out. */
  let mode: Mode | undefined;
  let isClosed = false;
  let isSharing = false;
  let joining: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;

  const watch = (everyMs: number, look: () => void): void => {
    clearInterval(timer);
    if (isClosed) return;
    timer = setInterval(look, everyMs);
    timer.unref();
  };

  const enter = (of: Census, found: Mode): void => {
    mode = found;
    if (found === 'alone') {
      watch(NOTICE_MS, () => {
        if (!isSharing && of.wasAsked()) share(of);
      });
    } else {
      watch(returnMs, () => {
        mode = undefined;
        join().catch(() => undefined);
      });
    }
  };

  /** Finds out whether this process is alone: in a transaction, so that no two do it at once. */
  const attempt = (of: Census) => {
    const found = of.takeAlone() ? 'alone' : of.takeTogether() ? 'together' : undefined;
    if (found === undefined) of.ask();
    const moves = found === undefined ? [] : residents.map((resident) => resident.moveIn(found === 'alone'));
    return { found, moves } as const;
  };

  const join = (): Promise<void> => {
    joining ??= tryToJoin().finally(() => {
      joining = undefined;
    });
    return joining;
  };

  const tryToJoin = async (): Promise<void> => {
    census ??= await openCensus();
    const of = census;
    const deadline = performance.now() + JOIN_MS;
    while (performance.now() < deadline && !isClosed) {
      const tried = writer.write(
        () => attempt(of),
        'soon',
        ({ found, moves }) => {
          for (const moved of moves) moved();
          if (found !== undefined) enter(of, found);
        },
      );
      await tried.catch((error: unknown) => {
        // What was taken in a transaction that came to nothing is nobody's.
        of.leave();
        throw error;
      });
      if (mode !== undefined) return;
      await new Promise((resolve) => setTimeout(resolve, NOTICE_MS / 4));
    }
    throw storeUnavailable('Another process has the sqlite store for itself and does not share it.');
  };

  const moveOut = (committed: () => void): Promise<unknown> => {
    for (const resident of residents) resident.flush?.();
    return writer.write(
      () => residents.map((resident) => resident.moveOut()),
      'soon',
      (moves) => {
        committed();
        for (const moved of moves) moved();
      },
    );
  };

  /** Shares the store with whoever asked; what cannot be moved now stays, and they ask again. */
  const share = (of: Census): void => {
    isSharing = true;
    moveOut(() => {
      mode = undefined;
      joining = keepTogether(of).finally(() => {
        joining = undefined;
      });
      joining.catch(() => undefined);
    })
      .catch(() => undefined)
      .finally(() => {
        isSharing = false;
      });
  };

  /** In a transaction of its own, behind the changes that are queued: until it is over the store is not shared. */
  const keepTogether = (of: Census): Promise<void> =>
    writer
      .write(
        () => of.takeTogether(),
        'soon',
        (isTaken) => {
          if (isTaken) enter(of, 'together');
        },
      )
      .then(
        () => undefined,
        (error: unknown) => {
          of.leave();
          throw error;
        },
      );

  const run = <T>(operation: (mode: Mode) => Promise<T>): Promise<T> => {
    if (isClosed) return Promise.reject(storeClosed());
    return mode === undefined ? join().then(() => run(operation)) : operation(mode);
  };

  return {
    add: (resident) => void residents.push(resident),
    run,
    close: async () => {
      isClosed = true;
      clearInterval(timer);
      await joining?.catch(() => undefined);
      clearInterval(timer);
      // What cannot be written now is read again at the next start.
      if (mode === 'alone') await moveOut(() => undefined).catch(() => undefined);
    },
    leave: () => census?.close(),
  };
}
