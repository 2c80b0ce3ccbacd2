import { readFileSync } from 'node:fs';
import path from 'node:path';
import { nearest } from './nearest.ts';
import { PACKAGE_ROOT } from './paths.ts';
import type { ModelInfo, Price, Provider } from './provider.ts';

/** The models of every provider instance: declared, from the vendor table, or configured. Look-ups cost what a name is long. */
export interface ModelCatalog {
  find(provider: string, model: string): ModelInfo | undefined;
  suggest(provider: string, model: string): readonly string[];
  providers(): readonly string[];
  has(provider: string): boolean;
  list(provider: string): readonly string[];
  /** The operator's price for the model, else the table's; undefined when neither knows one. */
  priceOf(provider: string, model: string): Price | undefined;
}

type VendorTable = Readonly<Record<string, Readonly<Record<string, Omit<ModelInfo, 'id'>>>>>;

/** `config/models.json`: models, context windows and prices by vendor, as facts with a date. */
export function readVendorTable(): VendorTable {
  const file = path.join(PACKAGE_ROOT, 'config', 'models.json');
  return (JSON.parse(readFileSync(file, 'utf8')) as { readonly vendors: VendorTable }).vendors;
}

interface Entry {
  readonly models: ReadonlyMap<string, ModelInfo>;
  readonly anyModel: boolean;
  readonly prices: ReadonlyMap<string, Partial<Price>>;
}

/** Makes the catalog of the registered providers; instances may share a vendor's rows. */
export function createCatalog(providers: ReadonlyMap<string, Provider>, table: VendorTable): ModelCatalog {
  const entries = new Map([...providers].map(([name, provider]) => [name, createEntry(provider, table)]));
  const names = [...providers.keys()];
  return {
    has: (provider) => entries.has(provider),
    providers: () => names,
    list: (provider) => [...(entries.get(provider)?.models.keys() ?? [])],
    find(provider, model) {
      const entry = entries.get(provider);
      if (!entry) return undefined;
      return longestPrefix(entry.models, model) ?? (entry.anyModel && model !== '' ? { id: model } : undefined);
    },
    suggest(provider, model) {
      return nearest(model, entries.get(provider)?.models.keys() ?? []);
    },
    priceOf(provider, model) {
      const entry = entries.get(provider);
      if (!entry) return undefined;
      const listed = longestPrefix(entry.models, model)?.price;
      const own = longestPrefix(entry.prices, model) ?? entry.prices.get('*');
      return own ? merge(own, listed) : listed;
    },
  };
}

function createEntry(provider: Provider, table: VendorTable): Entry {
  const rows = Object.hasOwn(table, provider.vendor) ? (table[provider.vendor] ?? {}) : {};
  const known = new Map(Object.entries(rows).map(([id, info]) => [id, { id, ...info }]));
  const listed = [...(provider.models ?? known.values()), ...(provider.addModels ?? [])];
  // A configured name that the table knows keeps what the table says of it.
  const models = new Map(listed.map((model) => [model.id, { ...longestPrefix(known, model.id), ...model }]));
  return { models, anyModel: provider.anyModel ?? false, prices: new Map(Object.entries(provider.prices ?? {})) };
}

/** The value whose key is the longest prefix of `name`; costs as many look-ups as the name has characters. */
export function longestPrefix<T>(values: ReadonlyMap<string, T>, name: string): T | undefined {
  for (let length = name.length; length > 0; length -= 1) {
    const value = values.get(length === name.length ? name : name.slice(0, length));
    if (value !== undefined) return value;
  }
  return undefined;
}

/** An operator's price over the table's: what it does not say stays, but a new input price makes the old cached one void. */
function merge(own: Partial<Price>, listed: Price | undefined): Price | undefined {
  if (own.input !== undefined) return { output: own.output ?? listed?.output ?? 0, ...own, input: own.input };
  return listed ? { ...listed, ...own } : { input: 0, output: 0, ...own };
}
