import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { findGrowth, lowerRows, readHouse } from '../../bench/house.mjs';
import { PACKAGE_ROOT } from '../../config/package-root.ts';

type Row = Readonly<Record<string, number | string>>;
type Rows = Readonly<Record<string, Row>>;

interface Table {
  readonly tree: Row;
  readonly rooms: Rows;
  readonly calls: Rows;
}

const TABLE = 'test/meta/house.json';
const HOW =
  'Make it smaller. Code that only moved between folders: `npm run house -- --update --moved`. What has to grow: ' +
  `raise the number in ${TABLE} and give its row "why": "docs/decisions/<page>.md".`;

function rowsOf({ tree, rooms, calls }: Table): Rows {
  return { tree, ...rooms, ...calls };
}

describe('the size of the house', () => {
  const table = JSON.parse(readFileSync(path.join(PACKAGE_ROOT, TABLE), 'utf8')) as Table;

  before(function () {
    // The sources may also come without git, as an archive.
    if (!existsSync(path.join(PACKAGE_ROOT, '.git'))) this.skip();
  });

  it('is at most that of the table, and what became smaller is written with `npm run house -- --update`', () => {
    const { tree, rooms } = readHouse();
    const grown = findGrowth({ tree, ...rooms }, { tree: table.tree, ...table.rooms });
    expect(grown, HOW).to.deep.equal([]);
  });

  it('is raised in the table only with a new page of docs/decisions that says why', () => {
    const unexplained = readEarlierTables().flatMap((earlier) => findUnexplained(table, earlier));
    expect([...new Set(unexplained)], HOW).to.deep.equal([]);
    const missing = Object.values(rowsOf(table)).filter(
      ({ why }) => why !== undefined && !existsSync(path.join(PACKAGE_ROOT, String(why))),
    );
    expect(missing).to.deep.equal([]);
  });
});

describe('the table of the house', () => {
  it('is only lowered by an update, and keeps why a row was raised', () => {
    const old = { a: { files: 3, linesOfCode: 10, why: 'docs/decisions/limits.md' }, gone: { files: 1 } };
    const now = { a: { files: 2, linesOfCode: 11 }, new: { files: 1 } };
    expect(lowerRows(now, old)).to.deep.equal({ a: { files: 2, linesOfCode: 10, why: 'docs/decisions/limits.md' } });
  });

  it('names each figure that grew and each new folder, beyond the slack of what is sampled', () => {
    const grown = findGrowth(
      { a: { files: 3, kilobytes: 109 }, new: { files: 1 } },
      { a: { files: 2, kilobytes: 100 } },
      { kilobytes: 1.1 },
    );
    expect(grown).to.deep.equal(['a files: 3, the table has 2', 'new files: 1, the table has 0']);
  });

  it('may be raised with a new reason, or in a folder when the tree as a whole did not grow', () => {
    const base = { tree: { files: 5 }, rooms: { a: { files: 2 } }, calls: { chat: { functions: 9 } } };
    const raised = (why?: string) => ({ ...base, calls: { chat: { functions: 10, ...(why ? { why } : {}) } } });
    expect(findUnexplained(raised(), base)).to.deep.equal(['chat functions: 10, the table has 9']);
    expect(findUnexplained(raised('docs/decisions/a.md'), base)).to.deep.equal([]);
    expect(findUnexplained({ ...base, rooms: { a: { files: 3 } } }, base)).to.deep.equal([]);
    const grown = { ...base, tree: { files: 6 }, rooms: { a: { files: 3 } } };
    expect(findUnexplained(grown, base)).to.deep.equal(['tree files: 6, the table has 5']);
    const raisedOnce = raised('docs/decisions/a.md');
    const raisedTwice = { ...base, calls: { chat: { functions: 11, why: 'docs/decisions/a.md' } } };
    expect(findUnexplained(raisedTwice, raisedOnce)).to.deep.equal(['chat functions: 11, the table has 10']);
  });
});

/** Rows that are higher than earlier without a reason of their own. A folder may grow as far as another one shrank. */
function findUnexplained(table: Table, earlier: Table): readonly string[] {
  const before: Rows = { tree: earlier.tree, ...earlier.calls };
  const after: Rows = { tree: table.tree, ...table.calls };
  const unexplained = Object.entries(after).filter(
    ([name, { why }]) => before[name] && (why === undefined || why === before[name].why),
  );
  return findGrowth(Object.fromEntries(unexplained), before);
}

/** The table that is committed, and that of the commit before: for a merge, what it is merged into. */
function readEarlierTables(): readonly Table[] {
  return ['HEAD', 'HEAD^1'].flatMap((commit) => {
    try {
      const options = { cwd: PACKAGE_ROOT, encoding: 'utf8', stdio: 'pipe' } as const;
      return [JSON.parse(execFileSync('git', ['show', `${commit}:${TABLE}`], options)) as Table];
    } catch {
      // A shallow clone, or a commit without the table.
      return [];
    }
  });
}
