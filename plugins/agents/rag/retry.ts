/** How long to wait before what failed is tried again: doubled every time, to the most. */
export const RETRY_MS = Object.freeze({ first: 2000, most: 300_000 });

/** Whether something works, and when to try it again. */
export interface Retry {
  isFailing(): boolean;
  isDue(now: number): boolean;
  succeed(): void;
  fail(reason: string): void;
}

/** `report` is called with the reason of a failure when it is another than that of the last one. */
export function createRetry(report: (reason: string) => void): Retry {
  let waitMs = 0;
  let dueAt = 0;
  let reported: string | undefined;
  return {
    isFailing: () => waitMs > 0,
    isDue: (now) => now >= dueAt,
    succeed() {
      waitMs = 0;
      dueAt = 0;
      reported = undefined;
    },
    fail(reason) {
      waitMs = waitMs === 0 ? RETRY_MS.first : Math.min(waitMs * 2, RETRY_MS.most);
      dueAt = Date.now() + waitMs;
      if (reason !== reported) report(reason);
      reported = reason;
    },
  };
}
