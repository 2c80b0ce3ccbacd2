import type { Json } from '../types/json.ts';
import { checkAliases, checkPlans } from './check-references.ts';
import { type CheckedSection, checkSection } from './check-section.ts';
import { CORE_SCHEMA } from './core-schema.ts';
import { ConfigError, type FaultAt, locateFault } from './faults.ts';
import { type CheckedInstance, finishConfig } from './finish-config.ts';
import { GROUP_NAMES, type PluginSchema } from './groups.ts';
import { type BuiltinName, listInstances, type RawInstance } from './instances.ts';
import type { Lookup } from './interpolate.ts';
import { createLookup } from './lookup.ts';
import type { RawConfig } from './read.ts';
import { sealPluginSchema } from './seal-schema.ts';
import type { GatewayConfig } from './types.ts';

type JsonMap = { readonly [key: string]: Json };

/** What the loader found out about the plugins that a configuration names. */
export interface KnownPlugins {
  readonly builtins: readonly BuiltinName[];
  /** The schema of every plugin that could be imported and has one. */
  readonly schemas: readonly PluginSchema[];
  /** Imports that failed: reported together with everything else. */
  readonly faults?: readonly FaultAt[];
}

/** The instances that a file names, for importing their plugins before {@link checkConfig}. */
export function findInstances(raw: RawConfig, builtins: readonly BuiltinName[]): readonly RawInstance[] {
  return listInstances(raw.value, builtins, createLookup(raw.env, raw.baseDir)).instances;
}

/** Interpolates and validates everything; answers the configuration, or throws a {@link ConfigError} with all faults. */
export function checkConfig(raw: RawConfig, plugins: KnownPlugins): GatewayConfig {
  const lookup = createLookup(raw.env, raw.baseDir);
  const { instances, faults: namingFaults } = listInstances(raw.value, plugins.builtins, lookup);
  const core = checkSection(withoutMembers(raw.value), CORE_SCHEMA, '', lookup);
  const checked = instances.map((instance) => checkInstance(instance, plugins.schemas, lookup));
  const providers = namesIn(raw.value['providers']);
  const faults = [
    ...namingFaults,
    ...(plugins.faults ?? []),
    ...core.faults,
    ...checked.flatMap(({ section }) => section.faults),
    ...checkAliases(core.value['models'], providers),
    ...checkPlans(core.value['plans'], core.value['defaultPlan'], providers),
  ];
  if (faults.length > 0) throw new ConfigError(faults.map((fault) => locateFault(fault, raw.file, raw.positions)));
  return finishConfig(raw, core, checked);
}

function checkInstance(instance: RawInstance, schemas: readonly PluginSchema[], lookup: Lookup): CheckedInstance {
  const known = schemas.find(({ kind, name }) => kind === instance.kind && name === instance.plugin);
  const schema = sealPluginSchema(known?.schema ?? { additionalProperties: true });
  return { instance, schema, section: checkInstanceSection(instance, schema, lookup) };
}

/** A plugin in the list of those without options that needs some is told where to write them. */
function checkInstanceSection(
  instance: RawInstance,
  schema: CheckedInstance['schema'],
  lookup: Lookup,
): CheckedSection {
  const section = checkSection(instance.value, schema, instance.pointer, lookup);
  if (instance.group !== 'plugins') return section;
  const hint = 'Name it under "policies" with "plugin:" and its options.';
  return { ...section, faults: section.faults.map((fault) => ({ ...fault, hint })) };
}

/** The configuration with the groups emptied; a group that is no map stays, to be a fault. */
function withoutMembers(value: JsonMap): JsonMap {
  const isGroup = (key: string): boolean => (GROUP_NAMES as readonly string[]).includes(key);
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [key, isGroup(key) && isMap(member) ? {} : member]),
  );
}

function namesIn(group: Json | undefined): readonly string[] {
  if (!isMap(group)) return [];
  return Object.keys(group).filter((name) => group[name] !== false);
}

function isMap(value: Json | undefined): value is JsonMap {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
