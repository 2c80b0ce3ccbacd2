import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { ValidateFunction } from 'ajv/dist/2020.js';

/**
 * Ajv takes a third of a start to compile the schemas of the built-in plugins, so `npm run build` compiles them ahead
 * (`config/compile-ahead.ts`). A schema that is not among them is compiled by Ajv, which is only slower.
 */

/** The schemas of requests, or those of the configuration: each set is compiled by an Ajv of its own. */
export type SchemaSet = 'requests' | 'settings';

/** Whether a text has a format, by the format's name. */
export type Formats = Readonly<Record<string, (value: string) => boolean>>;

/** What a module of validators exports: it makes them with the given formats, each under the fingerprint of its schema. */
export type CompiledModule = (formats: Formats) => Readonly<Record<string, ValidateFunction>>;

const require = createRequire(import.meta.url);

/** The name under which the validator of a schema with this text is exported. */
export function fingerprint(text: string): string {
  return `schema_${createHash('sha256').update(text).digest('hex')}`;
}

/** Finds the validator of a schema by its JSON text; undefined when the build did not compile it, as from the sources. */
export function createAheadFinder(set: SchemaSet, formats: Formats): (text: string) => ValidateFunction | undefined {
  let compiled: ReturnType<CompiledModule> | undefined;
  return (text) => {
    compiled ??= loadModule(set)(formats);
    return compiled[fingerprint(text)];
  };
}

function loadModule(set: SchemaSet): CompiledModule {
  const file = fileURLToPath(new URL(`../../compiled/${set}.cjs`, import.meta.url));
  return existsSync(file) ? (require(file) as CompiledModule) : () => ({});
}

/** Loads Ajv, which takes 65 ms that most starts do not need. */
export function loadAjv(): typeof import('ajv/dist/2020.js') {
  return require('ajv/dist/2020.js') as typeof import('ajv/dist/2020.js');
}
