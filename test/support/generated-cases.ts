import type { RunnerFunctions } from '../conformance/index.ts';

/** Variable of the environment with which properties generate all their cases, and lists of cases run whole. */
export const ALL_CASES = 'TOLLGATE_ALL_CASES';
/** Variable with the first case of a part, for another part of all cases. */
export const CASES_FROM = 'TOLLGATE_CASES_FROM';

/**
 * Number of cases that a property generates: a fifth of them in the quick tests, all in
 * `test/generated-cases.nightly.slow.test.ts`, which runs the files of these properties again.
 */
export function generatedCases(all: number): number {
  return process.env[ALL_CASES] === undefined ? Math.ceil(all / 5) : all;
}

/**
 * Part of a list of cases: in the quick tests each `share`-th one, beginning at `at`, or later by the number in
 * {@link CASES_FROM}; all in `test/generated-cases.nightly.slow.test.ts`. In a product of two lists, `at` is the index
 * of the row: each row then runs with some columns, and each column with some rows. Never empty unless the list is.
 */
export function partOf<T>(all: readonly T[], at = 0, share = 3): readonly T[] {
  if (process.env[ALL_CASES] !== undefined) return all;
  const step = Math.min(share, all.length);
  const from = at + Number(process.env[CASES_FROM] ?? 0);
  return all.filter((_, index) => index % step === from % step);
}

/**
 * `describe` and `it`, also as the runner of a published kit: of the tests in each group {@link partOf} them run. `at` is
 * the index of their subject.
 */
export function partOfTests(at: number, share = 3): RunnerFunctions {
  const { describe, it, before, after } = globalThis;
  if (process.env[ALL_CASES] !== undefined) return { describe, it, before, after };
  let tests: Parameters<RunnerFunctions['it']>[] = [];
  return {
    ...{ before, after },
    it: (...test) => tests.push(test),
    describe: (title, body) =>
      describe(title, () => {
        const outer = tests;
        tests = [];
        body();
        for (const test of partOf(tests, at, share)) it(...test);
        tests = outer;
      }),
  };
}
