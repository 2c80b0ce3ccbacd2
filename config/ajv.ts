import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { Ajv2020, CodeKeywordDefinition, Options, ValidateFunction } from 'ajv/dist/2020.js';
import { LRUCache } from 'lru-cache';
import { FORMATS } from '../contract/schema-formats.ts';

/** Schemas of requests, or those of the configuration: each set has its own Ajv. */
export type SchemaSet = 'requests' | 'settings';

/** Context of the configuration's validators: makes a path absolute. */
export interface SettingsContext {
  readonly resolve: (file: string) => string;
}

/** Options that differ between the two sets. */
const OPTIONS: Readonly<Record<SchemaSet, Options>> = Object.freeze({
  requests: {
    strictTypes: false,
    // A `required` name such as `constructor` must not be satisfied by a prototype.
    ownProperties: true,
  },
  settings: {
    validateSchema: false,
    allErrors: true,
    verbose: true,
    useDefaults: true,
    addUsedSchema: false,
    // Validators get a {@link SettingsContext} as `this`.
    passContext: true,
    logger: false,
  },
});

const require = createRequire(import.meta.url);

/** Loads Ajv, which takes 65 ms; most starts do not need it. */
function loadAjv(): typeof import('ajv/dist/2020.js') {
  return require('ajv/dist/2020.js') as typeof import('ajv/dist/2020.js');
}

/** Creates the strict Ajv of a set, with the shared formats. `options` are those of the build, which writes code. */
export function createAjv(
  set: SchemaSet,
  // The optimiser takes half of the compile time, more than it saves on one check of a file.
  options: Options = { code: { optimize: false } },
): Ajv2020 {
  const { Ajv2020 } = loadAjv();
  // `anyOf: [{ required: […] }]` is the schema for "one of these keys".
  const ajv = new Ajv2020({ strict: true, strictRequired: false, allowUnionTypes: true, ...OPTIONS[set], ...options });
  ajv.removeKeyword('format');
  ajv.addKeyword(formatKeyword(set));
  if (set === 'settings') ajv.addKeyword({ keyword: 'secret', schemaType: 'boolean' });
  return ajv;
}

/**
 * Replaces Ajv's `format`, which handles either texts or numbers; `money` and `size` need both. In the configuration it
 * also makes texts of `format: "path"` absolute. It generates code, because the build writes it to a file, which cannot
 * hold functions.
 */
function formatKeyword(set: SchemaSet): CodeKeywordDefinition {
  const { _, str } = loadAjv();
  return {
    keyword: 'format',
    schemaType: 'string',
    error: {
      message: ({ schemaCode }) => str`must match format "${schemaCode}"`,
      params: ({ schemaCode }) => _`{format: ${schemaCode}}`,
    },
    code(cxt) {
      const { gen, data, it } = cxt;
      const name = String(cxt.schema);
      const format = Object.hasOwn(FORMATS, name) ? FORMATS[name] : undefined;
      if (!format) throw new Error(`unknown format "${name}"; formats are ${Object.keys(FORMATS).join(', ')}`);
      const check = gen.scopeValue('formats', { key: name, ref: format.accepts, code: _`formats[${name}].accepts` });
      const isScalar = _`(typeof ${data} == "string" || typeof ${data} == "number")`;
      const valid = gen.let('valid', _`!${isScalar} || ${check}(${data})`);
      if (name === 'path' && set === 'settings')
        gen.if(_`${valid} && typeof ${data} == "string" && ${it.parentData}`, () => {
          gen.assign(data, _`this.resolve(${data})`);
          gen.assign(_`${it.parentData}[${it.parentDataProperty}]`, data);
        });
      cxt.pass(valid);
    },
  };
}

/**
 * Compiling the built-in plugins' schemas takes Ajv a third of a start, so `npm run build` compiles them ahead
 * (`cli/generate/generate.ts --dist`). Other schemas are compiled at run time, which is only slower.
 */

/**
 * Export of a module of compiled validators: a function of the formats that returns validators by schema fingerprint.
 */
export type CompiledModule = (formats: typeof FORMATS) => Readonly<Record<string, ValidateFunction>>;

/** Export name of a validator, from the text of its schema. */
export function fingerprint(text: string): string {
  return `schema_${createHash('sha256').update(text).digest('hex')}`;
}

/** Most validators that a process caches; a gateway has about a hundred. */
const MAX_REMEMBERED = 1000;

/**
 * Finds the validator for a schema's JSON text, which must include everything else that affects it. `compile` creates a
 * missing one.
 */
type FindValidator = (text: string, compile: () => ValidateFunction) => ValidateFunction;

/**
 * Creates the lookup of validators: those compiled by the build, and those that this process compiled for a former
 * configuration. Compiling all of them again would block a serving process for most of a second.
 */
export function createValidatorFinder(set: SchemaSet): FindValidator {
  const remembered = new LRUCache<string, ValidateFunction>({ max: MAX_REMEMBERED });
  let ahead: ReturnType<CompiledModule> | undefined;
  return (text, compile) => {
    ahead ??= loadModule(set)(FORMATS);
    const key = fingerprint(text);
    const known = ahead[key] ?? remembered.get(key);
    if (known) return known;
    const made = compile();
    remembered.set(key, made);
    return made;
  };
}

function loadModule(set: SchemaSet): CompiledModule {
  const file = fileURLToPath(new URL(`../compiled/${set}.cjs`, import.meta.url));
  return existsSync(file) ? (require(file) as CompiledModule) : () => ({});
}
