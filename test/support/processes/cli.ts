/** The command line in its own process: from the sources, or the built program if {@link BUILT_VARIABLE} is set. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { PACKAGE_ROOT } from '../../../config/package-root.ts';

const MAIN = fileURLToPath(new URL('../../../cli/main.ts', import.meta.url));
const TSX = import.meta.resolve('tsx/esm');
/** Set by `npm run test:slow`, which has built the program: it starts in half the time of the sources. */
const BUILT_VARIABLE = 'TOLLGATE_TEST_BUILT';
/** Arguments of Node for a process that runs `tollgate`. */
const PROGRAM: readonly string[] =
  process.env[BUILT_VARIABLE] === undefined
    ? ['--import', TSX, MAIN]
    : [path.join(PACKAGE_ROOT, 'dist', 'cli', 'main.js')];

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly child: ChildProcess;
  /** All stderr output so far. */
  readonly stderr: () => string;
  readonly stdout: () => string;
  /** Resolves with the first match in stderr; rejects if the process ends before. */
  seen(pattern: RegExp): Promise<RegExpExecArray>;
  readonly finished: Promise<Finished>;
}

/**
 * Starts `tollgate` with these arguments in `cwd`; the environment has only the given variables. `shell` runs first in
 * the same process, to set limits or to redirect. A service has no terminal, even if the tests have one.
 */
export function startCli(
  words: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>> = {},
  shell = '',
  isService = false,
): Running {
  const node = commandOf(words);
  return startProgram(shell === '' ? node : ['sh', '-c', `${shell}; exec "$@"`, 'sh', ...node], cwd, env, isService);
}

/** Program and arguments that run `tollgate`. */
export function commandOf(words: readonly string[]): readonly string[] {
  return [process.execPath, ...PROGRAM, ...words];
}

/** The same as one line of a shell. */
export function shellLineOf(...words: readonly string[]): string {
  return commandOf(words)
    .map((word) => `'${word}'`)
    .join(' ');
}

/** Makes `tollgate` a program of this folder, to be put on the PATH. */
export function putOnPath(bin: string): void {
  mkdirSync(bin, { recursive: true });
  writeFileSync(path.join(bin, 'tollgate'), `#!/bin/sh\nexec ${shellLineOf()} "$@"\n`, { mode: 0o755 });
}

/** Starts any program in the same way as {@link startCli}. */
export function startProgram(
  [program = '', ...args]: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>> = {},
  isService = false,
): Running {
  const child = spawn(program, args, {
    cwd,
    detached: isService,
    env: { PATH: process.env['PATH'] ?? '', HOME: cwd, NO_COLOR: '1', ...env },
  });
  let stdout = '';
  let stderr = '';
  const waiting = new Set<() => void>();
  const wake = () => {
    for (const check of waiting) check();
  };
  child.stdout.on('data', (bytes) => {
    stdout += String(bytes);
    wake();
  });
  child.stderr.on('data', (bytes) => {
    stderr += String(bytes);
    wake();
  });
  const finished = new Promise<Finished>((resolve) => child.once('close', (code) => resolve({ code, stdout, stderr })));
  return {
    child,
    stderr: () => stderr,
    stdout: () => stdout,
    finished,
    seen: (pattern) =>
      new Promise((resolve, reject) => {
        const check = () => {
          const match = pattern.exec(stderr);
          if (!match) return;
          waiting.delete(check);
          resolve(match);
        };
        waiting.add(check);
        check();
        void finished.then(() => reject(new Error(`the process ended before ${pattern} was seen:\n${stderr}`)));
      }),
  };
}

/** Runs a command to its end, with `input` on stdin. */
export async function runCli(
  words: readonly string[],
  cwd: string,
  options: { readonly env?: Readonly<Record<string, string>>; readonly input?: string } = {},
): Promise<Finished> {
  const running = startCli(words, cwd, options.env);
  running.child.stdin?.end(options.input ?? '');
  return running.finished;
}
