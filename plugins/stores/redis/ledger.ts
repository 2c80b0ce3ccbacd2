import type {
  AccountBalance,
  Ledger,
  LedgerEntry,
  Reservation,
  ReserveOutcome,
  UsageFacts,
  UsageRow,
} from '../../../core/index.ts';
import {
  checkCredit,
  checkReservation,
  checkSettlement,
  entryId,
  finite,
  pageLimit,
  REMEMBER_MS,
  readCursor,
} from '../kit/check.ts';
import { unreadable } from '../kit/failure.ts';
import { storeKey } from '../kit/key.ts';
import { chargeReason, countUsage, dayOf, daysBetween, expiredFacts, readFacts, USAGE_DAYS } from '../kit/usage.ts';
import type { Connection } from './connection.ts';
import { type AccountKeys, type Keys, SHARDS } from './keys.ts';
import { CREDIT, DISCARD, RELEASE, RESERVE, SETTLE } from './ledger-scripts.ts';

const DAY_MS = 86_400_000;
const SWEEP_BATCH = 100;

const OUTCOMES: ReadonlySet<unknown> = new Set<ReserveOutcome>(['held', 'insufficient', 'over_budget', 'duplicate']);

/** Money in Redis: one script per change, all keys of an account in one slot. `keepEntries` bounds the books of an account. */
export function createRedisLedger(connection: Connection, keys: Keys, keepEntries: number): Ledger {
  const reserve = async (reservation: Reservation): Promise<ReserveOutcome> => {
    checkReservation(reservation);
    const { amount, floor, expiresAt, purse, facts, requestId } = reservation;
    const of = keys.ofAccount(reservation.account);
    const member = of.member(requestId);
    const outcome = await connection.write(
      RESERVE,
      [of.account, of.request(member), of.due],
      [
        amount,
        finite(floor),
        expiresAt,
        purse ? `+${storeKey(purse.id)}` : '',
        finite(purse?.limit ?? 0),
        JSON.stringify(facts),
        member,
      ],
    );
    if (!OUTCOMES.has(outcome)) throw unreadable('reservation');
    return outcome as ReserveOutcome;
  };

  const settle = async (
    of: AccountKeys,
    member: string,
    ref: string,
    amount: number | '',
    usage: UsageFacts,
    now: number,
  ): Promise<boolean> => {
    const { operation, provider, model, key } = usage;
    const { promptTokens, completionTokens, characters } = countUsage(usage);
    const rest = JSON.stringify({ kind: 'charge', reason: chargeReason(usage), ref, at: now });
    const settled = await connection.write(
      SETTLE,
      [of.account, of.request(member), of.due, of.entries, of.usage(dayOf(now))],
      [
        member,
        REMEMBER_MS,
        amount,
        now,
        rest,
        keepEntries,
        JSON.stringify([operation, provider, model, key]),
        promptTokens,
        completionTokens,
        characters,
        USAGE_DAYS * DAY_MS,
      ],
    );
    return settled === 1;
  };

  const sweepShard = async (shard: number, now: number): Promise<number> => {
    const limit = { LIMIT: { offset: 0, count: SWEEP_BATCH } };
    const members = await connection.read((client) => client.zRangeByScore(keys.due(shard), '-inf', now - 1, limit));
    const settled = await Promise.all(
      members.map(async (member) => {
        const of = keys.ofMember(shard, member);
        const [facts] = await connection.read((client) => client.hmGet(of.request(member), ['facts']));
        if (facts == null) {
          // Settled by somebody else in between, or gone by a hand that was not ours.
          await connection.write(DISCARD, [of.request(member), of.due], [member]);
          return false;
        }
        const ref = member.slice(member.indexOf(':') + 1);
        return await settle(of, member, ref, '', expiredFacts(readFacts(facts)), now);
      }),
    );
    const count = settled.filter(Boolean).length;
    return members.length < SWEEP_BATCH ? count : count + (await sweepShard(shard, now));
  };

  return {
    reserve,
    settle: async (settlement) => {
      checkSettlement(settlement);
      const { account, requestId, amount, usage, now } = settlement;
      const of = keys.ofAccount(account);
      return settle(of, of.member(requestId), storeKey(requestId), amount, usage, now);
    },
    release: async (account, requestId) => {
      const of = keys.ofAccount(account);
      const member = of.member(requestId);
      return (await connection.write(RELEASE, [of.account, of.request(member), of.due], [member, REMEMBER_MS])) === 1;
    },
    credit: async (account, id, amount, reason, now) => {
      checkCredit(amount);
      const of = keys.ofAccount(account);
      const ref = storeKey(id);
      const rest = JSON.stringify({ kind: 'credit', reason, ref, at: now });
      return (
        (await connection.write(
          CREDIT,
          [of.account, of.credits, of.entries],
          [ref, amount, now, rest, keepEntries],
        )) === 1
      );
    },
    balance: async (account): Promise<AccountBalance> => {
      const fields = ['balance', 'held', 'spent', 'credited', 'updated_at'];
      const values = await connection.read((client) => client.hmGet(keys.ofAccount(account).account, fields));
      const [balance = 0, held = 0, spent = 0, credited = 0, updatedAt = 0] = values.map(readWhole);
      return { balance, held, spent, credited, updatedAt };
    },
    purse: async (account, purseId) => {
      const fields = [`spent:+${storeKey(purseId)}`, `held:+${storeKey(purseId)}`];
      const values = await connection.read((client) => client.hmGet(keys.ofAccount(account).account, fields));
      const [spent = 0, held = 0] = values.map(readWhole);
      return { spent, held };
    },
    entries: async (account, { limit, after }) => {
      const of = keys.ofAccount(account);
      const before = readCursor(after);
      const [found] = await connection.read((client) => client.hmGet(of.account, ['last_entry']));
      const last = readWhole(found ?? null);
      // The list ends with entry `last` and has no gaps: the place of an entry follows from its number.
      const skip = Math.max(0, last - before + 1);
      const lines = await connection.read((client) =>
        client.lRange(of.entries, -(skip + pageLimit(limit)), -(skip + 1)),
      );
      // Entries written between the two reads push the list along; they are newer than this page.
      return lines
        .map((line) => readEntry(account, line))
        .filter((entry) => Number(entry.id) < before)
        .reverse();
    },
    usage: async (account, from, to) => {
      const of = keys.ofAccount(account);
      const days = daysBetween(from, to);
      const rows = await Promise.all(
        days.map(async (day) => {
          const found = await connection.read((client) => client.hGetAll(of.usage(day)));
          return Object.entries(found).map(([dimensions, counts]) => readUsage(day, dimensions, counts));
        }),
      );
      return rows.flat();
    },
    sweep: async (now) => {
      const counts = await Promise.all(Array.from({ length: SHARDS }, (_, shard) => sweepShard(shard, now)));
      return counts.reduce((sum, count) => sum + count, 0);
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
