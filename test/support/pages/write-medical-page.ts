/**
 * Measures the medical rules on `test/fixtures/medical` and writes the tables of `docs/plugins/medical-figures.md`.
 * `--missed` lists the missed phrasings, except those of held parts. `--train` finds new weights instead.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { DEVELOPED, measurePart } from './measure-medical.ts';
import { withFigures } from './medical-page.ts';
import { writeWeights } from './train-medical.ts';

const PAGE = new URL('../../../docs/plugins/medical-figures.md', import.meta.url);

if (process.argv.includes('--train')) writeWeights();
else writeFileSync(PAGE, withFigures(readFileSync(PAGE, 'utf8')));

if (process.argv.includes('--missed')) {
  // A held part would lose its value if its failures were read.
  for (const part of DEVELOPED) {
    for (const { id, kind, found, text, rules } of measurePart(part)) {
      const isRight = found === !kind.endsWith('harmless');
      if (!isRight) console.log(`${part} ${id} ${kind}: ${text} [${rules.join(' ')}]`);
    }
  }
}
