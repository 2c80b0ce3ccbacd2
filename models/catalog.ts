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

/** Models by provider and name, for look-up alone. */
export type Catalog = Omit<ModelCatalog, 'learn' | 'use' | 'tableDate' | 'hasOwnPrice' | 'priceOf'> &
  Partial<Pick<ModelCatalog, 'priceOf'>>;

export type Aliases = ReadonlyMap<string, readonly string[]>;

/** Target of a request to `/api/core/{provider}/…`. */
export function targetOfPath(catalog: Catalog, provider: string, model: string): Target {
  if (!catalog.has(provider)) {
    const near = nearest(provider, catalog.providers());
    throw new GatewayError(
      'unsupported_provider',
      `The provider "${clip(provider)}" does not exist.${didYouMean(near)} Configured: ${catalog.providers().join(', ')}.`,
    );
  }
  if (!catalog.find(provider, model)) throw unsupportedModel(catalog, provider, model);
  return { provider, model };
}

/** Sources for resolving model names. */
export interface ModelNames {
  readonly catalog: Catalog;
  /** Aliases of the configuration. */
  readonly aliases: Aliases;
  /** Aliases of the request's client format; they take precedence. */
  readonly dialectAliases?: DialectDefinition['aliases'] | undefined;
}

/**
 * Resolves a model of the `/v1` surface to its targets, with the alias used (`alias` for one of the configuration).
 * Names are tried in this order: `provider/model`; an alias of the client's format, or of the configuration; a model
 * that only one provider with a key lists.
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

/** Lists the providers with a key that list a model, or one of which it is a dated variant. */
function providersOf(catalog: Catalog, model: string): readonly string[] {
  return catalog.providers().filter((provider) => catalog.isConfigured(provider) && isListed(catalog, provider, model));
}

/**
 * True if a provider lists a model. For a provider that accepts any name, only names from its operator or vendor count.
 */
function isListed(catalog: Catalog, provider: string, model: string): boolean {
  const found = catalog.find(provider, model);
  return found !== undefined && catalog.list(provider).includes(found.id);
}

function ambiguousModel(providers: readonly string[], model: string): GatewayError {
  const candidates = providers.map((provider) => `"${provider}/${clip(model)}"`);
  return new GatewayError(
    'unsupported_model',
    `More than one provider has a model "${clip(model)}". Use ${candidates.slice(0, -1).join(', ')} or ${candidates.at(-1)}.`,
    { param: 'model' },
  );
}

function unknownModel({ catalog, aliases, dialectAliases = {} }: ModelNames, model: string): GatewayError {
  const { provider, model: id } = splitModel(model);
  const known = new Map([...Object.keys(dialectAliases), ...aliases.keys()].map((name) => [name, name]));
  // Suggest bare names for a bare name.
  for (const name of catalog.providers())
    for (const near of catalog.suggest(name, id))
      known.set(provider === '' ? near : `${name}/${near}`, `${name}/${near}`);
  const near = nearest(model, known.keys()).map((name) => known.get(name) ?? name);
  return new GatewayError(
    'unsupported_model',
    `The model "${clip(model)}" does not exist. Use "provider/model" or an alias.${didYouMean(near)}`,
    { param: 'model' },
  );
}

/** Rejects targets that the caller's key may not use; every route calls this. */
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
      `This key may not use "${clip(target.provider)}/${clip(target.model)}". GET /v1/models lists its models.`,
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

/** Suffixes of a listed name that denote the same model at a date. */
const DATED = /^[-@](?:(?:preview|exp)-)?(?:\d{4}-\d{2}-\d{2}|\d{2}-\d{2}|\d{2}-\d{4}|\d{3,8}|latest)$/;

/** Model that a provider accepts, its price, and whether the operator set the price. */
interface Found {
  readonly model: ModelInfo;
  readonly price: Prices;
  readonly isOwnPrice: boolean;
}

/** Models of one provider. Each name is looked up and priced once, since a call needs the same few several times. */
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

  /** Finds a model by its requested name, with its price; undefined if the provider does not accept it. */
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

  /** True if the operator set a price: fees and regions alone keep the vendor's price. */
  isOwnPrice(requested: string): boolean {
    return Object.keys(this.ownPrice(requested) ?? {}).some((key) => key !== 'fees' && key !== 'regions');
  }

  /**
   * Operator's price merged over the table's. Undefined while input or output price is unknown: unknown is never free.
   */
  price(requested: string, model: ModelInfo | undefined): Prices {
    return pricesOf(this.ownPrice(requested), model, this.#common);
  }
}

/** Catalog with what core compiles routes of. */
export interface PricedCatalog extends ModelCatalog {
  /** Calls a listener after each change of its models. */
  onChange(listener: () => void): void;
  /** Prices of a model at all times; undefined if unknown. */
  pricesOf(target: Target, model: ModelInfo | undefined): Prices;
}

/** Creates the catalog of an operation's offers. */
export function createCatalog(offers: ReadonlyMap<string, Offer>, table: ModelTable = loadModelTable()): PricedCatalog {
  let inUse = table;
  const listeners: (() => void)[] = [];
  const reportChange = (): void => {
    for (const listener of listeners) listener();
  };
  const learnt = new Map<string, readonly ModelInfo[]>();
  const modelsFor = (name: string, offer: Offer) => new ProviderModels(offer, inUse, learnt.get(name));
  const providers = new Map([...offers].map(([name, offer]) => [name, modelsFor(name, offer)]));
  const pricesOf = ({ provider, model }: Target, info: ModelInfo | undefined): Prices => {
    const models = providers.get(provider);
    const found = models?.look(model);
    return found && found.model === info ? found.price : models ? models.price(model, info) : info?.price;
  };
  const list = (provider: string): readonly string[] => (providers.get(provider)?.listed ?? []).map(({ id }) => id);
  return {
    onChange: (listener) => void listeners.push(listener),
    learn(name, models) {
      learnt.set(name, models);
      const offer = offers.get(name);
      if (offer) providers.set(name, modelsFor(name, offer));
      reportChange();
    },
    use(next) {
      inUse = next;
      for (const [name, offer] of offers) providers.set(name, modelsFor(name, offer));
      reportChange();
    },
    tableDate: () => inUse.date,
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
    pricesOf,
    priceOf(target, info, at) {
      const price = pricesOf(target, info);
      return price && 'length' in price ? priceAt(price, at) : price;
    },
  };
}

/** Maximum number and length of cached names: callers may invent names, and memory must stay bounded. */
const MAX_REMEMBERED = 1000;
const MAX_REMEMBERED_LENGTH = 200;

/** Lists the models of a provider: its own list or its vendor's rows, then those added by the operator. */
export function modelsOf(provider: Offer, table: ModelTable): readonly ModelInfo[] {
  const rows = rowsOf(provider.vendor, table);
  const findFacts = findListed(rows);
  const withFacts = ({ base, ...model }: ModelInfo): ModelInfo => ({ ...findFacts(base ?? model.id), ...model });
  const listed = provider.models?.map(withFacts) ?? rows;
  const byId = new Map<string, ModelInfo>();
  // Later facts from a vendor, such as the model behind a deployment, extend the known ones.
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
 * Creates the look-up of requested names. A listed name and its dated variants have their row. Other versions and
 * families are accepted by prefix without any facts: `gpt-5.7` is not `gpt-5`.
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

/** Finds the entry of a name, or the longest entry of which the name is a dated variant. */
function findListed<T extends { readonly id: string }>(entries: readonly T[]): (name: string) => T | undefined {
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  const dated = longestPrefix(entries, (rest) => DATED.test(rest));
  return (name) => byId.get(name) ?? dated(name);
}

/** Finds the entry whose id is the longest prefix of a name, with one look-up per id length. */
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
 * Lists aliases, then every `provider/model`. Without a principal the list is complete, else it has only what the
 * principal can call. Providers without a credential, and aliases with only such providers, cannot be called.
 */
export function allModels(names: ModelNames, principal?: Principal): readonly ModelRow[] {
  const { catalog } = names;
  return [
    ...openAliases(names, principal).map(([id]) => ({ id, owned_by: 'tollgate' })),
    ...catalog.providers().flatMap((provider) => modelsOfProvider(catalog, provider, principal, `${provider}/`)),
  ];
}

/**
 * Lists the models of one provider by the same rules; `prefix` is added to each id. Omits models that the vendor has
 * shut down.
 */
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

/** Lists what a principal can call, with the facts of each model; an alias has those of its first callable target. */
export function listModels(names: ModelNames, principal: Principal, created: number): readonly ListedModel[] {
  const targets = new Map(openAliases(names, principal));
  return allModels(names, principal).map((row) =>
    describe(names.catalog, row, (targets.get(row.id) ?? [row.id]).map(splitModel), created),
  );
}

/** Lists the models of one provider that a principal can call. */
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
    id,
    ownedBy,
    created,
    ...(contextWindow !== undefined && { contextWindow }),
    ...(maxOutput !== undefined && { maxOutput }),
    ...(inputModalities && { inputModalities }),
    ...(outputModalities && { outputModalities }),
    ...(shutdown !== undefined && { shutdown }),
    ...(price && { price }),
  };
}

/** Lists the aliases that can be called: all targets allowed, and at least one with its key. */
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
