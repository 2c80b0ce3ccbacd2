import { writeFileSync } from 'node:fs';
import path from 'node:path';
import Mocha from 'mocha';
import { CELL, type Cell } from '../../conformance/cells.ts';

const PAGE = 'docs/providers/matrix.md';
const { EVENT_RUN_END, EVENT_TEST_FAIL, EVENT_TEST_PASS } = Mocha.Runner.constants;

interface Result {
  readonly cell: Cell;
  readonly file: string;
  readonly passed: boolean;
}

/**
 * Mocha reporter that writes `docs/providers/matrix.md` from the executed tests: the second half of `npm run matrix`. A
 * cell states the result of all its tests; a cell with a failed test or without a test is `FAILS`. The whole page is
 * generated.
 */
export default class MatrixReporter extends Mocha.reporters.Dot {
  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options);
    const results: Result[] = [];
    const note = (passed: boolean) => (test: Mocha.Test) => {
      const cell = (test as unknown as Readonly<Record<string, unknown>>)[CELL] as Cell | undefined;
      if (cell) results.push({ cell, file: path.relative(process.cwd(), test.file ?? ''), passed });
    };
    runner.on(EVENT_TEST_PASS, note(true));
    runner.on(EVENT_TEST_FAIL, note(false));
    runner.once(EVENT_RUN_END, () => writeFileSync(PAGE, formatMatrix(results)));
  }
}

/** Page of a run's results: a row per feature, a column per provider. */
export function formatMatrix(results: readonly Result[]): string {
  const providers = [...new Set(results.map(({ cell }) => cell.provider))].sort();
  const features = [...new Set(results.map(({ cell }) => cell.feature))].sort(byKind);
  const rows = features.map((feature) => {
    const cells = providers.map((provider) =>
      formatCell(results.filter(({ cell }) => cell.provider === provider && cell.feature === feature)),
    );
    const files = results.filter(({ cell }) => cell.feature === feature).map(({ file }) => path.basename(file));
    return `| ${[feature, ...cells, [...new Set(files)].join(', ')].join(' | ')} |`;
  });
  return [
    '# What was verified, by provider and feature',
    '',
    'Written by `npm run matrix` from a test run; nothing here is ticked by hand. The last column names the test file in `test/conformance`.',
    '',
    '- **verified**: sent or read as the vendor’s reference shows it; answers and streams are the bytes in `test/fixtures/<provider>`.',
    '- **emulated**: the vendor has no such field and gets something that comes to the same.',
    '- **refused**: returns 400, because the response would not be to the request.',
    '- **not offered**: as far as its documents tell, the vendor, or its newest model, does not have it; a field is left out and named in `x-tollgate-dropped`. Why is on the provider’s page.',
    '',
    'Of fields of requests it says what a scripted vendor got, sent through a gateway for the newest model that the tables have of it (`test/docs/provider-pages.slow.test.ts`).',
    'No live endpoint was called. The rule of each field, and what differs by model, is on the provider’s own page.',
    '',
    `| | ${providers.map((name) => `[${name}](${name}.md)`).join(' | ')} | test |`,
    `|---|${providers.map(() => '---').join('|')}|---|`,
    ...rows,
    '',
  ].join('\n');
}

function formatCell(results: readonly Result[]): string {
  const first = results.find(({ cell }) => cell.arrived) ?? results[0];
  if (!first) return 'FAILS';
  return results.every(({ passed }) => passed) ? first.cell.says : 'FAILS';
}

/** Orders features of responses before fields of the request. */
function byKind(a: string, b: string): number {
  return Number(a.startsWith('`')) - Number(b.startsWith('`')) || (a < b ? -1 : 1);
}
