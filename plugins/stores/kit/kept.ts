import type Keyv from 'keyv';
import { type AccountDocuments, parseSize, type Store } from '../../../contract/index.ts';

/** The option of every store that says how much one account may keep. */
export const KEPT_OPTION = {
  type: ['string', 'integer'],
  format: 'size',
  default: '32mb',
  description:
    'Maximum stored data per account (idempotent results, responses, agent memory, sessions), without the ledger. The oldest data is deleted first, sessions last.',
} as const;

const DEFAULT_BYTES = parseSize(KEPT_OPTION.default);
/** What a document takes in addition to its text: its key, its entry, what a database keeps around both. */
const OVERHEAD_BYTES = 512;
/** The part of what an account may keep that one document may have. */
const DOCUMENT_SHARE = 1 / 4;
/** The part that an account has even where the store has no room: that something was done is remembered there too. */
const LEAST_SHARE = 1 / 256;
const MAX_ENTRIES = 20_000;
const PAGE = 1000;
/** How many times as much as one account all together may keep, where the store tells less of its room or nothing: 16 GB by default. */
const ALL_ACCOUNTS = 512;
/** What this process may add for an account before it reads its entries again: by so much each process may be over the bound. */
const CHECK_SHARE = 1 / 32;
const CHECK_ENTRIES = 64;
const MAX_ACCOUNTS = 10_000;
const TIME_DIGITS = 9;
/** Of a count that keeps entries of one millisecond in their order. */
const ORDER_DIGITS = 3;
let written = 0;

interface KeptDocument {
  /** Its entry: of two under one key the one that is named here counts. */
  readonly entry: string;
  readonly value: unknown;
}

/** What is known of an account: its bytes when its entries were read, what it may have, and what this process has added since. */
interface Known {
  bytes: number;
  bound: number;
  added: number;
  entries: number;
}

/** What all accounts together may still add, in bytes; negative where they have too much, undefined where there is no end to it. */
type FindRoom = () => Promise<number | undefined>;

type Halves = Pick<Store, 'keyv' | 'sets'>;

/**
 * The documents and sets of a store with what accounts keep in them; `option` is {@link KEPT_OPTION}. Where `findRoom` tells how much room
 * the store has, an account may have half of that and no more: the next one has half of what is left then. So it is with what is left of
 * `mostBytes`, of which counts what this process knows: the accounts that wrote here.
 */
export function withKept(
  halves: Halves,
  option: string | number = DEFAULT_BYTES,
  findRoom: FindRoom = () => Promise.resolve(undefined),
  mostBytes = parseSize(option) * ALL_ACCOUNTS,
): Halves & Pick<Store, 'kept'> {
  const bounds = { ofAccount: parseSize(option), ofAll: mostBytes };
  const all = createKept(halves, bounds, findRoom);
  const kept = (owner: string): AccountDocuments => ({
    set: (account, key, ...document) => all.set(account, `${owner}.${key}`, ...document),
    get: (key) => all.get(`${owner}.${key}`),
    delete: (account, key) => all.delete(account, `${owner}.${key}`),
    bytes: (account) => all.bytes(account),
    count: (account, remove) => all.count(account, remove),
    get known() {
      return all.known;
    },
  });
  return { ...halves, kept };
}

/** The most bytes. */
interface Bounds {
  readonly ofAccount: number;
  readonly ofAll: number;
}

/** Each account has a set of entries, which begin with when they were written. */
function createKept({ keyv, sets }: Halves, bounds: Bounds, findRoom: FindRoom): AccountDocuments {
  const maxBytes = bounds.ofAccount;
  const documents = (): Keyv<KeptDocument> => keyv<KeptDocument>('kept');
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
        // In one step: who reads meanwhile finds the one or the other.
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

/** What each account may have, and what this process is writing for it. */
function createQuota(documents: () => Keyv<KeptDocument>, sets: Store['sets'], bounds: Bounds, findRoom: FindRoom) {
  const maxBytes = bounds.ofAccount;
  const writing = createWriting();
  const accounts = createAccounts(documents, sets, bounds, writing.of);
  /** What there was room for when that was asked last. */
  let room: number | undefined;
  let told: number | undefined;

  /** Finds the room that there is; where this process counts it, what it has not looked at for longest is read anew, for it may be over. */
  async function lookForRoom(account: string): Promise<void> {
    const oldest = accounts.oldest();
    if (accounts.left() < 2 * maxBytes && oldest !== undefined && oldest !== account)
      await accounts.read(oldest, accounts.left());
    // What is not told now is as it was.
    told = await findRoom().catch(() => told);
    room = Math.min(told ?? Number.POSITIVE_INFINITY, accounts.left());
  }

  async function trim(account: string): Promise<Known> {
    await lookForRoom(account);
    return accounts.read(account, room);
  }

  /** Makes room for an entry before it is written, as the store may be full; false where there is none. */
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
    /** Writes an entry of so many bytes, where the account and the store have room for it; says whether it did. */
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

/** What this process knows of accounts, by their entries as it read them; `writingOf` has those of an account that it is writing. */
function createAccounts(
  documents: () => Keyv<KeptDocument>,
  sets: Store['sets'],
  bounds: Bounds,
  writingOf: (account: string) => ReadonlyMap<string, number>,
) {
  const known = new Map<string, Known>();
  let dropped = 0;

  const sumOfKnown = (): number => sumOf([...known.values()].map(({ bytes, added }) => bytes + added));

  return {
    of: (account: string) => known.get(account),
    /** The account that was not looked at for longest. */
    oldest: () => known.keys().next().value,
    /** What all accounts together may still add, as this process counts it. */
    left: () => bounds.ofAll - sumOfKnown(),
    forget: (account: string) => known.delete(account),
    known: () => ({ bytes: sumOfKnown(), dropped }),
    /** Reads the entries of an account, and drops what is over and what is too much beside those that are being written. */
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

/** Deletes the document of an entry, unless a newer one is there. */
async function deleteDocument(documents: Keyv<KeptDocument>, { member, key }: Entry): Promise<boolean> {
  return (await documents.get(key))?.entry === member && (await documents.delete(key));
}

/** The entries that this process is writing, by account: none of them is dropped, and they count before they are there. */
function createWriting() {
  const accounts = new Map<string, Map<string, number>>();
  const of = (account: string) => accounts.get(account) ?? new Map<string, number>();
  return {
    of,
    /** Whether all that is being written, for an account and for all, fits into its bound and the room. */
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

/** What is left of an account's entries, in bytes, and those that are over or too much: the lasting stay before others, the newest before older ones. */
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

/** What an account may have: half of the room that there is, with what it has. */
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

/** Notes what an account is about to add, and says whether its entries are to be read first. */
function isDue(known: Known | undefined, bytes: number): boolean {
  if (!known) return true;
  known.added += bytes;
  known.entries += 1;
  return known.added > known.bound * CHECK_SHARE || known.entries > CHECK_ENTRIES;
}

function setOf(account: string): string {
  return `kept.${account}`;
}

/** An entry of an account's set. */
interface Entry {
  readonly member: string;
  readonly bytes: number;
  readonly expiresAt: number;
  /** Whether it goes after all others. */
  readonly isLasting: boolean;
  readonly key: string;
}

const isLasting = (entry: Entry): boolean => entry.isLasting;
/** Stands behind the time of a lasting entry, where a number is read without it. */
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
        ...{ member, key: key.join(' ') },
        ...{ bytes: Number.parseInt(bytes, 36), expiresAt: Number.parseInt(expiresAt, 36) },
        isLasting: expiresAt.endsWith(LASTING),
      });
    }
    after = page.length < PAGE ? undefined : page.at(-1);
  }
  return entries;
}
