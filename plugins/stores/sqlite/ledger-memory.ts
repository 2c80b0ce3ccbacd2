import type { ReserveOutcome } from '../../../core/index.ts';
import { finite } from '../kit/check.ts';
import type { HoldRecord, LedgerRecord } from './ledger-record.ts';
import type { LedgerTables } from './ledger-tables.ts';

interface Account {
  /** Credits less charges. */
  balance: number;
  held: number;
  readonly purses: Map<string, Purse>;
  /** Calls that are reserved, and (null) those that are over but not in the tables yet. */
  readonly calls: Map<string, Held | null>;
}

interface Purse {
  spent: number;
  held: number;
}

interface Held {
  readonly amount: number;
  readonly purse: string | null;
}

/** What SQLite and JavaScript put in the same order. */
const ASCII = /^[ -~]*$/;

/**
 * What a process that is alone with the store knows of the accounts it has touched: the tables, and on top of them the
 * records that are not in the tables yet. Whatever it does not know it reads from the tables, so all that is in
 * the tables may be forgotten at any time.
 */
export interface LedgerMemory {
  /** Whether this reservation goes through; changes nothing. */
  judge(hold: HoldRecord, floor: number, limit: number): ReserveOutcome;
  /** Whether the call is reserved and not over. */
  isHeld(account: string, ref: string): boolean;
  /** Takes note of a decision. */
  apply(record: LedgerRecord): void;
  /** Takes note that a record is in the tables now. */
  settled(record: LedgerRecord): void;
  /** How many accounts it knows. */
  size(): number;
  /** Forgets all accounts. */
  forget(): void;
  /** Forgets all, and looks at what another process may have written. */
  begin(): void;
}

export function createLedgerMemory(tables: LedgerTables): LedgerMemory {
  const accounts = new Map<string, Account>();
  /** No request in the tables has a greater id: what is greater need not be looked for, and ids of calls grow with time. */
  let newest = '';

  const accountOf = (id: string): Account => {
    const known = accounts.get(id);
    if (known) return known;
    const { balance, held } = tables.balance(id);
    const account = { balance, held, purses: new Map<string, Purse>(), calls: new Map<string, Held | null>() };
    accounts.set(id, account);
    return account;
  };

  const purseOf = (account: Account, accountId: string, id: string): Purse => {
    const known = account.purses.get(id);
    if (known) return known;
    const purse = { ...tables.purse(accountId, id) };
    account.purses.set(id, purse);
    return purse;
  };

  const isKnown = (account: Account, id: string, ref: string): boolean => {
    if (account.calls.has(ref)) return true;
    return !(ref > newest && ASCII.test(ref)) && tables.knows(id, ref);
  };

  /** The call while it is reserved; null or undefined when it is over or unknown. */
  const heldOf = (account: Account, accountId: string, ref: string): Held | null | undefined => {
    const known = account.calls.get(ref);
    if (known !== undefined) return known;
    const stored = tables.hold(accountId, ref);
    if (stored) account.calls.set(ref, stored);
    return stored;
  };

  /** Moves what a call holds out of its account and purse. */
  const letGo = (id: string, ref: string): { readonly account: Account; readonly purse: Purse | undefined } => {
    const account = accountOf(id);
    const held = heldOf(account, id, ref);
    if (!held) throw new Error(`The ledger ended the call ${ref}, which is not reserved.`);
    const purse = held.purse === null ? undefined : purseOf(account, id, held.purse);
    account.held -= held.amount;
    if (purse) purse.held -= held.amount;
    account.calls.set(ref, null);
    return { account, purse };
  };

  return {
    judge: ({ account: id, ref, amount, purse }, floor, limit) => {
      const account = accountOf(id);
      if (isKnown(account, id, ref)) return 'duplicate';
      if (account.balance - account.held - amount < finite(floor)) return 'insufficient';
      if (purse !== null) {
        const { spent, held } = purseOf(account, id, purse);
        if (amount > limit || spent + held + amount > finite(limit)) return 'over_budget';
      }
      return 'held';
    },
    isHeld: (id, ref) => Boolean(heldOf(accountOf(id), id, ref)),
    apply: (record) => {
      if (record.do === 'hold') {
        const { ref, amount, purse } = record;
        const account = accountOf(record.account);
        account.held += amount;
        if (purse !== null) purseOf(account, record.account, purse).held += amount;
        account.calls.set(ref, { amount, purse });
        return;
      }
      const { account, purse } = letGo(record.account, record.ref);
      if (record.do === 'release') return;
      account.balance -= record.amount;
      if (purse) purse.spent += record.amount;
    },
    settled: (record) => {
      if (record.ref > newest) newest = record.ref;
      if (record.do !== 'hold') accounts.get(record.account)?.calls.delete(record.ref);
    },
    size: () => accounts.size,
    forget: () => accounts.clear(),
    begin: () => {
      accounts.clear();
      newest = tables.newest();
    },
  };
}
