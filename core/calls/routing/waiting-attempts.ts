import type { Target } from '../../contract/call.ts';

/** As many attempts without a word make a target one that hangs. */
const MANY = 3;

/** No response takes so many times its usual time, nor less than this is called long. */
const TIMES_USUAL = 4;
const LEAST_MS = Object.freeze({ stream: 2_000, whole: 10_000 });

/** Of a target whose usual time nobody knows. */
const UNKNOWN_MS = Object.freeze({ stream: 5_000, whole: 20_000 });

interface Waiting {
  /** When each attempt began, the oldest first. */
  readonly since: Set<{ readonly at: number }>;
  respondedAt: number;
}

/**
 * The attempts that wait for a response. Under load a target that hangs would take every call until the first clock has run out;
 * when several wait for long and none gets a response, later calls go elsewhere at once.
 */
export class WaitingAttempts {
  readonly #waiting = new Map<string, Waiting>();
  readonly #now: () => number;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Notes an attempt; to be told when it ended, and whether by a response. */
  begin(target: Target, stream: boolean): (hasResponded: boolean) => void {
    const name = nameOf(target, stream);
    const waiting = this.#waiting.get(name) ?? { since: new Set(), respondedAt: 0 };
    this.#waiting.set(name, waiting);
    const attempt = { at: this.#now() };
    waiting.since.add(attempt);
    return (hasResponded) => {
      waiting.since.delete(attempt);
      if (hasResponded) waiting.respondedAt = this.#now();
      if (waiting.since.size === 0) this.#waiting.delete(name);
    };
  }

  /** Whether calls hang there; `usualMs` is what a response takes lately. */
  isStuck(target: Target, stream: boolean, usualMs: number | undefined): boolean {
    const waiting = this.#waiting.get(nameOf(target, stream));
    if (!waiting || waiting.since.size < MANY) return false;
    const kind = stream ? 'stream' : 'whole';
    const limitMs = usualMs === undefined ? UNKNOWN_MS[kind] : Math.max(LEAST_MS[kind], TIMES_USUAL * usualMs);
    const latest = this.#now() - limitMs;
    const oldest = [...firstOf(waiting.since, MANY)];
    return waiting.respondedAt < latest && oldest.every(({ at }) => at < latest);
  }
}

function* firstOf<T>(values: Iterable<T>, count: number): Generator<T, void, undefined> {
  let left = count;
  for (const value of values) {
    if (left-- <= 0) return;
    yield value;
  }
}

function nameOf({ provider, model }: Target, stream: boolean): string {
  return `${stream} ${provider}/${model}`;
}
