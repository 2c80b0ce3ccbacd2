/**
 * Root hooks of mocha: writes the product functions that each test file runs, one JSON file a test file, into the folder
 * `TOLLGATE_FUNCTIONS`. Uses V8's precise coverage. In parallel mode, mocha runs root hooks once a test file.
 */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Context, RootHookObject } from 'mocha';
import { PACKAGE_ROOT } from '../../config/package-root.ts';

/** Functions that one test file runs. */
export interface RunFunctions {
  readonly test: string;
  readonly ms: number;
  /** Names of functions, by file. */
  readonly functions: Readonly<Record<string, readonly string[]>>;
}

const session = new Session();
session.connect();
let startedMs = 0;

export const mochaHooks: RootHookObject = {
  async beforeAll() {
    await session.post('Profiler.enable');
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    startedMs = performance.now();
  },
  async afterAll(this: Context) {
    const { result } = await session.post('Profiler.takePreciseCoverage');
    const functions: Record<string, string[]> = {};
    for (const { url, functions: all } of result) {
      if (!url.startsWith('file:')) continue;
      const file = path.relative(PACKAGE_ROOT, fileURLToPath(url));
      if (file.startsWith('..') || file.startsWith('node_modules')) continue;
      const run = all.filter(({ ranges }) => (ranges[0]?.count ?? 0) > 0).map(({ functionName }) => functionName);
      if (run.length > 0) functions[file] = [...new Set(run)];
    }
    const ms = Math.round(performance.now() - startedMs);
    const files = this.test?.parent?.suites.map(({ file }) => path.relative(PACKAGE_ROOT, file ?? '')) ?? [];
    for (const test of new Set(files)) {
      const name = `${createHash('sha256').update(test).digest('hex').slice(0, 16)}.json`;
      const written: RunFunctions = { test, ms, functions };
      writeFileSync(path.join(process.env['TOLLGATE_FUNCTIONS'] ?? '.', name), JSON.stringify(written));
    }
  },
};
