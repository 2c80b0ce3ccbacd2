import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { listEntries, reportFile } from '../meta/api-report.ts';
import { useTempFolder } from '../support/folders.ts';
import { readBlocks } from '../support/pages/read-blocks.ts';

const PAGE = 'docs/plugins/16-exports.md';
const BLOCKS = readBlocks().filter(({ language }) => language === 'ts');

describe('what the entries of the package export', () => {
  const folder = useTempFolder('exports');
  const entries = listEntries();
  const urlOf = (source: string): string => pathToFileURL(path.join(PACKAGE_ROOT, source)).href;

  for (const entry of entries) {
    const { name, source, stability } = entry;
    it(`of ${name} is in its report, and listed with what it promises`, async () => {
      const values = Object.keys((await import(urlOf(source))) as object);
      const report = readFileSync(reportFile(entry), 'utf8');
      const reported = [...report.matchAll(/^export (?:declare )?(?:const|function|class|default) ?([\w$]*)/gm)].map(
        ([, found = '']) => (found === '' || /^export default/.test(found) ? 'default' : found),
      );
      expect(new Set(reported), 'run npm run api').to.include.all.keys(values.filter((value) => value !== 'default'));
      expect(report).to.include(`(@${stability})`);
      expect(readFileSync(path.join(PACKAGE_ROOT, PAGE), 'utf8')).to.match(
        new RegExp(`^\\| \`${name}\` \\|.*\`@${stability}\` \\|$`, 'm'),
      );
    });

    it(`of ${name} is on a page with an example, each value`, async () => {
      const values = Object.keys((await import(urlOf(source))) as object).filter((value) => value !== 'default');
      const missing = values.filter((value) => !BLOCKS.some(({ text }) => new RegExp(`\\b${value}\\b`).test(text)));
      expect(missing).to.deep.equal([]);
    });
  }

  for (const { line, text } of BLOCKS.filter(({ page, text }) => page === PAGE && !text.includes("from './")))
    it(`${PAGE}:${line} runs as it is written`, async () => {
      const code = entries.reduce((all, { name, source }) => all.replaceAll(`'${name}'`, `'${urlOf(source)}'`), text);
      const file = path.join(folder, `block-${line}.ts`);
      writeFileSync(path.join(folder, 'package.json'), '{"type":"module"}');
      writeFileSync(file, code);
      await import(pathToFileURL(file).href);
    });
});
