import type { ModelFacts, ModelTable, Price } from '../../../contract/provider.ts';

/** Builds the model table from two sources that must agree. Values that neither source has are unchanged. */

/** Facts of one model in a source. Prices are in US dollars per million tokens; absent rates are unknown. */
export interface Listing {
  readonly price?: ListedPrice;
  readonly contextWindow?: number;
  readonly maxOutput?: number;
  readonly inputModalities?: readonly string[];
}
type ListedPrice = Rates & { readonly tiers?: readonly (Rates & { readonly input_tokens_above: number })[] };
interface Rates {
  readonly input: number;
  readonly output: number;
  readonly cached_input?: number;
  readonly cache_write?: number;
}

export interface PriceSource {
  /** Name in `sources` of the table. */
  readonly name: string;
  /** Release and date, for `sources` of the table. */
  readonly about: string;
  /** Names of a vendor's models, if the source has their exact names. */
  list(vendor: string): readonly string[];
  find(vendor: string, model: string): Listing | undefined;
}

/** Vendors whose new models are added; the rows of a reseller are a selection. */
const COMPLETE: readonly string[] = Object.freeze([
  ...['anthropic', 'bedrock', 'cerebras', 'deepseek', 'fireworks', 'gemini', 'groq', 'mistral', 'moonshot', 'openai'],
  ...['together', 'xai', 'zai'],
]);

/** Sources that say nothing about a price. */
const WITHOUT_PRICES = /^names$|-shutdowns$/;

/** Rates of a price that both sources state. */
const RATES = ['input', 'output', 'cached_input', 'cache_write'] as const;

export interface BuiltTable {
  readonly table: ModelTable;
  /** One line for each price on which the sources differ. */
  readonly problems: readonly string[];
}

/**
 * Returns the next edition. The first source is a catalog with exact names, the second one confirms its prices. A price
 * that both state must be the same; otherwise the price in use stays, unless the source that it is from has left it.
 * Prices that only one source states, or that differ, are marked.
 */
export function buildTable(
  current: ModelTable,
  sources: readonly [PriceSource, PriceSource],
  date: string,
): BuiltTable {
  const problems: string[] = [];
  const vendors = Object.entries(current.vendors).map(([vendor, rows]) => {
    if (typeof rows === 'string') return [vendor, rows] as const;
    const listed = COMPLETE.includes(vendor) ? sources.flatMap((source) => source.list(vendor)) : [];
    const names = [...new Set([...Object.keys(rows), ...listed.filter((id) => !(id in rows)).sort()])];
    const next = names.flatMap((id) => {
      const row = buildRow(`${vendor}/${id}`, rows[id], sources, problems);
      return row ? [[id, row] as const] : [];
    });
    return [vendor, Object.fromEntries(next)] as const;
  });
  const named = Object.fromEntries(sources.map(({ name, about }) => [name, about]));
  const table = { ...current, sources: { ...current.sources, ...named }, vendors: Object.fromEntries(vendors) };
  const isSame = JSON.stringify(table) === JSON.stringify(current);
  return { table: isSame ? current : { ...table, version: (current.version ?? 0) + 1, date }, problems };
}

/** Row of a model; undefined for a new model whose sources differ. */
function buildRow(
  model: string,
  row: ModelFacts | undefined,
  sources: readonly [PriceSource, PriceSource],
  problems: string[],
): ModelFacts | undefined {
  const at = model.indexOf('/');
  const found = sources.map((source) => ({
    name: source.name,
    ...source.find(model.slice(0, at), model.slice(at + 1)),
  }));
  const facts = withFacts(row, found);
  const priced = found.flatMap(({ name, price }) => (price ? [{ name, price }] : []));
  const inUse = row?.price === undefined ? [] : rowsOf(row.price);
  const own = pricedBy(row).filter((name) => !sources.some((source) => source.name === name));
  const keep = (outcome: string): ModelFacts | undefined => {
    problems.push(`${model}: ${describe(priced)}; ${outcome}`);
    return row && mark(facts, pricedBy(row), 'sources differ');
  };

  const [first, second] = priced;
  if (!first) return row && mark(facts, pricedBy(row), pricedBy(row).length < 2 ? 'one source' : undefined);
  const isCatalog = first.name === sources[0].name;
  const isSplit = second !== undefined && !isSame(first.price, second.price);
  const agreeing = isSplit ? priced.filter(({ price }) => inUse.some((used) => isSame(used, price))) : priced;

  if (agreeing.some(({ price }) => inUse.some((used) => isSame(used, price)))) {
    // Next to the catalog, pages that a person read state parts of the price; without it, all of it.
    const isConfirmed = agreeing.length > 1 || (!isCatalog && own.length > 0);
    const price = isCatalog && !isSplit && inUse.length === 1 ? withRates(inUse[0], agreeing) : row?.price;
    if (isSplit) problems.push(`${model}: ${describe(priced)}; the price in use stays`);
    return mark(
      { ...facts, ...(price && { price }) },
      [...agreeing.map(({ name }) => name), ...own],
      isSplit ? 'sources differ' : isConfirmed ? undefined : 'one source',
    );
  }
  if (isSplit && !row) return keep('not added');
  const isOwner = row?.source?.includes(first.name) ?? isCatalog;
  if (!isOwner && (isSplit || !second))
    return inUse.length === 0
      ? row && mark(facts, [], undefined)
      : keep('the price in use has another source and stays');
  if (row?.price !== undefined && ('length' in row.price || hasDerivedRates(row.price, first.price)))
    return keep('the price in use has rates by hour, date or tier and stays');
  // If two differ, take the source of the price in use: it has changed that price.
  const taken = isSplit ? [first] : priced;
  if (isSplit) problems.push(`${model}: ${describe(priced)}; the price of ${first.name} replaces its former one`);
  return mark(
    { ...facts, price: withRates(row?.price, taken) },
    [...taken.map(({ name }) => name), ...own],
    isSplit ? 'sources differ' : taken.length < 2 ? 'one source' : undefined,
  );
}

/** Names that a row gives as the origin of its price. */
function pricedBy(row: ModelFacts | undefined): readonly string[] {
  if (row?.price === undefined) return [];
  return (row.source ?? []).filter((name) => !WITHOUT_PRICES.test(name));
}

/** Row with the sources of its price, in the order of the file. */
function mark(
  { source = [], priceSource: _, priceCheck: __, price, ...facts }: ModelFacts,
  from: readonly string[],
  check: ModelFacts['priceCheck'],
): ModelFacts {
  const all = { source: [...new Set([...source, ...from])], ...facts };
  return price === undefined
    ? all
    : { ...all, priceSource: from, ...(check !== undefined && { priceCheck: check }), price };
}

/** Facts other than the price. The catalog comes first; the other source fills gaps. */
function withFacts(row: ModelFacts | undefined, found: readonly Listing[]): ModelFacts {
  const [catalog = {}, other = {}] = found;
  // Some catalogs state the prompt that the standard price covers as the window.
  const bound = row?.price === undefined ? undefined : rowsOf(row.price)[0]?.tiers?.[0]?.input_tokens_above;
  const known = row?.contextWindow === bound ? undefined : row?.contextWindow;
  const contextWindow = catalog.contextWindow ?? known ?? other.contextWindow ?? row?.contextWindow;
  const maxOutput = row?.maxOutput ?? catalog.maxOutput;
  const inputModalities = row?.inputModalities ?? catalog.inputModalities;
  return {
    ...row,
    ...(inputModalities && { inputModalities }),
    ...(contextWindow !== undefined && { contextWindow }),
    ...(maxOutput !== undefined && { maxOutput }),
  };
}

/** True if a price has rates that follow from the standard ones and that the source does not state. */
function hasDerivedRates(price: Price, { tiers }: ListedPrice): boolean {
  return (
    price.service_tiers !== undefined ||
    price.cache_write_1h !== undefined ||
    (price.tiers !== undefined && tiers === undefined)
  );
}

/** Prices of a model: one, or one for each span of dates or hours. */
function rowsOf(price: NonNullable<ModelFacts['price']>): readonly Price[] {
  return 'length' in price ? price : [price];
}

/** Compares the rates that both have; both have input and output. */
function isSame(one: Rates, other: Rates): boolean {
  return RATES.every((rate) => {
    const [a, b] = [one[rate], other[rate]];
    return a === undefined || b === undefined || Math.abs(a - b) <= 1e-6 * Math.max(a, b);
  });
}

/**
 * Price with the rates of sources that agree; the first one comes first. Known tiers of the same price stay; rates of a
 * former price that no source states are unknown.
 */
function withRates(price: Price | undefined, agreeing: readonly { readonly price: ListedPrice }[]): Price {
  const rates: ListedPrice = Object.assign({}, ...agreeing.map((each) => each.price).toReversed());
  if (price && isSame(price, rates)) return { ...price, ...rates, ...(price.tiers && { tiers: price.tiers }) };
  const { cached_input: _, cache_write: __, ...rest } = price ?? {};
  return { ...rest, ...rates };
}

function describe(priced: readonly { readonly name: string; readonly price: Rates }[]): string {
  return priced.map(({ name, price }) => `${name} ${RATES.map((rate) => price[rate] ?? '-').join('/')}`).join(', ');
}
