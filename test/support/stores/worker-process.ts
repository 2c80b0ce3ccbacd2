import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** Child process that handles messages in order. */
export interface Worker {
  readonly pid: number | undefined;
  send<T>(message: object): Promise<T>;
  /** Sends SIGKILL, without a chance to clean up. */
  kill(): Promise<void>;
  /** Lets the process end by itself. */
  stop(): Promise<void>;
}

/** Starts a script, by default of this folder, in a new process; resolves when it reports that it is ready. */
export async function startWorker(script: string | URL, argument: unknown): Promise<Worker> {
  const file = fileURLToPath(new URL(script, import.meta.url));
  const child = fork(file, [JSON.stringify(argument)], {
    execArgv: ['--import', 'tsx'],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  await replyOf(child);
  return {
    pid: child.pid,
    send: async <T>(message: object) => {
      const response = replyOf(child);
      child.send(message);
      return (await response) as T;
    },
    kill: async () => {
      child.kill('SIGKILL');
      await exited;
    },
    stop: async () => {
      if (child.connected) child.disconnect();
      await exited;
    },
  };
}

function replyOf(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const onExit = (): void => reject(new Error('the worker ended before it answered'));
    child.once('exit', onExit);
    child.once('message', (response: { readonly error?: string }) => {
      child.off('exit', onExit);
      if (response.error === undefined) resolve(response);
      else reject(new Error(response.error));
    });
  });
}
