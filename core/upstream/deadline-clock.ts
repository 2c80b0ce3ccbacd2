/** Something with a deadline that moves: what {@link createDeadlineClock} watches. */
export interface Watched {
  /** When it is overdue, in milliseconds of `performance.now()`. Asked only when the timer fires. */
  dueAt(): number;
  /** Called once it is overdue; removes itself from the clock. */
  expire(): void;
  /** Called when the clock closes. */
  cut(): void;
}

export interface DeadlineClock {
  /** Starts watching, or tells that a deadline may have come nearer. Moving one further away needs no call. */
  watch(item: Watched): void;
  unwatch(item: Watched): void;
  /** Stops, and cuts what is still watched. */
  close(): void;
}

/** Deadlines within this many milliseconds of each other share one wake-up. */
const GRAIN_MS = 5;

/**
 * One timer for all deadlines of an upstream. Progress only writes a timestamp; the timer, set for the nearest deadline
 * known when it was armed, looks at them when it fires and arms itself for the next. A chunk therefore costs no timer.
 */
export function createDeadlineClock(): DeadlineClock {
  const items = new Set<Watched>();
  let timer: NodeJS.Timeout | undefined;
  let firesAt = Number.POSITIVE_INFINITY;

  function arm(at: number): void {
    if (at >= firesAt) return;
    clearTimeout(timer);
    firesAt = at;
    timer = setTimeout(tick, Math.max(at - performance.now(), 0) + GRAIN_MS);
    timer.unref();
  }

  function tick(): void {
    const now = performance.now();
    firesAt = Number.POSITIVE_INFINITY;
    let next = Number.POSITIVE_INFINITY;
    for (const item of [...items]) {
      const due = item.dueAt();
      if (due <= now) item.expire();
      else if (due < next) next = due;
    }
    if (next < Number.POSITIVE_INFINITY) arm(next);
  }

  return {
    watch(item) {
      items.add(item);
      arm(item.dueAt());
    },
    unwatch(item) {
      items.delete(item);
    },
    close() {
      for (const item of [...items]) {
        items.delete(item);
        item.cut();
      }
      clearTimeout(timer);
    },
  };
}
