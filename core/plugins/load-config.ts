import { checkConfig, findInstances } from '../config/check.ts';
import type { FaultAt } from '../config/faults.ts';
import type { PluginSchema } from '../config/groups.ts';
import { PACKAGE_ROOT } from '../config/package-root.ts';
import { type ConfigInput, type RawConfig, readRawConfig } from '../config/read.ts';
import type { GatewayConfig } from '../config/types.ts';
import type { Plugin } from '../contract/plugin.ts';
import { type Builtin, listBuiltins } from './builtins.ts';
import { importPlugin, PluginImportError } from './import-plugin.ts';

export interface LoadedConfig {
  readonly raw: RawConfig;
  readonly config: GatewayConfig;
  readonly builtins: readonly Builtin[];
  /** The imported plugins: the store's, then that of each of `config.instances` in the same order. */
  readonly plugins: readonly Plugin[];
}

/**
 * Reads the configuration, imports every plugin it names and checks everything by their schemas. Throws a `ConfigError`
 * with all faults; nothing is set up and nothing listens.
 */
export async function loadConfig(
  input: ConfigInput,
  builtins: readonly Builtin[] = listBuiltins(),
): Promise<LoadedConfig> {
  const raw = await readRawConfig(input);
  const imports = await Promise.all(
    findInstances(raw, builtins).map(async ({ kind, plugin, pointer }) => {
      try {
        return { pointer, name: plugin, plugin: await importPlugin(plugin, { kind, builtins, baseDir: raw.baseDir }) };
      } catch (error) {
        if (error instanceof PluginImportError) return { fault: toFault(error, pointer) };
        throw error;
      }
    }),
  );
  const imported = imports.flatMap((found) => ('fault' in found ? [] : [found]));
  const schemas = imported.flatMap(({ name, plugin }) =>
    plugin.configSchema ? [{ kind: plugin.kind, name, schema: { ...plugin.configSchema } }] : [],
  );
  const faults = imports.flatMap((found) => (found.fault ? [found.fault] : []));
  const config = checkConfig(raw, { builtins, schemas, faults });
  return { raw, config, builtins, plugins: imported.map(({ plugin }) => plugin) };
}

/** The schemas of all built-in plugins, for a whole `tollgate.schema.json`; imports every one of them. */
export async function readBuiltinSchemas(
  builtins: readonly Builtin[] = listBuiltins(),
): Promise<readonly PluginSchema[]> {
  return await Promise.all(
    builtins.map(async ({ kind, name }) => {
      const { configSchema } = await importPlugin(name, { kind, builtins, baseDir: PACKAGE_ROOT });
      return { kind, name, schema: { type: 'object', ...configSchema } };
    }),
  );
}

function toFault({ message, hint }: PluginImportError, pointer: string): FaultAt {
  return { pointer, atKey: true, message, hint };
}
