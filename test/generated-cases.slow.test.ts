import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { ALL_CASES, generatedCases } from './support/generated-cases.ts';

/** Files with properties, of which the quick tests generate a part of the cases. */
const FILES = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' })
  .filter((name) => /(?<!\.slow)\.test\.ts$/.test(name))
  .filter((name) => readFileSync(path.join(import.meta.dirname, name), 'utf8').includes(`${generatedCases.name}(`));

// No other slow test reads it.
process.env[ALL_CASES] = 'yes';
for (const file of FILES.toSorted()) await import(`./${file}`);
