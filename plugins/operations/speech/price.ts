import type { Metered, ModelInfo, Price } from '../../../core/index.ts';
import { countCharacters, type SpeechProvider, type SpeechRequest } from '../../tts/kit/index.ts';
import { findModelInfo } from './check.ts';
import type { SpeechUsage } from './run-speech.ts';

/**
 * What speech costs. A price is per character, per second of sound, per token, or a sum of these; prices are US dollars
 * per million, which makes units times price micro-dollars.
 */
export interface SpeechCost {
  /** Whole micro-dollars, rounded up once. */
  readonly amount: number;
  /** Whether seconds or tokens had to be guessed from the characters. */
  readonly estimated: boolean;
}

/** Slow speech, so that a reservation is rather too high: people and vendors speak 13 to 18 characters a second. */
const CHARACTERS_PER_SECOND = 12;
const CHARACTERS_PER_TOKEN = 3;
/** Gemini bills 25 tokens for a second of sound, others fewer. */
const TOKENS_PER_SECOND = 25;

/** The price of a model: the operator's by longest prefix, or `*`, over the model's own. Undefined when nobody named one. */
export function speechPrice(vendor: SpeechProvider, model: string, info: ModelInfo): Partial<Price> | undefined {
  const prices = vendor.prices ?? {};
  const [prefix] = Object.keys(prices)
    .filter((key) => key !== '*' && model.startsWith(key))
    .sort((a, b) => b.length - a.length);
  const own = prices[prefix ?? '*'];
  return own || info.price ? { ...info.price, ...own } : undefined;
}

/** What was used, as money; undefined without a price. Units that the vendor did not tell are estimated. */
export function costOfSpeech(usage: SpeechUsage, price: Partial<Price> | undefined): SpeechCost | undefined {
  if (!price) return undefined;
  const { characters } = usage;
  const seconds = usage.seconds ?? characters / CHARACTERS_PER_SECOND;
  const tokens = usage.tokens ?? {
    input: Math.ceil(characters / CHARACTERS_PER_TOKEN),
    output: Math.ceil(seconds * TOKENS_PER_SECOND),
  };
  const bySecond = (price.seconds ?? 0) * seconds;
  const byToken = (price.input ?? 0) * tokens.input + (price.output ?? 0) * tokens.output;
  const micro = (price.characters ?? 0) * characters + bySecond + byToken;
  return {
    // Rounding up must not turn 1.0000000001 of binary fractions into 2.
    amount: Math.ceil(micro - 1e-6),
    estimated: (bySecond > 0 && usage.seconds === undefined) || (byToken > 0 && usage.tokens === undefined),
  };
}

/** What a text will cost at most or so: to reserve before it is sent. `speed` below 1 makes longer sound. */
export function estimateSpeech(
  characters: number,
  speed: number,
  price: Partial<Price> | undefined,
): number | undefined {
  const seconds = characters / CHARACTERS_PER_SECOND / Math.min(1, speed);
  return costOfSpeech({ characters, seconds }, price)?.amount;
}

/** The most that a request may come to at a model, before it is sent. */
export function estimateRequest(vendor: SpeechProvider, model: string, { text, speed = 1 }: SpeechRequest): Metered {
  const characters = countCharacters(text);
  const info = findModelInfo(vendor, model);
  return {
    units: { characters },
    cost: info && estimateSpeech(characters, speed, speechPrice(vendor, model, info)),
  };
}

/** What was used, as core meters it: characters, and tokens where the vendor told them. */
export function meterSpeech(usage: SpeechUsage, price: Partial<Price> | undefined): Metered {
  const { characters, tokens } = usage;
  const cost = costOfSpeech(usage, price);
  return {
    units: { characters, ...(tokens && { prompt_tokens: tokens.input, completion_tokens: tokens.output }) },
    cost: cost?.amount,
    estimated: cost?.estimated ?? false,
  };
}
