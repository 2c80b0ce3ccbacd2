import type { BudgetHold, CallFacts, Ledger, Reservation, ReserveResult } from '../../../core/index.ts';
import { dimensionsOf, SUM_NAMES, sumsOf } from '../kit/call-rows.ts';
import {
  CORRECTABLE_MS,
  checkAmount,
  checkCredit,
  checkReservation,
  digest,
  finite,
  REMEMBER_MS,
  storeKey,
} from '../kit/check.ts';
import { chargeReason, cleanFacts, correctionReason, expiredFacts, factText, readFacts } from '../kit/facts.ts';
import { unreadable } from '../kit/failure.ts';
import { createCallReads } from './calls.ts';
import { type Connection, runScript } from './client.ts';
import type { Keys } from './keys.ts';
import { createReads, nameOfAccount } from './ledger-reads.ts';
import { CLOCK, CREDIT, DISCARD, RELEASE, RESERVE, SETTLE } from './ledger-scripts.ts';
import { readReport } from './report.ts';

const SWEEP_BATCH = 200;
const COST = SUM_NAMES.indexOf('cost');

/** What the changes of the ledger work with. */
interface Books {
  readonly connection: Connection;
  readonly keys: Keys;
  readonly keepEntries: number;
}

/** Money in Redis: one script per change. `keepEntries` bounds the books of an account. */
export function createRedisLedger(connection: Connection, keys: Keys, keepEntries: number): Ledger {
  const books: Books = { connection, keys, keepEntries };
  return {
    reserve: (reservation) => reserve(books, reservation),
    settle: async ({ account, requestId, amount, facts, uncharged = [], now }) => {
      checkAmount(amount);
      const member = keys.ofAccount(account).member(requestId);
      return settle(books, { member, account, requestId, amount, facts, uncharged, now });
    },
    release: async (account, requestId, facts, now = Date.now()) => {
      const of = keys.ofAccount(account);
      const member = of.member(requestId);
      const about = facts ? callTexts({ account, requestId, facts, amount: 0 }) : ['', '', ''];
      const args = [keys.ledger, member, REMEMBER_MS, now, keepEntries, ...about];
      return (await connection.write(RELEASE, [of.account, of.request(member), keys.due, of.entries], args)) === 1;
    },
    credit: async (account, id, amount, reason, now) => {
      checkCredit(amount);
      const of = keys.ofAccount(account);
      const ref = storeKey(id);
      const rest = JSON.stringify({ kind: 'credit', reason, ref, at: now });
      const args = [keys.ledger, of.member(''), JSON.stringify(account), ref, amount, now, rest, keepEntries];
      return (await connection.write(CREDIT, [of.account, of.credits, of.entries], args)) === 1;
    },
    sweep: (now) => sweep(books, now),
    clock: async () => Number(await connection.read((client) => runScript(client, CLOCK, [keys.due], []))),
    report: (query) => readReport(connection, keys, query),
    ...createReads(connection, keys),
    ...createCallReads(connection, keys),
  };
}

async function reserve({ connection, keys }: Books, reservation: Reservation): Promise<ReserveResult> {
  checkReservation(reservation);
  const { account, amount, floor, expiresAt, budgets = [], facts, requestId, now } = reservation;
  const of = keys.ofAccount(account);
  const member = of.member(requestId);
  const head = [keys.ledger, amount, finite(floor), expiresAt, JSON.stringify(facts), member, JSON.stringify(account)];
  const limits = budgets.flatMap(({ id, limit, until }) => [
    digest(id),
    finite(limit),
    until === undefined ? '' : timeToLive(until, now),
  ]);
  const reply = await connection.write(RESERVE, [of.account, of.request(member), keys.due], [...head, ...limits]);
  return readReply(Array.isArray(reply) ? reply : [], budgets);
}

/** How long a budget stays: until nobody asks for it, and a late correction has not found it. */
function timeToLive(until: number, now: number): number {
  return Math.max(1, Math.ceil(until - now)) + CORRECTABLE_MS;
}

function readReply([outcome, ...rest]: readonly unknown[], budgets: readonly BudgetHold[]): ReserveResult {
  if (outcome === 'insufficient' || outcome === 'duplicate') return { outcome };
  const numbers = rest.map(Number);
  if (outcome === 'held' && numbers.length === budgets.length) return { outcome, used: numbers };
  const [place = 0, used = 0] = numbers;
  if (outcome !== 'over_budget') throw unreadable('reservation');
  return { outcome, budget: place - 1, used };
}

interface Ended {
  readonly account: string;
  readonly requestId: string;
  readonly facts: CallFacts;
  /** What the call cost; undefined for what was reserved. */
  readonly amount: number | undefined;
}

/** What a script writes into the rollup and the record of a call: the group, its sums, and the record. */
function callTexts({ account, requestId, facts, amount }: Ended): readonly [string, string, string] {
  const clean = cleanFacts(facts);
  const name = factText(account);
  const sums = sumsOf(clean, amount ?? 0).map((sum, place) => (place === COST && amount === undefined ? '$' : sum));
  const record = JSON.stringify({ ...clean, id: factText(requestId), account: name });
  return [JSON.stringify(dimensionsOf(name, clean)), sums.join(' '), record];
}

interface Charge extends Ended {
  readonly member: string;
  readonly uncharged: readonly string[];
  readonly now: number;
}

async function settle({ connection, keys, keepEntries }: Books, charge: Charge): Promise<boolean> {
  const { member, requestId, amount, facts, uncharged, now } = charge;
  const of = keys.ofMember(member);
  const ref = storeKey(requestId);
  const rest = (reason: string): string => JSON.stringify({ kind: 'charge', reason, ref, at: now });
  const settled = await connection.write(
    SETTLE,
    [of.account, of.request(member), keys.due, of.entries],
    [
      ...[keys.ledger, member, amount === undefined ? CORRECTABLE_MS : REMEMBER_MS, amount ?? '', now],
      ...[rest(chargeReason(facts)), keepEntries, ` ${uncharged.map(digest).join(' ')} `],
      ...callTexts(charge),
      amount === undefined ? rest(correctionReason(facts)) : '',
    ],
  );
  return settled === 1;
}

/** Settles the expired reservations, and returns how many. */
async function sweep(books: Books, now: number): Promise<number> {
  const { connection, keys } = books;
  const limit = { LIMIT: { offset: 0, count: SWEEP_BATCH } };
  for (let total = 0; ; ) {
    const members = await connection.read((client) => client.zRangeByScore(keys.due, '-inf', now - 1, limit));
    const settled = await Promise.all(members.map((member) => sweepOne(books, member, now)));
    total += settled.filter(Boolean).length;
    if (members.length < SWEEP_BATCH) return total;
  }
}

async function sweepOne(books: Books, member: string, now: number): Promise<boolean> {
  const { connection, keys } = books;
  const of = keys.ofMember(member);
  const [[text], account] = await Promise.all([
    connection.read((client) => client.hmGet(of.request(member), ['facts'])),
    nameOfAccount(connection, of),
  ]);
  if (text == null) {
    // Settled by another gateway in between, or deleted by hand.
    await connection.write(DISCARD, [of.request(member), keys.due], [member]);
    return false;
  }
  const requestId = member.slice(member.indexOf(':') + 1);
  const facts = expiredFacts(readFacts(text));
  return settle(books, { member, account, requestId, amount: undefined, facts, uncharged: [], now });
}
