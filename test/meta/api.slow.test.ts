import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { writeReports } from './api-report.ts';

describe('the reports of the public surface in test/meta/api', () => {
  it('match the declarations of the entries: a change of the surface changes its report', () => {
    for (const [file, text] of writeReports())
      expect(readFileSync(file, 'utf8'), 'run npm run api, and look at what changed').to.equal(text);
  });
});
