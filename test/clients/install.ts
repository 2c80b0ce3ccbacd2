import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end or its time limit. */
export function runProgram(
  [program = '', ...args]: readonly string[],
  options: { readonly cwd: string; readonly env: NodeJS.ProcessEnv; readonly withinMs: number },
): Promise<Finished> {
  const { cwd, env, withinMs } = options;
  return new Promise((resolve) => {
    // A process group of its own, so that child processes end with the program.
    const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (bytes) => {
      stdout += String(bytes);
    });
    child.stderr.on('data', (bytes) => {
      stderr += String(bytes);
    });
    const stop = (): void => {
      if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL');
    };
    const timer = setTimeout(stop, withinMs);
    child.on('error', (error) => {
      stderr += error.message;
    });
    child.on('close', (code) => {
      clearTimeout(timer);
      resolve({ code, stdout, stderr });
    });
  });
}

/** Folder of the installed packages; a folder in `TOLLGATE_CLIENTS_DIR` is reused. */
export const CLIENTS_FOLDER = process.env['TOLLGATE_CLIENTS_DIR'] ?? path.join(os.tmpdir(), 'tollgate-clients');

const INSTALL_MS = 300_000;

/** Installs exact versions into their own folder; returns the reason of a failure, or undefined. */
export async function install(id: string, packages: readonly string[]): Promise<string | undefined> {
  if (packages.length === 0) return undefined;
  const folder = folderOf(id);
  const stamp = path.join(folder, '.installed');
  const wanted = packages.join(' ');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return undefined;
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, 'package.json'), '{"private":true}');
  const { code, stderr } = await runProgram(
    ['npm', 'install', '--no-audit', '--no-fund', '--loglevel=error', '--no-save', ...packages],
    { cwd: folder, env: installEnv(), withinMs: INSTALL_MS },
  );
  if (code !== 0) return stderr.match(/npm error (?!code )(.+)/)?.[1] ?? `npm ended with ${code}`;
  writeFileSync(stamp, wanted);
  return undefined;
}

/** Environment without npm's variables, such as those from this repository's .npmrc. */
function installEnv(): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name));
  return { ...Object.fromEntries(own), PATH: `${programsOf('node')}:${process.env['PATH']}` };
}

export function folderOf(id: string): string {
  return path.join(CLIENTS_FOLDER, id);
}

/** Folder with the programs of a client. */
export function programsOf(id: string): string {
  return path.join(folderOf(id), 'node_modules', '.bin');
}
