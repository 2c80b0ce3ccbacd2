import type { Ledger, LedgerEntry, Reservation, ReserveOutcome, UsageFacts, UsageRow } from '../../../core/index.ts';
import {
  CORRECTABLE_MS,
  checkAmount,
  checkCredit,
  checkReservation,
  entryId,
  finite,
  pageLimit,
  REMEMBER_MS,
  readCursor,
  storeKey,
} from '../kit/check.ts';
import { unreadable } from '../kit/failure.ts';
import {
  chargeReason,
  correctionReason,
  countUsage,
  dayOf,
  daysBetween,
  expiredFacts,
  readFacts,
  USAGE_DAYS,
} from '../kit/usage.ts';
import { runScript } from './client.ts';
import type { Connection } from './connection.ts';
import { type AccountKeys, type Keys, SHARDS } from './keys.ts';
import { CLOCK, CREDIT, DISCARD, RELEASE, RESERVE, SETTLE } from './ledger-scripts.ts';

const DAY_MS = 86_400_000;
const SWEEP_BATCH = 100;

const OUTCOMES: ReadonlySet<unknown> = new Set<ReserveOutcome>(['held', 'insufficient', 'over_budget', 'duplicate']);

/** Money in Redis: one script per change, all keys of an account in one slot. `keepEntries` bounds the books of an account. */
export function createRedisLedger(connection: Connection, keys: Keys, keepEntries: number): Ledger {
  const settle = createSettle(connection, keepEntries);
  return {
    reserve: (reservation) => reserve(connection, keys, reservation),
    settle: async (settlement) => {
      checkAmount(settlement.amount);
      const { account, requestId, amount, usage, now } = settlement;
      const of = keys.ofAccount(account);
      return settle(of, { member: of.member(requestId), ref: storeKey(requestId), amount, usage, now });
    },
    release: async (account, requestId) => {
      const of = keys.ofAccount(account);
      const member = of.member(requestId);
      const at = [of.account, of.request(member), of.due, of.entries];
      return (await connection.write(RELEASE, at, [member, REMEMBER_MS, Date.now(), keepEntries])) === 1;
    },
    credit: async (account, id, amount, reason, now) => {
      checkCredit(amount);
      const of = keys.ofAccount(account);
      const ref = storeKey(id);
      const rest = JSON.stringify({ kind: 'credit', reason, ref, at: now });
      const args = [ref, amount, now, rest, keepEntries];
      return (await connection.write(CREDIT, [of.account, of.credits, of.entries], args)) === 1;
    },
    sweep: async (now) => {
      const shards = Array.from({ length: SHARDS }, (_, shard) => sweepShard(connection, keys, settle, shard, now));
      return (await Promise.all(shards)).reduce((sum, count) => sum + count, 0);
    },
    clock: async () => Number(await connection.read((client) => runScript(client, CLOCK, [keys.due(0)], []))),
    ...createReads(connection, keys),
  };
}

async function reserve(connection: Connection, keys: Keys, reservation: Reservation): Promise<ReserveOutcome> {
  checkReservation(reservation);
  const { account, amount, floor, expiresAt, budget, facts, requestId } = reservation;
  const of = keys.ofAccount(account);
  const member = of.member(requestId);
  const limits = [budget ? `+${storeKey(budget.id)}` : '', finite(budget?.limit ?? 0)];
  const outcome = await connection.write(
    RESERVE,
    [of.account, of.request(member), of.due],
    [amount, finite(floor), expiresAt, ...limits, JSON.stringify(facts), member],
  );
  if (!OUTCOMES.has(outcome)) throw unreadable('reservation');
  return outcome as ReserveOutcome;
}

interface Charge {
  readonly member: string;
  readonly ref: string;
  /** What the call cost; '' for what was reserved. */
  readonly amount: number | '';
  readonly usage: UsageFacts;
  readonly now: number;
}

type Settle = (of: AccountKeys, charge: Charge) => Promise<boolean>;

function createSettle(connection: Connection, keepEntries: number): Settle {
  return async (of, { member, ref, amount, usage, now }) => {
    const { operation, provider, model, key } = usage;
    const { promptTokens, completionTokens, characters } = countUsage(usage);
    const rest = JSON.stringify({ kind: 'charge', reason: chargeReason(usage), ref, at: now });
    const dimensions = JSON.stringify([operation, provider, model, key]);
    const row = [dimensions, promptTokens, completionTokens, characters, USAGE_DAYS * DAY_MS];
    const correction =
      amount === '' ? JSON.stringify({ kind: 'charge', reason: correctionReason(usage), ref, at: now }) : '';
    const settled = await connection.write(
      SETTLE,
      [of.account, of.request(member), of.due, of.entries, of.usage(dayOf(now))],
      [member, amount === '' ? CORRECTABLE_MS : REMEMBER_MS, amount, now, rest, keepEntries, ...row, correction],
    );
    return settled === 1;
  };
}

/** Settles the expired reservations of one shard, and returns how many. */
async function sweepShard(
  connection: Connection,
  keys: Keys,
  settle: Settle,
  shard: number,
  now: number,
): Promise<number> {
  const limit = { LIMIT: { offset: 0, count: SWEEP_BATCH } };
  const members = await connection.read((client) => client.zRangeByScore(keys.due(shard), '-inf', now - 1, limit));
  const settled = await Promise.all(
    members.map(async (member) => {
      const of = keys.ofMember(shard, member);
      const [facts] = await connection.read((client) => client.hmGet(of.request(member), ['facts']));
      if (facts == null) {
        // Settled by another gateway in between, or deleted by hand.
        await connection.write(DISCARD, [of.request(member), of.due], [member]);
        return false;
      }
      const ref = member.slice(member.indexOf(':') + 1);
      return settle(of, { member, ref, amount: '', usage: expiredFacts(readFacts(facts)), now });
    }),
  );
  const count = settled.filter(Boolean).length;
  return members.length < SWEEP_BATCH ? count : count + (await sweepShard(connection, keys, settle, shard, now));
}

function createReads(connection: Connection, keys: Keys): Pick<Ledger, 'balance' | 'budget' | 'entries' | 'usage'> {
  const readFields = async (account: string, fields: string[]): Promise<readonly number[]> => {
    const values = await connection.read((client) => client.hmGet(keys.ofAccount(account).account, fields));
    return values.map(readWhole);
  };
  return {
    balance: async (account) => {
      const fields = ['balance', 'held', 'spent', 'credited', 'updated_at'];
      const [balance = 0, held = 0, spent = 0, credited = 0, updatedAt = 0] = await readFields(account, fields);
      return { balance, held, spent, credited, updatedAt };
    },
    budget: async (account, budgetId) => {
      const id = `+${storeKey(budgetId)}`;
      const [spent = 0, held = 0] = await readFields(account, [`spent:${id}`, `held:${id}`]);
      return { spent, held };
    },
    entries: async (account, { limit, after }) => {
      const before = readCursor(after);
      const [last = 0] = await readFields(account, ['last_entry']);
      // The list ends with entry `last` and has no gaps: the place of an entry follows from its number.
      const skip = Math.max(0, last - before + 1);
      const { entries } = keys.ofAccount(account);
      const lines = await connection.read((client) => client.lRange(entries, -(skip + pageLimit(limit)), -(skip + 1)));
      // Entries written between the two reads push the list along; they are newer than this page.
      return lines
        .map((line) => readEntry(account, line))
        .filter((entry) => Number(entry.id) < before)
        .reverse();
    },
    usage: async (account, from, to) => {
      const of = keys.ofAccount(account);
      const rows = await Promise.all(
        daysBetween(from, to).map(async (day) => {
          const found = await connection.read((client) => client.hGetAll(of.usage(day)));
          return Object.entries(found).map(([dimensions, counts]) => readUsage(day, dimensions, counts));
        }),
      );
      return rows.flat();
    },
  };
}

function readWhole(text: string | null): number {
  const value = Number(text ?? 0);
  if (!Number.isSafeInteger(value)) throw unreadable('balance');
  return value;
}

function readJson<T>(text: string): T {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw unreadable('ledger record', cause);
  }
}

function readEntry(account: string, line: string): LedgerEntry {
  const match = /^(\d+) (-?\d+) (\{.*\})$/s.exec(line);
  if (!match) throw unreadable('ledger entry');
  const { kind, reason, ref, at } = readJson<Pick<LedgerEntry, 'kind' | 'reason' | 'ref' | 'at'>>(match[3] ?? '');
  return { id: entryId(Number(match[1])), account, kind, amount: readWhole(match[2] ?? null), reason, ref, at };
}

function readUsage(day: string, dimensions: string, counts: string): UsageRow {
  const [operation = '', provider = '', model = '', key = ''] = readJson<readonly string[]>(dimensions);
  const [requests = 0, prompt_tokens = 0, completion_tokens = 0, characters = 0, cost = 0] = counts
    .split(' ')
    .map(readWhole);
  return { day, operation, provider, model, key, requests, prompt_tokens, completion_tokens, characters, cost };
}
