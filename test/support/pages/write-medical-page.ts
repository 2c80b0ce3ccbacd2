/** Measures the medical rules on `test/fixtures/medical` and writes the tables of `docs/plugins/medical.md`; lists what was missed with `--missed`, but for the part that is held. */
import { readFileSync, writeFileSync } from 'node:fs';
import { measurePart, PARTS } from './measure-medical.ts';
import { withFigures } from './medical-page.ts';

const PAGE = new URL('../../../docs/plugins/medical.md', import.meta.url);

writeFileSync(PAGE, withFigures(readFileSync(PAGE, 'utf8')));

if (process.argv.includes('--missed')) {
  // What is held would be held no longer once somebody has read what the rules get wrong of it.
  for (const part of PARTS.filter((each) => each !== 'blind-3-held')) {
    for (const { id, kind, found, text, rules } of measurePart(part)) {
      const isRight = found === !kind.endsWith('harmless');
      if (!isRight) console.log(`${part} ${id} ${kind}: ${text} [${rules.join(' ')}]`);
    }
  }
}
