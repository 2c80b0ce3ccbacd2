import { readFileSync } from 'node:fs';
import path from 'node:path';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { nearest } from '../../config/problems.ts';
import type { ModelCatalog, Principal, Target } from '../contract/call.ts';
import type { ListedModel } from '../contract/dialect.ts';
import type { ModelRow } from '../contract/plugin.ts';
import type { ModelInfo, Offer, Price } from '../contract/provider.ts';
import { type Aliases, type Catalog, isAllowed, type ModelNames, splitModel } from './targets.ts';

type Facts = Omit<ModelInfo, 'id'>;

/** What `config/models.json` holds: facts by vendor and model; a vendor that is a name shares that vendor's rows. */
export interface ModelTable {
  readonly vendors: Readonly<Record<string, string | Readonly<Record<string, Facts>>>>;
  readonly families?: Readonly<Record<string, Family>>;
}

/** How a vendor names its models, listed or not. */
interface Family {
  /** Beginnings of names that are accepted, without a price, while the operator lists no models. */
  readonly accepts?: readonly string[];
  /** Beginnings that say nothing: `models/x` is `x`. */
  readonly strips?: readonly string[];
  /** What is known of every model with such an ending: `:free` has a price of 0. */
  readonly endings?: Readonly<Record<string, Facts>>;
}

/** What may stand behind a listed name for the whole to be the same model at some date. */
const DATED = /^[-@](?:(?:preview|exp)-)?(?:\d{4}-\d{2}-\d{2}|\d{2}-\d{2}|\d{2}-\d{4}|\d{3,8}|latest)$/;

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
  const ownPrices = new Map([...providers].map(([name, provider]) => [name, findOwnPrice(provider)]));
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
    hasOwnPrice: ({ provider, model }) => ownPrices.get(provider)?.(model) !== undefined,
    priceOf({ provider, model }, info) {
      const price = pricers.get(provider);
      return price ? price(model, info) : info?.price;
    },
  };
}

/** The models of a provider: its own list, else its vendor's rows; then those the operator adds. */
export function modelsOf(provider: Offer, table: ModelTable): readonly ModelInfo[] {
  const rows = rowsOf(provider.vendor, table);
  const findFacts = findListed(rows);
  const withFacts = ({ base, ...model }: ModelInfo): ModelInfo => ({ ...findFacts(base ?? model.id), ...model });
  const listed = provider.models?.map(withFacts) ?? rows;
  const all = [...listed, ...(provider.addModels ?? []).map(withFacts)];
  return [...new Map(all.map((model) => [model.id, model])).values()];
}

type Pricer = (requested: string, model: ModelInfo | undefined) => Price | undefined;

/** Finds the operator's price of a requested model: the row with the longest matching prefix; `*` is the shortest. */
function findOwnPrice({ prices = {} }: Offer): (requested: string) => Partial<Price> | undefined {
  const find = longestPrefix(Object.entries(prices).map(([id, price]) => ({ id: id === '*' ? '' : id, price })));
  return (requested) => find(requested)?.price;
}

/**
 * Prices of requested models: the operator's over what the table says. Undefined while input or output is not known: unknown is
 * never free.
 */
function createPricer(offer: Offer): Pricer {
  const { priceFactors } = offer;
  const findOwn = findOwnPrice(offer);
  return (requested, model) => {
    const own = findOwn(requested);
    const price = own ? mergePrice(own, model) : model?.price;
    return price && priceFactors ? withFactors(price, priceFactors) : price;
  };
}

/** A price with the rates that follow from its input rate, in each of its tiers. */
function withFactors<P extends Omit<Price, 'service_tiers'>>(price: P, factors: NonNullable<Offer['priceFactors']>): P {
  return {
    ...price,
    cache_write_1h: price.cache_write_1h ?? price.input * factors.cache_write_1h,
    ...(price.tiers && { tiers: price.tiers.map((tier) => withFactors(tier, factors)) }),
  };
}

function mergePrice(own: Partial<Price>, model: ModelInfo | undefined): Price | undefined {
  // Rates for the cache and for long prompts belong to the price they were derived from.
  const table = own.input === undefined ? model?.price : model?.price && { output: model.price.output };
  const { input, output = model?.kind === 'embeddings' ? 0 : undefined, ...rates } = { ...table, ...own };
  if (own.characters !== undefined) return { input: input ?? 0, output: output ?? 0, ...rates };
  return input === undefined || output === undefined ? undefined : { input, output, ...rates };
}

/**
 * Finds what a requested name stands for. A listed name and its dated variants have their row. Other versions and families are
 * accepted by prefix, but nothing is known of them: `gpt-5.7` is no `gpt-5`.
 */
function createFinder(
  provider: Offer,
  models: readonly ModelInfo[],
  table: ModelTable,
): (requested: string) => ModelInfo | undefined {
  const findRow = findListed(models);
  const findFacts = provider.anyModel ? findListed(rowsOf(provider.vendor, table)) : () => undefined;
  const findPrefix = longestPrefix(models);
  const { accepts = [], strips = [], endings = {} } = familyOf(provider, table);
  const accept = (name: string): ModelInfo | undefined => {
    const near = findPrefix(name);
    if (near) return { id: name, ...(near.kind !== undefined && { kind: near.kind }) };
    return accepts.some((prefix) => name.startsWith(prefix)) ? { id: name } : undefined;
  };
  const find = (requested: string): ModelInfo | undefined => {
    const prefix = strips.find((each) => requested.startsWith(each)) ?? '';
    const name = requested.slice(prefix.length);
    const listed = findRow(name);
    if (listed) return listed;
    const accepted = accept(name);
    const ending = Object.keys(endings).find((each) => name.endsWith(each));
    if (accepted) return ending === undefined ? accepted : { ...accepted, ...endings[ending] };
    return provider.anyModel && name !== '' ? { ...findFacts(name), id: name } : undefined;
  };
  return remembered(find);
}

/** An operator's own list says all that is accepted. */
function familyOf({ vendor, models }: Offer, { families = {} }: ModelTable): Family {
  const family = Object.hasOwn(families, vendor) ? families[vendor] : undefined;
  if (!family || !models) return family ?? {};
  const { accepts: _accepts, ...rest } = family;
  return rest;
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

/** Finds the entry of a name, or the longest one that the name is a dated variant of. */
function findListed<T extends { readonly id: string }>(entries: readonly T[]): (name: string) => T | undefined {
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  const dated = longestPrefix(entries, (rest) => DATED.test(rest));
  return (name) => byId.get(name) ?? dated(name);
}

/** Finds the entry whose id is the longest prefix of a name: one look-up for each length that occurs. */
function longestPrefix<T extends { readonly id: string }>(
  entries: readonly T[],
  mayFollow: (rest: string) => boolean = () => true,
): (name: string) => T | undefined {
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  const lengths = [...new Set(entries.map(({ id }) => id.length))].sort((a, b) => b - a);
  return (name) => {
    for (const length of lengths) {
      const found = length <= name.length ? byId.get(name.slice(0, length)) : undefined;
      if (found && mayFollow(name.slice(length))) return found;
    }
    return undefined;
  };
}

/**
 * Aliases first, then every `provider/model`: everything without a principal, else what this principal can call. A provider
 * without its credential, and an alias of such providers alone, cannot be called.
 */
export function allModels(names: ModelNames, principal?: Principal): readonly ModelRow[] {
  const { catalog } = names;
  return [
    ...openAliases(names, principal).map(([id]) => ({ id, owned_by: 'tollgate' })),
    ...catalog.providers().flatMap((provider) => modelsOfProvider(catalog, provider, principal, `${provider}/`)),
  ];
}

/** The models of one provider, by the same rules; `prefix` is laid in front of each id. */
export function modelsOfProvider(
  catalog: Catalog,
  provider: string,
  principal: Principal | undefined,
  prefix = '',
): readonly ModelRow[] {
  if (principal && !catalog.isConfigured(provider)) return [];
  return catalog
    .list(provider)
    .filter((model) => !principal || isAllowed(catalog, principal, { provider, model }))
    .map((model) => ({ id: `${prefix}${model}`, owned_by: provider }));
}

/** What a principal can call, with what is known of each model; an alias is as its first target that can be called. */
export function listModels(names: ModelNames, principal: Principal, created: number): readonly ListedModel[] {
  const { catalog } = names;
  const targets = new Map(openAliases(names, principal));
  return allModels(names, principal).map(({ id, owned_by }) => {
    const candidates = (targets.get(id) ?? [id]).map(splitModel);
    const first = candidates.find(({ provider }) => catalog.isConfigured(provider));
    const { contextWindow, maxOutput } = (first && catalog.find(first.provider, first.model)) ?? {};
    return {
      ...{ id, ownedBy: owned_by, created },
      ...(contextWindow !== undefined && { contextWindow }),
      ...(maxOutput !== undefined && { maxOutput }),
    };
  });
}

/** The aliases that can be called: all targets allowed, and one of them with its key. */
function openAliases(
  { catalog, aliases, dialectAliases = {} }: ModelNames,
  principal: Principal | undefined,
): readonly (readonly [name: string, targets: readonly string[]])[] {
  const all: Aliases = new Map([...aliases, ...Object.entries(dialectAliases)]);
  if (!principal) return [...all];
  const isOpen = (target: Target, name: string): boolean => isAllowed(catalog, principal, target, name);
  return [...all].filter(([name, models]) => {
    const targets = models.map(splitModel);
    return (
      targets.every((target) => isOpen(target, name)) && targets.some(({ provider }) => catalog.isConfigured(provider))
    );
  });
}
