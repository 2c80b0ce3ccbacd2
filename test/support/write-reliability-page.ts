/** Writes the tables of `docs/reliability.md` from `test/faults/index.ts`. */
import { readFileSync, writeFileSync } from 'node:fs';
import { FAULTS } from '../faults/index.ts';
import { withFaults } from './reliability-page.ts';

const PAGE = new URL('../../docs/reliability.md', import.meta.url);

writeFileSync(PAGE, withFaults(readFileSync(PAGE, 'utf8'), FAULTS));
