import { expect } from 'chai';
import { readSources } from './source-tree.ts';

/** Minimum wait for an event on a busy machine. */
const LEAST_MS = 60_000;

const BOUNDS: readonly RegExp[] = [/\.timeout\(([\d_]+)\)/g, /\b(?:until|eventually)\((?:[^;]*?), ([\d_]+)\);/g];

describe('time limits of waits in tests (E59)', () => {
  it('are at least a minute, or the default of every test', () => {
    const short = readSources('test').flatMap(({ name, text }) =>
      BOUNDS.flatMap((pattern) => [...text.matchAll(pattern)]).flatMap(([found, digits = '']) => {
        const ms = Number(digits.replaceAll('_', ''));
        return ms > 0 && ms < LEAST_MS ? [`${name}: ${found.slice(-80)}`] : [];
      }),
    );
    expect(short, 'wait for the event: `until` and `eventually` have a minute by default').to.deep.equal([]);
  });
});
