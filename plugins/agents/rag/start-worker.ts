import { type ChildProcess, fork } from 'node:child_process';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { EmbedTexts } from './embed-pending.ts';
import type { UpdateResult } from './update-index.ts';
import type { UpdateJob } from './update-job.ts';
import type { FromWorker, ToWorker } from './worker-messages.ts';

/** An update of the index that runs in a process of its own. */
export interface IndexWorker {
  readonly outcome: Promise<WorkerOutcome>;
  /** Ends the process at once; the index is whole at any time. */
  kill(): void;
}

/** How a worker ended: with a result, for a reason, or by the file it was reading. */
export type WorkerOutcome =
  | { readonly result: UpdateResult }
  | { readonly stopped: string }
  | { readonly source: string; readonly stamp: string; readonly error: string };

export interface WorkerEvents {
  readonly embed: EmbedTexts;
  onFile(source: string, done: number, total: number): void;
  onFailed(source: string, reason: string): void;
}

/** The longest that one file may take, and the most memory. */
const FILE_MS = 45_000;
const MEMORY_MB = 1024;

/** Lower than the gateway's: requests go first. */
const PRIORITY = 10;

/** Starts a worker; `fileMs` is how long one file may take. */
export function startWorker(job: UpdateJob, events: WorkerEvents, fileMs = FILE_MS): IndexWorker {
  const child = forkWorker();
  const send = (message: ToWorker): void => void (child.connected && child.send(message));
  let reading: { readonly source: string; readonly stamp: string } | undefined;
  let isLate = false;
  let isKilled = false;
  let end: WorkerOutcome | undefined;
  let clock: NodeJS.Timeout | undefined;
  const startClock = (): void => {
    clearTimeout(clock);
    clock = setTimeout(() => {
      isLate = true;
      child.kill('SIGKILL');
    }, fileMs);
  };
  const stopReading = (): void => {
    clearTimeout(clock);
    reading = undefined;
  };
  const embed = (id: number, texts: readonly string[]): Promise<void> =>
    events.embed(texts).then(
      (vectors) => send({ type: 'vectors', id, vectors }),
      () => send({ type: 'no-vectors', id }),
    );
  child.on('message', (message: FromWorker) => {
    if (message.type === 'file') {
      reading = { source: message.source, stamp: message.stamp };
      startClock();
      events.onFile(message.source, message.done, message.total);
    } else if (message.type === 'failed') events.onFailed(message.source, message.reason);
    else {
      stopReading();
      if (message.type === 'embed') void embed(message.id, message.texts);
      else end = message.type === 'end' ? { result: message.result } : { stopped: message.reason };
    }
  });
  const outcome = new Promise<WorkerOutcome>((resolve) => {
    child.on('error', (error) => resolve({ stopped: error.message }));
    child.on('exit', (code, signal) => {
      clearTimeout(clock);
      const error = isLate ? `reading it took more than ${fileMs / 1000} s` : 'reading it took too much memory';
      resolve(
        end ?? (reading && !isKilled ? { ...reading, error } : { stopped: `the process ended with ${signal ?? code}` }),
      );
    });
  });
  send({ type: 'start', job });
  return {
    outcome,
    kill() {
      isKilled = true;
      child.kill('SIGKILL');
    },
  };
}

function forkWorker(): ChildProcess {
  const ending = path.extname(fileURLToPath(import.meta.url));
  const child = fork(fileURLToPath(new URL(`./index-worker${ending}`, import.meta.url)), {
    // From the sources, the loader of TypeScript is needed there too.
    execArgv: [`--max-old-space-size=${MEMORY_MB}`, ...(ending === '.ts' ? process.execArgv : [])],
    env: {},
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    serialization: 'advanced',
  });
  try {
    if (child.pid !== undefined) os.setPriority(child.pid, PRIORITY);
  } catch {
    // Not permitted, or over already.
  }
  return child;
}
