import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { isObject } from '../../../contract/json.ts';
import type { Listing, PriceSource } from './build-table.ts';

/** Reads the two npm packages that the model table is made of: they are maintained by different people. */

/** Vendor in our table, and its names in the sources. */
const VENDORS: Readonly<Record<string, { readonly piAi?: string; readonly genaiPrices: string }>> = Object.freeze({
  anthropic: { piAi: 'anthropic', genaiPrices: 'anthropic' },
  bedrock: { piAi: 'amazon-bedrock', genaiPrices: 'aws' },
  cerebras: { piAi: 'cerebras', genaiPrices: 'cerebras' },
  cohere: { genaiPrices: 'cohere' },
  deepseek: { piAi: 'deepseek', genaiPrices: 'deepseek' },
  fireworks: { piAi: 'fireworks', genaiPrices: 'fireworks' },
  gemini: { piAi: 'google', genaiPrices: 'google' },
  groq: { piAi: 'groq', genaiPrices: 'groq' },
  mistral: { piAi: 'mistral', genaiPrices: 'mistral' },
  moonshot: { piAi: 'moonshotai', genaiPrices: 'moonshotai' },
  openai: { piAi: 'openai', genaiPrices: 'openai' },
  openrouter: { piAi: 'openrouter', genaiPrices: 'openrouter' },
  perplexity: { genaiPrices: 'perplexity' },
  together: { piAi: 'together', genaiPrices: 'together' },
  xai: { piAi: 'xai', genaiPrices: 'x-ai' },
  zai: { piAi: 'zai', genaiPrices: 'zai' },
});

/** Model in a file of pi-ai; 0 means an unknown rate. */
interface PiAiModel {
  readonly type: string;
  readonly id: string;
  readonly input?: readonly string[];
  readonly contextWindow?: number;
  readonly maxTokens?: number;
  readonly cost?: PiAiCost & { readonly tiers?: readonly (PiAiCost & { readonly inputTokensAbove: number })[] };
}
interface PiAiCost {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
}

/** Reads an unpacked `@earendil-works/pi-ai`: a file for each vendor, with models by API. */
export function readPiAi(folder: string): PriceSource {
  const files = path.join(folder, 'dist', 'providers', 'data');
  const existing = readdirSync(files);
  const byVendor = new Map(
    Object.entries(VENDORS).map(([vendor, { piAi }]) => {
      if (piAi === undefined || !existing.includes(`${piAi}.json`)) return [vendor, new Map<string, PiAiModel>()];
      const apis = readJson(path.join(files, `${piAi}.json`)) as Readonly<Record<string, Record<string, PiAiModel>>>;
      const models = Object.values(apis).flatMap((api) => Object.values(api));
      return [vendor, new Map(models.filter(({ type }) => type === 'chat').map((model) => [model.id, model]))];
    }),
  );
  return {
    name: 'pi-ai',
    about: `npm @earendil-works/pi-ai ${versionOf(folder)} (MIT)`,
    list: (vendor) => [...(byVendor.get(vendor)?.keys() ?? [])],
    find(vendor, model) {
      const found = byVendor.get(vendor)?.get(model);
      if (!found) return undefined;
      const { cost, contextWindow, maxTokens, input } = found;
      const rates = cost && readRates(cost);
      return {
        ...(rates && {
          price: {
            ...rates,
            ...(cost.tiers && {
              tiers: cost.tiers.flatMap(({ inputTokensAbove, ...tier }) => {
                const at = readRates(tier);
                return at ? [{ input_tokens_above: inputTokensAbove, ...at }] : [];
              }),
            }),
          },
        }),
        // Its window of some models is the prompt that the standard price covers.
        ...(contextWindow && contextWindow !== cost?.tiers?.[0]?.inputTokensAbove && { contextWindow }),
        ...(maxTokens && { maxOutput: maxTokens }),
        ...(input && { inputModalities: input }),
      };
    },
  };
}

/** A cached rate equal to the input rate is no discount, and is left out. */
function readRates({ input, output, cacheRead, cacheWrite }: PiAiCost): Listing['price'] | undefined {
  if (input <= 0) return undefined;
  return {
    input,
    output,
    ...(cacheRead > 0 && cacheRead !== input && { cached_input: cacheRead }),
    ...(cacheWrite > 0 && { cache_write: cacheWrite }),
  };
}

/** Rate of genai-prices: a number, or one by length of the prompt. */
type GenaiRate = number | { readonly base: number } | undefined;
interface GenaiPrices {
  readonly input_mtok?: GenaiRate;
  readonly output_mtok?: GenaiRate;
  readonly cache_read_mtok?: GenaiRate;
  readonly cache_write_mtok?: GenaiRate;
}
interface GenaiModel {
  readonly match: unknown;
  readonly context_window?: number;
  readonly prices: GenaiPrices | readonly { readonly constraint?: unknown; readonly prices: GenaiPrices }[];
}
interface GenaiModule {
  findProvider(of: { readonly providerId: string }): { readonly models: readonly GenaiModel[] } | undefined;
}

/** Reads an unpacked `@pydantic/genai-prices`, by its own functions. Prices by hour of the day are left out. */
export async function readGenaiPrices(folder: string, today: string): Promise<PriceSource> {
  const { findProvider } = (await import(pathToFileURL(path.join(folder, 'dist', 'index.js')).href)) as GenaiModule;
  const byVendor = new Map(
    Object.entries(VENDORS).map(([vendor, { genaiPrices }]) => [
      vendor,
      findProvider({ providerId: genaiPrices })?.models ?? [],
    ]),
  );
  return {
    name: 'genai-prices',
    about: `npm @pydantic/genai-prices ${versionOf(folder)} (MIT)`,
    // Its names are patterns.
    list: () => [],
    find(vendor, model) {
      const found = byVendor.get(vendor)?.find(({ match }) => matches(match, model.toLowerCase()));
      if (!found) return undefined;
      const prices = pricesAt(found.prices, today);
      const [input, output] = [rateOf(prices?.input_mtok), rateOf(prices?.output_mtok)];
      const [cached, written] = [rateOf(prices?.cache_read_mtok), rateOf(prices?.cache_write_mtok)];
      return {
        ...(input !== undefined &&
          output !== undefined && {
            price: {
              input,
              output,
              ...(cached !== undefined && cached !== input && { cached_input: cached }),
              ...(written !== undefined && { cache_write: written }),
            },
          }),
        ...(found.context_window !== undefined && { contextWindow: found.context_window }),
      };
    },
  };
}

function rateOf(rate: GenaiRate): number | undefined {
  return typeof rate === 'object' ? rate.base : rate;
}

/** Prices of a day; undefined if they depend on the hour. */
function pricesAt(prices: GenaiModel['prices'], today: string): GenaiPrices | undefined {
  if (!Array.isArray(prices)) return prices as GenaiPrices;
  const rows = prices as readonly { readonly constraint?: unknown; readonly prices: GenaiPrices }[];
  const startOf = (constraint: unknown): unknown => isObject(constraint) && constraint['start_date'];
  if (rows.some(({ constraint }) => constraint !== undefined && typeof startOf(constraint) !== 'string'))
    return undefined;
  return rows.findLast(({ constraint }) => constraint === undefined || String(startOf(constraint)) <= today)?.prices;
}

/** Evaluates a pattern of genai-prices. */
function matches(match: unknown, model: string): boolean {
  if (!isObject(match)) return false;
  const [[kind, value] = []] = Object.entries(match);
  if (Array.isArray(value)) {
    const all = value.map((each) => matches(each, model));
    return kind === 'or' ? all.includes(true) : kind === 'and' && !all.includes(false);
  }
  if (typeof value !== 'string') return false;
  switch (kind) {
    case 'equals':
      return model === value.toLowerCase();
    case 'starts_with':
      return model.startsWith(value.toLowerCase());
    case 'ends_with':
      return model.endsWith(value.toLowerCase());
    case 'contains':
      return model.includes(value.toLowerCase());
    case 'regex':
      return new RegExp(value).test(model);
    default:
      return false;
  }
}

function versionOf(folder: string): string {
  return (readJson(path.join(folder, 'package.json')) as { readonly version: string }).version;
}

function readJson(file: string): unknown {
  return JSON.parse(readFileSync(file, 'utf8'));
}
