import { expect } from 'chai';
import { readSetups } from '../../cli/init.ts';
import { readMatrix, readSetUpPart, rowOf, writeSetUps } from '../clients/page.ts';
import { CLIENTS } from '../clients/table.ts';

describe('docs/clients.md', () => {
  const runs = CLIENTS.flatMap((row) => row.runs);

  it('has a row for each client that npm run clients runs', () => {
    expect(Object.keys(readMatrix())).to.deep.equal(runs.map(rowOf));
  });

  it('has no cell that fails', () => {
    const failing = Object.entries(readMatrix()).flatMap(([row, cells]) =>
      Object.entries(cells).flatMap(([behaviour, cell]) => (cell.startsWith('fails') ? [`${row} ${behaviour}`] : [])),
    );
    expect(failing).to.deep.equal([]);
  });

  it('shows the set-up of every client as tollgate init prints it, and each was run', () => {
    expect(readSetUpPart()).to.equal(writeSetUps());
    expect([...new Set(runs.map(({ setup }) => setup))].toSorted()).to.deep.equal(Object.keys(readSetups()).toSorted());
  });
});
