/** Measures the search on `test/fixtures/rag` and writes the table of `docs/plugins/rag.md`; `--missed` lists the queries that are not served best. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { measureRag } from './measure-rag.ts';
import { withRagFigures } from './rag-page.ts';

const PAGE = new URL('../../../docs/plugins/rag.md', import.meta.url);

const folder = mkdtempSync(path.join(os.tmpdir(), 'tollgate-rag-'));
try {
  const measured = await measureRag(folder);
  writeFileSync(PAGE, withRagFigures(readFileSync(PAGE, 'utf8'), measured));
  if (process.argv.includes('--missed'))
    for (const { language, query, before, now, found } of measured.filter((one) => one.now < 0.99))
      console.log(`${language} ${before.toFixed(2)} ${now.toFixed(2)} ${query} [${found.slice(0, 3).join(' ')}]`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
