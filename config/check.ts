import { checkBudgets } from '../contract/check-budgets.ts';
import { isObject, type Json, type Schema } from '../contract/json.ts';
import { didYouMean } from '../contract/nearest.ts';
import { childPointer, type ProblemAt } from '../contract/pointers.ts';
import { checkPrices } from '../contract/price-rows.ts';
import { FORMATS } from '../contract/schema-formats.ts';
import { END_USER_TAG, TAG_NAME, TAG_VALUE } from '../contract/units.ts';
import { sealPluginSchema } from './compose-schema.ts';
import {
  CORE_PROPERTIES,
  type CoreValues,
  coreOptionsOf,
  findGroup,
  type GatewayConfig,
  GROUP_NAMES,
  INSTANCE_NAME,
  type InstanceRef,
  type PluginSchema,
} from './core-schema.ts';
import { checkEgress, checkEnvironment } from './egress.ts';
import { type BuiltinName, listInstances, type RawInstance } from './instances.ts';
import { createLookup, interpolateTree, type Lookup } from './interpolate.ts';
import { targetTexts } from './model-routes.ts';
import { createConfigError } from './problems.ts';
import { type CheckedInstance, finishConfig, type RawConfig, type Section } from './read.ts';
import { mapLeaves } from './schema-at.ts';
import { findStore, interpolateStore, listStoreNames } from './store-url.ts';
import { checkTls } from './tls.ts';
import { type SchemaProblem, validateValue } from './validate.ts';

/** Facts of the loader about the configured plugins. */
export interface KnownPlugins {
  readonly builtins: readonly BuiltinName[];
  /** Schemas of all imported plugins that have one. */
  readonly schemas: readonly PluginSchema[];
  /** Failed imports, reported together with all other problems. */
  readonly problems?: readonly ProblemAt[];
}

type CheckSection = (value: Json, schema: Schema, pointer: string, plugin?: string) => Section;

/** Plugin to import. */
export interface NamedInstance extends InstanceRef {
  /** True if the configuration works without the plugin when its import fails. */
  readonly isOptional?: boolean;
}

/**
 * Lists the plugins that a configuration may use. Import them before {@link checkConfig}, which chooses one of the
 * stores.
 */
export function findInstances(
  raw: RawConfig,
  builtins: readonly BuiltinName[],
): { readonly stores: readonly NamedInstance[]; readonly instances: readonly NamedInstance[] } {
  const lookup = createLookup(raw);
  const store = interpolateStore(raw.value['store'], lookup);
  const names = store === undefined ? [] : listStoreNames(store, builtins);
  return {
    stores: names.map((name) => ({ group: 'store', kind: 'store', name, plugin: name, pointer: '/store' })),
    instances: listInstances(raw.value, builtins, lookup).instances.map(({ value, ...ref }) => ({
      ...ref,
      isOptional: isObject(value) && value['required'] === false,
    })),
  };
}

/** Interpolates and validates everything. Returns the configuration, or throws a `ConfigError` with all problems. */
export function checkConfig(
  raw: RawConfig,
  { builtins, schemas, problems: importProblems = [] }: KnownPlugins,
): GatewayConfig {
  const lookup = createLookup(raw);
  const { baseDir } = raw;
  const check: CheckSection = (value, schema, pointer, plugin) => {
    const tree = interpolateTree(value, schema, pointer, lookup);
    const isHidden = (at: string): boolean => tree.sources.has(at);
    const errors = validateValue(tree.value, schema, { plugin, pointer, baseDir, isHidden });
    // A value that failed to interpolate is reported once, and not also as missing.
    const reported = new Set(tree.problems.map((problem) => problem.pointer));
    const own = errors.filter(({ missing }) => missing === undefined || !reported.has(missing));
    const problems = [...tree.problems, ...own.map((problem) => explainMissing(problem, tree.unset))];
    return { pointer, schema, value: tree.value, sources: tree.sources, problems };
  };

  const { instances, problems: namingProblems } = listInstances(raw.value, builtins, lookup);
  const pluginOf = createPluginFinder(schemas);
  // Options cannot be checked without the plugin.
  const imported = instances.filter(({ pointer }) => !importProblems.some((problem) => problem.pointer === pointer));
  const checked = imported.map((instance) => checkInstance(instance, pluginOf(instance), raw.value, check));
  const sections = sectionNames(builtins, checked);
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
    ...checked.flatMap(checkPrices),
    ...checkPlans(values, providers),
    ...checkBudgets(values, named),
    ...checkTags(values['tags']),
    ...checkEnvironment(lookup.env),
    ...checked.flatMap((instance) => checkEgressOf(instance, lookup)),
    ...checkTls(isObject(values['server']) ? values['server']['tls'] : undefined, lookup),
  ];
  if (problems.length > 0 || !store) throw createConfigError(problems, raw);
  return finishConfig(raw, core, store, checked);
}

/** Schema that checks an instance's options. */
interface InstanceSchema extends Pick<PluginSchema, 'schema' | 'section'> {
  /** Options handled by core in place of the plugin. */
  readonly ofCore: readonly string[];
}

/** Schema of plugins that were not imported: any options. */
const OPEN: InstanceSchema = Object.freeze({
  schema: sealPluginSchema({ schema: { additionalProperties: true } }),
  ofCore: [],
});

/** Sealed schemas by a plugin's schema, kind and section, so that each is sealed and compiled once. */
const sealed = new WeakMap<Schema, Map<string, InstanceSchema>>();

function sealOnce(plugin: PluginSchema): InstanceSchema {
  const { schema, kind, section } = plugin;
  const known = sealed.get(schema) ?? new Map<string, InstanceSchema>();
  sealed.set(schema, known);
  const key = `${kind} ${section ?? ''}`;
  const found = known.get(key);
  if (found) return found;
  const made: InstanceSchema = {
    schema: sealPluginSchema(plugin),
    ...(section !== undefined && { section }),
    ofCore: Object.keys(coreOptionsOf(plugin)),
  };
  known.set(key, made);
  return made;
}

/** Finds the sealed schema of an instance's plugin. */
function createPluginFinder(schemas: readonly PluginSchema[]): (ref: InstanceRef) => InstanceSchema {
  const known = new Map(schemas.map((plugin) => [`${plugin.kind} ${plugin.name}`, plugin]));
  return ({ kind, plugin }) => {
    const found = known.get(`${kind} ${plugin}`);
    return found ? sealOnce(found) : OPEN;
  };
}

function checkInstance(
  { value, ...ref }: RawInstance,
  { schema, section, ofCore }: InstanceSchema,
  config: RawConfig['value'],
  check: CheckSection,
): CheckedInstance {
  if (section !== undefined) {
    const pointer = childPointer('', section);
    const given = config[section] ?? false;
    const unset = [schema['type']].flat().includes('null') ? null : {};
    const options = given === true ? {} : given === false ? unset : given;
    const extra = Object.keys(isObject(value) ? value : {}).map((key): ProblemAt => {
      const hint = `The options of this plugin are under "${section}".`;
      return { pointer: childPointer(ref.pointer, key), atKey: true, message: 'unknown key', hint };
    });
    const checked = check(options, schema, pointer, ref.plugin);
    return { ...checked, problems: [...extra, ...checked.problems], ref: { ...ref, pointer }, section };
  }
  const checked = { ...check(value, schema, ref.pointer, ref.plugin), ofCore };
  if (ref.group !== 'plugins') return { ...checked, ref };
  // The list form allows no options, but this plugin requires some.
  const hint = 'Add it under "policies" with "plugin:" and its options.';
  return { ...checked, ref, problems: checked.problems.map((problem) => ({ ...problem, hint })) };
}

/** References are already replaced, so no text may be shown: a store's URL holds a password. */
function checkStore({ value: given, ...ref }: RawInstance, schema: Schema, baseDir: string): CheckedInstance {
  const value = structuredClone(given);
  const problems = validateValue(value, schema, { ...ref, baseDir, isHidden: () => true });
  return { ref, pointer: ref.pointer, schema, value, problems, sources: new Map() };
}

/** Checks the options for outbound connections, if the instance has them. */
function checkEgressOf({ ref, value, ofCore = [] }: CheckedInstance, lookup: Lookup): readonly ProblemAt[] {
  if (!isObject(value)) return [];
  const own = Object.entries(value).filter(([name]) => ofCore.includes(name));
  return checkEgress(ref.pointer, Object.fromEntries(own), lookup);
}

/**
 * Checks the model names of a client format: its option `models`, which has the form of the configuration's aliases.
 */
function checkDialectAliases({ ref, value }: CheckedInstance, providers: readonly string[]): readonly ProblemAt[] {
  if (ref.kind !== 'dialect' || !isObject(value)) return [];
  return checkAliases(value['models'], providers, `${ref.pointer}/models`);
}

/** Finds plugins whose section is taken by core or another plugin. */
function checkSectionNames(instances: readonly CheckedInstance[]): readonly ProblemAt[] {
  const owners = new Map([...Object.keys(CORE_PROPERTIES), ...GROUP_NAMES].map((key) => [key, 'core']));
  return instances.flatMap(({ ref: { group, name }, section }): readonly ProblemAt[] => {
    if (section === undefined) return [];
    const owner = owners.get(section);
    owners.set(section, owner ?? name);
    const message = `plugin_conflict: has its options under "${section}", which belongs to ${owner}`;
    return owner === undefined ? [] : [{ pointer: childPointer(`/${group}`, name), atKey: true, message }];
  });
}

/** Explains a missing required secret by its unset variable. */
function explainMissing(problem: SchemaProblem, unset: ReadonlyMap<string, string>): ProblemAt {
  const pointer = problem.missing ?? '';
  const variable = unset.get(pointer);
  if (!variable) return problem;
  const message = `needs the environment variable ${variable}, which is not set or empty`;
  return { pointer, message, hint: `Set ${variable} in the environment, in .env.local or in .env.` };
}

/** Names of the top-level sections that plugins check, sorted: those of built-in plugins and of the given instances. */
export function sectionNames(
  builtins: readonly BuiltinName[],
  instances: readonly { readonly section?: string | undefined }[],
): readonly string[] {
  const named = [...builtins.map(({ bySection }) => bySection), ...instances.map(({ section }) => section)];
  return [...new Set(named.flatMap((name) => name ?? []))].toSorted();
}

/** Core's schema for the sections of the last configuration. A process loads configurations with the same ones. */
let lastCore: { readonly sections: string; readonly schema: Schema } | undefined;

/**
 * Schema of core's part, given the sections of plugins. Plugin schemas check the members of groups and these sections.
 */
export function coreSchema(sections: readonly string[]): Schema {
  const key = sections.join();
  if (lastCore?.sections !== key) lastCore = { sections: key, schema: composeCore(sections) };
  return lastCore.schema;
}

function composeCore(sections: readonly string[]): Schema {
  const elsewhere = [...GROUP_NAMES.map((group) => [group, { type: 'object' }]), ...sections.map((name) => [name, {}])];
  const properties = { ...CORE_PROPERTIES, ...Object.fromEntries(elsewhere) };
  return { type: 'object', additionalProperties: false, properties };
}

/** Empties the groups and sections; a group that is not a map stays and is reported. */
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

/** Values of core that refer to others. They may have any shape if the configuration has other problems. */
type Referring = Partial<Readonly<Record<keyof CoreValues, unknown>>>;

/** Finds plans that limit a provider that is not configured, and a default plan that does not exist. */
function checkPlans({ plans, defaultPlan }: Referring, providers: readonly string[]): readonly ProblemAt[] {
  const known = isObject(plans) ? plans : {};
  const problems = Object.entries(known).flatMap(([name, plan]) => {
    const limited = isObject(plan) && isObject(plan['providers']) ? Object.keys(plan['providers']) : [];
    return limited
      .filter((provider) => !providers.includes(provider))
      .map((provider): ProblemAt => {
        const pointer = childPointer(`${childPointer('/plans', name)}/providers`, provider);
        return { pointer, atKey: true, message: 'is not a configured provider', hint: suggest(provider, providers) };
      });
  });
  if (typeof defaultPlan !== 'string' || Object.hasOwn(known, defaultPlan)) return problems;
  const message = `refers to the plan "${defaultPlan}", which is not in "plans"`;
  return [...problems, { pointer: '/defaultPlan', message, hint: suggest(defaultPlan, Object.keys(known)) }];
}

/** Finds aliases with an invalid name or target; providers of targets must be configured. */
function checkAliases(models: unknown, providers: readonly string[], place = '/models'): readonly ProblemAt[] {
  const aliases = isObject(models) ? models : {};
  return Object.entries(aliases).flatMap(([alias, target]) => {
    const pointer = childPointer(place, alias);
    return [
      ...checkAliasName(alias, pointer, providers),
      ...checkPattern(alias, target, pointer),
      ...targetTexts(target).flatMap(([at, text]) => {
        const place = at.reduce<string>(childPointer, pointer);
        return [
          ...checkTarget(text, place, providers, Object.hasOwn(aliases, text)),
          ...checkStars(text, place, alias.endsWith('*')),
        ];
      }),
    ];
  });
}

/** Checks an alias that ends in `*` and matches all names with this prefix. */
function checkPattern(alias: string, target: unknown, pointer: string): readonly ProblemAt[] {
  if (!alias.includes('*')) return [];
  if (alias.indexOf('*') < alias.length - 1) {
    const hint = 'Put the "*" at the end, as in fast-*, for all names with that prefix.';
    return [{ pointer, atKey: true, message: 'has a "*" before its end', hint }];
  }
  if (!isObject(target) || target['hedge'] === undefined) return [];
  const hint = 'Use separate aliases for the names to hedge.';
  return [{ pointer: childPointer(pointer, 'hedge'), message: 'is not supported for an alias with "*"', hint }];
}

/** A target may have a `*` only if its alias has one. */
function checkStars(text: string, pointer: string, isPattern: boolean): readonly ProblemAt[] {
  const stars = text.split('*').length - 1;
  if (stars === 0 || (isPattern && stars === 1 && text.indexOf('*') > text.indexOf('/'))) return [];
  const [message, hint] = isPattern
    ? ['must have at most one "*", after the provider', 'Use provider/*, or a prefix before the "*".']
    : ['has a "*", but its alias does not', 'Use one model, or an alias that ends in "*": fast-*: provider/*.'];
  return [{ pointer, message, hint }];
}

function checkAliasName(alias: string, pointer: string, providers: readonly string[]): readonly ProblemAt[] {
  const refuse = (message: string, hint: string): readonly ProblemAt[] => [{ pointer, atKey: true, message, hint }];
  if (!/^[^\s\p{C}]{1,200}$/u.test(alias)) {
    return refuse('is not a valid alias name', 'Use 1 to 200 visible characters without spaces.');
  }
  const hidden = providers.find((provider) => alias.startsWith(`${provider}/`));
  if (hidden === undefined) return [];
  const hint = 'Use an alias name that does not begin with a provider name.';
  return refuse(`hides a model of the provider "${hidden}"`, hint);
}

function checkTarget(
  text: string,
  pointer: string,
  providers: readonly string[],
  isAlias: boolean,
): readonly ProblemAt[] {
  const [provider = '', ...model] = text.split('/');
  if (provider === '' || model.join('/') === '') {
    const hint = isAlias
      ? 'Use models, since an alias cannot refer to another alias.'
      : 'Use the provider’s name, a slash and the model.';
    return [{ pointer, message: 'must be "provider/model"', hint }];
  }
  if (providers.includes(provider)) return [];
  const message = `refers to the provider "${provider}", which is not configured`;
  return [{ pointer, message, hint: suggest(provider, providers) }];
}

/** Options of `format: "model"`: each names an alias, or a model of a configured provider. */
function checkModelOptions(
  { value, schema, pointer }: { readonly value: unknown; readonly schema: Schema; readonly pointer: string },
  aliases: unknown,
  providers: readonly string[],
): readonly ProblemAt[] {
  const problems: ProblemAt[] = [];
  mapLeaves(value, schema, pointer, (leaf, { pointer: at, nodes }) => {
    // Malformed names are reported by the schema.
    if (typeof leaf === 'string' && FORMATS['model']?.accepts(leaf) && nodes.some(({ format }) => format === 'model'))
      problems.push(...checkModel(leaf, at, isObject(aliases) ? Object.keys(aliases) : [], providers));
    return undefined;
  });
  return problems;
}

function checkModel(
  text: string,
  pointer: string,
  aliases: readonly string[],
  providers: readonly string[],
): readonly ProblemAt[] {
  if (aliases.some((alias) => alias === text || (alias.endsWith('*') && text.startsWith(alias.slice(0, -1)))))
    return [];
  if (/^[^/]+\/./.test(text)) return checkTarget(text, pointer, providers, false);
  const hint = didYouMean(text, aliases) ?? 'Use "provider/model", or an alias under "models".';
  return [{ pointer, message: `refers to the model "${text}", which is not an alias in "models"`, hint }];
}

/** Suggests a name for an unknown word. */
function suggest(word: string, names: readonly string[]): string {
  const known = names.length > 0 ? `Available: ${names.slice(0, 20).join(', ')}.` : 'None are configured.';
  return didYouMean(word, names) ?? known;
}

/** Finds names and values of tags that no request could send. */
function checkTags(tags: unknown): readonly ProblemAt[] {
  if (!isObject(tags)) return [];
  return Object.entries(tags).flatMap(([name, values]): readonly ProblemAt[] => {
    const pointer = childPointer('/tags', name);
    if (!TAG_NAME.test(name))
      return [
        {
          pointer,
          atKey: true,
          message: 'is not a valid tag name',
          hint: 'Use 1 to 32 of a-z, 0-9, "_" and "-", and begin with a letter.',
        },
      ];
    if (name === END_USER_TAG)
      return [
        {
          pointer,
          atKey: true,
          message: 'is a tag that the gateway sets',
          hint: 'Remove it; endUsers: { report: true } counts calls by end user.',
        },
      ];
    return (Array.isArray(values) ? values : []).flatMap((value, index) =>
      typeof value === 'string' && !TAG_VALUE.test(value)
        ? [
            {
              pointer: childPointer(pointer, String(index)),
              message: 'is not a valid tag value',
              hint: 'Use 1 to 64 letters, digits, spaces and . _ : / @ + -, and begin with a letter or digit. Separate tags with commas. Use `name: "*"` to accept any value.',
            },
          ]
        : [],
    );
  });
}
