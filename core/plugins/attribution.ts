import { AsyncLocalStorage } from 'node:async_hooks';

/** Which plugin's code is running: entered for each set-up, hook, route and middleware, and kept by what these start. */
const running = new AsyncLocalStorage<string>();

/** Runs code of a plugin, so that whatever it starts (timers, emitters, promises nobody waits for) is known as its own. */
export function runAs<T>(owner: string, run: () => T): T {
  return running.run(owner, run);
}

/** The plugin whose code is running, or started what is running; undefined for core's own. */
export function runningPlugin(): string | undefined {
  return running.getStore();
}
