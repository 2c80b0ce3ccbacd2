import { createHash, randomBytes } from 'node:crypto';
import type Keyv from 'keyv';
import {
  type CallFacts,
  GatewayError,
  type JsonObject,
  type PluginApi,
  type Principal,
} from '../../../contract/index.ts';

/** Results of checking the requests of a batch. */
export interface Checked {
  readonly provider: string;
  /** Model name at the provider, and the caller's name for it. */
  readonly model: string;
  readonly requested: string;
  readonly dialect: string;
  readonly requests: number;
  /** Maximum cost of all requests, in nano-dollars; null if the price is unknown. */
  readonly cost: number | null;
  /** Maximum cost of each request, in file order, by the hash of its `custom_id`. */
  readonly held: Readonly<Record<string, number>>;
}

interface OwnedRecord {
  readonly id: string;
  readonly owner: string;
  readonly account: string;
  /** Key that created it. */
  readonly key: string;
  /** Unix seconds. */
  readonly createdAt: number;
  readonly provider: string;
  /** Id at the vendor. */
  readonly vendor: string;
}

export interface FileRecord extends OwnedRecord {
  readonly purpose: 'batch' | 'batch_output';
  readonly filename: string;
  readonly bytes: number;
  /** For a file of requests. */
  readonly checked?: Checked;
}

export interface BatchRecord extends OwnedRecord {
  readonly checked: Omit<Checked, 'held'>;
  /** Caller's file of requests. */
  readonly input?: string;
  /** Vendor's latest response. */
  readonly batch: JsonObject;
  /** Call with the reservation, its record, and the budgets it counts in; absent without billing. */
  readonly callId: string;
  readonly facts: CallFacts;
  readonly budgets?: readonly { readonly id: string; readonly until?: number }[];
  readonly heldUntil: number;
  /** Reserved amount for each request; absent once all are settled. */
  readonly held?: Checked['held'];
}

/** Retention of batch records: as long as vendors keep results. */
const KEEP_MS = 30 * 86_400_000;
/** Limits per owner. */
const MAX_FILES = 200;
const MAX_BATCHES = 200;
const PAGE = 100;
/** Set of all batches that have not ended. */
const OPEN = 'open';

/** Owner of a file or batch: account and user. */
export function ownerOf({ account, userId }: Pick<Principal, 'account' | 'userId'>): string {
  return hash(JSON.stringify([account, userId]));
}

/** Short name for a text: 66 bits of its hash. */
export function hash(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 11);
}

/** Id that sorts, as text, before earlier ones: lists are newest first. */
export function newId(prefix: string): string {
  return `${prefix}${(1e13 - Date.now()).toString(36).padStart(9, '0')}${randomBytes(12).toString('hex')}`;
}

type RecordsApi = Pick<PluginApi, 'keyv' | 'stores'>;

export interface Records {
  readonly files: Shelf<FileRecord>;
  readonly batches: Shelf<BatchRecord>;
  /** Ids of batches that have not ended, page by page. */
  open(after?: string): Promise<readonly string[]>;
  opened(id: string): Promise<unknown>;
  ended(id: string): Promise<unknown>;
}

/** Records of one kind, each with an owner. */
export interface Shelf<T extends OwnedRecord> {
  add(record: T): Promise<void>;
  /** Overwrites a record. */
  put(record: T): Promise<void>;
  /** Returns a record of any owner. */
  any(id: string): Promise<T | undefined>;
  /** Throws `not_found` for a missing record and for another owner's. */
  getOwn(caller: Principal, id: string): Promise<T>;
  remove(record: Pick<T, 'owner' | 'account' | 'id'>): Promise<void>;
  /** Records of the owner after an id, newest first. */
  list(
    caller: Principal,
    limit: number,
    after?: string,
  ): Promise<{ readonly rows: readonly T[]; readonly hasMore: boolean }>;
}

/** Records of one kind as documents of their account, whose bytes are limited, with a set of ids for each owner. */
class StoredShelf<T extends OwnedRecord> implements Shelf<T> {
  readonly #sets: RecordsApi['stores']['sets'];
  readonly #stored: RecordsApi['stores']['stored'];
  /** Records of builds that did not count them as stored data. They expire. */
  readonly #former: Keyv<T>;
  readonly #kind: 'files' | 'batches';
  readonly #most: number;

  constructor(api: RecordsApi, kind: 'files' | 'batches', most: number) {
    this.#sets = api.stores.sets;
    this.#stored = api.stores.stored;
    this.#former = api.keyv<T>(kind);
    this.#kind = kind;
    this.#most = most;
  }

  async add(record: T): Promise<void> {
    const most = this.#most;
    const isFull = async (): Promise<boolean> =>
      (await this.#sets.add(this.#setOf(record.owner), record.id, most)) === 'full';
    // Reading all of them removes expired ones.
    if ((await isFull()) && ((await this.#page(record.owner, most)).length >= most || (await isFull())))
      throw new GatewayError('rate_limited', `Limit of ${most} ${this.#kind} reached. Delete some of them.`, {
        retryAfterMs: 3_600_000,
      });
    if (await this.#write(record)) return;
    await this.#sets.remove(this.#setOf(record.owner), record.id);
    throw new GatewayError(
      'request_too_large',
      'The requests of this batch do not fit into the stored data of one account. Split the batch.',
    );
  }

  async put(record: T): Promise<void> {
    await this.#write(record);
  }

  /** Returns false if the record is too large for its account; an earlier version then stays. */
  #write(record: T): Promise<boolean> {
    return this.#stored.set(record.account, this.#keyOf(record.id), record, KEEP_MS, 'lasting');
  }

  async any(id: string): Promise<T | undefined> {
    return (await this.#stored.get<T>(this.#keyOf(id))) ?? this.#former.get(id);
  }

  async getOwn(caller: Principal, id: string): Promise<T> {
    const record = /^[\w-]{1,80}$/.test(id) ? await this.any(id) : undefined;
    if (!record || record.owner !== ownerOf(caller))
      throw new GatewayError(
        'not_found',
        `${this.#kind === 'files' ? 'File' : 'Batch'} not found. It was deleted, has expired or belongs to another user.`,
      );
    return record;
  }

  async remove({ owner, account, id }: Pick<T, 'owner' | 'account' | 'id'>): Promise<void> {
    await this.#stored.delete(account, this.#keyOf(id));
    await this.#former.delete(id);
    await this.#sets.remove(this.#setOf(owner), id);
  }

  async list(caller: Principal, limit: number, after?: string) {
    const rows = await this.#page(ownerOf(caller), limit + 1, after);
    return { rows: rows.slice(0, limit), hasMore: rows.length > limit };
  }

  /** Number of records of these owners. */
  async count(owners: readonly string[]): Promise<number> {
    const sizes = await Promise.all(owners.map((owner) => this.#sets.size(this.#setOf(owner))));
    return sizes.reduce((sum, size) => sum + size, 0);
  }

  /** Removes all records of these owners, and returns their number. */
  async erase(owners: readonly string[]): Promise<number> {
    let erased = 0;
    for (const owner of owners)
      for (const record of await this.#page(owner, Number.POSITIVE_INFINITY)) {
        await this.remove(record);
        erased += 1;
      }
    return erased;
  }

  #keyOf(id: string): string {
    return `${this.#kind}.${id}`;
  }

  #setOf(owner: string): string {
    return `${this.#kind}.${owner}`;
  }

  async #page(owner: string, limit: number, after?: string): Promise<T[]> {
    const set = this.#setOf(owner);
    const rows: T[] = [];
    for (let last = after; ; ) {
      const ids = await this.#sets.list(set, { limit: PAGE, ...(last !== undefined && { after: last }) });
      for (const id of ids) {
        const record = await this.any(id);
        // The record has expired.
        if (!record) await this.#sets.remove(set, id);
        else if (rows.push(record) === limit) return rows;
      }
      last = ids.at(-1);
      if (ids.length < PAGE) return rows;
    }
  }
}

/** Owners of files and batches at vendors. */
export function createRecords(api: RecordsApi): Records {
  const { sets } = api.stores;
  return {
    files: createShelf<FileRecord>(api, 'files', MAX_FILES),
    batches: createShelf<BatchRecord>(api, 'batches', MAX_BATCHES),
    open: (after) => sets.list(OPEN, { limit: PAGE, ...(after !== undefined && { after }) }),
    opened: (id) => sets.add(OPEN, id),
    ended: (id) => sets.remove(OPEN, id),
  };
}

/** Creates a store whose records are registered as personal data of their owners. */
function createShelf<T extends OwnedRecord>(api: RecordsApi, kind: 'files' | 'batches', most: number): Shelf<T> {
  const shelf = new StoredShelf<T>(api, kind, most);
  const ownersOf = ({ userId, accounts }: { readonly userId: string; readonly accounts: readonly string[] }) =>
    accounts.map((account) => ownerOf({ account, userId }));
  api.stores.personalData({
    name: kind,
    count: (person) => shelf.count(ownersOf(person)),
    erase: (person) => shelf.erase(ownersOf(person)),
  });
  return shelf;
}
