type Body = () => void | Promise<void>;

/** What a kit needs of a test runner; mocha, jest, vitest (with globals) and `node:test` all have it. */
export interface Runner {
  describe(title: string, body: () => void): void;
  it(title: string, body: Body): void;
  before(body: Body): void;
  after(body: Body): void;
}

/** The runner whose globals are there: mocha's `before`, or `beforeAll` of jest and vitest. Throws when there is none. */
export function findRunner(): Runner {
  const globals = globalThis as unknown as Partial<Record<string, (...args: never[]) => void>>;
  const { describe, it } = globals;
  const before = globals['before'] ?? globals['beforeAll'];
  const after = globals['after'] ?? globals['afterAll'];
  if (!describe || !it || !before || !after) {
    throw new Error('No test runner found: call this inside a file that mocha, jest or vitest (globals: true) runs.');
  }
  return { describe, it, before, after } as unknown as Runner;
}
