import { type ChildProcess, fork, type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** Core of the gateway under test; load and upstream share the other one. */
export const GATEWAY_CORES = '0';
export const LOAD_CORES = os.cpus().length > 1 ? '1' : '0';

/** Time limits for a program to become ready, and to stop. */
const START_MS = 60_000;
const STOP_MS = 5_000;
/** Length of a program's output in the error about a failed start. */
const MAX_SAID = 1000;

export interface Program {
  readonly pid: number;
  readonly child: ChildProcess;
  stop(): Promise<void>;
}

const running = new Set<Program>();

/** Finds a system program; undefined if it is missing. */
export function findProgram(name: string): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(':'), '/usr/sbin', '/usr/local/bin', '/usr/bin'];
  return folders.map((folder) => path.join(folder, name)).find((file) => existsSync(file));
}

/** Pinning helps on an idle machine, and starves programs on a busy one. */
const TASKSET = process.env['BENCH_UNPINNED'] ? undefined : findProgram('taskset');

function pinned(command: string, args: readonly string[], cores: string): [string, string[]] {
  return TASKSET ? [TASKSET, ['-c', cores, command, ...args]] : [command, [...args]];
}

/** Starts any program; calls `until` repeatedly until it returns a value. */
export async function startProgram<T>(
  command: string,
  args: readonly string[],
  options: { cores: string; env?: NodeJS.ProcessEnv; cwd?: string; stdio?: StdioOptions },
  until: (child: ChildProcess) => Promise<T | undefined>,
): Promise<Program & { readonly ready: T }> {
  const { cores, ...rest } = options;
  const child = spawn(...pinned(command, args, cores), { stdio: ['ignore', 'ignore', 'pipe'], ...rest });
  const program = own(child);
  let said = '';
  child.stderr?.on('data', (text: Buffer) => (said = (said + text.toString()).slice(-MAX_SAID)));
  const deadline = Date.now() + START_MS;
  for (;;) {
    const ready = await until(child);
    if (ready !== undefined) return { ...program, ready };
    if (child.exitCode !== null || Date.now() > deadline) {
      await program.stop();
      throw new Error(
        `${path.basename(command)} ${args.join(' ')} did not start (${child.exitCode ?? 'too slow'}): ${said}`,
      );
    }
    await sleep(5);
  }
}

/** Starts a program of this folder; its first message reports that it is ready. */
export async function forkProgram<T>(
  file: string,
  args: readonly string[],
  options: { cores: string; nodeFlags?: readonly string[] },
): Promise<Program & { readonly ready: T }> {
  const module = fileURLToPath(new URL(file, import.meta.url));
  const [execPath, execArgv] = pinned(process.execPath, options.nodeFlags ?? [], options.cores);
  const child = fork(module, args, { execPath, execArgv });
  const program = own(child);
  const [ready] = (await Promise.race([once(child, 'message'), once(child, 'exit').then(() => [undefined])])) as [T];
  if (ready === undefined) throw new Error(`${file} did not start`);
  return { ...program, ready };
}

function own(child: ChildProcess): Program {
  const { pid } = child;
  if (pid === undefined) throw new Error('a program could not be started');
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const program: Program = {
    pid,
    child,
    async stop() {
      running.delete(program);
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGTERM');
      const hard = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
      await gone;
      clearTimeout(hard);
    },
  };
  running.add(program);
  return program;
}

/** Stops all running programs; also called on interruption of the bench. */
export async function stopAll(): Promise<void> {
  await Promise.all([...running].map((program) => program.stop()));
}

process.on('exit', () => {
  for (const { child } of running) child.kill('SIGKILL');
});

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}
