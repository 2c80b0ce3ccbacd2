import type { CostPart } from './call.ts';
import type { ChatRequest, Usage } from './chat.ts';
import { type JsonObject, readObject } from './json.ts';
import type { ModelInfo, Offer, Price, PriceRow } from './provider.ts';
import { picoRate, roundCost } from './units.ts';

/** Cost of a usage at a price: rates compiled once, one per unit, the sum rounded once. */

const PICO_PER_USD = 1_000_000_000_000;

/** Far above the tokens of any call: a larger number is a vendor's mistake and is not charged. */
export const MAX_TOKENS = 100_000_000;

/** Returns whether a vendor's number is a valid count. */
export function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= MAX_TOKENS;
}

/** Running cost of a call. */
interface Bill {
  pico: number;
  /** False if a unit has no price: unknown is never free. */
  isKnown: boolean;
  readonly parts: CostPart[] | undefined;
}

/** A model's part of a usage, and its price. */
export type Share = readonly [usage: Usage, price: Price | undefined];

/** Tiers that vendors bill at the list price. For capacity bought in advance it is the upper bound. */
const LISTED_TIERS: ReadonlySet<string> = new Set([
  ...['auto', 'default', 'standard', 'standard_only', 'on_demand', 'scale', 'reserved'],
]);

/**
 * Returns the cost of a call's usage in whole nano-dollars; undefined if the price of a part is unknown. A tier's rates replace the
 * base rates for the whole call. Cached and cache-write tokens cost as input if they have no known rate. `shares` are set if
 * several models served parts; `parts` receives the cost of each unit.
 */
export function costOf(
  usage: Usage,
  price: Price | undefined,
  tier?: string,
  shares: readonly Share[] = [[usage, price]],
  parts?: CostPart[],
): number | undefined {
  if (!price) return undefined;
  const { units, inference_geo: region } = usage;
  const { fees } = price;
  const bill: Bill = { pico: 0, isKnown: true, parts };
  for (const [{ prompt_tokens: prompt, completion_tokens: output, ...details }, own] of shares) {
    const { prompt_tokens_details: read, completion_tokens_details: wrote } = details;
    const base = own && (rateTables.get(own) ?? compileRates(own));
    const table = tier === undefined || LISTED_TIERS.has(tier) ? base : base?.services.get(tier);
    const factor = region === undefined ? 1 : own?.regions?.[region];
    let rates = factor === undefined ? undefined : table?.rates;
    // The highest tier that a prompt reaches comes first.
    for (const { above, rates: higher } of (rates && table?.tiers) ?? NO_TIERS)
      if (prompt > above) {
        rates = higher;
        break;
      }
    const by = factor ?? 1;
    const cached = Math.min(Math.max(read?.cached_tokens ?? 0, 0), prompt);
    const written = Math.min(Math.max(read?.cache_write_tokens ?? 0, 0), prompt - cached);
    const hour = Math.min(Math.max(read?.cache_write_1h_tokens ?? 0, 0), written);
    const text = { input: prompt - cached - written, cached, output };
    if (read?.audio_tokens || read?.image_tokens || wrote?.audio_tokens || wrote?.image_tokens)
      addModalities(bill, text, { read, wrote, rates, by });
    add(bill, 'input_tokens', text.input, rates && rates.input * by);
    add(bill, 'cached_tokens', text.cached, rates && rates.cached * by);
    add(bill, 'cache_write_tokens', written - hour, rates && rates.written * by);
    add(bill, 'cache_write_1h_tokens', hour, rates && rates.hour * by);
    add(bill, 'output_tokens', text.output, rates && rates.output * by);
  }
  if (fees?.['requests'] !== undefined) add(bill, 'requests', 1, fees['requests'] * PICO_PER_USD);
  for (const unit in units) {
    const quantity = units[unit] ?? 0;
    const fee = isCount(quantity) ? fees?.[unit] : undefined;
    add(bill, unit, quantity, fee === undefined ? undefined : fee * PICO_PER_USD);
  }
  return bill.isKnown ? roundCost(bill.pico) : undefined;
}

const NO_TIERS: RateTable['tiers'] = Object.freeze([]);

function add(bill: Bill, unit: string, quantity: number, rate: number | undefined): void {
  if (quantity === 0) return;
  const pico = rate === undefined ? undefined : Math.round(quantity * rate);
  if (pico === undefined) bill.isKnown = false;
  else bill.pico += pico;
  bill.parts?.push({ unit, quantity, usd: pico === undefined ? null : pico / PICO_PER_USD });
}

/**
 * Moves audio and image tokens from the text counts to their own units. If a vendor does not report cached audio, text counts as
 * cached first.
 */
function addModalities(
  bill: Bill,
  text: { input: number; cached: number; output: number },
  of: {
    readonly read: Usage['prompt_tokens_details'];
    readonly wrote: Usage['completion_tokens_details'];
    readonly rates: Rates | undefined;
    readonly by: number;
  },
): void {
  const { read, wrote, rates, by } = of;
  const take = (
    from: 'input' | 'cached' | 'output',
    tokens: number | undefined,
    unit: string,
    rate?: number,
  ): number => {
    const quantity = shareOf(text[from], tokens);
    text[from] -= quantity;
    add(bill, unit, quantity, rate === undefined ? undefined : rate * by);
    return quantity;
  };
  const audio = shareOf(text.input + text.cached, read?.audio_tokens);
  const cached = take(
    'cached',
    Math.min(read?.cached_audio_tokens ?? audio - text.input, audio),
    'cached_audio_tokens',
    rates?.cachedAudio,
  );
  take('input', audio - cached, 'audio_input_tokens', rates?.audioInput);
  // Images cost as text tokens, except for models with an image rate.
  const reported = isCount(read?.['cached_image_tokens']) ? read['cached_image_tokens'] : 0;
  const images = Math.min(reported, read?.image_tokens ?? 0);
  if (rates?.cachedImage !== undefined) take('cached', images, 'cached_image_tokens', rates.cachedImage);
  if (rates?.imageInput !== undefined)
    take('input', (read?.image_tokens ?? 0) - images, 'image_input_tokens', rates.imageInput);
  take('output', wrote?.audio_tokens, 'audio_output_tokens', rates?.audioOutput);
  take('output', wrote?.image_tokens, 'image_output_tokens', rates?.imageOutput);
}

/**
 * Returns the maximum cost of a request with this many tokens and these server tools. It assumes the most expensive tier that may
 * serve the request: a cheaper one may be full, and the default may be a project's own. It also assumes the most expensive
 * permitted region, and a prompt written entirely to a cache, or audio if it contains some. Undefined if a possible unit has no
 * price.
 */
export function mostOf(
  request: ChatRequest,
  { prompt_tokens, completion_tokens }: Pick<Usage, 'prompt_tokens' | 'completion_tokens'>,
  price: Price,
  tools: readonly HostedTool[] = [],
): number | undefined {
  const { service_tier: tier, inference_geo: geo, modalities, messages } = request;
  const { regions, service_tiers } = price;
  const isAny = tier === undefined || tier === null || tier === 'auto';
  const tiers = isAny ? Object.keys(service_tiers ?? NO_TIERS) : [pricedTier(request, price)];
  let dearest: string | undefined;
  for (const region in regions)
    if ((typeof geo !== 'string' || region === geo) && (regions[region] ?? 0) > (regions[dearest ?? ''] ?? 0))
      dearest = region;
  let all = tools;
  for (const name of SEARCH_FIELDS) if (request[name] !== undefined && request[name] !== null) all = [...all, { name }];
  const speaks = Array.isArray(modalities) && modalities.includes('audio');
  const kind = speaks ? 'audio_tokens' : price.image_output === undefined ? undefined : 'image_tokens';
  const worst: Usage = {
    prompt_tokens,
    completion_tokens,
    total_tokens: prompt_tokens + completion_tokens,
    prompt_tokens_details: {},
    ...(dearest !== undefined && { inference_geo: dearest }),
    ...(kind && { completion_tokens_details: { [kind]: completion_tokens } }),
    ...(all.length > 0 && { units: unitsOf(all, price) }),
  };
  const reads: NonNullable<Usage['prompt_tokens_details']>[] = [{}, { cache_write_tokens: prompt_tokens }];
  if (messages.some(({ content }) => Array.isArray(content) && content.some((part: object) => maySound(part, price))))
    reads.push({ audio_tokens: prompt_tokens });
  let most: number | undefined = 0;
  for (const each of [undefined, ...tiers])
    for (const read of reads) {
      const cost: number | undefined = costOf({ ...worst, prompt_tokens_details: read }, price, each);
      most = cost === undefined || most === undefined ? undefined : Math.max(most, cost);
    }
  return most;
}

/** Returns whether a part may count as audio: a recording, a video, or a file URL where audio has a price. */
function maySound(part: object, { audio_input: price }: Price): boolean {
  const { type, file } = part as JsonObject;
  if (type === 'input_audio' || type === 'video_url') return true;
  if (type !== 'file') return false;
  const { file_data: data, file_url: url } = readObject(file);
  return typeof data === 'string' ? /^data:(?:audio|video)\//i.test(data) : url !== undefined && price !== undefined;
}

/** Tool that the vendor runs, by the name that requests it. */
export interface HostedTool {
  readonly name: string;
}

/** Request fields that make a vendor search. */
const SEARCH_FIELDS = Object.freeze(['web_search_options', 'search_parameters', 'plugins']);

/** Maximum or typical number of runs of a tool per response. */
const MAX_USES = 10;

/** Billing units of server tools. If several are listed, those with a price apply. */
const TOOL_UNITS: readonly (readonly [name: RegExp, units: Readonly<Record<string, number>>])[] = Object.freeze([
  [
    /^(?:\w+:)?(?:web|x)_?search|^(?:google_?search|search_parameters|plugins)/i,
    { web_search_requests: MAX_USES, grounded_requests: 1 },
  ],
  [/^(?:file|collections)_?search/i, { file_search_requests: MAX_USES }],
  [/^code_interpreter/i, { code_interpreter_calls: MAX_USES }],
  [/^image_generation/i, { images: MAX_USES }],
  [/^google_?maps/i, { maps_requests: 1 }],
]);

function unitsOf(tools: readonly HostedTool[], { fees = {} }: Price): Readonly<Record<string, number>> {
  const all: Record<string, number> = {};
  for (const { name } of tools) {
    const units = Object.entries(TOOL_UNITS.find(([pattern]) => pattern.test(name))?.[1] ?? {});
    const priced = units.filter(([unit]) => Object.hasOwn(fees, unit));
    for (const [unit, times] of priced.length > 0 ? priced : units.slice(0, 1)) all[unit] = times;
  }
  return all;
}

/** Names of the standard tier. */
const STANDARD: ReadonlySet<string> = new Set(['auto', 'default']);

/** Returns the service tier that a request selects, if it is not the standard one. */
export function requestedTier({ service_tier: tier }: ChatRequest): string | undefined {
  return typeof tier === 'string' && !STANDARD.has(tier) ? tier : undefined;
}

/** Returns the requested tier if it may be sent. A known price without that tier would not apply to it. */
export function pricedTier(request: ChatRequest, price: Price | undefined): string | undefined {
  const tier = requestedTier(request);
  if (tier === undefined || !price) return tier;
  return Object.hasOwn(price.service_tiers ?? {}, tier) ? tier : undefined;
}

/** Returns the cost reported by the vendor (`usage.cost`, in US dollars) in whole nano-dollars; undefined if it reported none. */
export function reportedCost({ cost }: Usage | { readonly cost: number }): number | undefined {
  if (typeof cost !== 'number' || !(cost >= 0 && cost <= MAX_REPORTED_DOLLARS)) return undefined;
  return roundCost(picoRate(cost * 1_000_000));
}

/** A higher cost per call is a vendor's mistake; the table applies instead. */
const MAX_REPORTED_DOLLARS = 5000;

/** Limits a part of some tokens to the range from 0 to their number. */
function shareOf(tokens: number, part: number | undefined): number {
  return part !== undefined && part > 0 ? Math.min(part, tokens) : 0;
}

/** Whole pico-dollars per token. */
interface Rates {
  readonly input: number;
  readonly cached: number;
  readonly written: number;
  readonly hour: number;
  readonly output: number;
  /** Rates of audio and images; undefined if unknown. */
  readonly audioInput: number | undefined;
  readonly cachedAudio: number | undefined;
  readonly audioOutput: number | undefined;
  readonly imageInput: number | undefined;
  readonly cachedImage: number | undefined;
  readonly imageOutput: number | undefined;
}

/** Rates of one price, with those for long prompts by tier, highest first. */
interface RateTable {
  readonly rates: Rates;
  readonly tiers: readonly { readonly above: number; readonly rates: Rates }[];
  readonly services: ReadonlyMap<string, RateTable>;
}

/** Compiled once per price of the catalog. */
const rateTables = new WeakMap<object, RateTable>();

function compileRates(price: Price): RateTable {
  const { tiers = [], service_tiers = {} } = price;
  const rows = tiers.map((tier) => ({ above: tier.input_tokens_above, rates: ratesOf(tier) }));
  const table = {
    rates: ratesOf(price),
    tiers: rows.sort((a, b) => b.above - a.above),
    services: new Map(Object.entries(service_tiers).map(([name, each]) => [name, compileRates(each)])),
  };
  rateTables.set(price, table);
  return table;
}

function ratesOf({ input, output, cached_input = input, cache_write = input, ...more }: Price): Rates {
  const known = (price: number | undefined): number | undefined => (price === undefined ? undefined : picoRate(price));
  // A price of zero applies to all forms of input and output.
  const free = input === 0 && output === 0 ? 0 : undefined;
  const { cache_write_1h = cache_write, audio_input = free, cached_audio_input = audio_input } = more;
  return {
    input: picoRate(input),
    output: picoRate(output),
    cached: picoRate(cached_input),
    written: picoRate(cache_write),
    hour: picoRate(cache_write_1h),
    audioInput: known(audio_input),
    cachedAudio: known(cached_audio_input),
    audioOutput: known(more.audio_output ?? free),
    imageOutput: known(more.image_output ?? free),
    imageInput: known(more.image_input),
    cachedImage: known(more.cached_image_input),
  };
}

/** One price, or rows with a limited validity; undefined if unknown. */
export type Prices = Price | readonly PriceRow[] | undefined;

/** Common parts of all prices of a vendor. */
interface Common extends Pick<Price, 'fees' | 'regions'> {
  /** Default of a rate, as a multiple of `input`. */
  readonly factors?: Offer['priceFactors'] | undefined;
  readonly place?: Offer['dearerPlace'] | undefined;
}

/**
 * Returns the prices of a model: the operator's own over those of the table. Rows of the operator are not merged with the table.
 */
export function pricesOf(
  own: Partial<Price> | readonly PriceRow[] | undefined,
  model: ModelInfo | undefined,
  common: Common,
): Prices {
  if (own && 'length' in own) return own.map((row) => completed(row, common));
  const { place } = common;
  const listed = model?.price;
  const by = model && place?.models.test(model.id) ? place.by : 1;
  const isRows = listed && 'length' in listed;
  const table = !listed || by === 1 ? listed : isRows ? listed.map((row) => atPlace(row, by)) : atPlace(listed, by);
  const merged = (row: Price | undefined): Price | undefined => (own ? mergePrice(own, row, model?.kind) : row);
  if (table && 'length' in table)
    return table.map((row) => {
      const { from, until, hours } = row;
      const term = { ...(from && { from }), ...(until && { until }), ...(hours && { hours }) };
      return { ...completed(merged(row) ?? row, common), ...term };
    });
  const price = merged(table);
  return price && completed(price, common);
}

/** All rates of a price: its numbers except fees, factors and bounds. */
const RATE_NAMES = Object.freeze([
  ...(['input', 'output', 'cached_input', 'cache_write', 'cache_write_1h', 'characters', 'seconds'] as const),
  ...(['audio_input', 'cached_audio_input', 'audio_output'] as const),
  ...(['image_input', 'cached_image_input', 'image_output'] as const),
]);

function multiplied<P extends Omit<Price, 'service_tiers'>>(price: P, by: number): P {
  const rates = RATE_NAMES.flatMap((name) => {
    const rate = price[name];
    return rate === undefined ? [] : [[name, Math.round(rate * by * 1e6) / 1e6]];
  });
  const { tiers } = price;
  return { ...price, ...Object.fromEntries(rates), ...(tiers && { tiers: tiers.map((tier) => multiplied(tier, by)) }) };
}

function atPlace<P extends Price>(price: P, by: number): P {
  const { service_tiers: services } = price;
  const dearer = Object.entries(services ?? {}).map(([name, tier]) => [name, multiplied(tier, by)] as const);
  return { ...multiplied(price, by), ...(services && { service_tiers: Object.fromEntries(dearer) }) };
}

/** Completes a price with the common parts of its vendor, and the rates derived from the input rate of each tier. */
function completed<P extends Price>(price: P, { fees, regions, factors }: Common): P {
  const all = fees && { ...fees, ...price.fees };
  const whole = { ...(regions && { regions }), ...price, ...(all && { fees: all }) };
  return factors ? withFactors(whole, factors) : whole;
}

function withFactors<P extends Omit<Price, 'service_tiers'>>(price: P, factors: NonNullable<Common['factors']>): P {
  return {
    ...price,
    cache_write_1h: price.cache_write_1h ?? price.input * factors.cache_write_1h,
    ...(price.tiers && { tiers: price.tiers.map((tier) => withFactors(tier, factors)) }),
  };
}

function mergePrice(own: Partial<Price>, table: Price | undefined, kind: string | undefined): Price | undefined {
  // Rates for caches and long prompts apply only to the price they were derived from.
  const base = own.input === undefined ? table : table && { output: table.output };
  const { input, output = kind === 'embeddings' ? 0 : undefined, ...rates } = { ...base, ...own };
  if (own.characters !== undefined) return { input: input ?? 0, output: output ?? 0, ...rates };
  return input === undefined || output === undefined ? undefined : { input, output, ...rates };
}

/** Names of rates at OpenRouter and here. */
const RATES = Object.freeze([
  ...([
    ['prompt', 'input'],
    ['completion', 'output'],
    ['input_cache_read', 'cached_input'],
  ] as const),
  ...([
    ['input_cache_write', 'cache_write'],
    ['input_cache_write_1h', 'cache_write_1h'],
  ] as const),
  ...([
    ['audio', 'audio_input'],
    ['input_audio_cache', 'cached_audio_input'],
    ['audio_output', 'audio_output'],
  ] as const),
]);

/** Formats a price for model lists: US dollars per token, request or search, as texts. Unknown prices are omitted. */
export function pricingOf(price: Price): Readonly<Record<string, string>> {
  const { requests, web_search_requests: searches } = price.fees ?? {};
  const ofTokens = RATES.map(([name, rate]) => [name, price[rate], 1_000_000] as const);
  return Object.fromEntries(
    [...ofTokens, ['request', requests, 1] as const, ['web_search', searches, 1] as const].flatMap(([name, usd, by]) =>
      usd === undefined ? [] : [[name, (usd / by).toFixed(12).replace(/\.?0+$/, '')]],
    ),
  );
}
