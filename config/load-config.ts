import path from 'node:path';
import { isObject } from '../core/contract/json.ts';
import type { GatewaySettings, Plugin, Problem } from '../core/contract/plugin.ts';
import { checkConfig, findInstances } from './check.ts';
import {
  type GatewayConfig,
  type InstanceRef,
  localUrl,
  type PluginInstance,
  type PluginSchema,
} from './core-schema.ts';
import { type Builtin, importPlugin, listBuiltins, PluginImportError } from './import-plugin.ts';
import { PACKAGE_ROOT, VERSION } from './package-root.ts';
import { createConfigError, type ProblemAt } from './problems.ts';
import { type ConfigInput, type RawConfig, readRawConfig } from './read.ts';

export interface LoadedConfig {
  readonly raw: RawConfig;
  readonly config: GatewayConfig;
  readonly settings: GatewaySettings;
  readonly builtins: readonly Builtin[];
  /** The imported plugins: the store's, then that of each of `config.instances` in the same order. */
  readonly plugins: readonly Plugin[];
}

/** Where a gateway keeps its data when its store says no folder. */
const DATA = 'data';

/**
 * Reads the configuration (unless it is given as it was read), imports every plugin it names, checks everything by their schemas and lets each plugin check its
 * own part. Throws a `ConfigError` with all problems; nothing is set up and nothing listens.
 */
export async function loadConfig(
  input: ConfigInput | { readonly raw: RawConfig },
  builtins: readonly Builtin[] = listBuiltins(),
): Promise<LoadedConfig> {
  const raw = 'raw' in input ? input.raw : await readRawConfig(input);
  const refs = findInstances(raw, builtins);
  const options = { builtins, baseDir: raw.baseDir };
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
      ...(await runCheck(plugins[at], instance, settings)),
    ]),
  );
  if (problems.flat().length > 0) throw createConfigError(problems.flat(), raw);
  return { raw, config, settings, builtins, plugins };
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
  readonly ref: InstanceRef;
  readonly plugin?: Plugin;
  readonly problem?: ProblemAt;
}

async function tryImport(
  ref: InstanceRef,
  options: { readonly builtins: readonly Builtin[]; readonly baseDir: string },
): Promise<Import> {
  try {
    return { ref, plugin: await importPlugin(ref.plugin, { kind: ref.kind, ...options }) };
  } catch (error) {
    if (!(error instanceof PluginImportError)) throw error;
    return { ref, problem: { pointer: ref.pointer, atKey: true, message: error.message, hint: error.hint } };
  }
}

function readSettings({ store, server, ...config }: GatewayConfig): GatewaySettings {
  const { billing, plans, defaultPlan, budgets, tags, baseDir, isDefault } = config;
  const folder = store.config['folder'];
  const dataDir = typeof folder === 'string' ? folder : path.resolve(baseDir, DATA);
  const shared = { billing, plans, defaultPlan, budgets, tags, dataDir, baseDir, isDefault };
  return Object.freeze({ ...shared, url: localUrl(server), version: VERSION });
}

/** The plugins that a plugin needs and the configuration does not have. */
function findMissing(plugins: readonly Plugin[], at: number, { pointer }: PluginInstance): readonly ProblemAt[] {
  const missing = (plugins[at]?.requires ?? []).filter((needed) => !plugins.some(({ name }) => name === needed));
  return missing.map((needed) => ({
    ...{ pointer, atKey: true, message: `needs the plugin "${needed}", which this configuration does not have` },
    hint: 'Name it in the configuration too.',
  }));
}

/** What a plugin's own check finds, at its places in the file. */
async function runCheck(
  plugin: Plugin | undefined,
  { config, pointer }: PluginInstance,
  settings: GatewaySettings,
): Promise<readonly ProblemAt[]> {
  const atPlugin = (message: string): readonly ProblemAt[] => [{ pointer, atKey: true, message }];
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
