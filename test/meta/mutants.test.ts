import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { KITS } from '../mutants/kits.ts';
import { LISTS, mutantsOf, mutate, rowsOf } from '../mutants/mutants.ts';

const MUTANTS = mutantsOf(LISTS);
const read = (file: string): string => readFileSync(path.join(PACKAGE_ROOT, file), 'utf8');

describe('the lists of mutants (E59)', () => {
  it('name an original line that occurs once in its file', () => {
    const stale = MUTANTS.flatMap(({ file, from, to, wrong }) => {
      try {
        mutate(read(file), from, to);
        return [];
      } catch (error) {
        return [`${file}: ${wrong}: ${(error as Error).message}`];
      }
    });
    expect(
      stale,
      'the code has changed: take the mutant to its new line, or out where the behaviour went',
    ).to.deep.equal([]);
  });

  it('name existing quick tests', () => {
    const named = [...new Set(MUTANTS.flatMap(({ tests }) => tests))];
    expect(named.filter((file) => !existsSync(path.join(PACKAGE_ROOT, file)) || /\.slow\./.test(file))).to.deep.equal(
      [],
    );
  });

  it('of the kits are those of docs/plugins/12-testing.md, at least a hundred', () => {
    const rows = rowsOf(KITS);
    const shown = read('docs/plugins/12-testing.md')
      .split('\n')
      .filter((line) => /^\| `(?:plugins|contract)\//.test(line));
    expect(shown, `the table has to have these rows:\n${rows.join('\n')}`).to.deep.equal(rows);
    expect(mutantsOf([KITS]).length).to.be.at.least(100);
  });

  it('have a wrong line for each of E25 to E41 and E54 to E59', () => {
    const wanted = [...Array.from({ length: 17 }, (_, at) => at + 25), 54, 55, 56, 57, 58, 59].map((at) => `E${at}:`);
    expect(wanted.filter((number) => !MUTANTS.some(({ wrong }) => wrong.startsWith(number)))).to.deep.equal([]);
  });

  it('contain the seven that once survived, and sixty more', () => {
    expect(MUTANTS.filter(({ wrong }) => wrong.startsWith('E59:')).length).to.be.at.least(7);
    expect(MUTANTS.length).to.be.at.least(67);
  });
});
