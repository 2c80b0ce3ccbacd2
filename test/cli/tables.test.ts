import { expect } from 'chai';
import { fitTable } from '../../cli/io.ts';
import { captureTerminal } from '../support/processes/plugin-command.ts';

const HEAD = ['NAME', 'STATE', 'LAST ERROR'];
const ROWS = [
  ['north/north-1', 'healthy', ''],
  ['south/south-1', 'skipped', 'connection refused'],
];

describe('a table on a terminal', () => {
  const draw = (columns: number | undefined) => {
    const { terminal, err } = captureTerminal();
    return { table: fitTable({ ...terminal, columns }, HEAD, ROWS), note: err() };
  };

  it('has all columns if they fit, and if stdout is not a terminal', () => {
    for (const columns of [undefined, 42]) {
      const { table, note } = draw(columns);
      expect(table).to.equal(
        'NAME           STATE    LAST ERROR\nnorth/north-1  healthy\nsouth/south-1  skipped  connection refused',
      );
      expect(note).to.equal('');
    }
  });

  it('omits columns on the right that do not fit, and names them', () => {
    const { table, note } = draw(41);
    expect(table).to.equal('NAME           STATE\nnorth/north-1  healthy\nsouth/south-1  skipped');
    expect(note).to.equal('Hidden columns: LAST ERROR. Show them with --wide.\n');
  });

  it('keeps the first column, however narrow the terminal is', () => {
    expect(draw(3).table).to.equal('NAME\nnorth/north-1\nsouth/south-1');
  });
});
