import { expect } from 'chai';
import { type JournalMove, JournalMover } from '../../../plugins/stores/kit/journal-mover.ts';

describe('the mover of a journal', () => {
  it('also moves a row that was added during a move', async () => {
    let rows = ['first'];
    const moved: string[] = [];
    await new Promise<void>((resolve) => {
      const move = async (): Promise<JournalMove> => {
        const found = rows;
        rows = [];
        if (moved.length === 0) {
          // A commit adds a row after the move has read the others.
          rows.push('second');
          mover.moveLater();
        }
        moved.push(...found);
        if (moved.length === 2) resolve();
        return { state: 'done', damaged: 0 };
      };
      const isEmpty = async (): Promise<boolean> => rows.length === 0;
      const mover = new JournalMover(
        { kind: 'test', damagedName: 'damaged', isEmpty, move, countDamaged: async () => 0 },
        undefined,
      );
    });
    expect(moved).to.deep.equal(['first', 'second']);
  });
});
