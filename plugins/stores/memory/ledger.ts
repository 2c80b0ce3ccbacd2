import type { Ledger, Reservation, ReserveOutcome, Settlement } from '../../../core/index.ts';
import {
  checkCredit,
  checkReservation,
  checkSettlement,
  finite,
  pageLimit,
  REMEMBER_MS,
  readCursor,
} from '../kit/check.ts';
import { expiredFacts } from '../kit/usage.ts';
import { type Account, append, charge, createAccount, dropHold, type Hold, purseOf } from './account.ts';

/**
 * Money in this process's memory: every method runs to its end without giving way to another, which is what makes it
 * atomic. The reference that the other stores are compared with.
 */
export function createMemoryLedger(): Ledger {
  const accounts = new Map<string, Account>();
  const open = new Set<Hold>();

  const accountOf = (id: string): Account => {
    const account = accounts.get(id) ?? createAccount();
    accounts.set(id, account);
    return account;
  };

  const reserve = (reservation: Reservation): ReserveOutcome => {
    checkReservation(reservation);
    const { account: id, requestId, amount, purse } = reservation;
    const account = accountOf(id);
    if (account.holds.has(requestId) || account.refs.has(`charge ${requestId}`) || account.released.has(requestId))
      return 'duplicate';
    if (account.balance - account.held - amount < finite(reservation.floor)) return 'insufficient';
    if (purse) {
      const { spent, held } = purseOf(account, purse.id);
      if (spent + held + amount > purse.limit) return 'over_budget';
      purseOf(account, purse.id).held += amount;
    }
    account.held += amount;
    const hold = {
      account: id,
      requestId,
      amount,
      purse: purse?.id,
      expiresAt: reservation.expiresAt,
      facts: reservation.facts,
    };
    account.holds.set(requestId, hold);
    open.add(hold);
    return 'held';
  };

  const settle = (settlement: Settlement): boolean => {
    checkSettlement(settlement);
    const account = accounts.get(settlement.account);
    const hold = account?.holds.get(settlement.requestId);
    if (!account || !hold) return false;
    open.delete(hold);
    charge(account, hold, settlement.amount, settlement.usage, settlement.now);
    return true;
  };

  const release = (id: string, requestId: string): boolean => {
    const account = accounts.get(id);
    const hold = account?.holds.get(requestId);
    if (!account || !hold) return false;
    open.delete(hold);
    dropHold(account, hold);
    account.released.set(requestId, hold.expiresAt + REMEMBER_MS);
    return true;
  };

  const credit = (id: string, ref: string, amount: number, reason: string, now: number): boolean => {
    checkCredit(amount);
    const account = accountOf(id);
    if (account.refs.has(`credit ${ref}`)) return false;
    account.balance += amount;
    account.credited += amount;
    account.updatedAt = now;
    append(account, { account: id, kind: 'credit', amount, reason, ref, at: now });
    return true;
  };

  const sweep = (now: number): number => {
    let settled = 0;
    for (const hold of open) {
      if (hold.expiresAt >= now) continue;
      const { account, requestId, amount, facts } = hold;
      if (settle({ account, requestId, amount, usage: expiredFacts(facts), now })) settled += 1;
    }
    for (const account of accounts.values()) {
      for (const [requestId, until] of account.released) if (until < now) account.released.delete(requestId);
    }
    return settled;
  };

  return {
    reserve: async (reservation) => reserve(reservation),
    settle: async (settlement) => settle(settlement),
    release: async (account, requestId) => release(account, requestId),
    credit: async (account, id, amount, reason, now) => credit(account, id, amount, reason, now),
    sweep: async (now) => sweep(now),
    balance: async (id) => {
      const { balance, held, spent, credited, updatedAt } = accounts.get(id) ?? createAccount();
      return { balance, held, spent, credited, updatedAt };
    },
    purse: async (id, purseId) => ({ ...(accounts.get(id)?.purses.get(purseId) ?? { spent: 0, held: 0 }) }),
    entries: async (id, { limit, after }) => {
      const before = readCursor(after);
      const older = (accounts.get(id)?.entries ?? []).filter((entry) => Number(entry.id) < before);
      return older.slice(-pageLimit(limit)).reverse();
    },
    usage: async (id, from, to) => {
      const rows = [...(accounts.get(id)?.usage.values() ?? [])].filter((row) => row.day >= from && row.day <= to);
      return rows.map((row) => ({ ...row })).sort((a, b) => (a.day < b.day ? -1 : Number(a.day > b.day)));
    },
  };
}
