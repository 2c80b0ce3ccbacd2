import { callAsSdk, type Tried } from './client.ts';
import { type Form, formOf } from './forms.ts';
import { ALIASES } from './installation.ts';
import type { ChaosNode } from './node.ts';
import { createRandom, pick } from './random.ts';

/** Call of a client, with its HTTP requests. */
export interface ChaosCall {
  readonly n: number;
  readonly form: Form;
  readonly tried: readonly Tried[];
}

export interface Load {
  /** Progress in one line. */
  line(): string;
  /** Resolves with all calls after the last one has ended. */
  end(): Promise<readonly ChaosCall[]>;
}

interface LoadOptions {
  readonly rate: number;
  readonly seed: number;
  readonly lengthMs: number;
  readonly clock: () => number;
  readonly nodes: readonly ChaosNode[];
  readonly key: string;
}

const TICK_MS = 10;

/** Open loop: a fixed number of calls starts each second, however many are in flight. */
export function startLoad({ rate, seed, lengthMs, clock, nodes, key }: LoadOptions): Load {
  const random = createRandom(seed + 1);
  const calls: ChaosCall[] = [];
  const running = new Set<Promise<void>>();
  const came = { good: 0, tried: 0 };
  let begun = 0;
  let latestMs = 0;
  const begin = (n: number): void => {
    const form = formOf(random());
    const node = n % nodes.length;
    const request = { n, form, node, key, model: pick(random, ALIASES), url: nodes[node]?.url ?? '' };
    const work = callAsSdk(request, clock).then((tried) => {
      calls.push({ n, form, tried });
      if (tried.at(-1)?.came === 'whole') came.good += 1;
      came.tried += tried.length;
      running.delete(work);
    });
    running.add(work);
  };
  const stopped = new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      const now = Math.min(clock(), lengthMs);
      latestMs = Math.max(latestMs, now - (begun * 1000) / rate);
      while (begun < (now * rate) / 1000) begin(begun++);
      if (now < lengthMs) return;
      clearInterval(timer);
      resolve();
    }, TICK_MS);
  });
  return {
    line: () =>
      `${begun} calls, ${calls.length - came.good} failed, ${running.size} under way, ${came.tried - calls.length} retries, ${Math.round(latestMs)} ms late at most`,
    async end() {
      await stopped;
      await Promise.all(running);
      return calls;
    },
  };
}
