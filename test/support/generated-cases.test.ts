import { expect } from 'chai';
import { ALL_CASES, CASES_FROM, generatedCases, partOf } from './generated-cases.ts';

describe('cases of the quick tests', () => {
  const former = [ALL_CASES, CASES_FROM].map((name) => [name, process.env[name]] as const);
  beforeEach(() => {
    for (const [name] of former) delete process.env[name];
  });
  after(() => {
    for (const [name, value] of former) if (value !== undefined) process.env[name] = value;
  });

  const COLUMNS = ['a', 'b', 'c', 'd', 'e'];

  it('are each third one from the given index on', () => {
    expect([0, 1, 2, 3].map((row) => partOf(COLUMNS, row).join(''))).to.deep.equal(['ad', 'be', 'c', 'ad']);
    expect(partOf(COLUMNS, 4, 4)).to.deep.equal(['a', 'e']);
  });

  it('are the next ones with another beginning, so that three runs have them all', () => {
    const parts = [0, 1, 2].map((from) => {
      process.env[CASES_FROM] = String(from);
      return partOf(COLUMNS, 1).join('');
    });
    expect(parts).to.deep.equal(['be', 'c', 'ad']);
  });

  it('are at least one of a short list, a different one in each row, and none of an empty one', () => {
    expect([0, 1, 2].map((row) => partOf(['a', 'b'], row).join(''))).to.deep.equal(['a', 'b', 'a']);
    expect(partOf([], 7)).to.deep.equal([]);
  });

  it('are all if the environment says so', () => {
    process.env[ALL_CASES] = 'yes';
    expect(partOf(COLUMNS, 1)).to.deep.equal(COLUMNS);
    expect([generatedCases(10), generatedCases(1)]).to.deep.equal([10, 1]);
    delete process.env[ALL_CASES];
    expect([generatedCases(10), generatedCases(1)]).to.deep.equal([2, 1]);
  });
});
