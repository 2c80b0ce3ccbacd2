/**
 * Number of cases that a property generates: a fifth of them in the quick tests, all in
 * `test/generated-cases.slow.test.ts`, which runs the files of these properties again.
 */
export function generatedCases(all: number): number {
  return process.env[ALL_CASES] === undefined ? Math.ceil(all / 5) : all;
}

/** Variable of the environment with which properties generate all their cases. */
export const ALL_CASES = 'TOLLGATE_ALL_CASES';
