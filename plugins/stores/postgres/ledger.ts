import type { CallFacts, Ledger, Reservation, ReserveResult } from '../../../core/index.ts';
import { dimensionsOf, packFacts, sumsOf } from '../kit/call-rows.ts';
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
import type { Connection, Row, Value } from './connection.ts';
import { accountName, createReads } from './ledger-reads.ts';
import { readReport } from './report.ts';

const SWEEP_BATCH = 100;
const EXPIRED =
  'SELECT h.account, h.ref, h.facts, a.name FROM tollgate.holds AS h JOIN tollgate.accounts AS a ON a.id = h.account WHERE h.expires_at < $1 ORDER BY h.expires_at LIMIT $2';

/** Money in Postgres: one function per change, which locks the account first. */
export function createPostgresLedger(connection: Connection): Ledger {
  return {
    reserve: (reservation) => reserve(connection, reservation),
    settle: async ({ account, requestId, amount, facts, uncharged = [], now }) => {
      checkAmount(amount);
      return settle(connection, { account, requestId, amount, facts, uncharged, now });
    },
    release: async (account, requestId, facts, now = Date.now()) => {
      const about = facts ? callValues({ account, facts, cost: 0 }) : NOTHING_KNOWN;
      const values = [storeKey(account), storeKey(requestId), now, REMEMBER_MS, ...about];
      return (await connection.write('release', values))['result'] === true;
    },
    credit: async (account, id, amount, reason, now) => {
      checkCredit(amount);
      const values = [...accountValues(account), storeKey(id), amount, reason.replaceAll('\0', ''), now];
      return (await connection.write('credit', values))['result'] === true;
    },
    sweep: (now) => sweep(connection, now),
    report: (query) => readReport(connection, query),
    ...createReads(connection),
    ...createCallReads(connection),
  };
}

/** The id of an account's row, and what the account is called where that is another text. */
function accountValues(account: string): readonly [string, string | null] {
  const id = storeKey(account);
  return [id, id === account ? null : JSON.stringify(account)];
}

async function reserve(connection: Connection, reservation: Reservation): Promise<ReserveResult> {
  checkReservation(reservation);
  const { account, requestId, amount, floor, expiresAt, budgets = [], facts } = reservation;
  const { outcome, refused, used_ } = await connection.write('reserve', [
    ...accountValues(account),
    ...[storeKey(requestId), amount, finite(floor), expiresAt],
    budgets.map(({ id }) => storeKey(id)),
    budgets.map(({ limit }) => finite(limit)),
    // A late correction of the sweeper's charge still finds the budget.
    budgets.map(({ until }) => (until === undefined ? null : until + CORRECTABLE_MS)),
    JSON.stringify(facts),
  ]);
  if (outcome === 'insufficient' || outcome === 'duplicate') return { outcome };
  const used = (used_ as readonly string[]).map(Number);
  if (outcome === 'held') return { outcome, used };
  const budget = Number(refused) - 1;
  if (outcome !== 'over_budget') throw unreadable('reservation');
  return { outcome, budget, used: used[budget] ?? 0 };
}

interface Ended {
  readonly account: string;
  readonly facts: CallFacts;
  readonly cost: number;
}

/** What a function writes into the rollup and the record of a call. */
function callValues({ account, facts, cost }: Ended): readonly Value[] {
  const clean = cleanFacts(facts);
  const dimensions = dimensionsOf(factText(account), clean);
  return [
    digest(JSON.stringify(dimensions)),
    [...dimensions, clean.requestId],
    sumsOf(clean, cost),
    clean.session ?? null,
    clean.outcome,
    packFacts(clean),
  ];
}

const NOTHING_KNOWN: readonly Value[] = Object.freeze([null, null, null, null, null, null]);

interface Charge extends Omit<Ended, 'cost'> {
  readonly requestId: string;
  /** What the call cost; null for what was reserved. */
  readonly amount: number | null;
  readonly uncharged: readonly string[];
  readonly now: number;
}

async function settle(connection: Connection, charge: Charge): Promise<boolean> {
  const { account, requestId, amount, facts, uncharged, now } = charge;
  const { result } = await connection.write('settle', [
    ...[storeKey(account), storeKey(requestId), amount, now],
    chargeReason(facts).replaceAll('\0', ''),
    correctionReason(facts).replaceAll('\0', ''),
    CORRECTABLE_MS,
    uncharged.map(storeKey),
    ...callValues({ account, facts, cost: amount ?? 0 }),
  ]);
  return result === true;
}

/** Settles expired reservations batch by batch. A batch of which nothing could be settled ends it. */
async function sweep(connection: Connection, now: number): Promise<number> {
  for (let total = 0; ; ) {
    const rows = await connection.read('expired', EXPIRED, [now, SWEEP_BATCH]);
    let settled = 0;
    for (const row of rows) if (await sweepOne(connection, row, now)) settled += 1;
    total += settled;
    if (settled === 0 || rows.length < SWEEP_BATCH) return total;
  }
}

async function sweepOne(connection: Connection, row: Row, now: number): Promise<boolean> {
  const facts = expiredFacts(readFacts(row['facts']));
  const account = accountName(row['account'], row['name']);
  return settle(connection, { account, requestId: String(row['ref']), amount: null, facts, uncharged: [], now });
}
