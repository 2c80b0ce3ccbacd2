type Body = () => void | Promise<void>;

/** Functions that a kit needs of a test runner. */
export interface Runner {
  describe(title: string, body: () => void): unknown;
  it(title: string, body: Body): unknown;
  before(body: Body): unknown;
  after(body: Body): unknown;
}

/**
 * Functions of a test runner without globals: the result of `import * as runner from 'node:test'` or `'vitest'`. Mocha,
 * jest, and vitest with `globals: true` are detected automatically.
 */
export interface RunnerFunctions extends Pick<Runner, 'describe' | 'it'> {
  before?(body: Body): unknown;
  after?(body: Body): unknown;
  beforeAll?(body: Body): unknown;
  afterAll?(body: Body): unknown;
}

/** Common options of all kits. */
export interface WithRunner {
  /** Result of `import * as runner from 'node:test'` or `'vitest'`. Default: the runner's globals. */
  readonly runner?: RunnerFunctions;
}

/** Runner of the kit that is collecting its tests. */
let current: Runner | undefined;

/**
 * Returns the given runner, otherwise that of the kit that is collecting its tests, otherwise the global one. An error
 * while a kit collects its tests becomes a failing test and does not abort the file. Throws if there is no runner.
 */
export function findRunner(given?: RunnerFunctions): Runner {
  if (given === undefined && current) return current;
  const found: Partial<RunnerFunctions> = given ?? (globalThis as Partial<RunnerFunctions>);
  const { describe, it, before = found.beforeAll, after = found.afterAll } = found;
  if (!describe || !it || !before || !after)
    throw new Error(
      given === undefined
        ? 'No test runner found: run this file with mocha, jest or vitest (globals: true), or give the kit one: `runner` is what `import * as runner from "node:test"` or "vitest" gives.'
        : 'What stands in `runner` is no test runner: it needs describe, it, before and after, or beforeAll and afterAll, as `import * as runner from "node:test"` or "vitest" gives them.',
    );
  const own: Runner = {
    it,
    before,
    after,
    describe(title, body) {
      return describe(title, () => {
        const outer = current;
        current = own;
        try {
          body();
        } catch (error) {
          it('has all that its tests need', () => {
            throw error;
          });
        } finally {
          current = outer;
        }
      });
    },
  };
  return own;
}

/** Returns the name of a plugin for a title, or a placeholder. */
export function nameOf(plugin: { readonly name?: unknown } | undefined): string {
  return typeof plugin?.name === 'string' ? plugin.name : 'what is given as `plugin`';
}

/** Throws an error with instructions unless the value is a plugin of that kind. */
export function requirePlugin(plugin: unknown, kind: string): void {
  const given = plugin as { readonly kind?: unknown; readonly setup?: unknown } | null | undefined;
  if (typeof given !== 'object' || given === null || typeof given.setup !== 'function')
    throw new Error('`plugin` is no plugin: give what `definePlugin` returns, which is the default export of its file');
  if (given.kind !== kind)
    throw new Error(`\`plugin\` is of the kind "${String(given.kind)}"; this kit is for the kind "${kind}"`);
}
