import { readFileSync } from 'node:fs';
import path from 'node:path';
import { nearest } from '../config/nearest.ts';
import { PACKAGE_ROOT } from '../config/package-root.ts';
import type { ModelCatalog } from '../contract/catalog.ts';
import type { ModelInfo, Offer, Price } from '../contract/provider.ts';

type Facts = Omit<ModelInfo, 'id'>;

/** What `config/models.json` holds: facts by vendor and model; a vendor that is a name shares that vendor's rows. */
export interface ModelTable {
  readonly vendors: Readonly<Record<string, string | Readonly<Record<string, Facts>>>>;
}

/** Reads `config/models.json` of this package. Throws when the file is missing or is no JSON: the install is broken. */
export function loadModelTable(): ModelTable {
  return JSON.parse(readFileSync(path.join(PACKAGE_ROOT, 'config', 'models.json'), 'utf8')) as ModelTable;
}

/** Makes the catalogue of what is offered for one operation; everything is laid out once, look-ups are by name length. */
export function createCatalog(
  providers: ReadonlyMap<string, Offer>,
  table: ModelTable = loadModelTable(),
): ModelCatalog {
  const models = new Map<string, readonly ModelInfo[]>();
  const finders = new Map<string, (requested: string) => ModelInfo | undefined>();
  const layOut = (name: string, provider: Offer): void => {
    const listed = modelsOf(provider, table);
    models.set(name, listed);
    finders.set(name, createFinder(provider, listed, table));
  };
  for (const [name, provider] of providers) layOut(name, provider);
  const pricers = new Map([...providers].map(([name, provider]) => [name, createPricer(provider)]));
  return {
    learn(name, ids) {
      const provider = providers.get(name);
      if (!provider) return;
      const learnt = ids.map((id): ModelInfo => ({ id }));
      layOut(name, { ...provider, addModels: [...(provider.addModels ?? []), ...learnt] });
    },
    find: (provider, model) => finders.get(provider)?.(model),
    suggest: (provider, model) =>
      nearest(
        model,
        (models.get(provider) ?? []).map(({ id }) => id),
      ),
    providers: () => [...providers.keys()],
    has: (provider) => providers.has(provider),
    isConfigured(name) {
      const provider = providers.get(name);
      return provider !== undefined && !(provider.credential?.required && provider.credential.value === undefined);
    },
    list: (provider) => (models.get(provider) ?? []).map(({ id }) => id),
    priceOf({ provider, model }, info) {
      const price = pricers.get(provider);
      return price ? price(model, info) : info?.price;
    },
  };
}

/** The models of a provider: its own list, else its vendor's rows; then those the operator adds. */
export function modelsOf(provider: Offer, table: ModelTable): readonly ModelInfo[] {
  const rows = rowsOf(provider.vendor, table);
  const findFacts = longestPrefix(rows);
  const withFacts = (model: ModelInfo): ModelInfo => ({ ...findFacts(model.id), ...model });
  const listed = provider.models?.map(withFacts) ?? rows;
  const all = [...listed, ...(provider.addModels ?? []).map(withFacts)];
  return [...new Map(all.map((model) => [model.id, model])).values()];
}

type Pricer = (requested: string, model: ModelInfo | undefined) => Price | undefined;

/**
 * Prices of requested models: the operator's row with the longest matching prefix (`*` is the shortest) over what the table
 * says. Undefined while input or output is not known: unknown is never free.
 */
function createPricer({ prices = {}, priceFactors }: Offer): Pricer {
  const rows = Object.entries(prices).map(([id, price]) => ({ id: id === '*' ? '' : id, price }));
  const find = longestPrefix(rows);
  const withFactors = (price: Price | undefined): Price | undefined =>
    price && priceFactors && price.cache_write_1h === undefined
      ? { ...price, cache_write_1h: price.input * priceFactors.cache_write_1h }
      : price;
  return (requested, model) => {
    const own = find(requested)?.price;
    return withFactors(own ? mergePrice(own, model) : model?.price);
  };
}

function mergePrice(own: Partial<Price>, model: ModelInfo | undefined): Price | undefined {
  // Rates for the cache and for long prompts belong to the price they were derived from.
  const table = own.input === undefined ? model?.price : model?.price && { output: model.price.output };
  const { input, output = model?.kind === 'embeddings' ? 0 : undefined, ...rates } = { ...table, ...own };
  if (own.characters !== undefined) return { input: input ?? 0, output: output ?? 0, ...rates };
  return input === undefined || output === undefined ? undefined : { input, output, ...rates };
}

function createFinder(
  provider: Offer,
  models: readonly ModelInfo[],
  table: ModelTable,
): (requested: string) => ModelInfo | undefined {
  const find = longestPrefix(models);
  if (!provider.anyModel) return remembered(find);
  const findFacts = longestPrefix(rowsOf(provider.vendor, table));
  return remembered(
    (requested) => find(requested) ?? (requested === '' ? undefined : { ...findFacts(requested), id: requested }),
  );
}

/** Names that are remembered, and their length: callers make names up, memory must not grow with them. */
const MAX_REMEMBERED = 1000;
const MAX_REMEMBERED_LENGTH = 200;

/** A finder that looks once for each name: every call asks several times for the same few. */
function remembered(find: (requested: string) => ModelInfo | undefined): (requested: string) => ModelInfo | undefined {
  const found = new Map<string, ModelInfo>();
  return (requested) => {
    const known = found.get(requested);
    if (known) return known;
    const model = find(requested);
    if (!model || requested.length > MAX_REMEMBERED_LENGTH) return model;
    if (found.size >= MAX_REMEMBERED) found.clear();
    found.set(requested, model);
    return model;
  };
}

function rowsOf(vendor: string, { vendors }: ModelTable): readonly ModelInfo[] {
  const rows = Object.hasOwn(vendors, vendor) ? vendors[vendor] : undefined;
  if (rows === undefined) return [];
  if (typeof rows === 'string') return rows === vendor ? [] : rowsOf(rows, { vendors });
  return Object.entries(rows).map(([id, facts]) => ({ id, ...facts }));
}

/** Finds the entry whose id is the longest prefix of a name: one look-up for each length that occurs. */
function longestPrefix<T extends { readonly id: string }>(entries: readonly T[]): (name: string) => T | undefined {
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  const lengths = [...new Set(entries.map(({ id }) => id.length))].sort((a, b) => b - a);
  return (name) => {
    for (const length of lengths) {
      const found = length <= name.length ? byId.get(name.slice(0, length)) : undefined;
      if (found) return found;
    }
    return undefined;
  };
}
