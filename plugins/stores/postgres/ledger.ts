import type { Ledger, ReserveOutcome, UsageFacts } from '../../../core/index.ts';
import {
  CORRECTABLE_MS,
  checkAmount,
  checkCredit,
  checkReservation,
  finite,
  pageLimit,
  REMEMBER_MS,
  readCursor,
  storeKey,
} from '../kit/check.ts';
import { unreadable } from '../kit/failure.ts';
import { chargeReason, countUsage, dayOf, expiredFacts, readEntryRow, readFacts, readUsageRow } from '../kit/usage.ts';
import type { Connection } from './connection.ts';

const SWEEP_BATCH = 100;

const BALANCE = 'SELECT balance, held, spent, credited, updated_at FROM tollgate.accounts WHERE id = $1';
const BUDGET = 'SELECT spent, held FROM tollgate.purses WHERE account = $1 AND id = $2';
const ENTRIES =
  'SELECT n, kind, ref, amount, reason, at FROM tollgate.entries WHERE account = $1 AND n < $2 ORDER BY n DESC LIMIT $3';
const USAGE = `SELECT day, operation, provider, model, key, requests, prompt_tokens, completion_tokens, characters, cost
  FROM tollgate.usage WHERE account = $1 AND day BETWEEN $2 AND $3 ORDER BY day, operation, provider, model, key`;
const EXPIRED = 'SELECT account, ref, facts FROM tollgate.holds WHERE expires_at < $1 ORDER BY expires_at LIMIT $2';

const CLOCK = 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS time';

/** Money in Postgres: one function per change, which locks the account first. */
export function createPostgresLedger(connection: Connection): Ledger {
  return {
    reserve: async (reservation) => {
      checkReservation(reservation);
      const { account, requestId, amount, floor, expiresAt, budget, facts } = reservation;
      const values = [storeKey(account), storeKey(requestId), amount, finite(floor), expiresAt];
      const limits = budget ? [storeKey(budget.id), finite(budget.limit)] : [null, null];
      const { result } = await connection.write('reserve', [...values, ...limits, JSON.stringify(facts)]);
      return result as ReserveOutcome;
    },
    settle: async (settlement) => {
      checkAmount(settlement.amount);
      const { account, requestId, amount, usage, now } = settlement;
      return settle(connection, { account: storeKey(account), ref: storeKey(requestId), amount, usage, now });
    },
    release: async (account, requestId) =>
      (await connection.write('release', [storeKey(account), storeKey(requestId), REMEMBER_MS]))['result'] === true,
    credit: async (account, id, amount, reason, now) => {
      checkCredit(amount);
      const values = [storeKey(account), storeKey(id), amount, reason.replaceAll('\0', ''), now];
      return (await connection.write('credit', values))['result'] === true;
    },
    sweep: (now) => sweep(connection, now),
    clock: async () => {
      const [row = {}] = await connection.read('clock', CLOCK, []);
      return whole(row['time']);
    },
    ...createReads(connection),
  };
}

interface Charge {
  readonly account: string;
  readonly ref: string;
  /** What the call cost; null for what was reserved. */
  readonly amount: number | null;
  readonly usage: UsageFacts;
  readonly now: number;
}

async function settle(connection: Connection, { account, ref, amount, usage, now }: Charge): Promise<boolean> {
  const { operation, provider, model, key } = usage;
  const { promptTokens, completionTokens, characters } = countUsage(usage);
  const reason = chargeReason(usage).replaceAll('\0', '');
  const dimensions = [dayOf(now), operation, provider, model, key].map(storeKey);
  const counts = [promptTokens, completionTokens, characters];
  const { result } = await connection.write('settle', [
    ...[account, ref, amount, now, reason],
    ...dimensions,
    ...counts,
    CORRECTABLE_MS,
  ]);
  return result === true;
}

/** Settles expired reservations batch by batch. A batch of which nothing could be settled ends it. */
async function sweep(connection: Connection, now: number): Promise<number> {
  for (let total = 0; ; ) {
    const rows = await connection.read('expired', EXPIRED, [now, SWEEP_BATCH]);
    let settled = 0;
    for (const row of rows) {
      const usage = expiredFacts(readFacts(row['facts']));
      const charge = { account: String(row['account']), ref: String(row['ref']), amount: null, usage, now };
      if (await settle(connection, charge)) settled += 1;
    }
    total += settled;
    if (settled === 0 || rows.length < SWEEP_BATCH) return total;
  }
}

function createReads(connection: Connection): Pick<Ledger, 'balance' | 'budget' | 'entries' | 'usage'> {
  return {
    balance: async (account) => {
      const [row = {}] = await connection.read('balance', BALANCE, [storeKey(account)]);
      return {
        balance: whole(row['balance']),
        held: whole(row['held']),
        spent: whole(row['spent']),
        credited: whole(row['credited']),
        updatedAt: whole(row['updated_at']),
      };
    },
    budget: async (account, budgetId) => {
      const [row = {}] = await connection.read('budget', BUDGET, [storeKey(account), storeKey(budgetId)]);
      return { spent: whole(row['spent']), held: whole(row['held']) };
    },
    entries: async (account, { limit, after }) => {
      const rows = await connection.read('entries', ENTRIES, [storeKey(account), readCursor(after), pageLimit(limit)]);
      return rows.map((row) => readEntryRow(account, row, whole));
    },
    usage: async (account, from, to) =>
      (await connection.read('usage', USAGE, [storeKey(account), from, to])).map((row) => readUsageRow(row, whole)),
  };
}

/** A bigint of Postgres, which the driver gives as text, as a number. */
function whole(value: unknown): number {
  const number = Number(value ?? 0);
  if (!Number.isSafeInteger(number)) throw unreadable('balance');
  return number;
}
