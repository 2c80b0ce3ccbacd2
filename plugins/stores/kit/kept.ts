import type Keyv from 'keyv';
import { type AccountDocuments, parseSize, type Store } from '../../../contract/index.ts';

/** Option of every store: maximum size of the documents of one account. */
export const KEPT_OPTION = {
  type: ['string', 'integer'],
  format: 'size',
  default: '32mb',
  description:
    'Maximum stored data per account (idempotent results, responses, agent memory, sessions), without the ledger. The oldest data is deleted first, sessions last.',
} as const;

const DEFAULT_BYTES = parseSize(KEPT_OPTION.default);
/** Overhead of a document in addition to its text: key, entry, database overhead. */
const OVERHEAD_BYTES = 512;
/** Maximum share of one document in an account's limit. */
const DOCUMENT_SHARE = 1 / 4;
/** Share that an account has even if the store is full, so that completed work is still recorded. */
const LEAST_SHARE = 1 / 256;
const MAX_ENTRIES = 20_000;
const PAGE = 1000;
/**
 * Default limit of all accounts together, as a multiple of one account's limit: 16 GB by default. Also applies if the
 * store does not report its room, or reports more.
 */
const ALL_ACCOUNTS = 512;
/**
 * Share that this process may add for an account before it reads the entries again. Each process may exceed the limit
 * by that much.
 */
const CHECK_SHARE = 1 / 32;
const CHECK_ENTRIES = 64;
const MAX_ACCOUNTS = 10_000;
const TIME_DIGITS = 9;
/** Digits of a counter that keeps the order of entries of the same millisecond. */
const ORDER_DIGITS = 3;
let written = 0;

interface StoredDocument {
  /** Current entry of the key; a second entry of the same key does not count. */
  readonly entry: string;
  readonly value: unknown;
}

/**
 * Known state of an account: bytes at the last read of its entries, its limit, and what this process has added since.
 */
interface Known {
  bytes: number;
  bound: number;
  added: number;
  entries: number;
}

/**
 * Returns the bytes that all accounts together may still add. Negative means over the limit; undefined means no limit.
 */
type FindRoom = () => Promise<number | undefined>;

type Halves = Pick<Store, 'keyv' | 'sets'>;

/**
 * Adds documents of accounts to the documents and sets of a store. `option` is the value of {@link KEPT_OPTION}. If
 * `findRoom` reports the room of the store, an account may have at most half of it. The next account may have half of
 * the rest. The same applies to the rest of `mostBytes`, which counts the accounts that this process has written.
 */
export function withStored(
  halves: Halves,
  option: string | number = DEFAULT_BYTES,
  findRoom: FindRoom = () => Promise.resolve(undefined),
  mostBytes = parseSize(option) * ALL_ACCOUNTS,
): Halves & Pick<Store, 'stored'> {
  const bounds = { ofAccount: parseSize(option), ofAll: mostBytes };
  const all = createAccountDocuments(halves, bounds, findRoom);
  const stored = (owner: string): AccountDocuments => ({
    set: (account, key, ...document) => all.set(account, `${owner}.${key}`, ...document),
    get: (key) => all.get(`${owner}.${key}`),
    delete: (account, key) => all.delete(account, `${owner}.${key}`),
    bytes: (account) => all.bytes(account),
    count: (account, remove) => all.count(account, remove),
    get known() {
      return all.known;
    },
  });
  return { ...halves, stored };
}

/** Limits in bytes. */
interface Bounds {
  readonly ofAccount: number;
  readonly ofAll: number;
}

/** Creates the documents of accounts. Each account has a set of entries, which begin with their time of writing. */
function createAccountDocuments({ keyv, sets }: Halves, bounds: Bounds, findRoom: FindRoom): AccountDocuments {
  const maxBytes = bounds.ofAccount;
  const documents = (): Keyv<StoredDocument> => keyv<StoredDocument>('kept');
  const quota = createQuota(documents, sets, bounds, findRoom);

  const remove = async (account: string, key: string): Promise<boolean> => {
    const found = await documents().get(key);
    if (!found) return false;
    await sets.remove(setOf(account), found.entry);
    return documents().delete(key);
  };
  return {
    get known() {
      return quota.known();
    },
    async set(account, key, value, ttlMs, lasting) {
      const bytes = Buffer.byteLength(JSON.stringify(value)) + OVERHEAD_BYTES;
      if (bytes > maxBytes * DOCUMENT_SHARE) return false;
      const entry = writeEntry(bytes, Date.now() + ttlMs, key, lasting === 'lasting');
      return quota.write(account, entry, bytes, async () => {
        const former = await documents().get(key);
        await sets.add(setOf(account), entry);
        // The document is replaced in one step, so concurrent readers find the old or the new one.
        const isWritten = await documents().set(key, { entry, value }, ttlMs);
        if (former) await sets.remove(setOf(account), former.entry);
        return isWritten;
      });
    },
    get: async <T>(key: string) => (await documents().get(key))?.value as T | undefined,
    delete: remove,
    async bytes(account) {
      const { bytes, added } = await quota.trim(account);
      return bytes + added;
    },
    async count(account, isRemoved = false) {
      await quota.trim(account);
      const entries = await readEntries(sets, setOf(account));
      if (!isRemoved) return entries.length;
      for (const { member, key } of entries) {
        await documents().delete(key);
        await sets.remove(setOf(account), member);
      }
      quota.forget(account);
      return entries.length;
    },
  };
}

/** Limits of accounts, and the entries that this process is writing. */
function createQuota(documents: () => Keyv<StoredDocument>, sets: Store['sets'], bounds: Bounds, findRoom: FindRoom) {
  const maxBytes = bounds.ofAccount;
  const writing = createWriting();
  const accounts = createAccounts(documents, sets, bounds, writing.of);
  /** Room at the last query. */
  let room: number | undefined;
  let reported: number | undefined;

  /**
   * Updates the available room. If this process counts the room, it also reads the account with the oldest count again,
   * because entries of it may have expired.
   */
  async function lookForRoom(account: string): Promise<void> {
    const oldest = accounts.oldest();
    if (accounts.left() < 2 * maxBytes && oldest !== undefined && oldest !== account)
      await accounts.read(oldest, accounts.left());
    // A failed query leaves the last value.
    reported = await findRoom().catch(() => reported);
    room = Math.min(reported ?? Number.POSITIVE_INFINITY, accounts.left());
  }

  async function trim(account: string): Promise<Known> {
    await lookForRoom(account);
    return accounts.read(account, room);
  }

  /** Makes room for an entry before it is written, because the store may be full. Returns false if there is no room. */
  async function admit(account: string, bytes: number): Promise<boolean> {
    const isSmall = bytes <= maxBytes * LEAST_SHARE;
    const known = accounts.of(account);
    let { bound = maxBytes } = known ?? {};
    if (!isSmall && !writing.fits(account, bound, room)) return false;
    if (isDue(known, bytes)) ({ bound } = await trim(account));
    return isSmall || writing.fits(account, bound, room);
  }

  return {
    trim,
    forget: accounts.forget,
    known: accounts.known,
    /** Writes an entry of `bytes` if the account and the store have room. Returns false if it was not written. */
    async write(account: string, entry: string, bytes: number, work: () => Promise<boolean>): Promise<boolean> {
      writing.begin(account, entry, bytes);
      try {
        if (!(await admit(account, bytes))) return false;
        if (room !== undefined) room -= bytes;
        return await work();
      } finally {
        writing.end(account, entry);
      }
    },
  };
}

/**
 * Known state of accounts, from their entries. `writingOf` returns the entries of an account that this process is
 * writing.
 */
function createAccounts(
  documents: () => Keyv<StoredDocument>,
  sets: Store['sets'],
  bounds: Bounds,
  writingOf: (account: string) => ReadonlyMap<string, number>,
) {
  const known = new Map<string, Known>();
  let dropped = 0;

  const sumOfKnown = (): number => sumOf([...known.values()].map(({ bytes, added }) => bytes + added));

  return {
    of: (account: string) => known.get(account),
    /** Account with the oldest count. */
    oldest: () => known.keys().next().value,
    /** Bytes that all accounts together may still add, by the counts of this process. */
    left: () => bounds.ofAll - sumOfKnown(),
    forget: (account: string) => known.delete(account),
    known: () => ({ bytes: sumOfKnown(), dropped }),
    /**
     * Reads the entries of an account. Drops expired entries, and entries over the limit, which also counts those being
     * written.
     */
    async read(account: string, room: number | undefined): Promise<Known> {
      const now = Date.now();
      const set = setOf(account);
      const all = await readEntries(sets, set);
      const own = writingOf(account);
      const coming = sumOf(own.values());
      const written = all.filter(({ member }) => !own.has(member));
      const bound = boundOf(room, sumOf(written.map(({ bytes }) => bytes)), bounds.ofAccount);
      const { bytes, toDrop } = chooseEntries(written, bound - coming, now);
      for (const entry of toDrop) {
        if (entry.expiresAt > now && (await deleteDocument(documents(), entry))) dropped += 1;
        await sets.remove(set, entry.member);
      }
      const found: Known = { bytes, bound, added: coming, entries: own.size };
      remember(known, account, found);
      return found;
    },
  };
}

/** Deletes the document of an entry, except if a newer one replaced it. */
async function deleteDocument(documents: Keyv<StoredDocument>, { member, key }: Entry): Promise<boolean> {
  return (await documents.get(key))?.entry === member && (await documents.delete(key));
}

/** Entries that this process is writing, by account. They count before they are written, and are never dropped. */
function createWriting() {
  const accounts = new Map<string, Map<string, number>>();
  const of = (account: string) => accounts.get(account) ?? new Map<string, number>();
  return {
    of,
    /** Checks that all pending writes fit: those of the account into its limit, and all together into the room. */
    fits(account: string, bound: number, room = Number.POSITIVE_INFINITY): boolean {
      const all = [...accounts.values()].map((own) => sumOf(own.values()));
      return sumOf(of(account).values()) <= bound && sumOf(all) <= room;
    },
    begin: (account: string, entry: string, bytes: number) => accounts.set(account, of(account).set(entry, bytes)),
    end(account: string, entry: string) {
      of(account).delete(entry);
      if (of(account).size === 0) accounts.delete(account);
    },
  };
}

/**
 * Selects the entries to drop: expired ones, and those over the limit. Keeps lasting entries before others, and newer
 * before older ones.
 */
function chooseEntries(entries: Entry[], room: number, now: number) {
  const toDrop: Entry[] = [];
  let bytes = 0;
  let count = 0;
  const newestFirst = entries.reverse();
  for (const entry of [...newestFirst.filter(isLasting), ...newestFirst.filter((each) => !isLasting(each))]) {
    const isLeft = entry.expiresAt > now && bytes + entry.bytes <= room && count < MAX_ENTRIES;
    if (isLeft) {
      bytes += entry.bytes;
      count += 1;
    } else toDrop.push(entry);
  }
  return { bytes, toDrop };
}

/** Limit of an account: half of the available room plus its own bytes. */
function boundOf(room: number | undefined, own: number, maxBytes: number): number {
  if (room === undefined) return maxBytes;
  return Math.min(maxBytes, Math.max(maxBytes * LEAST_SHARE, (room + own) / 2));
}

function sumOf(numbers: Iterable<number>): number {
  let sum = 0;
  for (const number of numbers) sum += number;
  return sum;
}

function remember(known: Map<string, Known>, account: string, found: Known): void {
  known.delete(account);
  if (known.size >= MAX_ACCOUNTS) known.delete(known.keys().next().value ?? '');
  if (found.bytes + found.added > 0) known.set(account, found);
}

/** Records an upcoming write of an account. Returns true if its entries must be read first. */
function isDue(known: Known | undefined, bytes: number): boolean {
  if (!known) return true;
  known.added += bytes;
  known.entries += 1;
  return known.added > known.bound * CHECK_SHARE || known.entries > CHECK_ENTRIES;
}

function setOf(account: string): string {
  return `kept.${account}`;
}

/** Entry of an account's set. */
interface Entry {
  readonly member: string;
  readonly bytes: number;
  readonly expiresAt: number;
  /** Dropped after all other entries. */
  readonly isLasting: boolean;
  readonly key: string;
}

const isLasting = (entry: Entry): boolean => entry.isLasting;
/** Suffix of a lasting entry's expiry time. `Number.parseInt` ignores it. */
const LASTING = '!';

function writeEntry(bytes: number, expiresAt: number, key: string, lasting: boolean): string {
  written = (written + 1) % 36 ** ORDER_DIGITS;
  const at = Date.now().toString(36).padStart(TIME_DIGITS, '0') + written.toString(36).padStart(ORDER_DIGITS, '0');
  return [at, bytes.toString(36), expiresAt.toString(36) + (lasting ? LASTING : ''), key].join(' ');
}

async function readEntries(sets: Store['sets'], set: string): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (let after: string | undefined = ''; after !== undefined; ) {
    const page: readonly string[] = await sets.list(set, { limit: PAGE, ...(after !== '' && { after }) });
    for (const member of page) {
      const [, bytes = '', expiresAt = '', ...key] = member.split(' ');
      entries.push({
        member,
        key: key.join(' '),
        bytes: Number.parseInt(bytes, 36),
        expiresAt: Number.parseInt(expiresAt, 36),
        isLasting: expiresAt.endsWith(LASTING),
      });
    }
    after = page.length < PAGE ? undefined : page.at(-1);
  }
  return entries;
}
