import type Keyv from 'keyv';
import { type AccountDocuments, parseSize, type Store } from '../../../core/index.ts';

/** The option of every store that says how much one account may keep. */
export const KEPT_OPTION = {
  type: ['string', 'integer'],
  format: 'size',
  default: '32mb',
  description:
    'What one account may keep here in addition to its books (results for idempotency keys, responses, memories of agents, bodies of calls); what was written least recently goes first.',
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
 * the store has, an account may have half of that and no more: the next one has half of what is left then.
 */
export function withKept(
  halves: Halves,
  option: string | number = DEFAULT_BYTES,
  findRoom: FindRoom = () => Promise.resolve(undefined),
): Halves & Pick<Store, 'kept'> {
  const all = createKept(halves, parseSize(option), findRoom);
  const kept = (owner: string): AccountDocuments => ({
    set: (account, key, value, ttlMs) => all.set(account, `${owner}.${key}`, value, ttlMs),
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

/** Each account has a set of entries, which begin with when they were written. */
function createKept({ keyv, sets }: Halves, maxBytes: number, findRoom: FindRoom): AccountDocuments {
  const documents = (): Keyv<KeptDocument> => keyv<KeptDocument>('kept');
  const quota = createQuota(documents, sets, maxBytes, findRoom);

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
    async set(account, key, value, ttlMs) {
      const bytes = Buffer.byteLength(JSON.stringify(value)) + OVERHEAD_BYTES;
      if (bytes > maxBytes * DOCUMENT_SHARE) return false;
      const entry = writeEntry(bytes, Date.now() + ttlMs, key);
      return quota.write(account, entry, bytes, async () => {
        await remove(account, key);
        await sets.add(setOf(account), entry);
        await documents().set(key, { entry, value }, ttlMs);
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

/** What each account may have, what it has, and what this process is writing for it. */
function createQuota(documents: () => Keyv<KeptDocument>, sets: Store['sets'], maxBytes: number, findRoom: FindRoom) {
  const known = new Map<string, Known>();
  const writing = createWriting();
  /** What there was room for when that was asked last. */
  let room: number | undefined;
  let dropped = 0;

  /** Reads the entries of an account, and drops what is over and what is too much beside those that are being written. */
  async function trim(account: string): Promise<Known> {
    const now = Date.now();
    const set = setOf(account);
    // What is not told now is as it was.
    room = await findRoom().catch(() => room);
    const all = await readEntries(sets, set);
    const own = writing.of(account);
    const coming = sumOf(own.values());
    const written = all.filter(({ member }) => !own.has(member));
    const bound = boundOf(room, sumOf(written.map(({ bytes }) => bytes)), maxBytes);
    const { bytes, toDrop } = chooseEntries(written, bound - coming, now);
    for (const entry of toDrop) {
      if (entry.expiresAt > now && (await deleteDocument(documents(), entry))) dropped += 1;
      await sets.remove(set, entry.member);
    }
    const found: Known = { bytes, bound, added: coming, entries: own.size };
    remember(known, account, found);
    return found;
  }

  /** Makes room for an entry before it is written, as the store may be full; false where there is none. */
  async function admit(account: string, bytes: number): Promise<boolean> {
    const isSmall = bytes <= maxBytes * LEAST_SHARE;
    let { bound = maxBytes } = known.get(account) ?? {};
    if (!isSmall && !writing.fits(account, bound, room)) return false;
    if (isDue(known.get(account), bytes)) ({ bound } = await trim(account));
    return isSmall || writing.fits(account, bound, room);
  }

  return {
    trim,
    forget: (account: string) => known.delete(account),
    known: () => ({ bytes: sumOf([...known.values()].map(({ bytes, added }) => bytes + added)), dropped }),
    /** Writes an entry of so many bytes, where the account and the store have room for it; says whether it did. */
    async write(account: string, entry: string, bytes: number, work: () => Promise<void>): Promise<boolean> {
      writing.begin(account, entry, bytes);
      try {
        if (!(await admit(account, bytes))) return false;
        await work();
        if (room !== undefined) room -= bytes;
        return true;
      } finally {
        writing.end(account, entry);
      }
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

/** What is left of an account's entries, in bytes, and those that are over or too much: the newest stay. */
function chooseEntries(entries: Entry[], room: number, now: number) {
  const toDrop: Entry[] = [];
  let bytes = 0;
  let count = 0;
  for (const entry of entries.reverse()) {
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
  readonly key: string;
}

function writeEntry(bytes: number, expiresAt: number, key: string): string {
  written = (written + 1) % 36 ** ORDER_DIGITS;
  const at = Date.now().toString(36).padStart(TIME_DIGITS, '0') + written.toString(36).padStart(ORDER_DIGITS, '0');
  return [at, bytes.toString(36), expiresAt.toString(36), key].join(' ');
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
      });
    }
    after = page.length < PAGE ? undefined : page.at(-1);
  }
  return entries;
}
