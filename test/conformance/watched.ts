import assert from 'node:assert/strict';

const METHODS = ['debug', 'error', 'info', 'log', 'trace', 'warn'] as const;

/**
 * Runs plugin code and fails if it writes to the console or reads the environment. A plugin logs with `api.log` and
 * gets its options from the configuration, where `${NAME}` refers to the environment.
 */
export function watched(run: () => void): void {
  const watch = startWatch();
  try {
    run();
  } finally {
    watch.stop();
  }
  watch.assertSilent();
}

/** Asynchronous version of {@link watched}; tests of other plugins must not run concurrently. */
export async function watchedAsync(run: () => Promise<void>): Promise<void> {
  const watch = startWatch();
  try {
    await run();
  } finally {
    watch.stop();
  }
  watch.assertSilent();
}

function startWatch(): { stop(): void; assertSilent(): void } {
  const seen: string[] = [];
  const { env } = process;
  const methods = METHODS.map((name) => [name, console[name]] as const);
  const note = (what: string): void => {
    // Access by Node itself and by packages of the kit is not the plugin's.
    if (!isOfOthers(new Error('where').stack)) seen.push(what);
  };
  for (const [name] of methods) console[name] = () => note(`console.${name}`);
  process.env = new Proxy(env, {
    get(target, name, receiver) {
      if (typeof name === 'string') note(`process.env.${name}`);
      return Reflect.get(target, name, receiver) as unknown;
    },
    has(target, name) {
      note(`process.env.${String(name)}`);
      return Reflect.has(target, name);
    },
    ownKeys(target) {
      note('all of process.env');
      return Reflect.ownKeys(target);
    },
  });
  return {
    stop() {
      process.env = env;
      for (const [name, method] of methods) console[name] = method;
    },
    assertSilent() {
      assert.deepEqual(
        [...new Set(seen)],
        [],
        'a plugin writes with api.log, not to the console, and reads its options, not the environment',
      );
    },
  };
}

/** Returns true if the caller, three frames up, is Node's own code or a runner's. */
function isOfOthers(stack = ''): boolean {
  return /node:internal|[\\/]node_modules[\\/](?:mocha|vitest|jest[\w-]*|@vitest|ajv)[\\/]/.test(
    stack.split('\n')[3] ?? '',
  );
}
