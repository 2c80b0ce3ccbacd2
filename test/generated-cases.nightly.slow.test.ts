import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { ALL_CASES, generatedCases, partOf, partOfTests } from './support/generated-cases.ts';

const CALLS = [generatedCases, partOf, partOfTests].map(({ name }) => `${name}(`);

/** Files of which the quick tests run a part of the cases. */
const FILES = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' })
  .filter((name) => /(?<!\.slow)\.test\.ts$/.test(name))
  .filter((name) => {
    const text = readFileSync(path.join(import.meta.dirname, name), 'utf8');
    return CALLS.some((call) => text.includes(call));
  });

// `npm run test:nightly` sets it; here for a run of this file alone.
process.env[ALL_CASES] = 'yes';
for (const file of FILES.toSorted()) await import(`./${file}`);
