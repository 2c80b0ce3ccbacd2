import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { findGrowth, measureCalls, NODE_LINE, SLACK } from '../../bench/house.mjs';
import { PACKAGE_ROOT } from '../../config/package-root.ts';

type Rows = Readonly<Record<string, Readonly<Record<string, number | string>>>>;

describe('what a start and a call take', () => {
  before(function () {
    // Another line of Node counts other promises and functions.
    if (Number.parseInt(process.versions.node, 10) !== NODE_LINE) this.skip();
  });

  it('is at most what the table of the house has, in files, functions, promises, SQL and bytes', function () {
    this.timeout(900_000);
    const { calls } = JSON.parse(readFileSync(path.join(PACKAGE_ROOT, 'test/meta/house.json'), 'utf8')) as {
      readonly calls: Rows;
    };
    const how =
      'Find it with `node bench/walk.mjs --detail chat` and `node bench/steps.mjs` after `npm run build`; what became ' +
      'less is written with `npm run house -- --calls --update`; what has to grow is raised in the table with "why".';
    expect(findGrowth(measureCalls(), calls, SLACK), how).to.deep.equal([]);
  });
});
