import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { ValidateFunction } from 'ajv/dist/2020.js';
import { LRUCache } from 'lru-cache';

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

/** How many validators a process remembers; a gateway has about a hundred. */
const MAX_REMEMBERED = 1000;

/** Gives the validator of a schema by its JSON text, and of whatever else decides what it means; `compile` makes one that is new. */
export type FindValidator = (text: string, compile: () => ValidateFunction) => ValidateFunction;

/**
 * Makes what finds validators: those that the build compiled, and those of schemas that this process has compiled before, for a
 * former configuration. Compiling all anew would keep a process that serves calls from doing so for most of a second.
 */
export function createValidatorFinder(set: SchemaSet, formats: Formats): FindValidator {
  const remembered = new LRUCache<string, ValidateFunction>({ max: MAX_REMEMBERED });
  let ahead: ReturnType<CompiledModule> | undefined;
  return (text, compile) => {
    ahead ??= loadModule(set)(formats);
    const key = fingerprint(text);
    const known = ahead[key] ?? remembered.get(key);
    if (known) return known;
    const made = compile();
    remembered.set(key, made);
    return made;
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
