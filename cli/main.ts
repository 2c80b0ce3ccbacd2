#!/usr/bin/env node
import { setFlagsFromString } from 'node:v8';

// V8 drops the bytecode of functions that did not run for some garbage collections: after an idle half minute the next thousand
// calls cost twice as much. The flag has to come before the program is compiled, and static imports would be hoisted above it.
// Workers start with this file, too. docs/decisions/bytecode.md has the figures.
setFlagsFromString('--no-flush-bytecode');
const { freezing } = await import('../contract/json.ts');
// The program freezes values for hooks only once a plugin runs that does not come with the package.
freezing.isOn = false;
const { runProgram } = await import('./program.ts');
await runProgram();
