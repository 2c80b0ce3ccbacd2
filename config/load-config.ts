import path from 'node:path';
import { isObject, type Json, type Schema } from '../contract/json.ts';
import type { GatewaySettings, Plugin, Problem } from '../contract/plugin.ts';
import type { ProblemAt } from '../contract/pointers.ts';
import { checkConfig, findInstances, type NamedInstance } from './check.ts';
import {
  type GatewayConfig,
  GROUP_NAMES,
  GROUPS,
  type PluginInstance,
  type PluginSchema,
  type ServerConfig,
} from './core-schema.ts';
import { type Builtin, type ImportFile, type ImportOptions, importPlugin, listBuiltins } from './import-plugin.ts';
import { PACKAGE_ROOT, VERSION } from './package-root.ts';
import { assertPlugin, PluginImportError } from './plugin-definition.ts';
import { ConfigError, createConfigError } from './problems.ts';
import { type ConfigInput, type Connect, inheritDefaults, type RawConfig, readRawConfig } from './read.ts';
import { fillSecrets } from './secrets.ts';
import { toPlain } from './sources.ts';

export interface LoadedConfig {
  readonly raw: RawConfig;
  readonly config: GatewayConfig;
  readonly settings: GatewaySettings;
  readonly builtins: readonly Builtin[];
  /** Imported plugins: the store's, then one per `config.instances`, in the same order. */
  readonly plugins: readonly Plugin[];
  /** Former instances of the configuration that could not be set up and are not required. */
  readonly omitted?: readonly OmittedInstance[];
}

/** Instance that was omitted from a configuration. */
export interface OmittedInstance {
  readonly instance: PluginInstance;
  /** Reason for operators. */
  readonly reason: string;
}

/** Configuration passed by an embedding program in place of files. */
export interface GivenConfig {
  /** Configuration as an object. No file is searched and no `.env` is read. Default store: `memory:`. */
  readonly config?: object;
  /**
   * Plugins found by name, before built-in ones and packages. A plugin that the configuration does not mention is on,
   * with default options.
   */
  readonly plugins?: readonly Plugin[];
}

/** Default data folder, for stores without a folder. */
const DATA = 'data';

/**
 * Reads the configuration (or uses the given raw one), imports its plugins, validates everything and runs the plugins'
 * own checks. Throws a `ConfigError` with all problems. Sets nothing up and opens no port.
 */
export async function loadConfig(
  input:
    | (ConfigInput & GivenConfig)
    | { readonly raw: RawConfig; readonly importFile?: ImportFile; readonly connect?: Connect | undefined },
  known: readonly Builtin[] = listBuiltins(),
): Promise<LoadedConfig> {
  const given = 'raw' in input ? [] : checkGiven(input.plugins ?? []);
  const raw = 'raw' in input ? input.raw : nameGiven(await readRaw(input), given);
  const builtins = known.filter(({ kind, name }) => !given.some((each) => each.kind === kind && each.name === name));
  const importFile = 'raw' in input ? input.importFile : undefined;
  const options = { builtins, baseDir: raw.baseDir, given, ...(importFile && { importFile }) };
  await fillSecrets(raw, { ...options, connect: input.connect });
  const refs = findInstances(raw, builtins);
  const stores = await Promise.all(refs.stores.map((ref) => tryImport(ref, options)));
  const imports = await Promise.all(refs.instances.map((ref) => tryImport(ref, options)));
  // While several stores are candidates, those that fail to import are skipped.
  const importProblems = [...(stores.length === 1 ? stores : []), ...imports].flatMap(({ problem }) => problem ?? []);
  const schemas = [...stores, ...imports].flatMap(({ ref, plugin }) =>
    plugin ? [readSchema(plugin, ref.plugin)] : [],
  );
  const config = checkConfig(raw, { builtins, schemas, problems: importProblems });
  const store = stores.filter(({ ref }) => ref.plugin === config.store.plugin);
  const plugins = [...store, ...imports].flatMap(({ plugin }) => plugin ?? []);
  const settings = readSettings(config);
  const instances = [config.store, ...config.instances];
  const problems = await Promise.all(
    instances.map(async (instance, at) => [
      ...findMissing(plugins, at, instance),
      ...findConflicts(plugins, at, instances),
      ...(await runCheck(plugins[at], instance, settings)),
    ]),
  );
  const found = [...problems.flat(), ...findCircle(plugins, instances)];
  if (found.length > 0) throw createConfigError(found, raw);
  return { raw, config, settings, builtins, plugins };
}

/** Reads the file, or converts the given object. */
async function readRaw({ config, ...input }: ConfigInput & GivenConfig): Promise<RawConfig> {
  if (config === undefined) return await readRawConfig(input);
  const { value, problems } = toPlain(config);
  const file = 'config';
  const refuse = (message: string, hint: string) => new ConfigError([{ file, path: '', message, hint }]);
  if (input.configPath !== undefined) throw refuse('cannot be combined with configPath', 'Remove one of them.');
  if (!isObject(value))
    throw refuse('is not an object', 'Use an object of sections, such as { providers: { echo: {} } }.');
  const { cwd: baseDir, env, secrets = [] } = input;
  const whole = inheritDefaults({ store: 'memory:', ...value } as RawConfig['value']);
  return Object.freeze({
    file,
    isDefault: false,
    baseDir,
    value: whole,
    positions: new Map(),
    env,
    problems,
    files: [],
    texts: new Map<string, string>(),
    secrets: new Map(secrets),
  });
}

/** Checks the plugins of an embedding program; throws for anything else, and for two of one name. */
function checkGiven(given: readonly Plugin[]): readonly Plugin[] {
  for (const [at, plugin] of given.entries()) {
    const refuse = (message: string, hint?: string) =>
      new ConfigError([{ file: 'plugins', path: `[${at}]`, message, ...(hint !== undefined && { hint }) }]);
    try {
      assertPlugin(plugin, `plugins[${at}]`, plugin.kind);
    } catch (error) {
      throw error instanceof PluginImportError ? refuse(error.message, error.hint) : error;
    }
    const first = given.findIndex(({ kind, name }) => kind === plugin.kind && name === plugin.name);
    if (first !== at)
      throw refuse(
        `is a duplicate of plugins[${first}]: the ${plugin.kind} plugin "${plugin.name}"`,
        'Remove one of them.',
      );
  }
  return given;
}

/** Adds the embedding program's plugins that the configuration does not mention. */
function nameGiven(raw: RawConfig, given: readonly Plugin[]): RawConfig {
  const value: Record<string, Json> = { ...raw.value };
  for (const { kind, name } of given) {
    if (kind === 'store') value['store'] = { plugin: name, ...readMap(value['store']) };
    const group = GROUP_NAMES.find((each) => GROUPS[each].kind === kind);
    if (group === undefined) continue;
    const members = readMap(value[group]);
    const isNamed = Object.entries(members).some(([key, member]) => (readMap(member)['plugin'] ?? key) === name);
    if (!isNamed) value[group] = { ...members, [name]: {} };
  }
  return given.length === 0 ? raw : { ...raw, value };
}

function readMap(value: Json | undefined): RawConfig['value'] {
  return isObject(value) ? (value as RawConfig['value']) : {};
}

/** Reads the schemas of all built-in plugins for `tollgate.schema.json`; imports every plugin. */
export async function readBuiltinSchemas(
  builtins: readonly Builtin[] = listBuiltins(),
): Promise<readonly PluginSchema[]> {
  return await Promise.all(
    builtins.map(async ({ kind, name }) =>
      readSchema(await importPlugin(name, { kind, builtins, baseDir: PACKAGE_ROOT }), name),
    ),
  );
}

/** Schema of plugins without one: any options. */
const ANY_OPTIONS: Schema = Object.freeze({ type: 'object', additionalProperties: true });

/** Reads a plugin's schema under its configured name; accepts any options if it has none. */
export function readSchema({ kind, configSchema, section }: Plugin, name: string): PluginSchema {
  // The plugin's own object: by it, a later load of the configuration finds what was compiled.
  return {
    kind,
    name,
    schema: (configSchema as Schema | undefined) ?? ANY_OPTIONS,
    ...(section !== undefined && { section }),
  };
}

interface Import {
  readonly ref: NamedInstance;
  readonly plugin?: Plugin;
  readonly problem?: ProblemAt;
}

async function tryImport(ref: NamedInstance, options: Omit<ImportOptions, 'kind'>): Promise<Import> {
  try {
    return { ref, plugin: await importPlugin(ref.plugin, { kind: ref.kind, ...options }) };
  } catch (error) {
    if (!(error instanceof PluginImportError)) throw error;
    if (ref.isOptional) return { ref, plugin: standIn(ref, error) };
    return { ref, problem: { pointer: ref.pointer, atKey: true, message: error.message, hint: error.hint } };
  }
}

/** Placeholder for an optional plugin whose import failed: it accepts any options, and its set-up throws the reason. */
function standIn({ kind, plugin: name }: NamedInstance, reason: PluginImportError): Plugin {
  return {
    name,
    kind,
    apiVersion: 1,
    setup() {
      throw new TypeError([`${reason.message}.`, reason.hint].filter(Boolean).join(' '), { cause: reason });
    },
  };
}

/** URL of the address that a server listens on. */
export function listenUrl({
  host,
  port,
  basePath,
  tls,
}: Pick<ServerConfig, 'host' | 'port' | 'basePath'> & { readonly tls?: object | undefined }): string {
  return `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}${basePath}`;
}

/** URL for programs on this machine: wildcard addresses become 127.0.0.1. */
export function localUrl(server: Parameters<typeof listenUrl>[0]): string {
  return listenUrl({ ...server, host: ['0.0.0.0', '::'].includes(server.host) ? '127.0.0.1' : server.host });
}

function readSettings({ store, server, ...config }: GatewayConfig): GatewaySettings {
  const { billing, plans, defaultPlan, budgets, tags, endUsers, baseDir, isDefault } = config;
  const folder = store.config['folder'];
  const dataDir = typeof folder === 'string' ? folder : path.resolve(baseDir, DATA);
  const shared = { billing, plans, defaultPlan, budgets, tags, endUsers, dataDir, baseDir, isDefault };
  return Object.freeze({ ...shared, url: localUrl(server), basePath: server.basePath, version: VERSION });
}

/** True if a plugin is the required one, or provides it. */
export function meets({ name, provides = [] }: Plugin, needed: string): boolean {
  return name === needed || provides.includes(needed);
}

/** Indexes of the plugins that provide requirements of a plugin and must be set up before it. */
function neededBy(plugins: readonly Plugin[], at: number): readonly number[] {
  const { requires = [] } = plugins[at] ?? {};
  return requires.flatMap((needed) =>
    plugins.flatMap(({ provides = [] }, other) => (provides.includes(needed) ? [other] : [])),
  );
}

/** Order of set-up: that of the configuration, with requirements first. Cycles were rejected earlier. */
export function orderSetUp(plugins: readonly Plugin[]): readonly number[] {
  const order = new Set<number>();
  const entered = new Set<number>();
  const add = (at: number): void => {
    if (entered.has(at)) return;
    entered.add(at);
    for (const other of neededBy(plugins, at)) add(other);
    order.add(at);
  };
  for (const at of plugins.keys()) add(at);
  return [...order];
}

/** Finds plugins that require each other in a cycle. */
function findCircle(plugins: readonly Plugin[], instances: readonly PluginInstance[]): readonly ProblemAt[] {
  const done = new Set<number>();
  const walk = (at: number, above: readonly number[]): readonly number[] | undefined => {
    if (above.includes(at)) return [...above.slice(above.indexOf(at)), at];
    if (done.has(at)) return undefined;
    for (const other of neededBy(plugins, at)) {
      const circle = walk(other, [...above, at]);
      if (circle) return circle;
    }
    done.add(at);
    return undefined;
  };
  for (const at of plugins.keys()) {
    const circle = walk(at, []);
    if (!circle) continue;
    const names = circle.map((each) => `"${instances[each]?.name}"`).join(' requires ');
    const pointer = instances[circle[0] ?? 0]?.pointer ?? '';
    const message = `has a cyclic dependency: ${names}`;
    return [{ pointer, atKey: true, message, hint: 'Remove one of them.' }];
  }
  return [];
}

/** Finds capabilities of an instance that an earlier one provides too. */
function findConflicts(
  plugins: readonly Plugin[],
  at: number,
  instances: readonly PluginInstance[],
): readonly ProblemAt[] {
  const { pointer = '' } = instances[at] ?? {};
  return (plugins[at]?.provides ?? []).flatMap((name) => {
    const first = plugins.findIndex(({ provides = [] }) => provides.includes(name));
    if (first === at) return [];
    const message = `provides "${name}", which "${instances[first]?.name}" also provides`;
    return [{ pointer, atKey: true, message, hint: 'Remove one of them.' }];
  });
}

/** Finds requirements of a plugin that no configured plugin meets. */
function findMissing(plugins: readonly Plugin[], at: number, { pointer }: PluginInstance): readonly ProblemAt[] {
  const missing = (plugins[at]?.requires ?? []).filter((needed) => !plugins.some((plugin) => meets(plugin, needed)));
  return missing.map((needed) => ({
    pointer,
    atKey: true,
    message: `needs "${needed}", which no configured plugin provides`,
    hint: 'Add that plugin to the configuration.',
  }));
}

/** Runs a plugin's own check; problems get their position in the file. */
async function runCheck(
  plugin: Plugin | undefined,
  { config, pointer, isRequired }: PluginInstance,
  settings: GatewaySettings,
): Promise<readonly ProblemAt[]> {
  const hint = 'Correct its check(), which must return a list of { path, message, hint }.';
  const atPlugin = (message: string): readonly ProblemAt[] => [{ pointer, atKey: true, message, hint }];
  try {
    const problems: unknown = (await plugin?.check?.(config, { baseDir: settings.baseDir, settings })) ?? [];
    if (!Array.isArray(problems) || !problems.every(isProblem)) {
      return atPlugin('has a plugin whose check does not return a list of problems');
    }
    return problems.map(({ path: place = '', message, hint }) => {
      const below = place === '' || place.startsWith('/') ? place : `/${place}`;
      return { pointer: `${pointer}${below}`, atKey: place === '', message, hint };
    });
  } catch (error) {
    // An optional plugin reports problems during set-up, and may be left out then.
    if (isRequired === false) return [];
    return atPlugin(`has a plugin whose check failed: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function isProblem(value: unknown): value is Problem {
  return isObject(value) && typeof value['message'] === 'string';
}

/** True if an instance belongs to a built-in plugin. */
export function isBuiltinOwner(owner: string, { config, builtins }: LoadedConfig): boolean {
  return config.instances.some(
    ({ name, kind, plugin }) => name === owner && builtins.some((each) => each.kind === kind && each.name === plugin),
  );
}
