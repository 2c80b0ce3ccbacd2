import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { isObject, type JsonObject, nearest, OptionError, parseJson, readObject } from '../../../contract/index.ts';

/** Provider package of the AI SDK, imported and configured. */
export interface AiPackage {
  readonly name: string;
  /** True if it declares models of a kind. */
  has(kind: ModelKind): boolean;
  /** Returns the model of a kind; throws an error of the package, or an {@link UnknownKind}. */
  model(kind: ModelKind, id: string): AiModel;
}

/** Model of a package. The members are those of its kind. */
export interface AiModel extends JsonObject {
  readonly specificationVersion: SpecVersion;
}

export type SpecVersion = 'v2' | 'v3' | 'v4';
export type ModelKind = keyof typeof FACTORIES;

/** Specification versions that this plugin speaks. */
const VERSIONS: readonly unknown[] = Object.freeze(['v2', 'v3', 'v4']);

/** Members of a provider that create a model of a kind, the newest name first. */
const FACTORIES = Object.freeze({
  chat: ['languageModel'],
  embeddings: ['embeddingModel', 'textEmbeddingModel'],
  images: ['imageModel', 'image'],
  speech: ['speechModel', 'speech'],
  transcription: ['transcriptionModel', 'transcription'],
} as const);

/** The package has no models of a kind. */
export class UnknownKind extends Error {
  override readonly name = 'UnknownKind';
}

/** Model with a specification version that this plugin does not speak. */
export class UnknownVersion extends Error {
  override readonly name = 'UnknownVersion';
}

export interface PackageChoice {
  /** Name on npm, or a path. */
  readonly package: string;
  /** Name of the exported function that creates the provider. */
  readonly factory?: string | undefined;
  /** Argument of the function. */
  readonly settings: JsonObject;
  /** Folder from which the package is resolved. */
  readonly baseDir: string;
}

/** Time limit of the import. */
const IMPORT_MS = 20_000;

/**
 * Imports a package and creates its provider. Throws an {@link OptionError} if the package is missing, broken or of
 * another kind.
 */
export async function openPackage(choice: PackageChoice): Promise<AiPackage> {
  const { package: name, factory } = choice;
  const exported = await importPackage(choice);
  const create = findFactory(exported, name, factory);
  const provider = attempt(`the function of the package "${name}" failed`, () => create(choice.settings));
  if ((typeof provider !== 'object' || provider === null) && typeof provider !== 'function')
    throw new OptionError('/factory', `names no function of "${name}" that creates a provider`, namesOf(exported));
  const version = (provider as { readonly specificationVersion?: unknown }).specificationVersion;
  if (version !== undefined && !VERSIONS.includes(version))
    throw new OptionError('/package', `names the package "${name}", ${versionProblem(version)}`, OTHER_VERSION);
  const members = provider as Readonly<Record<string, unknown>>;
  const makerOf = (kind: ModelKind) =>
    FACTORIES[kind].map((member) => members[member]).find((member) => typeof member === 'function');
  return {
    name,
    has: (kind) => makerOf(kind) !== undefined,
    model(kind, id) {
      const make = makerOf(kind);
      if (!make) throw new UnknownKind(`The package "${name}" has no models for ${kind}. Use another model.`);
      const model: unknown = make.call(provider, id);
      const own = isObject(model) ? model : {};
      const { specificationVersion: given } = own;
      if (!VERSIONS.includes(given))
        throw new UnknownVersion(
          `The package "${name}" ${versionProblem(given).replace('which ', '')}. ${OTHER_VERSION}`,
        );
      return own as AiModel;
    },
  };
}

const OTHER_VERSION =
  'Install a version of the package with specification v2, v3 or v4, which is for AI SDK 5 and later.';

function versionProblem(version: unknown): string {
  const said = typeof version === 'string' ? version.slice(0, 20) : 'none';
  return `which has the specification version ${said}`;
}

async function importPackage({ package: name, baseDir }: PackageChoice): Promise<Readonly<Record<string, unknown>>> {
  const file = findPackage(name, baseDir);
  if (file === undefined) {
    const hint = isPath(name)
      ? 'Check the path. Relative paths start at the folder of the configuration.'
      : `Run in the folder of the configuration: npm install ${name}`;
    throw new OptionError('/package', `names "${name}", which is not installed`, hint);
  }
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it did not end within ${IMPORT_MS / 1000} s`)), IMPORT_MS);
  });
  try {
    const module = (await Promise.race([import(pathToFileURL(file).href), late])) as Readonly<Record<string, unknown>>;
    // A CommonJS module may have its exports in `default` alone.
    return { ...(isObject(module['default']) ? module['default'] : {}), ...module };
  } catch (error) {
    throw broken(`the import of the package "${name}" failed`, error);
  } finally {
    clearTimeout(timer);
  }
}

function isPath(name: string): boolean {
  return /^\.{0,2}\//.test(name) || path.isAbsolute(name);
}

function findPackage(name: string, baseDir: string): string | undefined {
  const require = createRequire(path.join(baseDir, 'tollgate.js'));
  try {
    return require.resolve(isPath(name) ? path.resolve(baseDir, name) : name);
  } catch (error) {
    return readObject(error)['code'] === 'ERR_PACKAGE_PATH_NOT_EXPORTED' ? findImport(name, require) : undefined;
  }
}

/** Finds the module of a package that may only be imported. */
function findImport(name: string, require: NodeJS.Require): string | undefined {
  for (const folder of require.resolve.paths(name) ?? []) {
    const file = path.join(folder, name, 'package.json');
    if (!existsSync(file)) continue;
    let target: unknown = readObject(parseJson(readFileSync(file, 'utf8')))['exports'];
    if (isObject(target) && '.' in target) target = target['.'];
    while (isObject(target)) target = target['node'] ?? target['import'] ?? target['default'];
    return typeof target === 'string' ? path.join(folder, name, target) : undefined;
  }
  return undefined;
}

type Factory = (settings: JsonObject) => unknown;

function findFactory(exported: Readonly<Record<string, unknown>>, name: string, wanted: string | undefined): Factory {
  const names = factoriesOf(exported);
  if (wanted !== undefined) {
    const found = Object.hasOwn(exported, wanted) ? exported[wanted] : undefined;
    if (typeof found === 'function') return found as Factory;
    const [near] = nearest(wanted, names);
    const hint = near === undefined ? namesOf(exported) : `Did you mean "${near}"?`;
    throw new OptionError('/factory', `is "${wanted}", which "${name}" does not export`, hint);
  }
  // Several names of one function are one.
  const [only, ...others] = names.filter(
    (each, at) => names.findIndex((one) => exported[one] === exported[each]) === at,
  );
  if (only === undefined)
    throw new OptionError(
      '/package',
      `names "${name}", which exports no function \`create…\``,
      'Set `factory`, or use a provider package of the AI SDK.',
    );
  if (others.length > 0)
    throw new OptionError('/factory', `is required, since "${name}" has several functions`, namesOf(exported));
  return exported[only] as Factory;
}

function factoriesOf(exported: Readonly<Record<string, unknown>>): readonly string[] {
  return Object.keys(exported).filter((key) => /^create[A-Z]/.test(key) && typeof exported[key] === 'function');
}

function namesOf(exported: Readonly<Record<string, unknown>>): string {
  const names = factoriesOf(exported).slice(0, 10);
  return names.length === 0 ? 'It has no function `create…`.' : `Set one of: ${names.join(', ')}.`;
}

function attempt<T>(what: string, run: () => T): T {
  try {
    return run();
  } catch (error) {
    throw broken(what, error);
  }
}

/** Maximum length of a package's message. */
const MAX_REASON = 200;

function broken(what: string, error: unknown): OptionError {
  const reason = error instanceof Error ? error.message : String(error);
  const [line = ''] = reason.split('\n');
  const problem = `cannot be used: ${what}: ${line.slice(0, MAX_REASON)}`;
  return Object.assign(
    new OptionError('/package', problem, 'Check `options`, or install another version of the package.'),
    {
      cause: error,
    },
  );
}
