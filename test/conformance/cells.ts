import type { Runner } from './runner.ts';

/** What a passed test says of a provider in `docs/providers/matrix.md`. */
export interface Cell {
  readonly provider: string;
  readonly feature: string;
  readonly says: 'verified' | 'emulated' | 'refused' | 'not offered';
  /** Whether it says what a vendor got for its newest model: then what the codec does alone is no answer. */
  readonly arrived?: boolean;
}

/** Where a test carries its cell; the matrix reporter looks here. */
export const CELL = 'tollgateCell';

/** Registers a test that stands for a cell of the matrix. Runners whose `it` answers nothing just run it. */
export function itShows(it: Runner['it'], cell: Cell, title: string, body: () => void | Promise<void>): void {
  const test: unknown = it(title, body);
  if (typeof test === 'object' && test !== null) Object.assign(test, { [CELL]: cell });
}
