import { type ChildProcess, execFileSync, type SpawnOptions, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';

/** Server that a test starts, kills and restarts, on a constant port of its own. */
export interface TestServer {
  readonly port: number;
  readonly url: string;
  /** Sends SIGKILL: unwritten data is lost, as when the machine fails. */
  kill(): Promise<void>;
  /** Sends SIGSTOP: the port is open but does not respond. */
  freeze(): void;
  /** Sends SIGCONT. */
  thaw(): void;
  /** Restarts it on its own data. */
  start(): Promise<void>;
  /** Stops it and removes its data. */
  close(): Promise<void>;
}

export interface ServerCommand {
  readonly program: string;
  readonly args: readonly string[];
  readonly options?: SpawnOptions;
  /** Resolves when the server responds on its port. */
  isReady(): Promise<boolean>;
}

const READY_MS = 60_000;
const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) {
    for (const pid of [child.pid, ...childrenOf(child.pid)]) signal(pid, 'SIGKILL');
  }
});

/** Starts a server from a command; resolves when it responds. */
export async function startServer(
  url: string,
  port: number,
  command: () => ServerCommand,
  cleanUp: () => void,
): Promise<TestServer> {
  let child: ChildProcess | undefined;

  const start = async (): Promise<void> => {
    const { program, args, options, isReady } = command();
    const started = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'], ...options });
    child = started;
    running.add(started);
    let talk = '';
    started.stderr?.on('data', (chunk) => {
      talk = `${talk}${chunk}`.slice(-2000);
    });
    started.once('error', (error) => {
      talk = String(error);
    });
    started.once('exit', () => running.delete(started));
    const deadline = Date.now() + READY_MS;
    while (!(await isReady())) {
      if (Date.now() > deadline) throw new Error(`${program} did not start: ${talk}`);
      if (started.exitCode === null && started.signalCode === null) await pause(25);
      // A killed server leaves helper processes for a moment, and a new one refuses to start while they run.
      else return pause(100).then(start);
    }
  };

  const kill = async (): Promise<void> => {
    const dying = child;
    if (dying?.pid === undefined || dying.exitCode !== null || dying.signalCode !== null) return;
    const gone = new Promise((resolve) => dying.once('exit', resolve));
    const helpers = childrenOf(dying.pid);
    dying.kill('SIGKILL');
    for (const pid of helpers) signal(pid, 'SIGKILL');
    await gone;
  };

  const toAll = (name: NodeJS.Signals): void => {
    for (const pid of [child?.pid, ...childrenOf(child?.pid)]) signal(pid, name);
  };

  await start();
  return {
    port,
    url,
    kill,
    start,
    freeze: () => toAll('SIGSTOP'),
    thaw: () => toAll('SIGCONT'),
    close: async () => {
      await kill();
      cleanUp();
    },
  };
}

/** Child processes of a process (Postgres has one per connection), on systems that report them: Linux. */
function childrenOf(parent: number | undefined): number[] {
  if (parent === undefined || !existsSync('/proc/self/stat')) return [];
  return readdirSync('/proc').flatMap((name) => {
    try {
      const stat = /^\d+$/.test(name) ? readFileSync(`/proc/${name}/stat`, 'utf8') : '';
      const [, ppid] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      return Number(ppid) === parent ? [Number(name)] : [];
    } catch {
      return [];
    }
  });
}

function signal(pid: number | undefined, name: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(pid, name);
  } catch {
    // The process has already ended.
  }
}

/** Loopback port that was free a moment ago. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = net.createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}

/** Sends bytes to a loopback port and returns the first data received; an empty text if no server listens. */
export function send(port: number, bytes: string | Uint8Array): Promise<string> {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1', () => socket.write(bytes));
    const end = (text: string): void => {
      socket.destroy();
      resolve(text);
    };
    socket.setTimeout(READY_MS, () => end(''));
    socket.once('data', (data) => end(data.toString('latin1')));
    socket.once('error', () => end(''));
    socket.once('close', () => end(''));
  });
}

/** Full path of a program: from PATH, or from one of the folders. */
export function findProgram(name: string, folders: readonly string[] = []): string | undefined {
  const places = [...(process.env['PATH'] ?? '').split(path.delimiter), ...folders];
  return places.map((folder) => path.join(folder, name)).find((file) => existsSync(file));
}

/** Folder for a server's data; `remove` deletes it. */
export function makeDataFolder(word: string): { readonly folder: string; remove(): void } {
  const folder = mkdtempSync(path.join(os.tmpdir(), `tollgate-${word}-`));
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/**
 * `describe` for tests that need an installed program. If it is missing, the suite is skipped and its title gives the
 * reason; under CI that is a failure.
 */
export function describeWith(
  title: string,
  programs: Readonly<Record<string, string | undefined>>,
  body: () => void,
): void {
  const missing = Object.entries(programs).flatMap(([name, found]) => (found === undefined ? [name] : []));
  if (missing.length === 0) {
    describe(title, body);
  } else if (process.env['CI']) {
    it(`${title}: needs ${missing.join(' and ')}`, () => {
      throw new Error(`${missing.join(' and ')} must be installed where CI is set`);
    });
  } else {
    describe.skip(`${title} (skipped: ${missing.join(' and ')} not installed)`, body);
  }
}

/** Runs a program to its end; throws with its output if it fails. */
export function runToEnd(
  program: string,
  args: readonly string[],
  options: { readonly uid?: number; readonly gid?: number; readonly cwd?: string } = {},
): string {
  return execFileSync(program, [...args], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], ...options });
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
