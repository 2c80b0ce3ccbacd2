import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { Ajv2020, CodeKeywordDefinition, Options, ValidateFunction } from 'ajv/dist/2020.js';
import { LRUCache } from 'lru-cache';
import { FORMATS } from '../contract/schema-formats.ts';

/** The schemas of requests, or those of the configuration: each set is compiled by an Ajv of its own. */
export type SchemaSet = 'requests' | 'settings';

/** What validators of the configuration are called on: makes a path absolute. */
export interface SettingsContext {
  readonly resolve: (file: string) => string;
}

/** In what the two sets differ. */
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
    // Its validators are called on a {@link SettingsContext}.
    passContext: true,
    logger: false,
  },
});

const require = createRequire(import.meta.url);

/** Loads Ajv, which takes 65 ms that most starts do not need. */
function loadAjv(): typeof import('ajv/dist/2020.js') {
  return require('ajv/dist/2020.js') as typeof import('ajv/dist/2020.js');
}

/** Makes the Ajv of a set: strict, with the one table of formats. `options` are those of the build, which writes code. */
export function createAjv(
  set: SchemaSet,
  // The optimiser takes half of the time of compiling, and saves less than that in one check of a file.
  options: Options = { code: { optimize: false } },
): Ajv2020 {
  const { Ajv2020 } = loadAjv();
  // `anyOf: [{ required: […] }]` is how a schema says "one of these".
  const ajv = new Ajv2020({ strict: true, strictRequired: false, allowUnionTypes: true, ...OPTIONS[set], ...options });
  ajv.removeKeyword('format');
  ajv.addKeyword(formatKeyword(set));
  if (set === 'settings') ajv.addKeyword({ keyword: 'secret', schemaType: 'boolean' });
  return ajv;
}

/**
 * Ajv's own `format` sees either texts or numbers; ours sees both, as `money` and `size` need. In the configuration it also
 * makes texts of `format: "path"` absolute. It gives code, as what the build writes to a file cannot hold functions.
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
 * Ajv takes a third of a start to compile the schemas of the built-in plugins, so `npm run build` compiles them ahead
 * (`cli/generate/generate.ts --dist`). A schema that is not among them is compiled by Ajv, which is only slower.
 */

/** What a module of validators exports: it makes them with the table of formats, each under the fingerprint of its schema. */
export type CompiledModule = (formats: typeof FORMATS) => Readonly<Record<string, ValidateFunction>>;

/** The name under which the validator of a schema with this text is exported. */
export function fingerprint(text: string): string {
  return `schema_${createHash('sha256').update(text).digest('hex')}`;
}

/** How many validators a process remembers; a gateway has about a hundred. */
const MAX_REMEMBERED = 1000;

/** Gives the validator of a schema by its JSON text, and of whatever else decides what it means; `compile` makes one that is new. */
type FindValidator = (text: string, compile: () => ValidateFunction) => ValidateFunction;

/**
 * Makes what finds validators: those that the build compiled, and those of schemas that this process has compiled before, for a
 * former configuration. Compiling all anew would keep a process that serves calls from doing so for most of a second.
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
