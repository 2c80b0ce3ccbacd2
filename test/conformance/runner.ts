type Body = () => void | Promise<void>;

/** What a kit needs of a test runner. */
export interface Runner {
  describe(title: string, body: () => void): unknown;
  it(title: string, body: Body): unknown;
  before(body: Body): unknown;
  after(body: Body): unknown;
}

/**
 * The functions of a test runner that has no globals: all that `import * as runner from 'node:test'` or `'vitest'` gives.
 * Mocha, jest, and vitest with `globals: true` are found without it.
 */
export interface RunnerFunctions extends Pick<Runner, 'describe' | 'it'> {
  before?(body: Body): unknown;
  after?(body: Body): unknown;
  beforeAll?(body: Body): unknown;
  afterAll?(body: Body): unknown;
}

/** What every kit may be given beside the plugin. */
export interface WithRunner {
  /** `import * as runner from 'node:test'` or `'vitest'`; the globals of the runner unless set. */
  readonly runner?: RunnerFunctions;
}

/** The runner of the kit that collects its tests now. */
let current: Runner | undefined;

/**
 * The runner that is given, else the one of the kit that collects its tests now, else the one whose globals are there. What throws while
 * a kit collects its tests is a test that fails, never the end of the file. Throws when there is no runner.
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

/** The name of a plugin for a title, also where there is none. */
export function nameOf(plugin: { readonly name?: unknown } | undefined): string {
  return typeof plugin?.name === 'string' ? plugin.name : 'what is given as `plugin`';
}

/** Throws, with words, unless it is a plugin of that kind. */
export function requirePlugin(plugin: unknown, kind: string): void {
  const given = plugin as { readonly kind?: unknown; readonly setup?: unknown } | null | undefined;
  if (typeof given !== 'object' || given === null || typeof given.setup !== 'function')
    throw new Error('`plugin` is no plugin: give what `definePlugin` returns, which is the default export of its file');
  if (given.kind !== kind)
    throw new Error(`\`plugin\` is of the kind "${String(given.kind)}"; this kit is for the kind "${kind}"`);
}
