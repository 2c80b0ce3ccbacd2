import { createHash, randomBytes } from 'node:crypto';
import type Keyv from 'keyv';
import {
  type CallFacts,
  GatewayError,
  type JsonObject,
  type PluginApi,
  type Principal,
} from '../../../contract/index.ts';

/** What was found out of the requests of a batch when they were checked. */
export interface Checked {
  readonly provider: string;
  /** As the provider knows it, and as the caller named it. */
  readonly model: string;
  readonly requested: string;
  readonly dialect: string;
  readonly requests: number;
  /** The most that all of them may come to, in nano-dollars; null where the price is not known. */
  readonly cost: number | null;
  /** The same of each, in the order of the file, by the hash of its `custom_id`. */
  readonly held: Readonly<Record<string, number>>;
}

interface Owned {
  readonly id: string;
  readonly owner: string;
  readonly account: string;
  /** The key that made it. */
  readonly key: string;
  /** Unix seconds. */
  readonly createdAt: number;
  readonly provider: string;
  /** Its id at the vendor. */
  readonly vendor: string;
}

export interface FileRecord extends Owned {
  readonly purpose: 'batch' | 'batch_output';
  readonly filename: string;
  readonly bytes: number;
  /** Of a file of requests. */
  readonly checked?: Checked;
}

export interface BatchRecord extends Owned {
  readonly checked: Omit<Checked, 'held'>;
  /** The caller's file of requests. */
  readonly input?: string;
  /** What the vendor said last. */
  readonly batch: JsonObject;
  /** The call that what is reserved stands under, its record, and the budgets that it counts in; absent without billing. */
  readonly callId: string;
  readonly facts: CallFacts;
  readonly budgets?: readonly { readonly id: string; readonly until?: number }[];
  readonly heldUntil: number;
  /** What is reserved for each request; absent once all are settled. */
  readonly held?: Checked['held'];
}

/** How long it is known what became of a batch: as long as vendors keep results. */
const KEEP_MS = 30 * 86_400_000;
/** What one owner may have here. */
const MAX_FILES = 200;
const MAX_BATCHES = 200;
const PAGE = 100;
/** All batches that have not ended. */
const OPEN = 'open';

/** Whose a file or batch is: the account's and user's. */
export function ownerOf({ account, userId }: Pick<Principal, 'account' | 'userId'>): string {
  return hash(JSON.stringify([account, userId]));
}

/** A short name for a text: 66 bits of its hash. */
export function hash(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 11);
}

/** An id that stands, as text, before those that were made earlier: lists have the newest first. */
export function newId(prefix: string): string {
  return `${prefix}${(1e13 - Date.now()).toString(36).padStart(9, '0')}${randomBytes(12).toString('hex')}`;
}

type RecordsApi = Pick<PluginApi, 'keyv' | 'stores'>;

export interface Records {
  readonly files: Shelf<FileRecord>;
  readonly batches: Shelf<BatchRecord>;
  /** The ids of batches that have not ended, page by page. */
  open(after?: string): Promise<readonly string[]>;
  opened(id: string): Promise<unknown>;
  ended(id: string): Promise<unknown>;
}

/** Records of one kind, each with an owner. */
export interface Shelf<T extends Owned> {
  add(record: T): Promise<void>;
  /** Writes a record anew. */
  put(record: T): Promise<void>;
  /** Whoever owns it. */
  any(id: string): Promise<T | undefined>;
  /** Throws `not_found` for somebody else's as for one that there is not. */
  own(caller: Principal, id: string): Promise<T>;
  remove(record: T): Promise<void>;
  /** The owner's, the newest first, after an id. */
  list(
    caller: Principal,
    limit: number,
    after?: string,
  ): Promise<{ readonly rows: readonly T[]; readonly hasMore: boolean }>;
}

/** Records of one kind as documents, with a set of ids for each owner. */
class KeptShelf<T extends Owned> implements Shelf<T> {
  readonly #sets: RecordsApi['stores']['sets'];
  readonly #documents: Keyv<T>;
  readonly #kind: 'files' | 'batches';
  readonly #most: number;

  constructor(api: Pick<RecordsApi, 'keyv' | 'stores'>, kind: 'files' | 'batches', most: number) {
    this.#sets = api.stores.sets;
    this.#documents = api.keyv<T>(kind);
    this.#kind = kind;
    this.#most = most;
  }

  async add(record: T): Promise<void> {
    const most = this.#most;
    const isFull = async (): Promise<boolean> =>
      (await this.#sets.add(this.#setOf(record.owner), record.id, most)) === 'full';
    // Looking through them all forgets those whose time is over.
    if ((await isFull()) && ((await this.#page(record.owner, most)).length >= most || (await isFull())))
      throw new GatewayError(
        'rate_limited',
        `You have ${most} ${this.#kind} here, the most there may be. Delete some that you no longer need.`,
        {
          retryAfterMs: 3_600_000,
        },
      );
    await this.put(record);
  }

  async put(record: T): Promise<void> {
    await this.#documents.set(record.id, record, KEEP_MS);
  }

  any(id: string): Promise<T | undefined> {
    return this.#documents.get(id);
  }

  async own(caller: Principal, id: string): Promise<T> {
    const record = /^[\w-]{1,80}$/.test(id) ? await this.any(id) : undefined;
    if (!record || record.owner !== ownerOf(caller))
      throw new GatewayError(
        'not_found',
        `You have no such ${this.#kind === 'files' ? 'file' : 'batch'} here. It may have been deleted, or be too old.`,
      );
    return record;
  }

  async remove({ owner, id }: Pick<T, 'owner' | 'id'>): Promise<void> {
    await this.#documents.delete(id);
    await this.#sets.remove(this.#setOf(owner), id);
  }

  async list(caller: Principal, limit: number, after?: string) {
    const rows = await this.#page(ownerOf(caller), limit + 1, after);
    return { rows: rows.slice(0, limit), hasMore: rows.length > limit };
  }

  /** How many these owners have. */
  async count(owners: readonly string[]): Promise<number> {
    const sizes = await Promise.all(owners.map((owner) => this.#sets.size(this.#setOf(owner))));
    return sizes.reduce((sum, size) => sum + size, 0);
  }

  /** Removes all that these owners have, and says how many those were. */
  async erase(owners: readonly string[]): Promise<number> {
    let erased = 0;
    for (const owner of owners)
      for (const { id } of await this.#page(owner, Number.POSITIVE_INFINITY)) {
        await this.remove({ owner, id });
        erased += 1;
      }
    return erased;
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
        const record = await this.#documents.get(id);
        // Its time is over.
        if (!record) await this.#sets.remove(set, id);
        else if (rows.push(record) === limit) return rows;
      }
      last = ids.at(-1);
      if (ids.length < PAGE) return rows;
    }
  }
}

/** Which files and batches at vendors are whose. */
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

/** A shelf whose records are known as personal data of those who own them. */
function createShelf<T extends Owned>(api: RecordsApi, kind: 'files' | 'batches', most: number): Shelf<T> {
  const shelf = new KeptShelf<T>(api, kind, most);
  const ownersOf = ({ userId, accounts }: { readonly userId: string; readonly accounts: readonly string[] }) =>
    accounts.map((account) => ownerOf({ account, userId }));
  api.stores.personalData({
    name: kind,
    count: (person) => shelf.count(ownersOf(person)),
    erase: (person) => shelf.erase(ownersOf(person)),
  });
  return shelf;
}
