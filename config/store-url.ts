import { isObject, type Json, type JsonObject, type Schema } from '../contract/json.ts';
import type { ProblemAt } from '../contract/pointers.ts';
import { CORE_PROPERTIES, type PluginSchema } from './core-schema.ts';
import type { BuiltinName, RawInstance } from './instances.ts';
import { interpolateTree, type Lookup } from './interpolate.ts';

/** Store plugin chosen by a `store:` value, and the plugin's config. */
export interface StoreChoice {
  readonly plugin: string;
  readonly config: JsonObject;
}

/** Built-in store: its name and, if requested, its schema. */
export type KnownStore = Pick<PluginSchema, 'name' | 'schema'>;

/**
 * Lists the stores that a `store:` value may refer to: the named one, or the one with the URL's scheme. Otherwise all
 * built-in ones, as only their schemas decide.
 */
export function listStoreNames(value: unknown, builtins: readonly BuiltinName[]): readonly string[] {
  const names = namesOf(builtins);
  const { plugin, adapter, url } = isObject(value) ? value : { url: value };
  if (typeof plugin === 'string') return [plugin];
  const named = typeof adapter === 'string' ? undefined : findByScheme(url, names);
  return named === undefined ? names : [named];
}

/**
 * Reads a `store:` value.
 * - A URL: its scheme begins with the name of a built-in store.
 * - `{ url, … }`: the other fields go to the plugin unchanged.
 * - `{ adapter, … }`: the built-in store with an option `adapter`.
 * - `{ plugin, … }`: any store.
 * The schema decides the option for a URL: `url`, or the one of `format: "path"` for the text after the scheme. Throws
 * a TypeError that shows the forms and never the value: URLs hold passwords.
 */
export function readStoreUrl(value: unknown, stores: readonly KnownStore[]): StoreChoice {
  const refuse = (what: string): never => {
    throw new TypeError(`store ${what}: write ${listForms(stores)}`);
  };
  if (!isObject(value) && typeof value !== 'string') return refuse('must be a URL or an object');
  const { url, plugin, ...rest }: JsonObject = isObject(value) ? value : { url: value };
  if (typeof plugin === 'string') return { plugin, config: url === undefined ? rest : { url, ...rest } };
  const adapting = typeof rest['adapter'] === 'string' && stores.find((store) => 'adapter' in propertiesOf(store));
  if (adapting) return { plugin: adapting.name, config: rest };
  if (typeof url !== 'string') return refuse('needs a url, an adapter or a plugin');
  const scheme = findByScheme(
    url,
    stores.map(({ name }) => name),
  );
  const store = stores.find(({ name }) => name === scheme);
  if (!store) return refuse('is not a known store URL');
  const properties = propertiesOf(store);
  if ('url' in properties) {
    if (!URL.canParse(url.trim())) return refuse('is not a known store URL');
    return { plugin: store.name, config: { ...rest, url: url.trim() } };
  }
  const option = Object.keys(properties).find((name) => (properties[name] as Schema)['format'] === 'path');
  // `x:./data`, `x:/var/lib/data` and `x:///var/lib/data`; a bare `x:` uses the schema's default.
  const path = url.trim().replace(/^[^:]*:(\/\/)?/, '');
  return { plugin: store.name, config: { ...rest, ...(option !== undefined && path !== '' && { [option]: path }) } };
}

/**
 * Finds the store's plugin and options after interpolation: a URL decides the plugin. Undefined if a reference fails;
 * the check of core's part reports that.
 */
export function findStore(
  value: Json | undefined,
  builtins: readonly BuiltinName[],
  schemas: readonly PluginSchema[],
): { readonly instance?: RawInstance; readonly problems: readonly ProblemAt[] } {
  if (value === undefined) return { problems: [] };
  const known = schemas.filter(({ kind }) => kind === 'store');
  const stores = namesOf(builtins).map((name) => known.find((store) => store.name === name) ?? { name, schema: {} });
  try {
    const { plugin, config } = readStoreUrl(value, stores);
    const ref = { group: 'store', kind: 'store', name: plugin, plugin, pointer: '/store' } as const;
    return { instance: { ...ref, value: config as Record<string, Json> }, problems: [] };
  } catch (error) {
    const [message = '', hint] = (error instanceof Error ? error.message : '').replace(/^store /, '').split(': write ');
    return { problems: [{ pointer: '/store', message, hint: hint && `Write ${hint}.` }] };
  }
}

/** Interpolates the value of `store:`; undefined if a reference fails. */
export function interpolateStore(store: Json | undefined, lookup: Lookup): Json | undefined {
  const { value, problems } = interpolateTree(store ?? null, CORE_PROPERTIES.store, '/store', lookup);
  return problems.length > 0 ? undefined : value;
}

/** Lists the forms of a store: the examples of its schema, else its options as a map. */
export function listForms(stores: readonly KnownStore[]): string {
  const forms = stores.flatMap((store) => {
    const { examples } = store.schema;
    if (Array.isArray(examples)) return examples.map(String);
    const options = Object.keys(propertiesOf(store));
    return options.length > 0 ? [`{ ${options.join(', ')} }`] : [];
  });
  const sorted = forms.toSorted((a, b) => Number(a.startsWith('{')) - Number(b.startsWith('{')));
  return sorted.length < 2 ? sorted.join('') : `${sorted.slice(0, -1).join(', ')} or ${sorted.at(-1)}`;
}

/** Returns the longest name that is a prefix of the URL's scheme. */
function findByScheme(url: unknown, names: readonly string[]): string | undefined {
  const scheme = /^\s*([a-z][a-z0-9+.-]*):/i.exec(String(url))?.[1]?.toLowerCase() ?? '';
  return names.filter((name) => scheme.startsWith(name)).toSorted((a, b) => b.length - a.length)[0];
}

function propertiesOf({ schema }: KnownStore): JsonObject {
  return isObject(schema['properties']) ? schema['properties'] : {};
}

function namesOf(builtins: readonly BuiltinName[]): readonly string[] {
  return builtins.filter(({ kind }) => kind === 'store').map(({ name }) => name);
}
