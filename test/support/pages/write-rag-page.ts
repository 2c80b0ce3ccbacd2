/**
 * Measures the search on `test/fixtures/rag` and writes the tables of `docs/plugins/rag.md`. `--missed` lists the
 * queries without the best result, and absent words that find something.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { measureAbsent, measureDrawn, measureRag, openJudgedIndex } from './measure-rag.ts';
import { withRagFigures } from './rag-page.ts';

const PAGE = new URL('../../../docs/plugins/rag.md', import.meta.url);

const folder = mkdtempSync(path.join(os.tmpdir(), 'tollgate-rag-'));
const index = await openJudgedIndex(path.join(folder, 'absent'));
try {
  const measured = await measureRag(folder);
  const absent = measureAbsent(index);
  const drawn = measureDrawn(index);
  writeFileSync(PAGE, withRagFigures(readFileSync(PAGE, 'utf8'), measured, absent, drawn));
  if (process.argv.includes('--missed')) {
    for (const { language, query, before, now, found } of measured.filter((one) => one.now < 0.99))
      console.log(`${language} ${before.toFixed(2)} ${now.toFixed(2)} ${query} [${found.slice(0, 3).join(' ')}]`);
    for (const { language, word, found } of absent)
      if (found[0]) console.log(`absent: ${language} ${word} [${found[0].score} ${found[0].source}]`);
    for (const text of drawn.finding) console.log(`drawn: ${text}`);
  }
} finally {
  index.close();
  rmSync(folder, { recursive: true, force: true });
}
