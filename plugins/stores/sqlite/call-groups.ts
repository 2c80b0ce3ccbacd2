import type { Dimensions } from '../kit/call-sums.ts';
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
