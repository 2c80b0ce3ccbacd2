import type { Runner } from './runner.ts';

/** Statement of a passed test about a provider in `docs/providers/matrix.md`. */
export interface Cell {
  readonly provider: string;
  readonly feature: string;
  readonly says: 'verified' | 'emulated' | 'refused' | 'not offered';
  /**
   * True for a cell about the request that reached the newest model. It takes precedence over cells about the codec
   * alone.
   */
  readonly arrived?: boolean;
}

/** Property of a test with its cell; the reporter of the matrix reads it. */
export const CELL = 'tollgateCell';

/** Registers a test for a cell of the matrix. In runners whose `it` returns nothing, the test just runs. */
export function itShows(it: Runner['it'], cell: Cell, title: string, body: () => void | Promise<void>): void {
  const test: unknown = it(title, body);
  if (typeof test === 'object' && test !== null) Object.assign(test, { [CELL]: cell });
}
