import { BUDGET } from '../contract/budget-rules.ts';
import type { ConfigDraft, DraftEntry, DraftSection, DraftSectionView } from '../contract/config-changes.ts';
import { GatewayError } from '../contract/errors.ts';
import { isObject, type Json, type Schema } from '../contract/json.ts';
import { PLAN_SCHEMA } from '../contract/plan-schema.ts';
import { childPointer } from '../contract/pointers.ts';
import { sealPluginSchema } from './compose-schema.ts';
import { writeYaml } from './edit-text.ts';
import { egressOptionsOf } from './egress.ts';
import { type Builtin, importPlugin } from './import-plugin.ts';
import { ROUTE_SCHEMA } from './model-routes.ts';
import { PACKAGE_ROOT } from './package-root.ts';
import type { RawConfig } from './read.ts';

/**
 * Parts of a configuration file that operators may draft: aliases, model lists of providers, plans, budgets, and
 * guardrails without addresses. A draft reaches no other key.
 */

type Values = Readonly<Record<string, Json>>;

/** Built-in guardrails that send nothing to an address, with the schemas of their options. */
export type GuardrailSchemas = ReadonlyMap<string, Schema>;

/** File that is edited, and where else entries come from. */
export interface DraftSource {
  /** Values of the file itself. */
  readonly values: Values;
  /** Values with those of imported files. */
  readonly raw: Pick<RawConfig, 'value' | 'positions'>;
  readonly guardrails: GuardrailSchemas;
}

/** Change of one entry. */
export interface DraftEdit {
  /** Names and index from the root to the entry. */
  readonly path: EntryPath;
  readonly before: Json | undefined;
  readonly after: Json | undefined;
  /** All values of the file after the change. */
  readonly values: Values;
}

type EntryPath = readonly (string | number)[];

/** Imports the built-in guardrails, and keeps those that have no address and no secret. */
export async function readGuardrails(builtins: readonly Builtin[]): Promise<GuardrailSchemas> {
  const found = await Promise.all(
    builtins
      .filter(({ isOptIn }) => isOptIn === true)
      .map(async ({ name, kind }) => {
        const { configSchema = {} } = await importPlugin(name, { kind, builtins, baseDir: PACKAGE_ROOT });
        return [name, kind, configSchema as Schema] as const;
      }),
  );
  const local = found.filter(
    ([, , schema]) =>
      Object.keys(egressOptionsOf(schema)).length === 0 && !JSON.stringify(schema).includes('"secret":true'),
  );
  return new Map(local.map(([name, kind, schema]) => [name, withoutPlugin(sealPluginSchema({ kind, schema }))]));
}

function withoutPlugin(schema: Schema): Schema {
  const { plugin: _plugin, ...properties } = isObject(schema['properties']) ? schema['properties'] : {};
  return { ...schema, properties };
}

/** Schema of an alias with targets of one form. */
const ALIAS: Schema = Object.freeze({
  ...ROUTE_SCHEMA,
  properties: {
    ...ROUTE_SCHEMA.properties,
    targets: { ...ROUTE_SCHEMA.properties.targets, items: ROUTE_SCHEMA.properties.targets.items.anyOf[1] },
  },
});

const MODEL_LIST: Schema = Object.freeze({
  type: 'object',
  additionalProperties: false,
  required: ['models'],
  properties: {
    models: {
      type: 'array',
      minItems: 1,
      maxItems: 1000,
      items: { type: 'string', minLength: 1 },
      description: 'Replaces the model list. `*` accepts every name; `+name` adds to the built-in list.',
    },
  },
});

const { name: _name, ...BUDGET_FIELDS } = BUDGET.properties;
const NAMED_BUDGET: Schema = Object.freeze({
  ...BUDGET,
  required: BUDGET.required.filter((field) => field !== 'name'),
  properties: BUDGET_FIELDS,
});

interface SectionRow {
  /** Path of an entry in the values, existing or not. */
  pathOf(name: string, values: Values): EntryPath;
  /** Names of the entries in the values. */
  namesIn(values: Values, guardrails: GuardrailSchemas): readonly string[];
  /** Names that an entry may have; undefined for any name. */
  possible?(values: Values, guardrails: GuardrailSchemas): readonly string[];
  /** Value of the file in the form of the schema. */
  show(value: Json): Json;
  /** Value for the file; `before` is the present one. */
  write(value: Json, name: string, before: Json | undefined): Json;
}

const asIs = (value: Json): Json => value;

const SECTIONS: Readonly<Record<DraftSection, SectionRow>> = Object.freeze({
  models: {
    pathOf: (name) => ['models', name],
    namesIn: ({ models }) => Object.keys(mapOf(models)),
    show: showAlias,
    write: (value, _name, before) => writeAlias(value, before),
  },
  provider_models: {
    pathOf: (name) => ['providers', name, 'models'],
    namesIn: ({ providers }) =>
      Object.keys(mapOf(providers)).filter((name) => 'models' in mapOf(mapOf(providers)[name])),
    possible: ({ providers }) => Object.keys(mapOf(providers)),
    show: (value) => (Array.isArray(value) ? { models: value } : value),
    write: (value) => mapOf(value)['models'] ?? value,
  },
  plans: {
    pathOf: (name) => ['plans', name],
    namesIn: ({ plans }) => Object.keys(mapOf(plans)),
    show: (value) => value ?? {},
    write: asIs,
  },
  budgets: {
    pathOf: (name, { budgets }) => ['budgets', indexOfName(budgets, name)],
    namesIn: ({ budgets }) => (Array.isArray(budgets) ? budgets.flatMap((each) => nameOf(each) ?? []) : []),
    show: (value) => without(value, 'name'),
    write: (value, name) => (isObject(value) ? ({ name, ...value } as Json) : value),
  },
  guardrails: {
    pathOf: (name) => ['policies', name],
    namesIn: ({ policies }, guardrails) =>
      Object.entries(mapOf(policies)).flatMap(([name, value]) => (guardrails.has(pluginOf(name, value)) ? [name] : [])),
    possible: (_values, guardrails) => [...guardrails.keys()],
    show: (value) => (isObject(value) ? without(value as Json, 'plugin') : {}),
    write: (value, _name, before) => {
      const { plugin } = mapOf(before);
      return plugin === undefined || !isObject(value) ? value : ({ plugin, ...value } as Json);
    },
  },
} satisfies Record<DraftSection, SectionRow>);

/** Lists the entries of all sections. */
export function listSections({ values, raw, guardrails }: DraftSource): readonly DraftSectionView[] {
  return Object.entries(SECTIONS).flatMap(([each, row]: readonly [string, SectionRow]): readonly DraftSectionView[] => {
    const section = each as DraftSection;
    const own = row.namesIn(values, guardrails).map((name) => showEntry(row, name, values));
    const imported = row
      .namesIn(raw.value, guardrails)
      .filter((name) => !own.some((entry) => entry.name === name))
      .flatMap((name): readonly DraftEntry[] => {
        const from = fileOf(raw, row.pathOf(name, raw.value));
        return from === undefined ? [] : [{ ...showEntry(row, name, raw.value), from }];
      });
    const entries = [...own, ...imported];
    const names = row.possible?.(values, guardrails);
    if (section !== 'guardrails') return [{ section, schema: SCHEMAS[section], ...(names && { names }), entries }];
    // Each guardrail has options of its own.
    return (names ?? []).map((plugin) => ({
      section,
      schema: guardrails.get(plugin) ?? {},
      names: [plugin],
      entries: entries.filter(
        ({ name }) => pluginOf(name, mapOf((raw.value['policies'] ?? null) as Json)[name]) === plugin,
      ),
    }));
  });
}

const SCHEMAS: Readonly<Record<Exclude<DraftSection, 'guardrails'>, Schema>> = Object.freeze({
  models: ALIAS,
  provider_models: MODEL_LIST,
  plans: PLAN_SCHEMA,
  budgets: NAMED_BUDGET,
});

function showEntry(row: SectionRow, name: string, values: Values): DraftEntry {
  const path = row.pathOf(name, values);
  const value = valueAt(values, path) ?? null;
  return { name, value: row.show(value), yaml: entryYaml(path, value) };
}

/** The entry as YAML, from the first level. */
export function entryYaml(path: EntryPath, value: Json | undefined): string {
  if (value === undefined) return '';
  return writeYaml(
    path.reduceRight<unknown>((inner, key) => (typeof key === 'number' ? [inner] : { [key]: inner }), value),
  );
}

/** Changes that the draft makes in the values of the file. Throws a GatewayError for a draft that may not be written. */
export function editOf({ section, name, value }: ConfigDraft, { values, raw, guardrails }: DraftSource): DraftEdit {
  const row: SectionRow = SECTIONS[section];
  const path = row.pathOf(name, values);
  const before = valueAt(values, path);
  if (section === 'guardrails' && !guardrails.has(pluginOf(name, before ?? null)))
    throw refuse(
      `"${name}" is not a guardrail that can be drafted: only built-in ones without an address can. Edit the file.`,
      'name',
    );
  const [group, member] = path;
  if (section === 'provider_models' && member !== undefined && !Object.hasOwn(mapOf(values[group ?? '']), member))
    throw refuse(`The provider "${name}" is not in this file. Add it there first.`, 'name');
  if (before === undefined) refuseImported(row, name, raw);
  if (before === undefined && value === undefined) throw refuse(`The file has no "${name}" here.`, 'name');
  if (isObject(value) && 'plugin' in value)
    throw refuse('A draft cannot name a plugin. Edit the file.', 'value.plugin');
  const after = value === undefined ? undefined : row.write(value, name, before);
  refuseNewReferences(before, after);
  return { path, before, after, values: withValue(values, path, after) };
}

function refuse(message: string, param: string): GatewayError {
  return new GatewayError('invalid_request', message, { param });
}

function refuseImported(row: SectionRow, name: string, raw: DraftSource['raw']): void {
  const path = row.pathOf(name, raw.value);
  const from = valueAt(raw.value, path) === undefined ? undefined : fileOf(raw, path);
  if (from !== undefined) throw new GatewayError('conflict', `"${name}" comes from ${from}. Change it there.`);
}

/** Imported file that has an entry; undefined for the file itself. */
function fileOf({ positions }: DraftSource['raw'], path: EntryPath): string | undefined {
  return positions.get(path.reduce<string>(childPointer, ''))?.value.file;
}

/**
 * Refuses references such as `${NAME}` or `${file:…}` that the entry does not have in the same field already. They would
 * show the value of any variable or file to who reads the configuration.
 */
function refuseNewReferences(before: Json | undefined, after: Json | undefined): void {
  const known = new Set(referencesOf(before));
  const added = referencesOf(after).find((each) => !known.has(each));
  if (added === undefined) return;
  throw refuse(
    `A draft cannot add a reference such as \${NAME}: ${added.split('\n')[0]}. Write the value, or edit the file.`,
    'value',
  );
}

/** Fields with references, each with its text. Positions in lists do not count. */
function referencesOf(value: Json | undefined, field = 'value'): readonly string[] {
  if (typeof value === 'string') return value.includes('${') ? [`${field}\n${value}`] : [];
  if (Array.isArray(value)) return value.flatMap((item: Json) => referencesOf(item, `${field}[]`));
  return Object.entries(mapOf(value)).flatMap(([name, member]) => [
    ...referencesOf(name, `${field}, a name`),
    ...referencesOf(member, `${field}.${name}`),
  ]);
}

function valueAt(values: Json, path: EntryPath): Json | undefined {
  return path.reduce<Json | undefined>((value, key) => {
    if (Array.isArray(value)) return typeof key === 'number' ? value[key] : undefined;
    const members = mapOf(value);
    return Object.hasOwn(members, key) ? members[key] : undefined;
  }, values);
}

/** Values with another entry; a section that becomes empty is removed. */
function withValue(values: Values, [section = '', ...path]: EntryPath, entry: Json | undefined): Values {
  const { [section]: before, ...others } = values;
  const after = withEntry(before, path, entry);
  const isEmpty = Array.isArray(after) ? after.length === 0 : Object.keys(mapOf(after)).length === 0;
  if (entry === undefined && isEmpty) return others;
  return { ...values, [section]: after };
}

function withEntry(value: Json | undefined, [key, ...path]: EntryPath, entry: Json | undefined): Json {
  if (typeof key === 'number') {
    const items: readonly Json[] = Array.isArray(value) ? value : [];
    const added = entry === undefined ? [] : [entry];
    return [...items.slice(0, key), ...added, ...items.slice(key + 1)];
  }
  const { [key ?? '']: before, ...others } = mapOf(value);
  if (path.length === 0 && entry === undefined) return others;
  const after = path.length === 0 && entry !== undefined ? entry : withEntry(before, path, entry);
  return { ...mapOf(value), [key ?? '']: after };
}

function mapOf(value: Json | undefined): Values {
  return isObject(value) ? (value as Values) : {};
}

function without(value: Json, field: string): Json {
  const { [field]: _omitted, ...others } = mapOf(value);
  return others;
}

function nameOf(budget: Json): string | undefined {
  const { name } = mapOf(budget);
  return typeof name === 'string' ? name : undefined;
}

/** Index of a budget; that after the last one if no budget has this name. */
function indexOfName(budgets: Json | undefined, name: string): number {
  const list: readonly Json[] = Array.isArray(budgets) ? budgets : [];
  const found = list.findIndex((each) => nameOf(each) === name);
  return found === -1 ? list.length : found;
}

function pluginOf(name: string, value: Json | undefined): string {
  const { plugin } = mapOf(value);
  return typeof plugin === 'string' ? plugin : name;
}

/** Alias in its long form, with targets as maps. */
function showAlias(value: Json): Json {
  const route: Values = isObject(value) ? (value as Values) : { targets: [value].flat() };
  const { targets } = route;
  if (!Array.isArray(targets)) return route;
  return { ...route, targets: targets.map((to: Json) => (typeof to === 'string' ? { to } : to)) };
}

/** Alias in the shortest form; one that the file has in the long form keeps it. */
function writeAlias(value: Json, before: Json | undefined): Json {
  const { targets, ...rules } = mapOf(value);
  if (!Array.isArray(targets)) return value;
  const short = targets.map((target: Json) => {
    const { to, ...others } = mapOf(target);
    return to !== undefined && Object.keys(others).length === 0 ? to : target;
  });
  const isShort = Object.keys(rules).length === 0 && short.every((target) => typeof target === 'string');
  if (!isShort || isObject(before)) return { ...rules, targets: short };
  return short.length === 1 && !Array.isArray(before) ? (short[0] ?? short) : short;
}
