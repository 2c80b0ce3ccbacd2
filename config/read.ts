import { readdirSync, readFileSync, statSync } from 'node:fs';
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
import { ConfigError, displayPath, linesOf, type Place, type Positions, type Source, SourceError } from './problems.ts';
import { mapLeaves } from './schema-at.ts';
import { type Environment, envFiles, loadEnv, parseFile, parseYaml, toPlain } from './sources.ts';
import { readTls } from './tls.ts';

const DEFAULT_FILE = 'config/default.yaml';
const FORMATS: readonly string[] = ['.yaml', '.yml', '.json', '.ts', '.mts', '.js', '.mjs', '.cjs'];

/** Where a configuration may stand, relative to the working directory. Nothing above it is searched. */
const SEARCH_PLACES: readonly string[] = Object.freeze([
  ...FORMATS.map((format) => `tollgate.config${format}`),
  ...FORMATS.filter((format) => format !== '.mts' && format !== '.cjs').map((format) => `.config/tollgate${format}`),
  'package.json',
]);

/** Names that look like a configuration's, whether or not they are searched. `tollgate.ts` may be anybody's program. */
const LIKELY =
  /^(\.config\/tollgate(\.config)?\.\w+|tollgate\.config\.\w+|tollgate\.(ya?ml|json[5c]?|toml)|\.tollgaterc(\.\w+)?)$/i;

type PlaceEntry = readonly [pointer: string, place: Place];

export interface ConfigInput {
  /** Where to search, and what a relative `configPath` is relative to. Absolute. */
  readonly cwd: string;
  readonly env: Environment;
  /** `--config`; wins over `TOLLGATE_CONFIG` and over any search. */
  readonly configPath?: string | undefined;
  /** How managers of secrets are reached; without it there are none. */
  readonly connect?: Connect | undefined;
  /** What they gave already. */
  readonly secrets?: Iterable<readonly [string, SecretText]> | undefined;
}

/** Opens the client of the control plane for these hosts alone. */
export type Connect = (hosts: ReadonlySet<string>, rules: EgressRules | undefined) => Promise<Got>;

/** A configuration as it stands in its file: parsed, neither interpolated nor checked. */
export interface RawConfig {
  /** The file's name for people: relative to the working directory when it lies in there. */
  readonly file: string;
  /** Whether no file was found and the built-in one runs. */
  readonly isDefault: boolean;
  /** What relative paths are relative to: the file's folder, or the working directory for the built-in one. Absolute. */
  readonly baseDir: string;
  readonly value: { readonly [key: string]: Json };
  readonly positions: Positions;
  /** The environment with `.env` and `.env.local` in it. */
  readonly env: Environment;
  /** What in the file is no data and was left out. */
  readonly problems: readonly ProblemAt[];
  /** What it was read from, absolute: the file, what it imports, and the `.env` files that are there or may come. */
  readonly files: readonly string[];
  /** The texts that `${file:…}` refers to, by absolute path, as they were when they were first read. */
  readonly texts: Map<string, string>;
  /** What managers of secrets gave, as it was when it was first read. */
  readonly secrets: SecretTexts;
}

/** Finds and parses the configuration; throws a {@link ConfigError} when there is nothing to check: no file, bad syntax. */
export async function readRawConfig({ cwd, env: given, configPath, secrets = [] }: ConfigInput): Promise<RawConfig> {
  const here = await loadEnv(given, [cwd], cwd);
  const found = await findConfig(cwd, here, configPath);
  const isDefault = found === undefined;
  const file = found ?? path.join(PACKAGE_ROOT, DEFAULT_FILE);
  const baseDir = isDefault ? cwd : path.dirname(file);
  const env = baseDir === cwd ? here : await loadEnv(given, [baseDir, cwd], cwd);
  const name = isDefault ? DEFAULT_FILE : displayPath(file, cwd);
  const { value: parsed, positions, imported } = await loadFile(file, name, cwd, env);
  const { value, problems } = toPlain(parsed);
  if (!isMap(value)) {
    const message = value === null ? 'is empty' : 'is not a map of sections such as "providers"';
    throw problem(name, message, 'Write at least "providers:", or remove the file to run the defaults.');
  }
  const merged = isDefault ? value : inheritDefaults(value);
  const files = [file, ...imported, ...envFiles([baseDir, cwd])];
  return Object.freeze({
    ...{ file: name, isDefault, baseDir, value: merged, positions, env, problems, files },
    ...{ texts: new Map<string, string>(), secrets: new Map(secrets) },
  });
}

/**
 * A file that says nothing about the store or about authentication gets those of `config/default.yaml`: there the store
 * is named, and which schemes are on (their options are the plugins' own defaults). An empty section counts as absent.
 */
export function inheritDefaults(value: RawConfig['value']): RawConfig['value'] {
  const own = Object.fromEntries(Object.entries(value).filter(([, section]) => section !== null));
  if ('store' in own && 'auth' in own) return own;
  const { value: defaults } = toPlain(parseYaml(readFileSync(path.join(PACKAGE_ROOT, DEFAULT_FILE), 'utf8')).value);
  const { store = null, auth = null } = isMap(defaults) ? defaults : {};
  const schemes = Object.fromEntries(Object.keys(auth ?? {}).map((scheme) => [scheme, {}]));
  return { ...(!('store' in own) && { store }), ...(!('auth' in own) && { auth: schemes }), ...own };
}

/** The file to read: the given path, else `TOLLGATE_CONFIG`, else the one search place that exists; undefined for none. */
async function findConfig(cwd: string, env: Environment, configPath: string | undefined): Promise<string | undefined> {
  const given = configPath || env['TOLLGATE_CONFIG'];
  if (given) return checkPath(cwd, given, configPath ? '--config' : 'TOLLGATE_CONFIG');
  const found = await searchFolder(cwd, SEARCH_PLACES);
  const names = found.map((file) => displayPath(file, cwd));
  if (found.length > 1) {
    const message = `is not the only configuration here: ${names.join(', ')}`;
    throw problem(names[0] ?? '', message, 'Keep one of them, or say which with --config.');
  }
  if (found.length === 0) refuseLikelyNames(cwd);
  return found[0];
}

function checkPath(cwd: string, given: string, source: string): string {
  const file = path.resolve(cwd, given);
  if (statSync(file, { throwIfNoEntry: false })?.isDirectory() ?? true) {
    const message = `does not exist or is no file (named by ${source})`;
    throw problem(given, message, `Correct ${source}, or create the file.`);
  }
  if (FORMATS.includes(path.extname(file))) return file;
  throw problem(given, `is of no known format (named by ${source})`, `Its name must end in ${FORMATS.join(', ')}.`);
}

/** Every configuration that cosmiconfig finds in a folder: it answers one at a time, so it is asked until there is no other. */
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

/** A `package.json` counts when it has the key `tollgate`; also when it is broken and seems to have one, so that the problem shows. */
function readPackage(text: string): object {
  const content = readJson(text);
  const hasKey = content === undefined ? /"tollgate"\s*:/.test(text) : isObject(content) && 'tollgate' in content;
  return hasKey ? { tollgate: {} } : {};
}

/** Nothing was found, so the built-in configuration would run: a file that somebody took for theirs must not be passed over. */
function refuseLikelyNames(cwd: string): void {
  const names = ['', '.config/'].flatMap((folder) => listFolder(path.join(cwd, folder)).map((name) => folder + name));
  const problems = names
    .filter((name) => LIKELY.test(name))
    .map((name) => {
      const isSearched = SEARCH_PLACES.includes(name);
      const message = isSearched ? 'cannot be read, or is no file' : 'is not a name that is looked for';
      const renamed = FORMATS.includes(path.extname(name)) ? 'Call it' : 'Write it as';
      const hint = `${renamed} tollgate.config.yaml (or .json, .ts, …), name it with --config, or move it elsewhere.`;
      return { file: name, path: '', message, hint: isSearched ? 'Make it a file that this user may read.' : hint };
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

/** One cosmiconfig for one folder, every format read by `load`. */
function createExplorer(load: Loader, searchPlaces: readonly string[] = SEARCH_PLACES): PublicExplorer {
  return cosmiconfig('tollgate', {
    searchPlaces: [...searchPlaces],
    searchStrategy: 'none',
    ignoreEmptySearchPlaces: false,
    cache: false,
    loaders: Object.fromEntries([...FORMATS, '.cts'].map((format) => [format, load])),
  });
}

/** Reads a file and what it imports (cosmiconfig's `$import`), with the positions of both. */
async function loadFile(
  file: string,
  name: string,
  cwd: string,
  env: Environment,
): Promise<Source & { readonly imported: readonly string[] }> {
  const sources = new Map<string, Positions>();
  const explorer = createExplorer(async (filepath, content) => {
    const source = await parseFile(filepath, content, env);
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

/** The places of a file that the configuration imports. */
function moveTo(file: string, places: Positions): readonly PlaceEntry[] {
  return [...places].map(([pointer, { key, value }]) => [
    pointer,
    { ...(key && { key: { ...key, file } }), value: { ...value, file } },
  ]);
}

/** A place of a `package.json`, as if the value of its key `tollgate` were the file. */
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

/** A part of the configuration that one schema describes, checked. */
export interface Section {
  readonly pointer: string;
  readonly schema: Schema;
  /** Interpolated, with defaults. Meaningless when there are problems. */
  readonly value: unknown;
  readonly problems: readonly ProblemAt[];
  readonly sources: ReadonlyMap<string, string>;
}

export interface CheckedInstance extends Section {
  readonly ref: InstanceRef;
  /** The top-level key that holds its options. */
  readonly section?: string | undefined;
  /** Those of its options that are core's. */
  readonly ofCore?: readonly string[];
}

/** Makes the configuration out of sections without problems: units converted, aliases made lists, all frozen. */
export function finishConfig(
  raw: RawConfig,
  core: Section,
  store: CheckedInstance,
  instances: readonly CheckedInstance[],
): GatewayConfig {
  const { file, isDefault, baseDir } = raw;
  const { server, logging, models, plans, defaultPlan, budgets, tags, billing, audit } = core.value as CoreValues;
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
  // `null` where a plugin's section is switched off.
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

/** A section without its secrets; a value out of a file (`${file:…}`) or of a manager counts as one. */
function mask({ value, schema, pointer, sources }: Section): unknown {
  return maskSecrets(value, schema, pointer, (at) => /\b(?:file|secret) /.test(sources.get(at) ?? ''));
}

/** The configuration as a file would have it. */
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

/** A record without a prototype: callers look names up in it that strangers send, such as `constructor`. */
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
/** Names that hold secrets whatever their schema says, such as a header `authorization` or an adapter's `password`. */
const SECRET_NAME = /authorization|password|passwd|secret|token$|api-?_?key|credential|cookie|pepper|private-?_?key/i;
const SECRET_PARAMETER = /([?&][^=&#]*(?:password|secret|token|key|auth)[^=&#]*=)[^&#\s]*/gi;

/**
 * A copy in which secrets read `****`: what the schema calls secret, texts that are named like one, values of headers,
 * passwords in URLs, and every pointer that `isHidden` names. `pointer` is where the value stands.
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
    // Headers carry keys under any name.
    return SECRET_NAME.test(keys.at(-1) ?? '') || keys.slice(0, -1).includes('headers') ? MASK : maskUrl(leaf);
  });
}

/** Hides user and password in a URL, and parameters named like secrets. */
export function maskUrl(text: string): string {
  const match = /^([a-z][a-z0-9+.-]*:\/\/)([^/?#]*)(.*)$/is.exec(text);
  if (!match) return text;
  const [, scheme = '', authority = '', rest = ''] = match;
  const parameters = rest.replace(SECRET_PARAMETER, `$1${MASK}`);
  const at = authority.lastIndexOf('@');
  if (at !== -1) return `${scheme}${MASK}${authority.slice(at)}${parameters}`;
  // A password with an unescaped slash: what stands before it looks like an invalid port.
  const isBroken = /:(?!\d*$)/.test(authority.replace(/^\[.*\]/, '')) && rest.includes('@');
  return isBroken
    ? `${scheme}${MASK}${parameters.slice(parameters.lastIndexOf('@'))}`
    : scheme + authority + parameters;
}
