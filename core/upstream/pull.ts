/** Said by something that has nothing to read yet, and has not ended. */
export const NOT_YET: unique symbol = Symbol('not yet');

/**
 * Read without waiting, as far as something is there. A chunk passes several of these on its way from the provider's socket
 * to the caller's, and a promise at each of them would cost more than the work on it.
 */
export interface Pull<T> {
  /** What comes next, undefined at the end, or {@link NOT_YET}. */
  read(): T | undefined | typeof NOT_YET;
  /** Calls `listener` once, when `read` has something else to say: at once then, from within the call that brought it. */
  whenReadable(listener: () => void): void;
}

/** Waits for what comes next; undefined at the end. */
export async function next<T>(pull: Pull<T>): Promise<T | undefined> {
  for (;;) {
    const value = pull.read();
    if (value !== NOT_YET) return value;
    await new Promise<void>((resolve) => pull.whenReadable(resolve));
  }
}
