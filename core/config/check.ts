import type { Json, Schema } from '../contract/json.ts';
import { checkAliases, checkPlans } from './check-references.ts';
import { type CheckContext, checkSection } from './check-section.ts';
import { CORE_SCHEMA } from './core-schema.ts';
import { ConfigError, type FaultAt, locateFault } from './faults.ts';
import { type CheckedInstance, finishConfig } from './finish-config.ts';
import { GROUP_NAMES, INSTANCE_NAME, type PluginSchema } from './groups.ts';
import { type BuiltinName, listInstances, type RawInstance } from './instances.ts';
import { createLookup } from './lookup.ts';
import type { RawConfig } from './read.ts';
import { sealPluginSchema } from './seal-schema.ts';
import { findStore } from './store-instance.ts';
import type { GatewayConfig, InstanceRef } from './types.ts';
import { validateValue } from './validate.ts';
import { createValidator } from './validator.ts';

type JsonMap = { readonly [key: string]: Json };

/** What the loader found out about the plugins that a configuration names. */
export interface KnownPlugins {
  readonly builtins: readonly BuiltinName[];
  /** The schema of every plugin that could be imported and has one. */
  readonly schemas: readonly PluginSchema[];
  /** Imports that failed: reported together with everything else. */
  readonly faults?: readonly FaultAt[];
}

/** The plugins that a configuration means, the store first: import them before {@link checkConfig}. */
export function findInstances(raw: RawConfig, builtins: readonly BuiltinName[]): readonly InstanceRef[] {
  const lookup = createLookup(raw.env, raw.baseDir);
  const { instance: store } = findStore(raw.value['store'], raw.baseDir, lookup);
  return [...(store ? [store] : []), ...listInstances(raw.value, builtins, lookup).instances];
}

/** Interpolates and validates everything; answers the configuration, or throws a {@link ConfigError} with all faults. */
export function checkConfig(raw: RawConfig, plugins: KnownPlugins): GatewayConfig {
  const context: CheckContext = { lookup: createLookup(raw.env, raw.baseDir), validator: createValidator() };
  const { instances, faults: namingFaults } = listInstances(raw.value, plugins.builtins, context.lookup);
  const core = checkSection(withoutMembers(raw.value), CORE_SCHEMA, '', context);
  const schemaOf = createSchemaFinder(plugins.schemas);
  const store = findStore(raw.value['store'], raw.baseDir, context.lookup);
  const checkedStore = store.instance && checkStore(store.instance, schemaOf(store.instance), context);
  // Without its plugin nothing can be said about an instance's options.
  const isImported = ({ pointer }: RawInstance): boolean => !plugins.faults?.some((fault) => fault.pointer === pointer);
  const checked = instances.filter(isImported).map((instance) => checkInstance(instance, schemaOf(instance), context));
  const providers = namesIn(raw.value['providers']);
  const faults = [
    ...raw.faults,
    ...namingFaults,
    ...(plugins.faults ?? []),
    ...core.faults,
    ...store.faults,
    ...(checkedStore?.section.faults ?? []),
    ...checked.flatMap(({ section }) => section.faults),
    ...checkAliases(core.value['models'], [...providers, ...namesIn(raw.value['tts'])]),
    ...checkPlans(core.value['plans'], core.value['defaultPlan'], providers),
  ];
  if (faults.length > 0 || !checkedStore) {
    throw new ConfigError(faults.map((fault) => locateFault(fault, raw.file, raw.positions)));
  }
  return finishConfig(raw, core, checkedStore, checked);
}

/** The schema of an instance's plugin, closed; the same object for the same plugin, so that it is compiled once. */
function createSchemaFinder(schemas: readonly PluginSchema[]): (instance: InstanceRef) => Schema {
  const key = (kind: string, name: string): string => `${kind} ${name}`;
  const open = sealPluginSchema({ additionalProperties: true });
  const known = new Map(schemas.map(({ kind, name, schema }) => [key(kind, name), sealPluginSchema(schema)]));
  return ({ kind, plugin }) => known.get(key(kind, plugin)) ?? open;
}

/** Its references are replaced already, and no text out of one may be shown: a store's URL holds a password. */
function checkStore(instance: RawInstance, schema: Schema, { validator }: CheckContext): CheckedInstance {
  const value = structuredClone(instance.value);
  const faults = validateValue(value, schema, { pointer: instance.pointer, validator, isHidden: () => true });
  return { instance, schema, section: { value, faults, sources: new Map() } };
}

/** A plugin in the list of those without options that needs some is told where to write them. */
function checkInstance(instance: RawInstance, schema: Schema, context: CheckContext): CheckedInstance {
  const section = checkSection(instance.value, schema, instance.pointer, context);
  if (instance.group !== 'plugins') return { instance, schema, section };
  const hint = 'Name it under "policies" with "plugin:" and its options.';
  return { instance, schema, section: { ...section, faults: section.faults.map((fault) => ({ ...fault, hint })) } };
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
  return Object.keys(group).filter((name) => group[name] !== false && INSTANCE_NAME.test(name));
}

function isMap(value: Json | undefined): value is JsonMap {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
