import type { Reservation, Settlement, UsageFacts } from '../../../core/index.ts';
import { misuse } from '../kit/failure.ts';
import { storeKey } from '../kit/key.ts';
import { countUsage, type UsageCounts } from '../kit/usage.ts';

/** What a call is for: the part of its facts that the books keep. */
export type Purpose = Pick<UsageFacts, 'operation' | 'provider' | 'model' | 'key'>;

/**
 * What was decided of a call, in the order of the decisions; the journal holds them as JSON. They are replayed by another
 * process, so every value is one that the tables take. Accounts, requests and purses are store keys.
 */
export type LedgerRecord =
  | {
      readonly do: 'hold';
      readonly account: string;
      readonly ref: string;
      readonly amount: number;
      readonly expiresAt: number;
      readonly purse: string | null;
      readonly purpose: Purpose;
    }
  | {
      readonly do: 'charge';
      readonly account: string;
      readonly ref: string;
      readonly amount: number;
      readonly now: number;
      readonly purpose: Purpose;
      readonly counts: UsageCounts;
    }
  | { readonly do: 'release'; readonly account: string; readonly ref: string };

export type HoldRecord = Extract<LedgerRecord, { readonly do: 'hold' }>;
export type ChargeRecord = Extract<LedgerRecord, { readonly do: 'charge' }>;

export function holdRecord({ account, requestId, amount, expiresAt, purse, facts }: Reservation): HoldRecord {
  checkTime(expiresAt);
  return {
    do: 'hold',
    account: storeKey(account),
    ref: storeKey(requestId),
    amount,
    expiresAt,
    purse: purse ? storeKey(purse.id) : null,
    purpose: purposeOf(facts),
  };
}

export function chargeRecord(account: string, ref: string, { amount, usage, now }: Settlement): ChargeRecord {
  checkTime(now);
  const { promptTokens, completionTokens, characters } = countUsage(usage);
  const counts = {
    promptTokens: orZero(promptTokens),
    completionTokens: orZero(completionTokens),
    characters: orZero(characters),
  };
  return { do: 'charge', account, ref, amount, now, purpose: purposeOf(usage), counts };
}

/** A record as the journal spells it: its values in their order, which is half of its names and values, and half the time. */
export type LedgerRow = readonly (string | number | null)[];

export function toRow(record: LedgerRecord): LedgerRow {
  const { account, ref } = record;
  if (record.do === 'release') return ['release', account, ref];
  const { operation, provider, model, key } = record.purpose;
  if (record.do === 'hold') {
    const { amount, expiresAt, purse } = record;
    return ['hold', account, ref, amount, expiresAt, purse, operation, provider, model, key];
  }
  const { amount, now, counts } = record;
  const { promptTokens, completionTokens, characters } = counts;
  return [
    'charge',
    account,
    ref,
    amount,
    now,
    promptTokens,
    completionTokens,
    characters,
    operation,
    provider,
    model,
    key,
  ];
}

/** The record of a row that {@link toRow} made. */
export function fromRow(row: LedgerRow): LedgerRecord {
  const [kind, account, ref, ...rest] = row as [LedgerRecord['do'], string, string, ...unknown[]];
  const [operation, provider, model, key] = rest.slice(-4) as string[];
  const purpose = { operation, provider, model, key } as Purpose;
  if (kind === 'release') return { do: kind, account, ref };
  if (kind === 'hold') {
    const [amount, expiresAt, purse] = rest as [number, number, string | null];
    return { do: kind, account, ref, amount, expiresAt, purse, purpose };
  }
  const [amount, now, promptTokens, completionTokens, characters] = rest as number[] as [
    number,
    number,
    number,
    number,
    number,
  ];
  return { do: kind, account, ref, amount, now, purpose, counts: { promptTokens, completionTokens, characters } };
}

/** The last moment that is a date, in Unix milliseconds. */
const END_OF_TIME = 8.64e15;

function checkTime(time: number): void {
  if (!(Math.abs(time) <= END_OF_TIME)) throw misuse('A time must be Unix milliseconds.');
}

const orZero = (count: number): number => (Number.isFinite(count) ? count : 0);

function purposeOf({ operation, provider, model, key }: UsageFacts): Purpose {
  return { operation: `${operation}`, provider: `${provider}`, model: `${model}`, key: `${key}` };
}
