import { setTimeout as pause } from 'node:timers/promises';
import type { Log } from '../../../contract/index.ts';
import { storeRefused, storeUnavailable } from './failure.ts';

// Journal of a store. A commit appends the ends of its calls as one row; later moves bring the rows to the tables of
// entries, records and rollup. A move deletes the rows in the transaction that writes them, so a kill loses and doubles nothing.

/** Delay between a commit and the move of what it added to the journal. */
const MOVE_AFTER_MS = 250;
/** Delay before the next attempt when a move failed. */
const RETRY_MS = 1000;
/** Delay before the next attempt of a reader while another process moves rows. */
const BUSY_MS = 5;
/** Maximum wait of a reader for the rows that were there before it. */
const READ_MS = 10_000;

/** Result of one move. */
export interface JournalMove {
  /** `more`: rows are left. `busy`: another process moves rows. `done`: no rows are left. */
  readonly state: 'more' | 'busy' | 'done';
  /** Unreadable rows that were set aside. */
  readonly damaged: number;
}

/** Journal of one store. */
export interface JournalRows {
  /** Store kind, for messages. */
  readonly kind: string;
  /** Table or key of the damaged rows, for operators. */
  readonly damagedName: string;
  isEmpty(): Promise<boolean>;
  /** Moves a bounded number of rows in one transaction, oldest first. */
  move(): Promise<JournalMove>;
  countDamaged(): Promise<number>;
}

/** Moves the rows of a journal by a timer and before reads. */
export class JournalMover {
  readonly #rows: JournalRows;
  readonly #log: Log | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Number of requests for a move. */
  #requests = 0;
  #isFailing = false;
  #isClosed = false;

  constructor(rows: JournalRows, log: Log | undefined) {
    this.#rows = rows;
    this.#log = log;
    // Moves rows of a process that was killed.
    this.moveLater();
  }

  /** Schedules a move: this process has added rows. */
  moveLater(delayMs: number = MOVE_AFTER_MS): void {
    this.#requests += 1;
    if (this.#timer || this.#isClosed) return;
    this.#timer = setTimeout(() => void this.#moveSome(), delayMs);
    this.#timer.unref();
  }

  async #moveSome(): Promise<void> {
    const requests = this.#requests;
    try {
      const { state } = await this.#move();
      this.#timer = undefined;
      this.#isFailing = false;
      if (state === 'more') this.moveLater(0);
      // The move may have missed rows that were added while it ran.
      else if (state === 'busy' || this.#requests > requests) this.moveLater();
    } catch (error) {
      if (!this.#isFailing && !this.#isClosed)
        this.#log?.warn({ store: this.#rows.kind, err: error }, 'the journal could not be moved; the gateway retries');
      this.#isFailing = true;
      this.#timer = undefined;
      this.moveLater(RETRY_MS);
    }
  }

  /** Moves all current rows, including those of other processes. */
  async drain(): Promise<void> {
    if (await this.#rows.isEmpty()) return;
    const deadlineMs = performance.now() + READ_MS;
    for (;;) {
      const { state } = await this.#move();
      if (state === 'done') return;
      if (performance.now() > deadlineMs)
        throw storeUnavailable(`The ${this.#rows.kind} store is busy: its journal is too long to be read in time.`);
      if (state === 'busy') await pause(BUSY_MS);
    }
  }

  async #move(): Promise<JournalMove> {
    const moved = await this.#rows.move();
    this.reportDamaged(moved.damaged);
    return moved;
  }

  /** Logs rows that a move has set aside. */
  reportDamaged(rows: number): void {
    if (rows === 0) return;
    this.#log?.error(
      { rows },
      `rows of the journal of the ${this.#rows.kind} store are damaged: their calls are in no list`,
    );
  }

  /** Rejects if rows of the journal could not be read. */
  async check(): Promise<void> {
    const count = await this.#rows.countDamaged();
    if (count === 0) return;
    const { kind, damagedName } = this.#rows;
    throw storeRefused(
      `The ${kind} store has ${count} damaged journal rows: calls are missing in lists, reports and books, while balances are right. Restore a backup, or accept the loss by emptying "${damagedName}".`,
    );
  }

  /** Moves the remaining rows, and stops. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    // Another process or the next start moves remaining rows.
    await this.drain().catch(() => undefined);
  }
}
