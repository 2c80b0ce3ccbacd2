import type { ModelCatalog, Principal, Target } from '../contract/call.ts';
import type { DialectDefinition, ListedModel } from '../contract/dialect.ts';
import { GatewayError } from '../contract/errors.ts';
import { hasEnded } from '../contract/model-ends.ts';
import { clip, isAllowed, splitModel } from '../contract/model-names.ts';
import { nearest } from '../contract/nearest.ts';
import type { ModelRow } from '../contract/plugin.ts';
import { priceAt } from '../contract/price-rows.ts';
import { type Prices, pricesOf } from '../contract/prices.ts';
import type { ModelInfo, ModelTable, Offer } from '../contract/provider.ts';
import { familyOf, loadModelTable, rowsOf } from './model-table.ts';

/** What is known of models, as far as their names go. */
export type Catalog = Omit<ModelCatalog, 'learn' | 'use' | 'hasOwnPrice' | 'priceOf'> &
  Partial<Pick<ModelCatalog, 'priceOf'>>;

export type Aliases = ReadonlyMap<string, readonly string[]>;

/** Where a request to `/api/core/{provider}/…` goes. */
export function targetOfPath(catalog: Catalog, provider: string, model: string): Target {
  if (!catalog.has(provider)) {
    const near = nearest(provider, catalog.providers());
    throw new GatewayError(
      'unsupported_provider',
      `There is no provider "${clip(provider)}".${didYouMean(near)} Configured are: ${catalog.providers().join(', ')}.`,
    );
  }
  if (!catalog.find(provider, model)) throw unsupportedModel(catalog, provider, model);
  return { provider, model };
}

/** What the names of models are looked up in. */
export interface ModelNames {
  readonly catalog: Catalog;
  /** Of the configuration. */
  readonly aliases: Aliases;
  /** Those of the client format that a request came by; they come first. */
  readonly dialectAliases?: DialectDefinition['aliases'] | undefined;
}

/**
 * The targets of a model of the `/v1` surface, and the alias they came by (`alias` when it is the configuration's own). In this order a name is `provider/model`; an alias of
 * the client's format, or of the configuration; a model that one provider with a key lists alone.
 */
export function targetsOfRequest(
  names: ModelNames,
  model: string,
): { readonly targets: readonly Target[]; readonly requested?: string; readonly alias?: string } {
  const { catalog } = names;
  const named = splitModel(model);
  if (catalog.has(named.provider)) {
    if (catalog.find(named.provider, named.model)) return { targets: [named] };
    throw unsupportedModel(catalog, named.provider, named.model);
  }
  const alias = aliasOf(names, model);
  if (alias)
    return {
      targets: alias.map(splitModel).map(({ provider, model: id }) => targetOfPath(catalog, provider, id)),
      requested: model,
      ...(!Object.hasOwn(names.dialectAliases ?? {}, model) && { alias: model }),
    };
  const providers = providersOf(catalog, model);
  if (providers.length === 0) throw unknownModel(names, model);
  if (providers.length > 1) throw ambiguousModel(providers, model);
  return { targets: providers.map((provider) => ({ provider, model })) };
}

function aliasOf({ aliases, dialectAliases = {} }: ModelNames, name: string): readonly string[] | undefined {
  return Object.hasOwn(dialectAliases, name) ? dialectAliases[name] : aliases.get(name);
}

/** The providers with a key whose lists have a model, or one that it is a dated variant of. */
function providersOf(catalog: Catalog, model: string): readonly string[] {
  return catalog.providers().filter((provider) => catalog.isConfigured(provider) && isListed(catalog, provider, model));
}

/** Whether a provider's list has a model; one that takes any name lists those alone that its operator or its vendor named. */
function isListed(catalog: Catalog, provider: string, model: string): boolean {
  const found = catalog.find(provider, model);
  return found !== undefined && catalog.list(provider).includes(found.id);
}

function ambiguousModel(providers: readonly string[], model: string): GatewayError {
  const candidates = providers.map((provider) => `"${provider}/${clip(model)}"`);
  return new GatewayError(
    'unsupported_model',
    `More than one provider has a model "${clip(model)}": write ${candidates.slice(0, -1).join(', ')} or ${candidates.at(-1)}.`,
    { param: 'model' },
  );
}

function unknownModel({ catalog, aliases, dialectAliases = {} }: ModelNames, model: string): GatewayError {
  const { provider, model: id } = splitModel(model);
  const known = new Map([...Object.keys(dialectAliases), ...aliases.keys()].map((name) => [name, name]));
  // A bare name is near to a bare one.
  for (const name of catalog.providers())
    for (const near of catalog.suggest(name, id))
      known.set(provider === '' ? near : `${name}/${near}`, `${name}/${near}`);
  const near = nearest(model, known.keys()).map((name) => known.get(name) ?? name);
  return new GatewayError(
    'unsupported_model',
    `There is no model "${clip(model)}": write "provider/model" or an alias.${didYouMean(near)}`,
    { param: 'model' },
  );
}

/** Refuses targets that the caller's key may not use; every way in goes through here. */
export function assertAllowed(
  catalog: Pick<ModelCatalog, 'find'>,
  principal: Principal,
  targets: readonly Target[],
  { requested, param = 'model' }: { readonly requested?: string | undefined; readonly param?: string } = {},
): void {
  if (!principal.providers && !principal.models) return;
  for (const target of targets) {
    if (isAllowed(catalog, principal, target, requested)) continue;
    throw new GatewayError(
      'model_not_allowed',
      `This key may not use "${clip(target.provider)}/${clip(target.model)}".`,
      { param },
    );
  }
}

function unsupportedModel(catalog: Catalog, provider: string, model: string): GatewayError {
  return new GatewayError(
    'unsupported_model',
    `The provider "${provider}" has no model "${clip(model)}".${didYouMean(catalog.suggest(provider, model))}`,
    {
      param: 'model',
    },
  );
}

function didYouMean(names: readonly string[]): string {
  return names.length === 0 ? '' : ` Did you mean ${names.map((name) => `"${name}"`).join(', ')}?`;
}

/** What may stand behind a listed name for both together to be the same model at some date. */
const DATED = /^[-@](?:(?:preview|exp)-)?(?:\d{4}-\d{2}-\d{2}|\d{2}-\d{2}|\d{2}-\d{4}|\d{3,8}|latest)$/;

/** A model that a provider accepts, its price, and whether that is the operator's own. */
interface Found {
  readonly model: ModelInfo;
  readonly price: Prices;
  readonly isOwnPrice: boolean;
}

/** The models of one provider. Each name is looked up and priced once: a call asks several times for the same few. */
class ProviderModels {
  readonly offer: Offer;
  readonly listed: readonly ModelInfo[];
  readonly find: (requested: string) => ModelInfo | undefined;
  readonly ownPrice: ReturnType<typeof findOwnPrice>;
  readonly #common: Parameters<typeof pricesOf>[2];
  readonly #known = new Map<string, Found>();

  constructor(offer: Offer, table: ModelTable, learnt: readonly ModelInfo[] = []) {
    this.offer = offer;
    this.listed = modelsOf({ ...offer, addModels: [...(offer.addModels ?? []), ...learnt] }, table);
    this.find = createFinder(offer, this.listed, table);
    this.ownPrice = findOwnPrice(offer);
    this.#common = { ...familyOf(offer, table), factors: offer.priceFactors, place: offer.dearerPlace };
  }

  /** A model by the name that was requested, with its price; undefined for a name that the provider does not accept. */
  look(requested: string): Found | undefined {
    const known = this.#known.get(requested);
    if (known) return known;
    const model = this.find(requested);
    if (!model) return undefined;
    const found = { model, price: this.price(requested, model), isOwnPrice: this.isOwnPrice(requested) };
    if (requested.length > MAX_REMEMBERED_LENGTH) return found;
    if (this.#known.size >= MAX_REMEMBERED) this.#known.clear();
    this.#known.set(requested, found);
    return found;
  }

  /** Whether the operator has a price for it: fees and regions alone leave the vendor's. */
  isOwnPrice(requested: string): boolean {
    return Object.keys(this.ownPrice(requested) ?? {}).some((key) => key !== 'fees' && key !== 'regions');
  }

  /** The operator's price over what the table says. Undefined while input or output is not known: unknown is never free. */
  price(requested: string, model: ModelInfo | undefined): Prices {
    return pricesOf(this.ownPrice(requested), model, this.#common);
  }
}

/** Makes the catalogue of what is offered for one operation. */
export function createCatalog(offers: ReadonlyMap<string, Offer>, table: ModelTable = loadModelTable()): ModelCatalog {
  let inUse = table;
  const learnt = new Map<string, readonly ModelInfo[]>();
  const modelsFor = (name: string, offer: Offer) => new ProviderModels(offer, inUse, learnt.get(name));
  const providers = new Map([...offers].map(([name, offer]) => [name, modelsFor(name, offer)]));
  const list = (provider: string): readonly string[] => (providers.get(provider)?.listed ?? []).map(({ id }) => id);
  return {
    learn(name, models) {
      learnt.set(name, models);
      const offer = offers.get(name);
      if (offer) providers.set(name, modelsFor(name, offer));
    },
    use(next) {
      inUse = next;
      for (const [name, offer] of offers) providers.set(name, modelsFor(name, offer));
    },
    find: (provider, model) => providers.get(provider)?.look(model)?.model,
    suggest: (provider, model) => nearest(model, list(provider)),
    providers: () => [...offers.keys()],
    has: (provider) => offers.has(provider),
    isConfigured(name) {
      const offer = offers.get(name);
      if (!offer?.credential?.required || offer.passThroughAuth) return offer !== undefined;
      return offer.credential.value !== undefined;
    },
    list,
    hasOwnPrice({ provider, model }) {
      const models = providers.get(provider);
      const found = models?.look(model);
      return found ? found.isOwnPrice : (models?.isOwnPrice(model) ?? false);
    },
    priceOf({ provider, model }, info, at) {
      const models = providers.get(provider);
      const found = models?.look(model);
      const price = found && found.model === info ? found.price : models ? models.price(model, info) : info?.price;
      return price && 'length' in price ? priceAt(price, at) : price;
    },
  };
}

/** Names that are remembered, and their length: callers make names up, memory must not grow with them. */
const MAX_REMEMBERED = 1000;
const MAX_REMEMBERED_LENGTH = 200;

/** The models of a provider: its own list, else its vendor's rows; then those the operator adds. */
export function modelsOf(provider: Offer, table: ModelTable): readonly ModelInfo[] {
  const rows = rowsOf(provider.vendor, table);
  const findFacts = findListed(rows);
  const withFacts = ({ base, ...model }: ModelInfo): ModelInfo => ({ ...findFacts(base ?? model.id), ...model });
  const listed = provider.models?.map(withFacts) ?? rows;
  const byId = new Map<string, ModelInfo>();
  // What a vendor says later is laid over what is known, such as the model behind a deployment.
  for (const model of [...listed, ...(provider.addModels ?? []).map(withFacts)])
    byId.set(model.id, { ...byId.get(model.id), ...model });
  return [...byId.values()];
}

/** Finds the operator's price of a requested model: the row with the longest matching prefix; `*` is the shortest. */
function findOwnPrice({ prices = {} }: Offer): (requested: string) => Parameters<typeof pricesOf>[0] {
  const find = longestPrefix(Object.entries(prices).map(([id, price]) => ({ id: id === '*' ? '' : id, price })));
  return (requested) => find(requested)?.price;
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
  return (requested) => {
    const prefix = strips.find((each) => requested.startsWith(each)) ?? '';
    const name = requested.slice(prefix.length);
    const listed = findRow(name);
    if (listed) return listed;
    const accepted = accept(name);
    const ending = Object.keys(endings).find((each) => name.endsWith(each));
    if (accepted) return ending === undefined ? accepted : { ...accepted, ...endings[ending] };
    return provider.anyModel && name !== '' ? { ...findFacts(name), id: name } : undefined;
  };
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

/** The models of one provider, by the same rules; `prefix` is laid in front of each id. Callers are not shown what its vendor has shut down. */
export function modelsOfProvider(
  catalog: Catalog,
  provider: string,
  principal: Principal | undefined,
  prefix = '',
): readonly ModelRow[] {
  if (principal && !catalog.isConfigured(provider)) return [];
  return catalog
    .list(provider)
    .filter(
      (model) =>
        !principal || (!hasEnded(catalog.find(provider, model)) && isAllowed(catalog, principal, { provider, model })),
    )
    .map((model) => ({ id: `${prefix}${model}`, owned_by: provider }));
}

/** What a principal can call, with what is known of each model; an alias is as its first target that can be called. */
export function listModels(names: ModelNames, principal: Principal, created: number): readonly ListedModel[] {
  const targets = new Map(openAliases(names, principal));
  return allModels(names, principal).map((row) =>
    describe(names.catalog, row, (targets.get(row.id) ?? [row.id]).map(splitModel), created),
  );
}

/** What a principal can call of one provider. */
export function listModelsOf(
  catalog: Catalog,
  provider: string,
  principal: Principal,
  created: number,
): readonly ListedModel[] {
  return modelsOfProvider(catalog, provider, principal).map((row) =>
    describe(catalog, row, [{ provider, model: row.id }], created),
  );
}

function describe(
  catalog: Catalog,
  { id, owned_by: ownedBy }: ModelRow,
  targets: readonly Target[],
  created: number,
): ListedModel {
  const first = targets.find(({ provider }) => catalog.isConfigured(provider));
  const info = first && catalog.find(first.provider, first.model);
  const { contextWindow, maxOutput, inputModalities, outputModalities, shutdown } = info ?? {};
  const price = first && catalog.priceOf?.(first, info);
  return {
    ...{ id, ownedBy, created },
    ...(contextWindow !== undefined && { contextWindow }),
    ...(maxOutput !== undefined && { maxOutput }),
    ...(inputModalities && { inputModalities }),
    ...(outputModalities && { outputModalities }),
    ...(shutdown !== undefined && { shutdown }),
    ...(price && { price }),
  };
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
