import { existsSync, readdirSync, readFileSync } from 'node:fs';
import * as nodeModule from 'node:module';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { isObject } from '../contract/json.ts';
import { didYouMean } from '../contract/nearest.ts';
import type { Plugin, PluginKind } from '../contract/plugin.ts';
import { LOAD_TIMEOUT_MS, within } from './deadline.ts';
import { CODE_ROOT, IS_SOURCE, PACKAGE_ROOT, VERSION } from './package-root.ts';
import { assertPlugin, PluginImportError } from './plugin-definition.ts';

export interface ImportOptions {
  readonly kind: PluginKind;
  readonly builtins: readonly Builtin[];
  /** Base of package lookups and relative paths: the configuration file's folder. Absolute. */
  readonly baseDir: string;
  /** Plugins passed by an embedding program, which are not imported. */
  readonly given?: readonly Plugin[];
  readonly importFile?: ImportFile;
}

/** Imports the module of a third-party file; undefined leaves it to the loader. */
export type ImportFile = (file: string) => Promise<Readonly<Record<string, unknown>> | undefined>;

/** Prefix of unscoped plugin packages on npm. */
const PACKAGE_PREFIX = 'tollgate-plugin-';

/**
 * Imports the plugin named `spec`: the built-in of this name and kind, or the npm package `tollgate-plugin-…`. A spec
 * with `.`, `/` or `@` is used as written (package, path or URL). Packages and paths are resolved from `baseDir`.
 * Throws a {@link PluginImportError} for a missing or broken module, for a wrong kind or API version, and for a package
 * that requires other versions. No other plain word becomes a package name.
 */
export async function importPlugin(spec: string, options: ImportOptions): Promise<Plugin> {
  const given = options.given?.find(({ kind, name }) => kind === options.kind && name === spec);
  if (given) return given;
  const url = await locatePlugin(spec, options);
  const isBuiltin = options.builtins.some((builtin) => builtin.url === url);
  if (!isBuiltin) assertFits(findManifest(url, options.baseDir), spec);
  const plugin = await load(url, spec, isBuiltin, options.importFile);
  assertPlugin(plugin, spec, options.kind);
  return plugin;
}

/** Imports the plugin of an installed package in this folder, of any kind; throws like {@link importPlugin}. */
export async function importPackage(name: string, baseDir: string): Promise<Plugin> {
  const url = await resolvePackage(name, { kind: 'policy', builtins: [], baseDir });
  const plugin = await load(url, name, false);
  assertPlugin(plugin, name, (plugin as Partial<Plugin> | undefined)?.kind ?? 'policy');
  return plugin;
}

/** Resolves the URL of a plugin's module; throws a {@link PluginImportError} if it does not exist. */
export async function locatePlugin(spec: string, options: ImportOptions): Promise<string> {
  const builtin = options.builtins.find(({ kind, name }) => kind === options.kind && name === spec);
  return builtin?.url ?? (isPath(spec) ? resolvePath(spec, options.baseDir) : await resolvePackage(spec, options));
}

function isPath(spec: string): boolean {
  return /^\.{0,2}\//.test(spec) || isUrl(spec) || path.isAbsolute(spec);
}

function isUrl(spec: string): boolean {
  return /^[a-z][a-z0-9+.-]+:/i.test(spec);
}

function resolvePath(spec: string, baseDir: string): string {
  if (isUrl(spec)) return spec;
  const file = path.resolve(baseDir, spec);
  if (!existsSync(file)) {
    const hint = 'Check the path. Relative paths start at the configuration file.';
    throw new PluginImportError(`the plugin file ${spec} does not exist`, hint);
  }
  return pathToFileURL(file).href;
}

async function resolvePackage(spec: string, { kind, builtins, baseDir }: ImportOptions): Promise<string> {
  const sameKind = builtins.filter((builtin) => builtin.kind === kind).map(({ name }) => name);
  if (!/[./@]/.test(spec) && !spec.startsWith(PACKAGE_PREFIX)) {
    // Report a near miss as a typing error: the message must not suggest installing an unknown package of that name.
    const others = `Built-in plugins: ${sameKind.join(', ') || 'none'}. For others, set "plugin:" to a package ${PACKAGE_PREFIX}… (with its scope) or a path.`;
    throw new PluginImportError(
      `the built-in ${kind} plugin "${spec}" does not exist`,
      didYouMean(spec, sameKind) ?? others,
    );
  }
  const { createJiti } = await import('jiti');
  const parentURL = pathToFileURL(path.join(baseDir, 'tollgate.config.js')).href;
  const url = createJiti(parentURL).esmResolve(spec, { parentURL, try: true });
  if (url !== undefined) return url;
  const name = /^(@[^/]+\/)?[^/]+/.exec(spec)?.[0] ?? spec;
  for (let folder = baseDir; ; folder = path.dirname(folder)) {
    if (existsSync(path.join(folder, 'node_modules', name, 'package.json')))
      throw new PluginImportError(
        `the package "${name}" is installed, but the file in "exports" of its package.json is missing`,
        'Build the package, or correct its "exports".',
      );
    if (path.dirname(folder) === folder) break;
  }
  throw new PluginImportError(`the package "${name}" is not installed`, `Run: npm install ${name}`);
}

/**
 * Reads the `package.json` of a plugin module's package. Empty if the nearest one belongs to the operator, in the
 * configuration's folder.
 */
export function findManifest(url: string, baseDir: string): Readonly<Record<string, unknown>> {
  if (!url.startsWith('file:')) return {};
  for (let folder = path.dirname(fileURLToPath(url)); folder !== baseDir; folder = path.dirname(folder)) {
    if (path.dirname(folder) === folder) return {};
    const file = path.join(folder, 'package.json');
    if (!existsSync(file)) continue;
    try {
      const manifest: unknown = JSON.parse(readFileSync(file, 'utf8'));
      return isObject(manifest) ? manifest : {};
    } catch {
      return {};
    }
  }
  return {};
}

/** Refuses a package that requires another version of Tollgate or Node. */
function assertFits(manifest: Readonly<Record<string, unknown>>, spec: string): void {
  const wants = (field: string, name: string): unknown =>
    isObject(manifest[field]) ? manifest[field][name] : undefined;
  const needs: readonly (readonly [name: string, range: unknown, version: string, remedy: string])[] = [
    ['Tollgate', wants('peerDependencies', 'tollgate'), VERSION, 'or the Tollgate version that it requires'],
    ['Tollgate', wants('engines', 'tollgate'), VERSION, 'or the Tollgate version that it requires'],
    [
      'Node.js',
      wants('engines', 'node'),
      process.versions.node,
      'or run Tollgate on the Node.js version that it requires',
    ],
  ];
  for (const [name, range, version, remedy] of needs) {
    // Ignore values that are not version ranges, such as a tag or an address.
    if (typeof range !== 'string' || semver().validRange(range) === null) continue;
    if (semver().satisfies(version, range, { includePrerelease: true })) continue;
    throw new PluginImportError(
      `the plugin "${spec}" requires ${name} ${range.slice(0, 100)}, but this is ${version}`,
      `Install a plugin version for ${name} ${version}, ${remedy}.`,
    );
  }
}

/** Loaded only if a package declares requirements. */
function semver(): Semver {
  const require = createRequire(import.meta.url);
  return require('semver') as Semver;
}

interface Semver {
  satisfies(version: string, range: string, options: { readonly includePrerelease: boolean }): boolean;
  /** Null for an invalid range. */
  validRange(range: string): string | null;
}

async function load(url: string, spec: string, isBuiltin: boolean, importFile?: ImportFile): Promise<unknown> {
  try {
    const module = isBuiltin
      ? await importModule(url, isBuiltin)
      : await within(importOther(url, importFile), LOAD_TIMEOUT_MS, tooSlow);
    const exported = module['default'];
    return isObjectOrArray(exported) && isObjectOrArray(exported['default']) ? exported['default'] : exported;
  } catch (error) {
    const reason = error instanceof Error ? error.message.split('\n')[0]?.trim() : String(error);
    const at = writePlace((await placeOfSyntaxError(error, url)) ?? placeOfError(error));
    throw new PluginImportError(`the plugin "${spec}" cannot be loaded: ${reason}${at}`, undefined, error);
  }
}

/** Imports a third-party module. */
async function importOther(url: string, importFile?: ImportFile): Promise<Readonly<Record<string, unknown>>> {
  const given = url.startsWith('file:') ? await importFile?.(fileURLToPath(url)) : undefined;
  return given ?? (await importModule(url, false));
}

function tooSlow(): Error {
  return new Error(
    `its import did not finish within ${LOAD_TIMEOUT_MS / 1000} s; a top-level "await" of it or of a package that it imports does not end`,
  );
}

/** Finds the position of a syntax error. Node prints it on the terminal alone, and the stack holds the importer. */
async function placeOfSyntaxError(error: unknown, url: string): Promise<CodePlace | undefined> {
  if (!(error instanceof SyntaxError) || !url.startsWith('file:')) return undefined;
  const filename = fileURLToPath(url);
  const { createJiti } = await import('jiti');
  const parsed = createJiti(import.meta.url).transform({ filename, source: readFileSync(filename, 'utf8') });
  const [, line, column] = /__JITI_ERROR__ = .*"line":(\d+),"column":(\d+)/.exec(parsed) ?? [];
  return line === undefined ? undefined : { file: filename, line: Number(line), column: Number(column) };
}

/** Position in the code of a plugin. */
export interface CodePlace {
  /** Absolute. */
  readonly file: string;
  readonly line: number;
  readonly column?: number;
}

/** Formats a position as the end of a message: ` (guard.mjs:3:9)`; empty for none. */
export function writePlace(place: CodePlace | undefined): string {
  if (!place) return '';
  const { file, line, column } = place;
  return ` (${path.basename(file)}:${line}${column === undefined ? '' : `:${column}`})`;
}

/** File with a position, as parsers and stack traces write it. */
const PLACE = /(?<![\w.-])(?:file:\/\/)?((?:[A-Za-z]:)?[\\/][^\s():]+):(\d+)(?::(\d+))?/g;
const MAX_CAUSES = 5;

/**
 * Finds the origin of an error in a plugin's code: the parser's position, or the first stack frame outside of this
 * package and of libraries.
 */
export function placeOfError(error: unknown): CodePlace | undefined {
  let found: CodePlace | undefined;
  let at = error;
  for (let depth = 0; at instanceof Error && depth < MAX_CAUSES; depth += 1) {
    for (const [, file = '', line, column] of `${at.message}\n${at.stack ?? ''}`.matchAll(PLACE)) {
      if (/[\\/]node_modules[\\/]/.test(file) || isOwnCode(file)) continue;
      found = { file: decodeURI(file), line: Number(line), ...(column !== undefined && { column: Number(column) }) };
      break;
    }
    at = at.cause;
  }
  return found;
}

/** Folders of the running code; a build's folder contains nothing else. */
const OWN_ROOMS = (
  IS_SOURCE ? ['contract', 'core', 'config', 'cli', 'openapi', 'routing', 'egress', 'models', 'plugins', 'dist'] : ['.']
).map((room) => path.join(CODE_ROOT, room) + path.sep);

/** True for a file of this package. */
export function isOwnCode(file: string): boolean {
  return OWN_ROOMS.some((room) => file.startsWith(room));
}

/** Modules of built-ins by URL. Node 20 resolves each import in another thread, also that of a loaded module. */
const builtinModules = new Map<string, Readonly<Record<string, unknown>>>();

/** Imports built-ins natively, and third-party TypeScript through jiti. */
async function importModule(url: string, isBuiltin: boolean): Promise<Readonly<Record<string, unknown>>> {
  if (isBuiltin) {
    const module = builtinModules.get(url) ?? ((await import(url)) as Readonly<Record<string, unknown>>);
    builtinModules.set(url, module);
    return module;
  }
  await resolveOwnPackage();
  if (!/^file:.*\.[mc]?ts$/.test(url)) return await import(url);
  const { createJiti } = await import('jiti');
  return await createJiti(import.meta.url, { fsCache: false, ...(await ownModules()) }).import(fileURLToPath(url));
}

function isObjectOrArray(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

/**
 * Exports of this package with their files, such as `tollgate/codec`; source files if this process runs the sources.
 */
function ownEntries(): Readonly<Record<string, string>> {
  const { exports } = JSON.parse(readFileSync(path.join(PACKAGE_ROOT, 'package.json'), 'utf8')) as {
    readonly exports: Readonly<Record<string, string | { readonly default: string }>>;
  };
  return Object.fromEntries(
    Object.entries(exports).flatMap(([name, target]) => {
      if (typeof target === 'string') return [];
      const file = target.default.replace('./dist/', '');
      return [[`tollgate${name.slice(1)}`, path.join(CODE_ROOT, IS_SOURCE ? file.replace(/\.js$/, '.ts') : file)]];
    }),
  );
}

/** Imported by plugin tests only; not loaded for others. */
const KIT = 'tollgate/conformance';

/** Passes this package to jiti as the modules that already run, and not as second copies. */
export async function ownModules(): Promise<{
  readonly virtualModules: Record<string, unknown>;
  readonly alias: Record<string, string>;
}> {
  const { [KIT]: kit, ...entries } = ownEntries();
  const modules = Object.entries(entries).map(
    async ([name, file]): Promise<readonly [string, unknown]> => [name, await import(pathToFileURL(file).href)],
  );
  return {
    virtualModules: Object.fromEntries(await Promise.all(modules)),
    alias: kit === undefined ? {} : { [KIT]: kit },
  };
}

type Resolve = (specifier: string, context: unknown) => { url: string; format?: string };

/** Available since Node 22.15; the types are those of Node 20. */
interface HookingModule {
  registerHooks?(hooks: { resolve: (specifier: string, context: unknown, next: Resolve) => unknown }): unknown;
}

let resolved: Promise<void> | undefined;

/**
 * Lets plugin files import `tollgate` from any folder: a global install or a container has no `node_modules` above
 * them. A copy installed there takes precedence.
 */
export function resolveOwnPackage(): Promise<void> {
  resolved ??= registerResolver();
  return resolved;
}

async function registerResolver(): Promise<void> {
  const entries = Object.fromEntries(
    Object.entries(ownEntries()).map(([name, file]) => [name, pathToFileURL(file).href]),
  );
  const { registerHooks } = nodeModule as HookingModule;
  if (!registerHooks) {
    // In Node 20 the hook runs in a separate thread and gets the table as data.
    nodeModule.register(`data:text/javascript,${encodeURIComponent(RESOLVER)}`, { data: entries });
    return;
  }
  registerHooks({
    resolve(specifier, context, next) {
      const own = entries[specifier];
      if (own === undefined) return next(specifier, context);
      try {
        return next(specifier, context);
      } catch {
        return next(own, context);
      }
    },
  });
}

const RESOLVER = `
let entries = {};
export function initialize(data) { entries = data; }
export async function resolve(specifier, context, next) {
  const own = entries[specifier];
  if (own === undefined) return next(specifier, context);
  try { return await next(specifier, context); } catch { return next(own, context); }
}`;

/** Plugin that comes with the package. */
export interface Builtin {
  readonly kind: PluginKind;
  /** Name of its file or folder, and so its name in a configuration. */
  readonly name: string;
  /** `file:` URL of its module. */
  readonly url: string;
  /** True if it is off by default in a group whose built-in plugins are on. */
  readonly isOptIn?: boolean;
  /** Top-level key of the configuration that turns it on; its module is imported only then. */
  readonly bySection?: string;
}

const FOLDERS: Readonly<Record<PluginKind, string>> = Object.freeze({
  provider: 'providers',
  auth: 'auth',
  agent: 'agents',
  tts: 'tts',
  operation: 'operations',
  dialect: 'dialects',
  policy: 'policies',
  store: 'stores',
  secrets: 'secrets',
});

/** Folder of policies that need options to have an effect. */
const GUARDRAILS = 'guardrails';

/** Plugins with a folder of their own in `plugins/`. */
const ROOMS: readonly Omit<Builtin, 'url'>[] = Object.freeze([
  { kind: 'policy', name: 'console' },
  { kind: 'operation', name: 'mcp', bySection: 'mcp' },
]);

/** Folder of code shared by plugins of one kind; never a plugin itself. */
const SHARED = 'kit';

/** Built-in plugins of this package, which do not change while it runs. */
let ownBuiltins: readonly Builtin[] | undefined;

/**
 * Lists all built-in plugins in the folders of `plugins/`. They are sorted by kind and name, policies in folders of
 * their own last.
 */
export function listBuiltins(root?: URL): readonly Builtin[] {
  if (root) return findBuiltins(root);
  ownBuiltins ??= findBuiltins(new URL('../plugins/', import.meta.url));
  return ownBuiltins;
}

function findBuiltins(root: URL): readonly Builtin[] {
  const rooms = ROOMS.flatMap(({ name, ...room }): readonly Builtin[] => {
    const file = indexOf(new URL(`${name}/`, root));
    return file ? [{ ...room, name, url: file.href }] : [];
  });
  const found = Object.entries(FOLDERS).flatMap(([kind, folder]) =>
    listFolder(new URL(`${folder}/`, root), kind as PluginKind),
  );
  const guardrails = listFolder(new URL(`${GUARDRAILS}/`, root), 'policy');
  return [...found, ...guardrails.map((builtin) => ({ ...builtin, isOptIn: true })), ...rooms];
}

function listFolder(base: URL, kind: PluginKind): readonly Builtin[] {
  if (!existsSync(base)) return [];
  return readdirSync(base, { withFileTypes: true })
    .filter(({ name }) => name !== SHARED)
    .flatMap((entry): readonly Builtin[] => {
      const file = entry.isDirectory() ? indexOf(new URL(`${entry.name}/`, base)) : new URL(entry.name, base);
      const name = entry.isDirectory() ? entry.name : moduleName(entry.name);
      return file && name ? [{ kind, name, url: file.href }] : [];
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

function indexOf(folder: URL): URL | undefined {
  return ['index.ts', 'index.js'].map((name) => new URL(name, folder)).find((file) => existsSync(fileURLToPath(file)));
}

/** `openai` for `openai.ts` or `openai.js`; undefined for declarations, maps and tests. */
function moduleName(file: string): string | undefined {
  return /^([\w-]+)\.[jt]s$/.exec(file)?.[1];
}
