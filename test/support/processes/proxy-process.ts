import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** Reverse proxy that a test started. */
export interface RunningProxy {
  /** Output so far. */
  output(): string;
  stop(): Promise<void>;
}

/** Starts a proxy in the foreground, with its files in its own folder. */
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
