import type { CostPart, Units } from '../../contract/call.ts';
import type { Usage } from '../../contract/chat.ts';
import type { Metered, OperationUsage, ReportedUsage } from '../../contract/operation.ts';
import { costOf, isCount } from '../../contract/prices.ts';
import type { Price } from '../../contract/provider.ts';

/** Prices the maximum usage of a request. */
export function priceMaxUsage(most: OperationUsage, price: Price | undefined): Metered {
  return priceUsage(most, undefined, price);
}

/**
 * Prices reported usage, by units if the price has a fee for one of them, otherwise by tokens. A number that is missing or impossible
 * counts as in `most`, and the usage as estimated.
 */
export function priceUsage(
  most: OperationUsage,
  reported: ReportedUsage | undefined,
  price: Price | undefined,
): Metered {
  const { units = {} } = most;
  const names = Object.keys(units);
  const priced = names.filter((name) => price?.fees?.[name] !== undefined);
  const hasTokens = most.prompt_tokens !== undefined || most.completion_tokens !== undefined;
  const providerCost = typeof reported?.cost === 'number' ? reported.cost : undefined;
  const counted =
    priced.length > 0 || !hasTokens
      ? countUnits(units, priced.length > 0 ? priced : names, reported)
      : countTokens(most, reported);
  const parts: CostPart[] = [];
  const cost = costOf(counted.usage, price, undefined, undefined, parts);
  return { units: counted.units, cost, parts, estimated: counted.isEstimated, providerCost };
}

/** Checked usage. */
interface Counted {
  readonly usage: Usage;
  readonly units: Units;
  readonly isEstimated: boolean;
}

const NO_TOKENS: Usage = Object.freeze({ prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 });

function countUnits(most: Units, names: readonly string[], reported: ReportedUsage | undefined): Counted {
  const units: Record<string, number> = {};
  let isEstimated = false;
  for (const name of names) {
    const quantity = reported?.units?.[name];
    // A call that was performed used some of each unit.
    const isReported = isCount(quantity) && (quantity > 0 || most[name] === 0);
    units[name] = isReported ? quantity : (most[name] ?? 0);
    isEstimated ||= !isReported;
  }
  return { usage: { ...NO_TOKENS, units }, units, isEstimated };
}

function countTokens(most: OperationUsage, reported: ReportedUsage | undefined): Counted {
  const { prompt_tokens: maxPrompt, completion_tokens: maxCompletion } = most;
  const prompt = maxPrompt === undefined ? 0 : reported?.prompt_tokens;
  const completion = maxCompletion === undefined ? 0 : reported?.completion_tokens;
  const isReported = isCount(prompt) && isCount(completion) && prompt + completion > 0;
  const read = isReported ? prompt : (maxPrompt ?? 0);
  const written = isReported ? completion : (maxCompletion ?? 0);
  const of = isReported ? reported : most;
  const units = {
    ...(maxPrompt !== undefined && { prompt_tokens: read }),
    ...(maxCompletion !== undefined && { completion_tokens: written }),
  };
  const usage = {
    prompt_tokens: read,
    completion_tokens: written,
    total_tokens: read + written,
    prompt_tokens_details: countDetails(of?.prompt_tokens_details),
    completion_tokens_details: countDetails(of?.completion_tokens_details),
  };
  return { usage, units, isEstimated: !isReported };
}

/** Details of tokens; impossible numbers are omitted. */
function countDetails(details: Readonly<Record<string, unknown>> = {}): Readonly<Record<string, number>> {
  const counts = Object.entries(details).filter((entry): entry is [string, number] => isCount(entry[1]));
  return Object.fromEntries(counts);
}

/** Returns whether amounts that a plugin has computed are possible: whole, not negative, and no more than the ledger counts. */
export function isPossible({ units, cost }: Pick<Metered, 'units' | 'cost'>): boolean {
  return (cost === undefined || (Number.isSafeInteger(cost) && cost >= 0)) && Object.values(units).every(isAmount);
}

/** Units that a plugin leaves undefined are absent. Seconds may have fractions. */
function isAmount(amount: unknown): boolean {
  return amount === undefined || (typeof amount === 'number' && isCount(Math.ceil(amount)));
}
