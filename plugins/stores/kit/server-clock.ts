/** A server's clock, seen from here: good for deadlines that the server itself keeps. */
export interface ServerClock {
  /** Takes note of a time (Unix milliseconds) the server just told. */
  observe(serverMs: number): void;
  /** Takes note of a time the server told when it found a deadline over that was not: its clock is further ahead. */
  correct(serverMs: number): void;
  /** The server's time at which an operation that begins now is over. */
  deadline(boundMs: number): number;
}

/** What timers, which may fire a little early, and the rounding of both clocks come to. */
const MARGIN_MS = 5;

/**
 * Makes a clock. A time is old by its way to us when it arrives, so the server is at least as far ahead as it says: the
 * deadlines are never too late, and at most one round trip too early.
 */
export function createServerClock(): ServerClock {
  let aheadMs = 0;
  return {
    observe: (serverMs) => {
      aheadMs = serverMs - performance.now();
    },
    correct: (serverMs) => {
      aheadMs = Math.max(aheadMs, serverMs - performance.now());
    },
    deadline: (boundMs) => Math.floor(performance.now() + aheadMs + boundMs - MARGIN_MS),
  };
}

/**
 * Sends an operation with a deadline of the server's clock. When the server finds it over although there is time left
 * here (`lateAt` reads the server's time from that error), the clock is corrected and the operation sent once more,
 * within what is left; when there is none, its caller has given up and it must not happen.
 */
export async function sendInTime<T>(
  clock: ServerClock,
  boundMs: number,
  send: (deadline: number) => Promise<T>,
  lateAt: (error: unknown) => number | undefined,
): Promise<T> {
  const startedAt = performance.now();
  try {
    return await send(clock.deadline(boundMs));
  } catch (error) {
    const serverMs = lateAt(error);
    const leftMs = boundMs - (performance.now() - startedAt);
    if (serverMs === undefined || leftMs <= MARGIN_MS) throw error;
    clock.correct(serverMs);
    return await send(clock.deadline(leftMs));
  }
}
