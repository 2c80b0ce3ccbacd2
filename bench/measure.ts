import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Job, Mark, Order } from './load/job.ts';
import { median } from './load/numbers.ts';
import { cpuMicros, residentBytes } from './proc.ts';
import { forkProgram, LOAD_CORES, sleep } from './programs.ts';
import type { Ask, Running, Target, Upstreams } from './targets/target.ts';

/** What one round told of one target. Absent fields were not measured. */
export interface Sample {
  /** CPU of the gateway's processes, in microseconds, for each request or chunk. */
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
  /** The target that the others are divided by. */
  readonly reference: string;
  readonly targets: readonly Target[];
  readonly ask: Ask;
  readonly connections: number;
  readonly rate?: number;
  readonly rounds: number;
  readonly windowMs: number;
}

export interface TargetResult {
  readonly name: string;
  readonly label: string;
  readonly samples: readonly Sample[];
  /** Why there are no samples, such as answers that were errors. */
  error?: string;
}

export interface CaseResult {
  readonly id: string;
  readonly title: string;
  readonly measures: Case['measures'];
  readonly reference: string;
  readonly targets: readonly TargetResult[];
}

/** Until the compiler has seen the hot path. */
const WARM_UP_MS = 1500;
const WARM_UP_REQUESTS = 8000;
const WARM_UP_MAX_MS = 8000;
const SETTLE_MS = 300;

/** Runs a case: all targets up, then round after round one after the other, so that a busy machine is busy for all. */
export async function measureCase(
  which: Case,
  upstreams: Upstreams,
  onProgress: (text: string) => void,
): Promise<CaseResult> {
  const results = which.targets.map(({ name, label }) => ({ name, label, samples: [] as Sample[] }) as Collected);
  const one = which.measures === 'memory' || which.measures === 'boot' ? measureAlone : undefined;
  const running = one ? [] : await startAll(which.targets, upstreams);
  try {
    for (let round = 0; round < which.rounds; round += 1) {
      for (const [at, target] of which.targets.entries()) {
        const result = results[at];
        if (!result || result.error) continue;
        const gateway = running[at];
        try {
          const sample = gateway
            ? await measureLoad(which, gateway, round === 0)
            : await measureAlone(which, target, upstreams);
          result.samples.push(sample);
          onProgress(`${which.id} ${round + 1}/${which.rounds} ${target.name} ${describe(sample)}`);
        } catch (error) {
          result.error = (error as Error).message;
          onProgress(`${which.id} ${target.name} FAILED: ${result.error}`);
        }
      }
    }
  } finally {
    await Promise.all(running.map((gateway) => gateway.stop()));
  }
  return { id: which.id, title: which.title, measures: which.measures, reference: which.reference, targets: results };
}

type Collected = TargetResult & { readonly samples: Sample[] };

async function startAll(targets: readonly Target[], upstreams: Upstreams): Promise<readonly Running[]> {
  const running: Running[] = [];
  for (const target of targets) running.push(await target.start(upstreams));
  return running;
}

async function measureLoad(which: Case, gateway: Running, isFirst: boolean): Promise<Sample> {
  return withLoad(which, gateway, async (load) => {
    await (isFirst ? warmUp(load) : sleep(SETTLE_MS));
    await load.mark();
    const cpuBefore = cpuMicros(gateway.pid);
    const began = performance.now();
    await sleep(which.windowMs);
    const cpu = cpuMicros(gateway.pid) - cpuBefore;
    const seconds = (performance.now() - began) / 1000;
    const mark = await load.mark();
    const isChunks = which.measures === 'chunks';
    const count = isChunks ? mark.chunks : mark.requests;
    if (mark.errors.length > 0 || count === 0) throw new Error(`${which.id}: ${mark.errors.join('; ') || 'no answer'}`);
    return {
      cpuUs: cpu / count,
      perSecond: count / seconds,
      p50: isChunks ? mark.chunkP50 : mark.requestP50,
      p99: isChunks ? mark.chunkP99 : mark.requestP99,
      rssMb: residentBytes(gateway.pid) / 2 ** 20,
    };
  });
}

/** A busy machine takes longer to get as far, so it is requests that count. */
async function warmUp(load: Load): Promise<void> {
  const began = performance.now();
  for (let seen = 0; ; ) {
    await sleep(500);
    const mark = await load.mark();
    seen += mark.requests + mark.chunks;
    const took = performance.now() - began;
    if (took > WARM_UP_MAX_MS || (took > WARM_UP_MS && seen > WARM_UP_REQUESTS)) return;
  }
}

/** Cases for which a gateway is started anew every time. */
async function measureAlone(which: Case, target: Target, upstreams: Upstreams): Promise<Sample> {
  const gateway = await target.start(upstreams);
  try {
    if (which.measures === 'boot') return { bootMs: gateway.bootMs, rssMb: residentBytes(gateway.pid) / 2 ** 20 };
    // Some streams first: code that is compiled and pools that are filled are no stream's memory.
    await withLoad({ ...which, connections: 50 }, gateway, () => sleep(1000));
    await sleep(500);
    const before = residentBytes(gateway.pid);
    return await withLoad(which, gateway, async (load) => {
      await load.mark();
      const after: number[] = [];
      for (const until = performance.now() + which.windowMs; performance.now() < until; ) {
        await sleep(250);
        after.push(residentBytes(gateway.pid));
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

interface Load {
  mark(): Promise<Mark>;
}

async function withLoad<T>(which: Case, gateway: Running, work: (load: Load) => Promise<T>): Promise<T> {
  const program = await forkProgram<string>('./load/load.js', [], { cores: LOAD_CORES });
  try {
    const hasChunks = which.measures === 'chunks' || which.measures === 'memory';
    const { connections, rate } = which;
    const { port } = gateway;
    const job: Job = { port, request: gateway.request(which.ask), connections, hasChunks, ...(rate && { rate }) };
    await ask(program.child, { do: 'start', job });
    return await work({ mark: () => ask<Mark>(program.child, { do: 'mark' }) });
  } finally {
    await program.stop();
  }
}

async function ask<T>(child: ChildProcess, order: Order): Promise<T> {
  child.send(order);
  return ((await once(child, 'message')) as [T])[0];
}

function describe(sample: Sample | undefined): string {
  return Object.entries(sample ?? {})
    .map(([name, value]) => `${name}=${(value as number).toFixed(2)}`)
    .join(' ');
}
