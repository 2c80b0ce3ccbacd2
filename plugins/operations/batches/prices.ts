import {
  type ChatResponse,
  costOf,
  type Metered,
  type PluginApi,
  type Price,
  type Target,
} from '../../../contract/index.ts';

/** Rates that are reduced in batches; fees of tools are charged in full. */
const RATES = Object.freeze([
  ...([
    'input',
    'output',
    'cached_input',
    'cache_write',
    'cache_write_1h',
    'audio_input',
    'cached_audio_input',
  ] as const),
  ...(['audio_output', 'image_input', 'cached_image_input', 'image_output'] as const),
]);

type Rates = Omit<Price, 'service_tiers' | 'fees' | 'regions' | 'characters' | 'seconds'>;

/** Price of a request in a batch: the price's own tier `batch`, or a fraction of its rates; undefined if unknown. */
export function batchPrice(price: Price | undefined, factor: number): Price | undefined {
  if (!price) return undefined;
  const { fees, regions, service_tiers: tiers } = price;
  const own = tiers?.['batch'];
  return { ...(own ?? partOf(price, factor)), ...(fees && { fees }), ...(regions && { regions }) };
}

function partOf(price: Rates, factor: number): Rates {
  const { input, output, tiers } = price;
  const rates = RATES.flatMap((name) => (price[name] === undefined ? [] : [[name, price[name] * factor] as const]));
  return {
    input,
    output,
    ...Object.fromEntries(rates),
    ...(tiers && {
      tiers: tiers.map(({ input_tokens_above, ...tier }) => ({ ...partOf(tier, factor), input_tokens_above })),
    }),
  };
}

/** Cost of a response in a batch, by the model that served it; undefined if its vendor reported no usage. */
export function meteredOf(
  { models: { catalog } }: Pick<PluginApi, 'models'>,
  target: Target,
  factor: number,
  { usage, model: served }: ChatResponse,
): Metered | undefined {
  if (!usage || !(usage.prompt_tokens > 0 || usage.by_model)) return undefined;
  const prices = new Map<string, Price | undefined>();
  const priceOf = (model: string): Price | undefined => {
    const at = { provider: target.provider, model };
    if (!prices.has(model))
      prices.set(model, batchPrice(catalog.priceOf(at, catalog.find(target.provider, model)), factor));
    return prices.get(model);
  };
  const price = (catalog.hasOwnPrice(target) ? undefined : priceOf(served)) ?? priceOf(target.model);
  const shares = usage.by_model?.map((each) => [each, priceOf(each.model)] as const);
  const parts: NonNullable<Metered['parts']>[number][] = [];
  const cost = costOf(usage, price, undefined, shares, parts);
  const { prompt_tokens, completion_tokens, units } = usage;
  return { units: { prompt_tokens, completion_tokens, ...units }, cost, parts };
}
