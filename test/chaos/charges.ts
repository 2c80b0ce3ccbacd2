import type { LedgerEntry } from '../../contract/index.ts';
import { RESERVED_OUTPUT, type Tried } from './client.ts';
import type { Served } from './vendor.ts';

/** Nano-dollars per token at every vendor. */
export const PRICE = Object.freeze({ input: 1, output: 2 });
const BYTES_PER_TOKEN = 4;

/** Charge that does not follow from the vendors' responses. */
export interface WrongCharge {
  readonly id: string;
  readonly came: Tried['came'] | 'unknown';
  readonly charged: number;
  readonly why: string;
}

/** Sums the charges of each request over all entries of its call. */
export function chargesOf(
  entries: readonly LedgerEntry[],
  requestOf: (call: string) => string | undefined,
): { readonly byRequest: ReadonlyMap<string, number>; readonly strange: readonly LedgerEntry[] } {
  const byRequest = new Map<string, number>();
  const strange: LedgerEntry[] = [];
  for (const entry of entries) {
    if (entry.kind !== 'charge') continue;
    const id = requestOf(entry.ref);
    if (id === undefined) strange.push(entry);
    else byRequest.set(id, (byRequest.get(id) ?? 0) - entry.amount);
  }
  return { byRequest, strange };
}

/**
 * Compares the charge of each request with the vendors' work for it. `isCutOff` returns true for a complete response
 * whose process was killed at that time, perhaps before its cost was written.
 */
export function findWrongCharges(
  tried: readonly Tried[],
  served: ReadonlyMap<string, readonly Served[]>,
  charged: ReadonlyMap<string, number>,
  isCutOff: (tried: Tried) => boolean,
): readonly WrongCharge[] {
  return tried.flatMap((each) => {
    const amount = charged.get(each.id) ?? 0;
    const why = whatIsWrong(each, served.get(each.id) ?? [], amount, isCutOff(each));
    return why === undefined ? [] : [{ id: each.id, came: each.came, charged: amount, why }];
  });
}

interface Range {
  readonly least: number;
  readonly most: number;
}

/** Reason why a charge is wrong; undefined if it is correct. */
function whatIsWrong(
  { came }: Tried,
  served: readonly Served[],
  charged: number,
  isCutOff: boolean,
): string | undefined {
  const isRight = (ranges: readonly Range[]): boolean =>
    ranges.some(({ least, most }) => charged >= least && charged <= most);
  const text = (ranges: readonly Range[]): string => ranges.map(({ least, most }) => `${least}–${most}`).join(' or ');
  const expected =
    came === 'whole' ? [...ofResponse(served), ...(isCutOff ? [reservedOf(served)] : [])] : ofFailure(came, served);
  return isRight(expected) ? undefined : `${text(expected)} expected after ${JSON.stringify(served)}`;
}

/** A response is charged by its vendor's usage, otherwise by estimate, and nothing else is charged. */
function ofResponse(served: readonly Served[]): readonly Range[] {
  return served.filter(({ kind }) => kind === 'served').map(costOfServed);
}

function costOfServed({ usage, promptTokens, textBytes }: Served): Range {
  const { prompt_tokens, completion_tokens } = usage ?? {
    prompt_tokens: promptTokens,
    completion_tokens: Math.ceil(textBytes / BYTES_PER_TOKEN),
  };
  const cost = prompt_tokens * PRICE.input + completion_tokens * PRICE.output;
  // Without usage the pieces of a text may be estimated one by one, or together.
  return { least: usage ? cost : cost - PRICE.output, most: usage ? cost : cost + PRICE.output };
}

/**
 * A failure costs the work that vendors may have done for it. If its process was killed, it costs at most the
 * reservation.
 */
function ofFailure(came: Tried['came'], served: readonly Served[]): readonly Range[] {
  const ranges: Range[] = [];
  const worked = served.filter(({ kind }) => kind !== 'refused');
  if (worked.length === 0) ranges.push({ least: 0, most: 0 });
  for (const each of worked) {
    const prompt = each.promptTokens * PRICE.input;
    if (each.kind === 'served') ranges.push(costOfServed(each));
    const words = Math.ceil(each.textBytes / BYTES_PER_TOKEN) * PRICE.output;
    ranges.push({ least: prompt, most: prompt + words + (each.textBytes > 0 ? PRICE.output : 0) });
  }
  // The process was killed: the whole reservation is charged, even if no vendor was called yet.
  if (came === 'lost') ranges.push(reservedOf(served));
  return ranges;
}

function reservedOf([first]: readonly Served[]): Range {
  const prompt = (first?.promptTokens ?? PROMPT_TOKENS) * PRICE.input;
  const reserved = prompt + RESERVED_OUTPUT * PRICE.output;
  return { least: reserved, most: reserved };
}

/** Tokens of every prompt: 4 for the message, 400 bytes. */
const PROMPT_TOKENS = 104;
