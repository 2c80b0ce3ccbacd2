import type { LedgerEntry } from '../../contract/index.ts';
import { RESERVED_OUTPUT, type Tried } from './client.ts';
import type { Served } from './vendor.ts';

/** Nano-dollars a token, at every vendor. */
export const PRICE = Object.freeze({ input: 1, output: 2 });
const BYTES_PER_TOKEN = 4;

/** A charge that does not follow from what the vendors did. */
export interface WrongCharge {
  readonly id: string;
  readonly came: Tried['came'] | 'unknown';
  readonly charged: number;
  readonly why: string;
}

/** What was charged for each request, over all entries of its call. */
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
 * Compares what each request was charged with what the vendors did for it. `isCutOff` tells of a response that came whole whether its
 * process was killed just then, perhaps before its cost was written.
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

/** Why a charge is wrong; undefined when it is right. */
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

/** A response is charged as its vendor counted, else by estimate, and nothing else is. */
function ofResponse(served: readonly Served[]): readonly Range[] {
  return served.filter(({ kind }) => kind === 'served').map(costOfServed);
}

function costOfServed({ usage, promptTokens, textBytes }: Served): Range {
  const { prompt_tokens, completion_tokens } = usage ?? {
    prompt_tokens: promptTokens,
    completion_tokens: Math.ceil(textBytes / BYTES_PER_TOKEN),
  };
  const cost = prompt_tokens * PRICE.input + completion_tokens * PRICE.output;
  // Where nothing was counted the pieces of a text may be estimated one by one, or together.
  return { least: usage ? cost : cost - PRICE.output, most: usage ? cost : cost + PRICE.output };
}

/** A failure owes what vendors may have done for it; one whose process died, at most what was reserved. */
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
  // Its process was killed: the reservation is settled at what it held, also when nobody had been asked yet.
  if (came === 'lost') ranges.push(reservedOf(served));
  return ranges;
}

function reservedOf([first]: readonly Served[]): Range {
  const prompt = (first?.promptTokens ?? PROMPT_TOKENS) * PRICE.input;
  const reserved = prompt + RESERVED_OUTPUT * PRICE.output;
  return { least: reserved, most: reserved };
}

/** Of the prompt of every call: 4 for the message, 400 bytes. */
const PROMPT_TOKENS = 104;
