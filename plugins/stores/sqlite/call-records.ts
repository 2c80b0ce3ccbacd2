import type { CallFacts } from '../../../core/index.ts';
import { type Dimensions, dimensionsOf, hourOf, negated, packFacts, type Sums, sumsOf } from '../kit/call-rows.ts';
import { storeKey } from '../kit/check.ts';
import { cleanFacts, factText } from '../kit/facts.ts';
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

/** Which call: the store keys of its account and of its request, and the account's whole name. */
export interface CallKeys {
  readonly account: string;
  readonly ref: string;
  readonly name: string;
}

/** The keys of a request of an account. */
export function callKeys(name: string, requestId: string): CallKeys {
  return { account: storeKey(name), ref: storeKey(requestId), name };
}

/** What of a call its record is made of. */
export interface EndedCall {
  readonly of: CallKeys;
  readonly facts: CallFacts;
  readonly cost: number;
  readonly at: number;
}

/** Writes the record of a call and counts it. */
export function recordCall({ sql, groups }: CallsTables, { of, facts, cost, at }: EndedCall): void {
  const clean = cleanFacts(facts);
  const group = groups.idOf(dimensionsOf(factText(of.name), clean));
  const sums = sumsOf(clean, cost);
  sql.add.run(at, tieOf(of), group, ...columnsOf(factText(of.name), clean), ...sums.slice(1));
  sql.count.run(hourOf(at), group, ...sums);
}

/** Replaces what was recorded of a call by what it came to, at the same time; also where its record is gone. */
export function correctCall({ sql, groups }: CallsTables, before: EndedCall, facts: CallFacts, cost: number): void {
  const { of, at } = before;
  const hour = hourOf(at);
  const name = factText(of.name);
  const [old, clean] = [cleanFacts(before.facts), cleanFacts(facts)];
  const count = (each: CallFacts, sums: Sums): number => {
    const group = groups.idOf(dimensionsOf(name, each));
    sql.count.run(hour, group, ...sums);
    sql.dropEmpty.run(hour, group);
    return group;
  };
  count(old, negated(sumsOf(old, before.cost)));
  const sums = sumsOf(clean, cost);
  const group = count(clean, sums);
  sql.replace.run(group, ...columnsOf(name, clean), ...sums.slice(1), at, tieOf(of));
}

function columnsOf(account: string, facts: CallFacts) {
  const { userId, key, requestId, session, outcome } = facts;
  return [account, userId, key, requestId, session ?? null, outcome, packFacts(facts)] as const;
}

/** What tells calls of one moment apart, and orders them. */
function tieOf({ ref, account }: CallKeys): string {
  return JSON.stringify([ref, account]);
}
