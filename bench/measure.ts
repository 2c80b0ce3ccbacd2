import { type Generator, type Load, startGenerator } from './generator.ts';
import { median } from './numbers.ts';
import { cpuMicros, memoryBytes } from './proc.ts';
import { sleep } from './programs.ts';
import { ratioOf } from './report.ts';
import type { BenchRequest, Running, Target, Upstreams } from './targets/target.ts';

/** Measurements of one target in one round. Absent fields were not measured. */
export interface Sample {
  /** CPU of the gateway's processes per request or chunk, in microseconds. */
  readonly cpuUs?: number;
  readonly perSecond?: number;
  /** Milliseconds: of a whole request, or from the upstream's chunk to the caller's. */
  readonly p50?: number;
  readonly p99?: number;
  readonly kbEach?: number;
  readonly rssMb?: number;
  readonly bootMs?: number;
}

export interface Case {
  readonly id: string;
  readonly title: string;
  readonly measures: 'requests' | 'latency' | 'chunks' | 'memory' | 'boot';
  /** Target by which the others are divided. */
  readonly reference: string;
  readonly targets: readonly Target[];
  readonly request: BenchRequest;
  readonly connections: number;
  readonly rate?: number;
  /** Maximum number of rounds; the case ends after `leastRounds` (default: all) if the rounds agree. */
  readonly rounds: number;
  readonly leastRounds?: number;
  readonly windowMs: number;
  /** Requests or chunks of a target before it is measured; default {@link WARM_UP}. */
  readonly warmUp?: number;
  /** Pause before each round but the first. */
  readonly restMs?: number;
}

export interface TargetResult {
  readonly name: string;
  readonly label: string;
  readonly samples: readonly Sample[];
  /** Reason for missing samples, such as responses that were errors. */
  error?: string;
}

export interface CaseResult {
  readonly id: string;
  readonly title: string;
  readonly measures: Case['measures'];
  readonly reference: string;
  readonly targets: readonly TargetResult[];
}

/** Requests until the compiler has optimized the hot path. */
const WARM_UP = 8000;
const WARM_UP_MIN_MS = 500;
/** Longest warm-up per request. */
const WARM_UP_MAX_MS_EACH = 1;
/** Number of callers that warm up a target with a fixed rate: at that rate alone it would take half a minute. */
const WARM_UP_CONNECTIONS = 32;
const SETTLE_MS = 200;

/** Largest spread of a target's ratios, relative to their median, for rounds to agree. */
const AGREEMENT = 0.06;

/** Runs a case: starts all targets, then measures them in turn each round, so that a busy machine affects all. */
export async function measureCase(
  which: Case,
  upstreams: Upstreams,
  onProgress: (text: string) => void,
): Promise<CaseResult> {
  const { id, title, measures, reference, rounds, leastRounds = rounds } = which;
  const targets: Collected[] = which.targets.map(({ name, label }) => ({ name, label, samples: [] }));
  const result: CaseResult = { id, title, measures, reference, targets };
  const isAlone = measures === 'memory' || measures === 'boot';
  const running = isAlone ? [] : await startAll(which.targets, targets, upstreams);
  const generator = await startGenerator();
  const fail = (target: Collected, error: unknown): void => {
    target.error = (error as Error).message;
    onProgress(`${id} ${target.name} FAILED: ${target.error}`);
  };
  try {
    for (let round = 0; round < rounds; round += 1) {
      if (round > 0 && which.restMs) await sleep(which.restMs);
      for (const [at, target] of which.targets.entries()) {
        const collected = targets[at];
        if (!collected || collected.error) continue;
        const gateway = running[at];
        try {
          const sample = gateway
            ? await measureLoad(which, gateway, generator, round === 0)
            : await measureAlone(which, target, upstreams, generator);
          collected.samples.push(sample);
          onProgress(`${id} ${round + 1}/${rounds} ${target.name} ${describe(sample)}`);
        } catch (error) {
          fail(collected, error);
        }
      }
      if (round + 1 >= leastRounds && doesAgree(result)) break;
    }
  } finally {
    await generator.stop();
    await Promise.all(running.map(async (gateway) => gateway?.stop()));
  }
  return result;
}

type Collected = TargetResult & { readonly samples: Sample[] };

/** Starts targets concurrently. A target that fails to start fails alone. */
function startAll(
  targets: readonly Target[],
  results: readonly Collected[],
  upstreams: Upstreams,
): Promise<readonly (Running | undefined)[]> {
  return Promise.all(
    targets.map((target, at) =>
      target.start(upstreams).catch((error: Error) => {
        const result = results[at];
        if (result) result.error = error.message;
        return undefined;
      }),
    ),
  );
}

/** True if more rounds would not change the result: each target's ratios to the reference are close. */
function doesAgree(result: CaseResult): boolean {
  return result.targets.every((target) => {
    if (target.error) return true;
    const ratio = ratioOf(result, target.name);
    return ratio !== undefined && ratio.max - ratio.min <= AGREEMENT * ratio.median;
  });
}

async function measureLoad(which: Case, gateway: Running, generator: Generator, isFirst: boolean): Promise<Sample> {
  if (isFirst && which.rate !== undefined) {
    const { rate: _, ...closed } = which;
    await generator.run({ ...closed, connections: WARM_UP_CONNECTIONS }, gateway, (load) => warmUp(load, which.warmUp));
  }
  return generator.run(which, gateway, async (load) => {
    await (isFirst && which.rate === undefined ? warmUp(load, which.warmUp) : sleep(SETTLE_MS));
    await load.mark();
    const cpuBefore = cpuMicros(gateway.pid);
    const began = performance.now();
    await sleep(which.windowMs);
    const cpu = cpuMicros(gateway.pid) - cpuBefore;
    const seconds = (performance.now() - began) / 1000;
    const mark = await load.mark();
    const isChunks = which.measures === 'chunks';
    const count = isChunks ? mark.chunks : mark.requests;
    if (mark.errors.length > 0 || count === 0)
      throw new Error(`${which.id}: ${mark.errors.join('; ') || 'no response'}`);
    return {
      cpuUs: cpu / count,
      perSecond: count / seconds,
      p50: isChunks ? mark.chunkP50 : mark.requestP50,
      p99: isChunks ? mark.chunkP99 : mark.requestP99,
      rssMb: memoryBytes(gateway.pid) / 2 ** 20,
    };
  });
}

/** Warm-up counts requests, since a busy machine needs more time: fast targets are warm in half a second. */
async function warmUp(load: Load, requests = WARM_UP): Promise<void> {
  const began = performance.now();
  for (let seen = 0; ; ) {
    await sleep(WARM_UP_MIN_MS / 2);
    const mark = await load.mark();
    seen += mark.requests + mark.chunks;
    const took = performance.now() - began;
    if (took > requests * WARM_UP_MAX_MS_EACH || (took >= WARM_UP_MIN_MS && seen >= requests)) return;
  }
}

/** Measures cases that start the gateway again every time. */
async function measureAlone(which: Case, target: Target, upstreams: Upstreams, generator: Generator): Promise<Sample> {
  const gateway = await target.start(upstreams);
  try {
    if (which.measures === 'boot') return { bootMs: gateway.bootMs, rssMb: memoryBytes(gateway.pid) / 2 ** 20 };
    // Run some streams first: compiled code and filled pools do not belong to a stream's memory.
    await generator.run({ ...which, connections: 50 }, gateway, () => sleep(1000));
    await sleep(500);
    const before = memoryBytes(gateway.pid);
    return await generator.run(which, gateway, async (load) => {
      await load.mark();
      const after: number[] = [];
      for (const until = performance.now() + which.windowMs; performance.now() < until; ) {
        await sleep(250);
        after.push(memoryBytes(gateway.pid));
      }
      const { chunkP50, chunkP99, errors } = await load.mark();
      if (errors.length > 0) throw new Error(`${which.id}: ${errors.join('; ')}`);
      const bytes = median(after);
      return {
        kbEach: (bytes - before) / 1024 / which.connections,
        rssMb: bytes / 2 ** 20,
        p50: chunkP50,
        p99: chunkP99,
      };
    });
  } finally {
    await gateway.stop();
  }
}

function describe(sample: Sample | undefined): string {
  return Object.entries(sample ?? {})
    .map(([name, value]) => `${name}=${(value as number).toFixed(2)}`)
    .join(' ');
}
