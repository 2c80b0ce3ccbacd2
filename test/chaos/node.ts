import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { pause } from '../support/processes/server-process.ts';
import { eventually } from '../support/wait.ts';
import { childrenOf } from './processes.ts';
import { pick, type Random } from './random.ts';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const CLOCK = new URL('./clock.mjs', import.meta.url).href;

/** Records the request of each call, because charges are written under the call's id. */
const CALLS_PLUGIN = `import { appendFileSync } from 'node:fs';
export default { name: 'calls', kind: 'policy', apiVersion: 1, setup(api) {
  api.hook('admit', (call) => appendFileSync('calls.txt', call.id + ' ' + call.requestId + '\\n'));
} };`;

/** Gateway of the installation: a process with workers, in its own folder. */
export interface ChaosNode {
  readonly url: string;
  readonly pid: number;
  readonly folder: string;
  /** Writes another configuration and reloads it; resolves once a command has confirmed the reload. */
  reload(config: object, by: 'signal' | 'command'): Promise<void>;
  /** Writes an invalid configuration and reloads it. */
  spoil(): Promise<void>;
  /** Kills one worker with SIGKILL. */
  killWorker(random: Random): void;
  setClock(byMs: number): Promise<void>;
  /** Number of logged lines with this text. */
  countLogged(words: string): number;
  /** Lines of this level, the latest last. */
  logged(level: 'error' | 'warn'): readonly string[];
  /** Request ids by call id. */
  calls(): Promise<ReadonlyMap<string, string>>;
  /** Sends SIGTERM; returns the exit code. */
  stop(): Promise<number | null>;
}

/** Workers per gateway. */
export const WORKERS = 2;
const START_MS = 120_000;
/** Time from opening the store to listening. */
const SETTLE_MS = 3_000;

/** Processes to kill if a run fails. */
const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Runs a command of the program to its end; throws with its output if it fails. */
export function tollgate(folder: string, ...words: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [MAIN, ...words], { cwd: folder, env: environment(folder) });
    let out = '';
    let err = '';
    child.stdout.on('data', (bytes) => {
      out += String(bytes);
    });
    child.stderr.on('data', (bytes) => {
      err += String(bytes);
    });
    child.once('close', (code) =>
      code === 0 ? resolve(out) : reject(new Error(`${words.join(' ')}: ${code} ${err}`)),
    );
  });
}

function environment(folder: string): Record<string, string> {
  return { PATH: process.env['PATH'] ?? '', HOME: folder, NO_COLOR: '1' };
}

/** Creates the folder and writes the configuration. */
export async function writeNode(folder: string, config: object): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeFile(path.join(folder, 'calls.mjs'), CALLS_PLUGIN);
  await writeFile(path.join(folder, 'tollgate.config.json'), JSON.stringify(config, null, 2));
}

/**
 * Starts a gateway in a folder that {@link writeNode} wrote. It has no terminal, as a service, so that SIGHUP reloads
 * it.
 */
export async function startNode(folder: string): Promise<ChaosNode> {
  const clockFile = path.join(folder, 'clock');
  const child = spawn(process.execPath, [MAIN, 'start'], {
    ...{ cwd: folder, detached: true, stdio: ['ignore', 'pipe', 'pipe'] },
    env: { ...environment(folder), NODE_OPTIONS: `--import ${CLOCK}`, CHAOS_CLOCK: clockFile },
  });
  running.add(child);
  const log = readLog(child);
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  void ended.then(() => running.delete(child));
  const url = await log.url(ended);
  // The first worker listens before the second one starts, and each opens the store.
  await eventually(async () => {
    if (log.count('the store responds again') < WORKERS) throw new Error('not all workers have started');
  }, START_MS);
  await pause(SETTLE_MS);
  const write = (text: string) => writeFile(path.join(folder, 'tollgate.config.json'), text);
  const pid = child.pid ?? 0;
  return {
    ...{ url, pid, folder, countLogged: log.count, logged: log.lines },
    async reload(config, by) {
      await write(JSON.stringify(config, null, 2));
      if (by === 'signal') child.kill('SIGHUP');
      else await tollgate(folder, 'reload');
    },
    async spoil() {
      await write('{ "providers": {');
      child.kill('SIGHUP');
    },
    killWorker(random) {
      const workers = childrenOf(pid);
      if (workers.length > 0) process.kill(pick(random, workers), 'SIGKILL');
    },
    setClock: (byMs) => writeFile(clockFile, String(byMs)),
    async calls() {
      const text = await readFile(path.join(folder, 'calls.txt'), 'utf8').catch(() => '');
      return new Map(text.split('\n').flatMap((line) => (line ? [line.split(' ') as [string, string]] : [])));
    },
    async stop() {
      child.kill('SIGTERM');
      return ended;
    },
  };
}

/** Counts log lines and stores the relevant ones. */
function readLog(child: ChildProcess) {
  const counts = new Map<string, number>();
  const kept = { error: [] as string[], warn: [] as string[] };
  let rest = '';
  let banner = '';
  child.stdout?.on('data', (bytes) => {
    const lines = (rest + String(bytes)).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) note(line);
  });
  const note = (line: string): void => {
    const { level, msg = '' } = parse(line);
    counts.set(msg, (counts.get(msg) ?? 0) + 1);
    const list =
      level === 'error' || level === 50 ? kept.error : level === 'warn' || level === 40 ? kept.warn : undefined;
    if (list && msg !== 'an attempt failed') list.push(line.slice(0, 600));
    if (list && list.length > 200) list.shift();
  };
  return {
    count: (words: string) => [...counts].reduce((sum, [msg, count]) => sum + (msg.includes(words) ? count : 0), 0),
    lines: (level: 'error' | 'warn'): readonly string[] => kept[level],
    url: (ended: Promise<unknown>) =>
      new Promise<string>((resolve, reject) => {
        void ended.then(() => reject(new Error(`a gateway did not start: ${banner}`)));
        child.stderr?.on('data', (bytes) => {
          if (banner.length < 10_000) banner += String(bytes);
          const [, url] = /listens on (http:\S+)/.exec(banner) ?? [];
          if (url) resolve(url);
        });
      }),
  };
}

function parse(line: string): { readonly level?: string | number; readonly msg?: string } {
  try {
    return JSON.parse(line) as object;
  } catch {
    return { level: 'error', msg: line };
  }
}
