import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { startCli } from '../processes/cli.ts';
import { resultOf } from '../processes/plugin-command.ts';

/** Gateway in its own process. */
export interface GatewayProcess {
  readonly url: string;
  readonly pid: number;
  /** Resolves when the process has ended for any reason. */
  readonly ended: Promise<void>;
  /** Sends SIGKILL, without a chance to clean up; resolves when the process has ended. */
  kill(): Promise<void>;
  /** Sends SIGTERM, which drains. */
  stop(): Promise<void>;
}

/** CPU time of a process's main thread in milliseconds; wall-clock time on systems that do not report it. */
export function workedMs(pid: number): number {
  const file = `/proc/${pid}/task/${pid}/schedstat`;
  return existsSync(file) ? Number(readFileSync(file, 'utf8').split(' ')[0]) / 1e6 : performance.now();
}

/** Folder with a configuration, to run commands and start gateways. */
export interface Installation {
  readonly folder: string;
  /** API key of the user `local`. */
  readonly key: string;
  /** Runs a plugin's command on the configured store; returns its JSON result. */
  // biome-ignore lint/suspicious/noExplicitAny: results of every shape
  command(...words: readonly string[]): Promise<any>;
  /** Starts a gateway with these environment variables. */
  start(env?: Readonly<Record<string, string>>): Promise<GatewayProcess>;
  /** Stops running processes and removes the folder. */
  remove(): Promise<void>;
}

/** Writes a configuration, by default with API keys and a free port, and creates a key. */
export async function installGateway(
  config: Readonly<Record<string, unknown>>,
  files: Readonly<Record<string, string>> = {},
): Promise<Installation> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'tollgate-install-'));
  const file = path.join(folder, 'tollgate.config.json');
  const base = { server: { port: 0, drainTimeout: '5s' }, auth: { 'api-key': {} }, logging: { level: 'warn' } };
  // A busy test machine must not cause refusals: a test enables load shedding itself.
  const policies = { overload: false, ...(config['policies'] as object | undefined) };
  // All callers of a test share one address. Only tests about wrong keys limit their number.
  const server = {
    failedCredentials: 0,
    drainDelay: '0s',
    ...((config['server'] as object | undefined) ?? base.server),
  };
  await writeFile(file, JSON.stringify({ ...base, ...config, server, policies }));
  for (const [name, text] of Object.entries(files)) await writeFile(path.join(folder, name), text);
  const running = new Set<GatewayProcess>();

  const command: Installation['command'] = (...words) =>
    resultOf(words, file, { cwd: folder, env: { PATH: process.env['PATH'], HOME: folder } });

  const start: Installation['start'] = async (env) => {
    const { child, seen, finished } = startCli(['start', '--config', file], folder, env);
    const ended = finished.then(() => undefined);
    const end = async (signal: NodeJS.Signals): Promise<void> => {
      child.kill(signal);
      await ended;
    };
    const [, url = ''] = await seen(/listens on (http:\S+)/);
    const gateway = { url, pid: child.pid ?? 0, ended, kill: () => end('SIGKILL'), stop: () => end('SIGTERM') };
    running.add(gateway);
    void ended.then(() => running.delete(gateway));
    return gateway;
  };

  const { api_key: key } = await command('keys', 'create', '--user', 'local', '--name', 'test');
  return {
    folder,
    key,
    command,
    start,
    async remove() {
      await Promise.all([...running].map((gateway) => gateway.kill()));
      await rm(folder, { recursive: true, force: true });
    },
  };
}
