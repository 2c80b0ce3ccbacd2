import type { RunnerFunctions } from '../../conformance/index.ts';

/** Failed test of a kit. */
export interface KitFailure {
  readonly title: string;
  readonly message: string;
}

/**
 * Runs a kit with a small runner that collects as vitest does: the body of a `describe` is collected after the code
 * around it. Returns the failed tests. Throws if the kit fails earlier or has no test.
 */
export async function runKit(kit: (runner: RunnerFunctions) => void): Promise<readonly KitFailure[]> {
  const groups: (() => void)[] = [];
  const tests: { readonly title: string; readonly body: () => unknown }[] = [];
  const before: (() => unknown)[] = [];
  const after: (() => unknown)[] = [];
  const failures: KitFailure[] = [];
  // Hides console output of plugins under test.
  const { log, warn } = console;
  console.log = () => undefined;
  console.warn = () => undefined;
  try {
    kit({
      describe: (_title, body) => void groups.push(body),
      it: (title, body) => void tests.push({ title, body }),
      beforeAll: (body) => void before.push(body),
      afterAll: (body) => void after.push(body),
    });
    for (let collect = groups.shift(); collect; collect = groups.shift()) collect();
    if (tests.length === 0) throw new Error('the kit has no test');
    for (const body of before) await body();
    for (const { title, body } of tests)
      try {
        await body();
      } catch (error) {
        failures.push({ title, message: error instanceof Error ? error.message : String(error) });
      }
    for (const body of after) await body();
  } finally {
    Object.assign(console, { log, warn });
  }
  return failures;
}
