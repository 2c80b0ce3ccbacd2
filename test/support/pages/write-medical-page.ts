/** Measures the medical rules on `test/fixtures/medical` and writes the tables of `docs/plugins/medical-figures.md`; lists what was missed with `--missed`, but for the parts that are held. `--train` finds the weights anew instead. */
import { readFileSync, writeFileSync } from 'node:fs';
import { DEVELOPED, measurePart } from './measure-medical.ts';
import { withFigures } from './medical-page.ts';
import { writeWeights } from './train-medical.ts';

const PAGE = new URL('../../../docs/plugins/medical-figures.md', import.meta.url);

if (process.argv.includes('--train')) writeWeights();
else writeFileSync(PAGE, withFigures(readFileSync(PAGE, 'utf8')));

if (process.argv.includes('--missed')) {
  // What is held would be held no longer once somebody has read what the rules get wrong of it.
  for (const part of DEVELOPED) {
    for (const { id, kind, found, text, rules } of measurePart(part)) {
      const isRight = found === !kind.endsWith('harmless');
      if (!isRight) console.log(`${part} ${id} ${kind}: ${text} [${rules.join(' ')}]`);
    }
  }
}
