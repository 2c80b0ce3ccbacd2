import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** A reverse proxy that a test started. */
export interface RunningProxy {
  /** What it said so far. */
  output(): string;
  stop(): Promise<void>;
}

/** Starts a proxy that stays in the foreground, with its files in a folder of its own. */
export function startProxy(program: string, args: readonly string[], folder: string): RunningProxy {
  const env = { PATH: process.env['PATH'] ?? '', HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
  const child = spawn(program, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const exited = once(child, 'exit');
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (bytes) => {
      output += String(bytes);
    });
  return {
    output: () => output,
    async stop() {
      child.kill('SIGTERM');
      await exited;
    },
  };
}
