import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { hostname } from 'node:os';
import path from 'node:path';
import { cosmiconfig, type Loader, type PublicExplorer } from 'cosmiconfig';
import type { Got } from 'got';
import { readBudget } from '../contract/budget-rules.ts';
import { planOf } from '../contract/check-budgets.ts';
import { isObject, type Json, type JsonObject, parseJson as readJson, type Schema } from '../contract/json.ts';
import { type ProblemAt, pointerKeys } from '../contract/pointers.ts';
import { parseDuration, parseSize } from '../contract/units.ts';
import type { CoreValues, GatewayConfig, InstanceRef, PluginInstance, ServerConfig } from './core-schema.ts';
import { type EgressRules, readEgress, readEnvironment } from './egress.ts';
import { createLookup, type Lookup, type SecretText, type SecretTexts } from './interpolate.ts';
import { readModelRoute, targetNames } from './model-routes.ts';
import { PACKAGE_ROOT } from './package-root.ts';
import {
  ConfigError,
  displayPath,
  type KeyPosition,
  linesOf,
  type Positions,
  type Source,
  SourceError,
} from './problems.ts';
import { mapLeaves } from './schema-at.ts';
import { type Environment, envFiles, loadEnv, parseFile, parseYaml, toPlain } from './sources.ts';
import { readTls } from './tls.ts';

const DEFAULT_FILE = 'config/default.yaml';
const FORMATS: readonly string[] = ['.yaml', '.yml', '.json', '.ts', '.mts', '.js', '.mjs', '.cjs'];

/** Search places of a configuration, relative to the working directory. Parent folders are not searched. */
const SEARCH_PLACES: readonly string[] = Object.freeze([
  ...FORMATS.map((format) => `tollgate.config${format}`),
  ...FORMATS.filter((format) => format !== '.mts' && format !== '.cjs').map((format) => `.config/tollgate${format}`),
  'package.json',
]);

/**
 * Names that look like a configuration's, whether searched or not. `tollgate.ts` is excluded: it may be any program.
 */
const LIKELY =
  /^(\.config\/tollgate(\.config)?\.\w+|tollgate\.config\.\w+|tollgate\.(ya?ml|json[5c]?|toml)|\.tollgaterc(\.\w+)?)$/i;

type PlaceEntry = readonly [pointer: string, place: KeyPosition];

export interface ConfigInput {
  /** Folder to search, and base of a relative `configPath`. Absolute. */
  readonly cwd: string;
  readonly env: Environment;
  /** `--config`; takes precedence over `TOLLGATE_CONFIG` and the search. */
  readonly configPath?: string | undefined;
  /** Opens connections to secret managers; without it they are unavailable. */
  readonly connect?: Connect | undefined;
  /** Secrets that managers returned earlier. */
  readonly secrets?: Iterable<readonly [string, SecretText]> | undefined;
  /** Content in place of the file's own, such as a draft. Imported files are read as usual. */
  readonly text?: string | undefined;
}

/** Opens a control-plane client for these hosts alone. */
export type Connect = (hosts: ReadonlySet<string>, rules: EgressRules | undefined) => Promise<Got>;

/** Configuration as written in its file: parsed, neither interpolated nor checked. */
export interface RawConfig {
  /** Display name of the file: relative to the working directory if it is inside. */
  readonly file: string;
  /** True if no file was found and the built-in configuration is used. */
  readonly isDefault: boolean;
  /** Base of relative paths: the file's folder, or the working directory for the built-in configuration. Absolute. */
  readonly baseDir: string;
  readonly value: { readonly [key: string]: Json };
  readonly positions: Positions;
  /** Environment including `.env` and `.env.local`. */
  readonly env: Environment;
  /** Parts of the file that are not data and were omitted. */
  readonly problems: readonly ProblemAt[];
  /** Absolute paths of its files: the file, its imports, and existing or possible `.env` files. */
  readonly files: readonly string[];
  /** File contents for `${file:…}` by absolute path, from the first read. */
  readonly texts: Map<string, string>;
  /** Values of secret managers, from the first read. */
  readonly secrets: SecretTexts;
}

/** Finds and parses the configuration; throws a {@link ConfigError} for a missing file or bad syntax. */
export async function readRawConfig({
  cwd,
  env: given,
  configPath,
  secrets = [],
  text,
}: ConfigInput): Promise<RawConfig> {
  const here = await loadEnv(given, [cwd], cwd);
  const found = await findConfig(cwd, here, configPath);
  const isDefault = found === undefined;
  const file = found ?? path.join(PACKAGE_ROOT, DEFAULT_FILE);
  const baseDir = isDefault ? cwd : path.dirname(file);
  const env = baseDir === cwd ? here : await loadEnv(given, [baseDir, cwd], cwd);
  const name = isDefault ? DEFAULT_FILE : displayPath(file, cwd);
  const { value: parsed, positions, imported } = await loadFile(file, name, cwd, env, text);
  const { value, problems } = toPlain(parsed);
  if (!isMap(value)) {
    const message = value === null ? 'is empty' : 'is not a map of sections such as "providers"';
    throw problem(name, message, 'Add at least "providers:", or remove the file to use the defaults.');
  }
  const merged = isDefault ? value : inheritDefaults(value);
  const files = [file, ...imported, ...envFiles([baseDir, cwd])];
  return Object.freeze({
    file: name,
    isDefault,
    baseDir,
    value: merged,
    positions,
    env,
    problems,
    files,
    texts: new Map<string, string>(),
    secrets: new Map(secrets),
  });
}

/** Identifies the file of a configuration among gateways on several machines; undefined without a file. */
export function fileIdOf({ isDefault, files: [file] }: Pick<RawConfig, 'isDefault' | 'files'>): string | undefined {
  if (isDefault || file === undefined) return undefined;
  const own = existsSync(file) ? realpathSync(file) : file;
  return createHash('sha256').update(`${hostname()}\0${own}`).digest('base64url').slice(0, 22);
}

/**
 * Adds the sections for store and authentication from `config/default.yaml` if a file has none. They name the store and
 * the enabled schemes; options keep the plugins' defaults. An empty section counts as absent.
 */
export function inheritDefaults(value: RawConfig['value']): RawConfig['value'] {
  const own = Object.fromEntries(Object.entries(value).filter(([, section]) => section !== null));
  if ('store' in own && 'auth' in own) return own;
  const { value: defaults } = toPlain(parseYaml(readFileSync(path.join(PACKAGE_ROOT, DEFAULT_FILE), 'utf8')).value);
  const { store = null, auth = null } = isMap(defaults) ? defaults : {};
  const schemes = Object.fromEntries(Object.keys(auth ?? {}).map((scheme) => [scheme, {}]));
  return { ...(!('store' in own) && { store }), ...(!('auth' in own) && { auth: schemes }), ...own };
}

/**
 * Returns the file to read: the given path, else `TOLLGATE_CONFIG`, else the only search place that exists; undefined
 * for none.
 */
async function findConfig(cwd: string, env: Environment, configPath: string | undefined): Promise<string | undefined> {
  const given = configPath || env['TOLLGATE_CONFIG'];
  if (given) return checkPath(cwd, given, configPath ? '--config' : 'TOLLGATE_CONFIG');
  const found = await searchFolder(cwd, SEARCH_PLACES);
  const names = found.map((file) => displayPath(file, cwd));
  if (found.length > 1) {
    const message = `is not the only configuration in this folder: ${names.join(', ')}`;
    throw problem(names[0] ?? '', message, 'Keep one of them, or select one with --config.');
  }
  if (found.length === 0) refuseLikelyNames(cwd);
  return found[0];
}

function checkPath(cwd: string, given: string, source: string): string {
  const file = path.resolve(cwd, given);
  if (statSync(file, { throwIfNoEntry: false })?.isDirectory() ?? true) {
    const message = `does not exist or is not a file (set by ${source})`;
    throw problem(given, message, `Correct ${source}, or create the file.`);
  }
  if (FORMATS.includes(path.extname(file))) return file;
  throw problem(given, `has an unknown format (set by ${source})`, `Its name must end in ${FORMATS.join(', ')}.`);
}

/**
 * Lists every configuration in a folder. cosmiconfig returns one at a time, so it is called until it finds no other.
 */
async function searchFolder(cwd: string, places: readonly string[]): Promise<readonly string[]> {
  if (places.length === 0) return [];
  const explorer = createExplorer((file, content) => (isPackage(file) ? readPackage(content) : {}), places);
  const found = (await explorer.search(cwd))?.filepath;
  if (found === undefined) return [];
  return [
    found,
    ...(await searchFolder(
      cwd,
      places.filter((place) => path.join(cwd, place) !== found),
    )),
  ];
}

/**
 * A `package.json` counts if it has the key `tollgate`. A broken one that seems to have the key counts too, so that the
 * problem is reported.
 */
function readPackage(text: string): object {
  const content = readJson(text);
  const hasKey = content === undefined ? /"tollgate"\s*:/.test(text) : isObject(content) && 'tollgate' in content;
  return hasKey ? { tollgate: {} } : {};
}

/** Refuses to use the built-in configuration while a file exists whose name looks like a configuration's. */
function refuseLikelyNames(cwd: string): void {
  const names = ['', '.config/'].flatMap((folder) => listFolder(path.join(cwd, folder)).map((name) => folder + name));
  const problems = names
    .filter((name) => LIKELY.test(name))
    .map((name) => {
      const isSearched = SEARCH_PLACES.includes(name);
      const message = isSearched ? 'cannot be read or is not a file' : 'is not a recognized file name';
      const renamed = FORMATS.includes(path.extname(name)) ? 'Rename it to' : 'Convert it to';
      const hint = `${renamed} tollgate.config.yaml (or .json, .ts, …), select it with --config, or move it elsewhere.`;
      return { file: name, path: '', message, hint: isSearched ? 'Make it a file that this user can read.' : hint };
    });
  if (problems.length > 0) throw new ConfigError(problems);
}

function listFolder(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Creates a cosmiconfig for one folder; `load` reads every format. */
function createExplorer(load: Loader, searchPlaces: readonly string[] = SEARCH_PLACES): PublicExplorer {
  return cosmiconfig('tollgate', {
    searchPlaces: [...searchPlaces],
    searchStrategy: 'none',
    ignoreEmptySearchPlaces: false,
    cache: false,
    loaders: Object.fromEntries([...FORMATS, '.cts'].map((format) => [format, load])),
  });
}

/** Reads a file and its imports (cosmiconfig's `$import`), with the positions of both. */
async function loadFile(
  file: string,
  name: string,
  cwd: string,
  env: Environment,
  text?: string,
): Promise<Source & { readonly imported: readonly string[] }> {
  const sources = new Map<string, Positions>();
  const explorer = createExplorer(async (filepath, content) => {
    const source = await parseFile(filepath, filepath === file ? (text ?? content) : content, env);
    sources.set(filepath, source.positions);
    return source.value;
  });
  try {
    const result = await explorer.load(file);
    const own = [...(sources.get(file) ?? [])];
    sources.delete(file);
    const places = [...sources].flatMap(([other, own]) => moveTo(displayPath(other, cwd), own));
    const below = isPackage(file) ? own.flatMap(inPackage) : own;
    return {
      value: result?.config ?? null,
      positions: new Map([...places, ...below]),
      imported: [...sources.keys()],
    };
  } catch (error) {
    const culprit = isObject(error) && typeof error['filepath'] === 'string' ? error['filepath'] : file;
    throw toConfigError(error, culprit === file ? name : displayPath(culprit, cwd));
  }
}

/** Adds the file name to the positions of an imported file. */
function moveTo(file: string, places: Positions): readonly PlaceEntry[] {
  return [...places].map(([pointer, { key, value }]) => [
    pointer,
    { ...(key && { key: { ...key, file } }), value: { ...value, file } },
  ]);
}

/** Moves a position in `package.json` to the root, as if the value of its key `tollgate` were the file. */
function inPackage([pointer, place]: PlaceEntry): readonly PlaceEntry[] {
  return /^\/tollgate(\/|$)/.test(pointer) ? [[pointer.slice('/tollgate'.length), place]] : [];
}

function toConfigError(error: unknown, file: string): ConfigError {
  if (error instanceof ConfigError) return error;
  if (error instanceof SourceError) return new ConfigError(error.problems.map((at) => ({ file, path: '', ...at })));
  const message = error instanceof Error ? error.message.split('\n')[0] : String(error);
  return problem(file, `cannot be loaded: ${message?.replace(/\.$/, '')}`, 'Correct the file.');
}

function problem(file: string, message: string, hint: string): ConfigError {
  return new ConfigError([{ file, path: '', message, hint }]);
}

function isPackage(file: string): boolean {
  return path.basename(file) === 'package.json';
}

function isMap(value: Json | undefined): value is RawConfig['value'] {
  return isObject(value);
}

/** Validated part of the configuration with one schema. */
export interface Section {
  readonly pointer: string;
  readonly schema: Schema;
  /** Interpolated, with defaults. Invalid if there are problems. */
  readonly value: unknown;
  readonly problems: readonly ProblemAt[];
  readonly sources: ReadonlyMap<string, string>;
}

export interface CheckedInstance extends Section {
  readonly ref: InstanceRef;
  /** Top-level key of its options. */
  readonly section?: string | undefined;
  /** Options handled by core. */
  readonly ofCore?: readonly string[];
}

/** Builds the configuration from valid sections: converts units, turns aliases into lists, freezes all. */
export function finishConfig(
  raw: RawConfig,
  core: Section,
  store: CheckedInstance,
  instances: readonly CheckedInstance[],
): GatewayConfig {
  const { file, isDefault, baseDir } = raw;
  const { server, logging, models, plans, defaultPlan, budgets, tags, endUsers, billing, audit } =
    core.value as CoreValues;
  const routes = Object.entries(models).map(([name, alias]) => [name, readModelRoute(alias)] as const);
  const files = createLookup(raw);
  const environment = readEnvironment(files.env);
  const readInstance = (instance: CheckedInstance): PluginInstance => toInstance(instance, environment, files);
  return deepFreeze({
    file,
    isDefault,
    baseDir,
    server: readServer(server, files),
    logging,
    store: readInstance(store),
    models: dictionary(routes.map(([name, route]) => [name, targetNames(route)] as const)),
    routes: dictionary(routes),
    plans: dictionary(Object.entries(plans).map(([name, plan]) => [name, planOf(plan)] as const)),
    defaultPlan,
    budgets: budgets.map(readBudget),
    tags: dictionary(Object.entries(tags)) as GatewayConfig['tags'],
    endUsers: { header: endUsers.header?.toLowerCase(), report: endUsers.report },
    billing,
    auditKeepForMs: parseDuration(audit.keepFor),
    instances: instances.map(readInstance),
    printable: () => printConfig(core, instances, mask),
    plain: () => printConfig(core, instances, ({ value }) => value),
    sources: new Map([
      ...linesOf(raw.file, raw.value, raw.positions),
      ...[core, ...instances].flatMap(({ sources }) => [...sources]),
    ]),
  });
}

function toInstance(
  { ref, value, ofCore = [] }: CheckedInstance,
  environment: EgressRules['environment'],
  files: Lookup,
): PluginInstance {
  const options = isObject(value) ? Object.entries(value) : [];
  const own: Readonly<Record<string, unknown>> = Object.fromEntries(options.filter(([name]) => ofCore.includes(name)));
  const egress = readEgress(own, environment, files);
  // `null` disables a plugin's section.
  if (Object.keys(own).length === 0)
    return { ...ref, config: value as PluginInstance['config'], ...(egress && { egress }) };
  const config = Object.fromEntries(options.filter(([name]) => !ofCore.includes(name)));
  const pick = (...names: readonly string[]): object =>
    Object.fromEntries(Object.entries(own).filter(([name]) => names.includes(name)));
  const { timeout, required } = own;
  const hooks = { ...(timeout !== undefined && { timeoutMs: parseDuration(String(timeout)) }), ...pick('onFailure') };
  const optional = { ...(egress && { egress }), ...(required === false && { isRequired: required }) };
  return { ...ref, config, hooks, scope: pick('when', 'mode', 'beside', 'showVerdicts'), ...optional };
}

function readServer(
  {
    basePath,
    bodyLimit,
    requestTimeout,
    drainTimeout,
    drainDelay,
    keepAlive,
    sseKeepAlive,
    idempotency,
    trustProxy,
    tls,
    ...rest
  }: CoreValues['server'],
  files: Lookup,
): ServerConfig {
  return {
    ...rest,
    ...(tls !== undefined && { tls: readTls(tls, files) }),
    basePath: basePath === '/' ? '' : basePath,
    bodyLimitBytes: parseSize(bodyLimit),
    requestTimeoutMs: parseDuration(requestTimeout),
    drainTimeoutMs: parseDuration(drainTimeout),
    drainDelayMs: parseDuration(drainDelay),
    keepAliveMs: parseDuration(keepAlive),
    sseKeepAliveMs: parseDuration(sseKeepAlive),
    idempotency: { keepForMs: parseDuration(idempotency.keepFor), maxBytes: parseSize(idempotency.maxSize) },
    trustProxy: Number(trustProxy),
  };
}

/** Masks the secrets of a section; values from a file (`${file:…}`) or a secret manager count as secrets. */
function mask({ value, schema, pointer, sources }: Section): unknown {
  return maskSecrets(value, schema, pointer, (at) => /\b(?:file|secret) /.test(sources.get(at) ?? ''));
}

/** Effective configuration in the form of a file. */
function printConfig(
  core: Section,
  instances: readonly CheckedInstance[],
  show: (section: Section) => unknown,
): JsonObject {
  const groups: Record<string, JsonObject> = {};
  const sections: JsonObject = {};
  for (const { ref, section, ...checked } of instances) {
    if (ref.group === 'plugins') continue;
    const options = show(checked);
    if (section !== undefined && options !== null) sections[section] = options;
    const shown = section === undefined && isObject(options) ? options : {};
    const plugin = ref.plugin === ref.name ? {} : { plugin: ref.plugin };
    groups[ref.group] = { ...groups[ref.group], [ref.name]: { ...plugin, ...shown } };
  }
  const own = show(core);
  const { $schema: _schema, ...shared } = isObject(own) ? own : {};
  return { ...shared, ...groups, ...sections };
}

/** Record without a prototype: callers look up untrusted names, such as `constructor`. */
function dictionary<T>(entries: readonly (readonly [string, T])[]): Readonly<Record<string, T>> {
  return Object.assign(Object.create(null), Object.fromEntries(entries));
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    for (const member of Object.values(value)) deepFreeze(member);
    Object.freeze(value);
  }
  return value;
}

const MASK = '****';
/** Names of secrets regardless of the schema, such as a header `authorization` or an adapter's `password`. */
const SECRET_NAME = /authorization|password|passwd|secret|token$|api-?_?key|credential|cookie|pepper|private-?_?key/i;
const SECRET_PARAMETER = /([?&][^=&#]*(?:password|secret|token|key|auth)[^=&#]*=)[^&#\s]*/gi;

/**
 * Copies a value and replaces secrets by `****`. Secrets are values marked by the schema, texts with the name of a
 * secret, values of headers, and passwords in URLs. Pointers for which `isHidden` returns true are hidden too.
 * `pointer` is the value's position.
 */
export function maskSecrets(
  value: unknown,
  schema: Schema,
  pointer = '',
  isHidden: (pointer: string) => boolean = () => false,
): unknown {
  return mapLeaves(value, schema, pointer, (leaf, at) => {
    if (leaf === null) return leaf;
    if (at.isInSecret || isHidden(at.pointer)) return MASK;
    if (typeof leaf !== 'string') return leaf;
    const keys = pointerKeys(at.pointer);
    // Headers may carry keys under any name.
    return SECRET_NAME.test(keys.at(-1) ?? '') || keys.slice(0, -1).includes('headers') ? MASK : maskUrl(leaf);
  });
}

/** Hides user and password in a URL, and parameters with the name of a secret. */
export function maskUrl(text: string): string {
  const match = /^([a-z][a-z0-9+.-]*:\/\/)([^/?#]*)(.*)$/is.exec(text);
  if (!match) return text;
  const [, scheme = '', authority = '', rest = ''] = match;
  const parameters = rest.replace(SECRET_PARAMETER, `$1${MASK}`);
  const at = authority.lastIndexOf('@');
  if (at !== -1) return `${scheme}${MASK}${authority.slice(at)}${parameters}`;
  // A password with an unescaped slash: the text before it looks like an invalid port.
  const isBroken = /:(?!\d*$)/.test(authority.replace(/^\[.*\]/, '')) && rest.includes('@');
  return isBroken
    ? `${scheme}${MASK}${parameters.slice(parameters.lastIndexOf('@'))}`
    : scheme + authority + parameters;
}
