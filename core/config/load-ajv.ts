import { createRequire } from 'node:module';
import type { Ajv2020 } from 'ajv/dist/2020.js';

/** Ajv's class, loaded when it is first asked for: most starts do without its 65 ms. Synchronous, since a request may be what asks. */
export function loadAjv(): typeof Ajv2020 {
  return (createRequire(import.meta.url)('ajv/dist/2020.js') as typeof import('ajv/dist/2020.js')).Ajv2020;
}
