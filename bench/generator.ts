import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Job, Mark, Order } from './load/job.ts';
import type { Case } from './measure.ts';
import { forkProgram, LOAD_CORES } from './programs.ts';
import type { Running } from './targets/target.ts';

/** Running load. */
export interface Load {
  /** Returns counts since the last mark. */
  mark(): Promise<Mark>;
}

/** Process that generates the load of a case for all its targets, so that it is warm for each of them. */
export interface Generator {
  /** Loads a gateway until the work is done. */
  run<T>(which: Case, gateway: Running, work: (load: Load) => Promise<T>): Promise<T>;
  stop(): Promise<void>;
}

export async function startGenerator(): Promise<Generator> {
  const program = await forkProgram<string>('./load/load.js', [], { cores: LOAD_CORES });
  return {
    async run(which, gateway, work) {
      const hasChunks = which.measures === 'chunks' || which.measures === 'memory';
      const { connections, rate } = which;
      const job: Job = {
        port: gateway.port,
        request: gateway.request(which.request),
        connections,
        hasChunks,
        ...(rate && { rate }),
      };
      await send(program.child, { do: 'start', job });
      try {
        return await work({ mark: () => send<Mark>(program.child, { do: 'mark' }) });
      } finally {
        await send(program.child, { do: 'stop' });
      }
    },
    stop: () => program.stop(),
  };
}

async function send<T>(child: ChildProcess, order: Order): Promise<T> {
  child.send(order);
  return ((await once(child, 'message')) as [T])[0];
}
