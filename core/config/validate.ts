import path from 'node:path';
import type { Ajv2020, CodeKeywordDefinition, CodeOptions, ErrorObject, ValidateFunction } from 'ajv/dist/2020.js';
import type { Schema } from '../contract/json.ts';
import { FORMATS } from '../contract/units.ts';
import { createValidatorFinder, type Formats, loadAjv } from './compiled-ahead.ts';
import { descriptionOf, explainError } from './explain.ts';
import { didYouMean } from './nearest.ts';
import { childPointer, formatPath, type ProblemAt } from './problems.ts';
import { childSchemas, isSecret, propertyNames, schemasAt } from './schema-at.ts';

/** Formats of JSON Schema that third-party schemas may name; they annotate and are not checked. */
const ANNOTATIONS: readonly string[] = 'uri uri-reference email hostname date-time date regex ipv4 ipv6 uuid'.split(
  ' ',
);

/** The formats that are checked, each as one function. */
export const SETTINGS_FORMATS: Formats = Object.freeze(
  Object.fromEntries(Object.entries(FORMATS).map(([name, { accepts }]) => [name, accepts])),
);

const findValidator = createValidatorFinder('settings', SETTINGS_FORMATS);

/** What validators of the configuration are called on: makes a path absolute. */
interface Context {
  readonly resolve: (file: string) => string;
}

/**
 * Ajv as every configuration schema is compiled: strict, all errors, defaults applied, our keyword and formats known.
 * Its validators are called on a {@link Context}. Compiling finds what is wrong with a schema. `code` is how the build has
 * it write code.
 */
export function createSettingsAjv(
  // The optimiser takes longer than what it spares one check of a file.
  code: CodeOptions = { optimize: false },
): Ajv2020 {
  const { Ajv2020 } = loadAjv();
  const ajv = new Ajv2020({
    strict: true,
    code,
    // `anyOf: [{ required: […] }]` is how a schema says "one of these".
    strictRequired: false,
    validateSchema: false,
    allErrors: true,
    verbose: true,
    useDefaults: true,
    allowUnionTypes: true,
    addUsedSchema: false,
    passContext: true,
    logger: false,
  });
  ajv.addKeyword({ keyword: 'secret', schemaType: 'boolean' });
  ajv.removeKeyword('format');
  ajv.addKeyword(formatKeyword());
  return ajv;
}

/**
 * Ajv's own `format` sees either texts or numbers; ours sees both, as `money` and `size` need. It also makes texts of
 * `format: "path"` absolute. It gives code, as what the build writes to a file cannot hold functions.
 */
function formatKeyword(): CodeKeywordDefinition {
  const { _ } = loadAjv();
  return {
    keyword: 'format',
    schemaType: 'string',
    code(cxt) {
      const { gen, data, it } = cxt;
      const name = String(cxt.schema);
      const accepts = SETTINGS_FORMATS[name];
      if (!accepts && !ANNOTATIONS.includes(name)) throw new Error(`unknown format "${name}"`);
      if (!accepts) return;
      const check = gen.scopeValue('formats', { key: name, ref: accepts, code: _`formats[${name}]` });
      const isText = _`(typeof ${data} == "string" || typeof ${data} == "number")`;
      const valid = gen.let('valid', _`!${isText} || ${check}(${data})`);
      if (name === 'path')
        gen.if(_`${valid} && typeof ${data} == "string" && ${it.parentData}`, () => {
          gen.assign(data, _`this.resolve(${data})`);
          gen.assign(_`${it.parentData}[${it.parentDataProperty}]`, data);
        });
      cxt.pass(valid);
    },
  };
}

/** The one Ajv of this process, made for the first schema that nobody knows. */
let settingsAjv: Ajv2020 | undefined;

/** Gives the validator of a schema of the configuration; throws for a schema that is wrong. */
export function compileSettings(schema: Schema): ValidateFunction {
  return findValidator(JSON.stringify(schema), () => {
    settingsAjv ??= createSettingsAjv();
    return settingsAjv.compile(schema);
  });
}

export interface SchemaProblem extends ProblemAt {
  /** The pointer of what is missing, when that is the problem. */
  readonly missing?: string;
}

export interface ValidateOptions {
  /** Where the value stands. */
  readonly pointer: string;
  /** What relative paths are relative to. Absolute. */
  readonly baseDir: string;
  /** Values that a problem must not show. */
  readonly isHidden: (pointer: string) => boolean;
}

/**
 * Checks a value against a schema and fills in its defaults, in place. One problem for each mistake, whatever number of
 * errors the schema makes of it.
 */
export function validateValue(
  value: unknown,
  schema: Schema,
  { pointer, baseDir, isHidden }: ValidateOptions,
): readonly SchemaProblem[] {
  let errors: readonly ErrorObject[];
  try {
    const validate = compileSettings(schema);
    const context: Context = { resolve: (file) => path.resolve(baseDir, file) };
    errors = validate.call(context, value) ? [] : (validate.errors ?? []);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return [{ pointer, atKey: true, message: `has a plugin whose configSchema cannot be used: ${reason}` }];
  }
  const problems = chooseErrors(errors).map((error) => toProblem(error, schema, pointer, isHidden));
  const byPlace = new Map(
    problems
      .toReversed()
      .map((problem) => [`${problem.atKey === true} ${problem.missing ?? problem.pointer}`, problem]),
  );
  return [...byPlace.values()].reverse();
}

/** Leaves out what `anyOf` and `oneOf` say of branches that the value does not mean. */
function chooseErrors(errors: readonly ErrorObject[]): readonly ErrorObject[] {
  // What `propertyNames` says of a name is told once, at the name.
  const dropped = new Set(errors.filter(({ keyword, propertyName }) => keyword === 'if' || propertyName !== undefined));
  for (const combined of errors) {
    if ((combined.keyword !== 'anyOf' && combined.keyword !== 'oneOf') || dropped.has(combined)) continue;
    const branchOf = branchFinder(combined);
    const inside = errors.filter((error) => branchOf(error) !== undefined);
    const isWrongKind = ({ keyword, instancePath }: ErrorObject): boolean =>
      instancePath === combined.instancePath && /^(type|const|enum)$/.test(keyword);
    const others = new Set(inside.filter(isWrongKind).map(branchOf));
    const fitting = new Set(inside.map(branchOf).filter((branch) => branch !== 'unknown' && !others.has(branch)));
    // The branch that the value means is the only one whose type it has.
    const [meant] = fitting.size === 1 ? fitting : [];
    for (const error of inside) if (branchOf(error) !== meant) dropped.add(error);
    if (meant !== undefined) dropped.add(combined);
  }
  return errors.filter((error) => !dropped.has(error));
}

/** Tells in which branch of a combinator an error stands; undefined when it is another's error. */
function branchFinder(combined: ErrorObject): (error: ErrorObject) => string | undefined {
  const place = `${combined.schemaPath}/`;
  const hasRef = JSON.stringify(combined.schema).includes('"$ref"');
  return ({ schemaPath, instancePath }) => {
    if (!`${instancePath}/`.startsWith(`${combined.instancePath}/`)) return undefined;
    if (schemaPath.startsWith(place)) return schemaPath.slice(place.length).split('/')[0];
    // Behind a `$ref` the schema path begins anew, so that nobody can say which branch it was.
    return hasRef && schemaPath.startsWith('#/$defs/') ? 'unknown' : undefined;
  };
}

function toProblem(
  error: ErrorObject,
  root: Schema,
  base: string,
  isHidden: (pointer: string) => boolean,
): SchemaProblem {
  const params: Readonly<Record<string, unknown>> = error.params;
  const pointer = `${base}${error.instancePath}`;
  const nodes = schemasAt(root, error.instancePath);
  const misnamed = params['propertyName'];
  if (typeof misnamed === 'string')
    return {
      pointer: childPointer(pointer, misnamed),
      atKey: true,
      message: 'is no name that can stand here',
      hint: descriptionOf(error.schema),
    };
  const extra = params['additionalProperty'] ?? params['unevaluatedProperty'];
  if (typeof extra === 'string') {
    const known = propertyNames(nodes);
    const hint = didYouMean(extra, known) ?? listKeys(known, pointer);
    return { pointer: childPointer(pointer, extra), atKey: true, message: 'unknown key', hint };
  }
  const missing = params['missingProperty'];
  if (typeof missing === 'string') {
    const hint = childSchemas(root, nodes, missing)
      .map(descriptionOf)
      .find((text) => text !== undefined);
    return { pointer, atKey: true, message: `needs "${missing}"`, hint, missing: childPointer(pointer, missing) };
  }
  return { pointer, ...explainError(error, isSecret(nodes) || isHidden(pointer)) };
}

function listKeys(known: readonly string[], pointer: string): string | undefined {
  if (known.length === 0 || known.length > 24) return undefined;
  return `Keys ${pointer === '' ? 'here' : `of ${formatPath(pointer)}`}: ${known.filter((key) => !key.startsWith('$')).join(', ')}.`;
}
