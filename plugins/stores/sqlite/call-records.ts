import type { CallFacts } from '../../../core/index.ts';
import { type Dimensions, dimensionsOf, hourOf, negated, packFacts, type Sums, sumsOf } from '../kit/call-rows.ts';
import { factText } from '../kit/facts.ts';
import type { CallRecord, LedgerKeys } from '../kit/ledger.ts';
import type { CallsSql } from './calls-sql.ts';

/** How many groups are remembered; a gateway has as many as its users have models. */
const MAX_REMEMBERED = 20_000;

/** The numbers of groups of calls. A group that is written stays, so that what is remembered of it stays true. */
export class CallGroups {
  readonly #sql: Pick<CallsSql, 'addGroup' | 'groupId' | 'group'>;
  readonly #ids = new Map<string, number>();
  readonly #dimensions = new Map<number, Dimensions>();

  constructor(sql: CallsSql) {
    this.#sql = sql;
  }

  /** The number of a group, made when it is new; inside a transaction. */
  idOf(dimensions: Dimensions): number {
    // No text of a record holds a NUL.
    const key = dimensions.join('\0');
    const known = this.#ids.get(key);
    if (known !== undefined) return known;
    this.#sql.addGroup.run(...dimensions);
    const id = Number(this.#sql.groupId.get(...dimensions)?.['id']);
    if (this.#ids.size >= MAX_REMEMBERED) this.#ids.clear();
    this.#ids.set(key, id);
    return id;
  }

  dimensionsOf(id: number): Dimensions {
    const known = this.#dimensions.get(id);
    if (known) return known;
    const dimensions = Object.values(this.#sql.group.get(id) ?? {}).map(String);
    if (this.#dimensions.size >= MAX_REMEMBERED) this.#dimensions.clear();
    this.#dimensions.set(id, dimensions);
    return dimensions;
  }

  /** Forgets everything: a transaction was undone, and what it numbered may get another number. */
  clear(): void {
    this.#ids.clear();
    this.#dimensions.clear();
  }
}

// Records of calls and their rollup, each change inside a transaction that the caller makes.

export interface CallsTables {
  readonly sql: CallsSql;
  readonly groups: CallGroups;
}

/** Writes the record of a call and counts it, or replaces what was recorded of it before; also where that is gone. */
export function writeCall(
  { sql, groups }: CallsTables,
  { account, name, ref }: Pick<LedgerKeys, 'account' | 'name' | 'ref'>,
  { facts, cost, at, before }: CallRecord,
): void {
  const hour = hourOf(at);
  const shown = factText(name);
  const tie = JSON.stringify([ref, account]);
  const count = (each: CallFacts, sums: Sums): number => {
    const group = groups.idOf(dimensionsOf(shown, each));
    sql.count.run(hour, group, ...sums);
    if (before) sql.dropEmpty.run(hour, group);
    return group;
  };
  if (before) count(before.facts, negated(sumsOf(before.facts, before.cost)));
  const sums = sumsOf(facts, cost);
  const values = [count(facts, sums), ...columnsOf(shown, facts), ...sums.slice(1)] as const;
  if (before) sql.replace.run(...values, at, tie);
  else sql.add.run(at, tie, ...values);
}

function columnsOf(account: string, facts: CallFacts) {
  const { userId, key, requestId, session, outcome } = facts;
  return [account, userId, key, requestId, session ?? null, outcome, packFacts(facts)] as const;
}
