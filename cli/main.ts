#!/usr/bin/env node
import { setFlagsFromString } from 'node:v8';

// V8 drops the bytecode of functions that were not called during several garbage collections. After 30 idle seconds the
// next thousand calls would cost twice as much. The flag must be set before the program is compiled, and static imports
// would be hoisted above it. Workers start with this file, too. Figures: docs/decisions/bytecode.md.
setFlagsFromString('--no-flush-bytecode');
const { freezing } = await import('../contract/json.ts');
// Values for hooks are frozen only if a plugin from outside of the package runs.
freezing.isOn = false;
const { runProgram } = await import('./program.ts');
await runProgram();
