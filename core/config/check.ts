import { isObject, type Json, type Schema } from '../contract/json.ts';
import { checkAliases, checkModelOptions, suggest } from './check-aliases.ts';
import { checkBudgets } from './check-budgets.ts';
import { checkTags } from './check-tags.ts';
import { sealPluginSchema } from './compose-schema.ts';
import { CORE_PROPERTIES, type CoreValues, type GatewayConfig, type InstanceRef } from './core-schema.ts';
import { type CheckedInstance, finishConfig, type Section } from './finish-config.ts';
import { findGroup, GROUP_NAMES, INSTANCE_NAME, type PluginSchema } from './groups.ts';
import { type BuiltinName, listInstances, type RawInstance } from './instances.ts';
import { createLookup, interpolateTree } from './interpolate.ts';
import { childPointer, createConfigError, type ProblemAt } from './problems.ts';
import type { RawConfig } from './read.ts';
import { findStore, interpolateStore, listStoreNames } from './store-url.ts';
import { checkTls } from './tls.ts';
import { type SchemaProblem, validateValue } from './validate.ts';

/** What the loader found out about the plugins that a configuration names. */
export interface KnownPlugins {
  readonly builtins: readonly BuiltinName[];
  /** The schema of every plugin that could be imported and has one. */
  readonly schemas: readonly PluginSchema[];
  /** Imports that failed: reported together with everything else. */
  readonly problems?: readonly ProblemAt[];
}

type CheckSection = (value: Json, schema: Schema, pointer: string) => Section;

/** The plugins that a configuration may mean: import them before {@link checkConfig}, which chooses one of the stores. */
export function findInstances(
  raw: RawConfig,
  builtins: readonly BuiltinName[],
): { readonly stores: readonly InstanceRef[]; readonly instances: readonly InstanceRef[] } {
  const lookup = createLookup(raw);
  const store = interpolateStore(raw.value['store'], lookup);
  const names = store === undefined ? [] : listStoreNames(store, builtins);
  return {
    stores: names.map((name) => ({ group: 'store', kind: 'store', name, plugin: name, pointer: '/store' })),
    instances: listInstances(raw.value, builtins, lookup).instances,
  };
}

/** Interpolates and validates everything; answers the configuration, or throws a `ConfigError` with all problems. */
export function checkConfig(
  raw: RawConfig,
  { builtins, schemas, problems: importProblems = [] }: KnownPlugins,
): GatewayConfig {
  const lookup = createLookup(raw);
  const { baseDir } = raw;
  const check: CheckSection = (value, schema, pointer) => {
    const tree = interpolateTree(value, schema, pointer, lookup);
    const errors = validateValue(tree.value, schema, { pointer, baseDir, isHidden: (at) => tree.sources.has(at) });
    // A value that could not be made is one problem, not a second one for missing.
    const told = new Set(tree.problems.map((problem) => problem.pointer));
    const own = errors.filter(({ missing }) => missing === undefined || !told.has(missing));
    const problems = [...tree.problems, ...own.map((problem) => explainMissing(problem, tree.unset))];
    return { pointer, schema, value: tree.value, sources: tree.sources, problems };
  };

  const { instances, problems: namingProblems } = listInstances(raw.value, builtins, lookup);
  const pluginOf = createPluginFinder(schemas);
  // Without its plugin nothing can be said about an instance's options.
  const imported = instances.filter(({ pointer }) => !importProblems.some((problem) => problem.pointer === pointer));
  const checked = imported.map((instance) => checkInstance(instance, pluginOf(instance), raw.value, check));
  const sections = checked.flatMap(({ section }) => section ?? []);
  const core = check(withoutMembers(raw.value, sections), coreSchema(sections), '');

  const found = findStore(interpolateStore(raw.value['store'], lookup), builtins, schemas);
  const store = found.instance && checkStore(found.instance, pluginOf(found.instance).schema, baseDir);
  const providers = namesIn(raw.value['providers']);
  const values = isObject(core.value) ? core.value : {};
  const named = [...providers, ...namesIn(raw.value['tts'])];
  const problems = [
    ...raw.problems,
    ...namingProblems,
    ...importProblems,
    ...core.problems,
    ...found.problems,
    ...(store?.problems ?? []),
    ...checkSectionNames(checked),
    ...checked.flatMap((instance) => instance.problems),
    ...checkAliases(values['models'], named),
    ...checked.flatMap((instance) => checkModelOptions(instance, values['models'], named)),
    ...checked.flatMap((instance) => checkDialectAliases(instance, providers)),
    ...checkPlans(values, providers),
    ...checkBudgets(values, named),
    ...checkTags(values['tags']),
    ...checkTls(isObject(values['server']) ? values['server']['tls'] : undefined, lookup),
  ];
  if (problems.length > 0 || !store) throw createConfigError(problems, raw);
  return finishConfig(raw, core, store, checked);
}

/** What is known of an instance's plugin, its schema closed; the same object for the same plugin, so that it is compiled once. */
function createPluginFinder(
  schemas: readonly PluginSchema[],
): (ref: InstanceRef) => Pick<PluginSchema, 'schema' | 'section'> {
  const open = { schema: sealPluginSchema({ schema: { additionalProperties: true } }) };
  const known = new Map(
    schemas.map((plugin) => [`${plugin.kind} ${plugin.name}`, { ...plugin, schema: sealPluginSchema(plugin) }]),
  );
  return ({ kind, plugin }) => known.get(`${kind} ${plugin}`) ?? open;
}

function checkInstance(
  { value, ...ref }: RawInstance,
  { schema, section }: Pick<PluginSchema, 'schema' | 'section'>,
  whole: RawConfig['value'],
  check: CheckSection,
): CheckedInstance {
  if (section !== undefined) {
    const pointer = childPointer('', section);
    const given = whole[section] ?? false;
    const unset = [schema['type']].flat().includes('null') ? null : {};
    const options = given === true ? {} : given === false ? unset : given;
    const extra = Object.keys(isObject(value) ? value : {}).map((key): ProblemAt => {
      const hint = `The options of this plugin are under "${section}".`;
      return { pointer: childPointer(ref.pointer, key), atKey: true, message: 'unknown key', hint };
    });
    const checked = check(options, schema, pointer);
    return { ...checked, problems: [...extra, ...checked.problems], ref: { ...ref, pointer }, section };
  }
  const checked = check(value, schema, ref.pointer);
  if (ref.group !== 'plugins') return { ...checked, ref };
  // A plugin in the list of those without options that needs some.
  const hint = 'Name it under "policies" with "plugin:" and its options.';
  return { ...checked, ref, problems: checked.problems.map((problem) => ({ ...problem, hint })) };
}

/** Its references are replaced already, and no text out of one may be shown: a store's URL holds a password. */
function checkStore({ value: given, ...ref }: RawInstance, schema: Schema, baseDir: string): CheckedInstance {
  const value = structuredClone(given);
  const problems = validateValue(value, schema, { pointer: ref.pointer, baseDir, isHidden: () => true });
  return { ref, pointer: ref.pointer, schema, value, problems, sources: new Map() };
}

/** A client format's own names of models: its option `models`, which is as the configuration's aliases are. */
function checkDialectAliases({ ref, value }: CheckedInstance, providers: readonly string[]): readonly ProblemAt[] {
  if (ref.kind !== 'dialect' || !isObject(value)) return [];
  return checkAliases(value['models'], providers, `${ref.pointer}/models`);
}

/** Plugins whose section is core's or another's. */
function checkSectionNames(instances: readonly CheckedInstance[]): readonly ProblemAt[] {
  const owners = new Map([...Object.keys(CORE_PROPERTIES), ...GROUP_NAMES].map((key) => [key, 'core']));
  return instances.flatMap(({ ref: { group, name }, section }): readonly ProblemAt[] => {
    if (section === undefined) return [];
    const owner = owners.get(section);
    owners.set(section, owner ?? name);
    const message = `plugin_conflict: has its options under "${section}", which is ${owner}’s`;
    return owner === undefined ? [] : [{ pointer: childPointer(`/${group}`, name), atKey: true, message }];
  });
}

/** A required secret whose variable is not set is told as such. */
function explainMissing(problem: SchemaProblem, unset: ReadonlyMap<string, string>): ProblemAt {
  const pointer = problem.missing ?? '';
  const variable = unset.get(pointer);
  if (!variable) return problem;
  const message = `needs the environment variable ${variable}, which is not set or empty`;
  return { pointer, message, hint: `Set ${variable} in the environment, in .env.local or in .env.` };
}

/** Core's part alone, beside plugins with these sections: the members of the groups and the sections of plugins are each checked by their plugin's schema. */
export function coreSchema(sections: readonly string[]): Schema {
  const elsewhere = [...GROUP_NAMES.map((group) => [group, { type: 'object' }]), ...sections.map((name) => [name, {}])];
  const properties = { ...CORE_PROPERTIES, ...Object.fromEntries(elsewhere) };
  return { type: 'object', additionalProperties: false, properties };
}

/** The configuration with the groups and sections emptied; a group that is no map stays, to be a problem. */
function withoutMembers(value: RawConfig['value'], sections: readonly string[]): RawConfig['value'] {
  const isElsewhere = (key: string, member: Json): boolean =>
    sections.includes(key) || (findGroup(key) !== undefined && isObject(member));
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [key, isElsewhere(key, member) ? {} : member]),
  );
}

function namesIn(group: Json | undefined): readonly string[] {
  if (!isObject(group)) return [];
  return Object.keys(group).filter((name) => group[name] !== false && INSTANCE_NAME.test(name));
}

/** What core's part of a configuration refers to; its values may be of any shape when it has other problems. */
type Referring = Partial<Readonly<Record<keyof CoreValues, unknown>>>;

/** Plans that limit a provider that is not configured, and a default plan that is none. */
function checkPlans({ plans, defaultPlan }: Referring, providers: readonly string[]): readonly ProblemAt[] {
  const known = isObject(plans) ? plans : {};
  const problems = Object.entries(known).flatMap(([name, plan]) => {
    const limited = isObject(plan) && isObject(plan['providers']) ? Object.keys(plan['providers']) : [];
    return limited
      .filter((provider) => !providers.includes(provider))
      .map((provider): ProblemAt => {
        const pointer = childPointer(`${childPointer('/plans', name)}/providers`, provider);
        return { pointer, atKey: true, message: 'is no configured provider', hint: suggest(provider, providers) };
      });
  });
  if (typeof defaultPlan !== 'string' || Object.hasOwn(known, defaultPlan)) return problems;
  const message = `names the plan "${defaultPlan}", which "plans" does not have`;
  return [...problems, { pointer: '/defaultPlan', message, hint: suggest(defaultPlan, Object.keys(known)) }];
}
