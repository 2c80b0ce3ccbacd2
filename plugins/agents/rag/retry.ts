/** Delay before a retry: doubles each time, up to the maximum. */
export const RETRY_MS = Object.freeze({ first: 2000, most: 300_000 });

/** State of repeated work: failing or not, and the time of the next try. */
export interface Retry {
  isFailing(): boolean;
  isDue(now: number): boolean;
  succeed(): void;
  fail(reason: string): void;
}

/** `report` gets the reason of a failure if it differs from the previous one. */
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
