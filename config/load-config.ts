import path from 'node:path';
import { isObject, type Json } from '../contract/json.ts';
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
  /** The imported plugins: the store's, then that of each of `config.instances` in the same order. */
  readonly plugins: readonly Plugin[];
  /** Those of the configuration that are not among its instances any more: they could not be set up, and are not required. */
  readonly leftOut?: readonly LeftOut[];
}

/** An instance without which a configuration goes on. */
export interface LeftOut {
  readonly instance: PluginInstance;
  /** Why, for operators. */
  readonly reason: string;
}

/** What a program gives in place of files. */
export interface GivenConfig {
  /** The configuration as an object, in place of a file: no file is searched and no `.env` is read. Its store is `memory:` unless it names one. */
  readonly config?: object;
  /**
   * Plugins that are found by their names, before built-in ones and packages. One that the configuration does not name is on, with its
   * default options.
   */
  readonly plugins?: readonly Plugin[];
}

/** Where a gateway keeps its data when its store says no folder. */
const DATA = 'data';

/**
 * Reads the configuration (unless it is given as it was read), imports every plugin it names, checks everything by their schemas and lets each plugin check its
 * own part. Throws a `ConfigError` with all problems; nothing is set up and nothing listens.
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
  // Of several stores that are asked which one is meant, one that cannot be imported is not it.
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

/** What a file says, or the object that stands for one. */
async function readRaw({ config, ...input }: ConfigInput & GivenConfig): Promise<RawConfig> {
  if (config === undefined) return await readRawConfig(input);
  const { value, problems } = toPlain(config);
  const file = 'config';
  const refuse = (message: string, hint: string) => new ConfigError([{ file, path: '', message, hint }]);
  if (input.configPath !== undefined) throw refuse('is given together with configPath', 'Give one of the two.');
  if (!isObject(value))
    throw refuse('is no object', 'Give an object of sections, such as { providers: { echo: {} } }.');
  const { cwd: baseDir, env, secrets = [] } = input;
  const whole = inheritDefaults({ store: 'memory:', ...value } as RawConfig['value']);
  return Object.freeze({
    ...{ file, isDefault: false, baseDir, value: whole, positions: new Map(), env, problems, files: [] },
    ...{ texts: new Map<string, string>(), secrets: new Map(secrets) },
  });
}

/** Plugins as a program gives them; throws for anything else, and for two of one name. */
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
      throw refuse(`is the ${plugin.kind} plugin "${plugin.name}", as is plugins[${first}]`, 'Give it once.');
  }
  return given;
}

/** The configuration with the plugins of a program that it does not name itself. */
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

/** The schemas of all built-in plugins, for a whole `tollgate.schema.json`; imports every one of them. */
export async function readBuiltinSchemas(
  builtins: readonly Builtin[] = listBuiltins(),
): Promise<readonly PluginSchema[]> {
  return await Promise.all(
    builtins.map(async ({ kind, name }) =>
      readSchema(await importPlugin(name, { kind, builtins, baseDir: PACKAGE_ROOT }), name),
    ),
  );
}

/** A plugin's part of the configuration's schema, under the name that the configuration calls it by; open when it has none. */
export function readSchema({ kind, configSchema, section }: Plugin, name: string): PluginSchema {
  const schema = { type: 'object', ...(configSchema ?? { additionalProperties: true }) };
  return { kind, name, schema, ...(section !== undefined && { section }) };
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

/** Stands for a plugin that cannot be imported and is not required: it takes any options, and its set-up says why. */
function standIn({ kind, plugin: name }: NamedInstance, reason: PluginImportError): Plugin {
  return {
    ...{ name, kind, apiVersion: 1 },
    setup() {
      throw new TypeError([`${reason.message}.`, reason.hint].filter(Boolean).join(' '), { cause: reason });
    },
  };
}

/** Where a server listens, as a URL. */
export function listenUrl({
  host,
  port,
  basePath,
  tls,
}: Pick<ServerConfig, 'host' | 'port' | 'basePath'> & { readonly tls?: object | undefined }): string {
  return `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}${basePath}`;
}

/** The same for programs on this machine: what listens on all addresses is reached on the machine's own too. */
export function localUrl(server: Parameters<typeof listenUrl>[0]): string {
  return listenUrl({ ...server, host: ['0.0.0.0', '::'].includes(server.host) ? '127.0.0.1' : server.host });
}

function readSettings({ store, server, ...config }: GatewayConfig): GatewaySettings {
  const { billing, plans, defaultPlan, budgets, tags, baseDir, isDefault } = config;
  const folder = store.config['folder'];
  const dataDir = typeof folder === 'string' ? folder : path.resolve(baseDir, DATA);
  const shared = { billing, plans, defaultPlan, budgets, tags, dataDir, baseDir, isDefault };
  return Object.freeze({ ...shared, url: localUrl(server), basePath: server.basePath, version: VERSION });
}

/** Whether a plugin is what another one requires, or provides it. */
export function meets({ name, provides = [] }: Plugin, needed: string): boolean {
  return name === needed || provides.includes(needed);
}

/** What a plugin requires that comes of others: those have to be set up before it. */
function neededBy(plugins: readonly Plugin[], at: number): readonly number[] {
  const { requires = [] } = plugins[at] ?? {};
  return requires.flatMap((needed) =>
    plugins.flatMap(({ provides = [] }, other) => (provides.includes(needed) ? [other] : [])),
  );
}

/** The order in which plugins are set up: that of the configuration, but what others require before them. A circle was refused before. */
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

/** Plugins that require one another, so that none can be set up first. */
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
    const names = circle.map((each) => `"${instances[each]?.name}"`).join(' requires what ');
    const pointer = instances[circle[0] ?? 0]?.pointer ?? '';
    const message = `is in a circle, of which no plugin can be set up first: ${names} provides`;
    return [{ pointer, atKey: true, message, hint: 'Leave one of them out.' }];
  }
  return [];
}

/** What an instance provides that another one before it provides too. */
function findConflicts(
  plugins: readonly Plugin[],
  at: number,
  instances: readonly PluginInstance[],
): readonly ProblemAt[] {
  const { pointer = '' } = instances[at] ?? {};
  return (plugins[at]?.provides ?? []).flatMap((name) => {
    const first = plugins.findIndex(({ provides = [] }) => provides.includes(name));
    if (first === at) return [];
    const message = `provides "${name}", as "${instances[first]?.name}" does`;
    return [{ pointer, atKey: true, message, hint: 'Leave one of the two out.' }];
  });
}

/** The plugins that a plugin needs and the configuration does not have. */
function findMissing(plugins: readonly Plugin[], at: number, { pointer }: PluginInstance): readonly ProblemAt[] {
  const missing = (plugins[at]?.requires ?? []).filter((needed) => !plugins.some((plugin) => meets(plugin, needed)));
  return missing.map((needed) => ({
    ...{ pointer, atKey: true, message: `needs "${needed}", which no plugin of this configuration is or provides` },
    hint: 'Name the plugin in the configuration too.',
  }));
}

/** What a plugin's own check finds, at its places in the file. */
async function runCheck(
  plugin: Plugin | undefined,
  { config, pointer, isRequired }: PluginInstance,
  settings: GatewaySettings,
): Promise<readonly ProblemAt[]> {
  const hint = 'Mend its check(), which gives a list of { path, message, hint }.';
  const atPlugin = (message: string): readonly ProblemAt[] => [{ pointer, atKey: true, message, hint }];
  try {
    const problems: unknown = (await plugin?.check?.(config, { baseDir: settings.baseDir, settings })) ?? [];
    if (!Array.isArray(problems) || !problems.every(isProblem)) {
      return atPlugin('has a plugin whose check answers something else than a list of problems');
    }
    return problems.map(({ path: place = '', message, hint }) => {
      const below = place === '' || place.startsWith('/') ? place : `/${place}`;
      return { pointer: `${pointer}${below}`, atKey: place === '', message, hint };
    });
  } catch (error) {
    // Its set-up says whether the configuration goes on without it.
    if (isRequired === false) return [];
    return atPlugin(`has a plugin whose check failed: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function isProblem(value: unknown): value is Problem {
  return isObject(value) && typeof value['message'] === 'string';
}

/** Whether an instance is of a plugin that comes with the package. */
export function isBuiltinOwner(owner: string, { config, builtins }: LoadedConfig): boolean {
  return config.instances.some(
    ({ name, kind, plugin }) => name === owner && builtins.some((each) => each.kind === kind && each.name === plugin),
  );
}
