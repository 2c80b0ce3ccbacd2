import { expect } from 'chai';
import { formatCsv } from '../../../../plugins/policies/kit/csv.ts';

describe('a table as CSV', () => {
  const CELLS: readonly (readonly [cell: string | number, written: string])[] = [
    ['plain', 'plain'],
    ['', ''],
    [12, '12'],
    [-3, '-3'],
    ['0.000001', '0.000001'],
    ['-0.05', '-0.05'],
    ['=1+1', "'=1+1"],
    ['+1', "'+1"],
    ['-2+3+cmd|x', "'-2+3+cmd|x"],
    ['@SUM(A1)', "'@SUM(A1)"],
    ['\tx', "'\tx"],
    ['\rx', '"\'\rx"'],
    ['=HYPERLINK("http://x","y")', '"\'=HYPERLINK(""http://x"",""y"")"'],
    ['a,b', '"a,b"'],
    ['say "hi"', '"say ""hi"""'],
    ['two\nlines', '"two\nlines"'],
    ['ünïcode 🎉', 'ünïcode 🎉'],
  ];
  for (const [cell, written] of CELLS)
    it(`has ${JSON.stringify(cell)} as ${JSON.stringify(written)}`, () =>
      expect(formatCsv(['head'], [[cell]])).to.equal(`head\r\n${written}\r\n`));
});
