/** Every place that reads data of another party has a row with its bounds in docs/security.md, and a test. */
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { readSources } from './source-tree.ts';

/** Calls that read data of other parties. The modules that implement them are exempt. */
const READS =
  /(?<!function\* |function )\b(?:createHttpClient|api\.http|createEventReader|readEvents|readAll|fetch|WebSocket|EventSource|https?\.(?:get|request)|net\.connect|tls\.connect)\(/;
const MAKERS = [...['contract/event-reader.ts', 'egress/http-client.ts', 'egress/attempt.ts'], 'contract/operation.ts'];
/**
 * Modules that read data of this project's own processes and stores, or texts: the names have another meaning there.
 */
const OWN = [
  ...['cli/cluster/control.ts', 'plugins/stores/', 'plugins/agents/medical/run-medical.ts'],
  ...['core/http/inner-requests.ts', 'openapi/docs-pages.ts', 'plugins/console/app/'],
];

describe('data of other parties', () => {
  const page = readFileSync(path.join(PACKAGE_ROOT, 'docs/security.md'), 'utf8');
  const chapter = page.slice(page.indexOf('### Bytes of others')).split('\n## ')[0] ?? '';
  const rows = chapter
    .split('\n')
    .filter((line) => line.startsWith('| ') && line.includes('.ts`'))
    .map((line) => line.split(' | '));
  const named = (cell = ''): readonly string[] => [...cell.matchAll(/`([\w/.-]+\.ts)`/g)].map(([, file = '']) => file);

  it('are read in places with a row in docs/security.md', () => {
    const readers = readSources(
      'contract',
      'core',
      'config',
      'routing',
      'egress',
      'models',
      'openapi',
      'cli',
      'plugins',
    )
      .filter(({ code }) => READS.test(code))
      .map(({ name }) => name)
      .filter((name) => !MAKERS.includes(name) && !OWN.some((own) => name.startsWith(own)));
    expect(readers).to.have.length.above(5);
    const listed = new Set(rows.flatMap(([, by]) => named(by)));
    expect(readers.filter((name) => !listed.has(name))).to.deep.equal([]);
  });

  it('have a test in each row, and the files of all rows exist', () => {
    for (const [what, by, bounds, held] of rows) {
      expect(named(by), what).to.have.length.above(0);
      expect(bounds, what).to.match(/\d|as /);
      expect(named(held), what).to.have.length.above(0);
      for (const file of [...named(by), ...named(held)])
        expect(existsSync(path.join(PACKAGE_ROOT, file)), file).to.equal(true);
    }
  });
});
