import { createHash } from 'node:crypto';
import type { Sets } from '../../../contract/index.ts';
import { isOfOperator, type KeyRecord, withStore } from './records.ts';

/** Place of a key in the order of creation. */
export type Place = Pick<KeyRecord, 'createdAt' | 'id'>;

export interface Page {
  readonly limit: number;
  /** Record before the start of the page. */
  readonly after?: Place;
}

/** Index of keys by user and overall, in the order of creation. Revoked keys leave their user's index. */
export interface KeyIndex {
  /** Adds a key; resolves with `full` without a change if the user has `max` keys already. */
  add(record: KeyRecord, max: number): Promise<'added' | 'full'>;
  /** Removes a key from its user's index; it stays in the overall index. */
  drop(userId: string, member: string): Promise<void>;
  /** Removes a key that was never issued. */
  forget(record: KeyRecord): Promise<void>;
  /** Ids of users and accounts with keys that look similar to one of these ids. */
  findSimilar(ids: readonly string[]): Promise<readonly string[]>;
  /** Removes an id from the index of similar ids. */
  forgetLook(id: string): Promise<void>;
  listUser(userId: string, page: Page): Promise<readonly IndexEntry[]>;
  listAll(page: Page): Promise<readonly IndexEntry[]>;
  /** Operators' keys, the oldest first. */
  listOperators(limit: number): Promise<readonly IndexEntry[]>;
  /** Records the expiry of a key. A key with a changed expiry is listed twice until {@link KeyIndex.forgetEnd}. */
  addEnd(id: string, endsAt: number): Promise<void>;
  /** Keys by expiry, the next first. */
  listEnding(limit: number): Promise<readonly EndingEntry[]>;
  forgetEnd(entry: EndingEntry): Promise<void>;
  countUser(userId: string): Promise<number>;
  isEmpty(): Promise<boolean>;
  /** True for only one caller ever: two workers of a new gateway create one first key between them. */
  claimFirst(): Promise<boolean>;
  unclaimFirst(): Promise<void>;
  /** Records the successor of a rotated key; returns false if it has one. */
  claimRotation(id: string, successor: string): Promise<boolean>;
  unclaimRotation(id: string, successor: string): Promise<void>;
}

export interface IndexEntry {
  readonly id: string;
  readonly member: string;
}

export interface EndingEntry extends IndexEntry {
  /** Unix milliseconds. */
  readonly endsAt: number;
}

const ALL = 'keys-all';
const OPERATORS = 'keys-operators';
const ENDING = 'keys-ending';
const FIRST = 'keys-first';

/** Maximum number of similar ids stored and reported. */
const MAX_ALIKE = 100;
const MAX_REPORTED = 10;

export function createKeyIndex(sets: Sets): KeyIndex {
  const listSet = async (set: string, { limit, after }: Page): Promise<readonly IndexEntry[]> => {
    const page = { limit, ...(after && { after: memberOf(after) }) };
    return (await withStore(() => sets.list(set, page))).map((member) => ({ member, id: idOf(member) }));
  };

  const ends = createEnds(sets);
  return {
    ...ends,
    async add(record, max) {
      const member = memberOf(record);
      const outcome = await withStore(() => sets.add(ofUser(record.userId), member, max));
      if (outcome === 'full') return 'full';
      await withStore(() => sets.add(ALL, member));
      if (isOfOperator(record)) await withStore(() => sets.add(OPERATORS, member));
      if (record.expiresAt !== undefined) await ends.addEnd(record.id, record.expiresAt);
      for (const id of new Set([record.userId, record.account]))
        await withStore(() => sets.add(ofLook(id), id, MAX_ALIKE));
      return 'added';
    },
    async drop(userId, member) {
      await withStore(() => sets.remove(ofUser(userId), member));
    },
    async forget(record) {
      await withStore(() => sets.remove(ofUser(record.userId), memberOf(record)));
      await withStore(() => sets.remove(ALL, memberOf(record)));
      if (isOfOperator(record)) await withStore(() => sets.remove(OPERATORS, memberOf(record)));
      const { id, expiresAt } = record;
      if (expiresAt !== undefined) await withStore(() => sets.remove(ENDING, endOf(id, expiresAt)));
    },
    async forgetLook(id) {
      await withStore(() => sets.remove(ofLook(id), id));
    },
    async findSimilar(ids) {
      const alike = await Promise.all(ids.map((id) => withStore(() => sets.list(ofLook(id), { limit: MAX_ALIKE }))));
      return [...new Set(alike.flat())].filter((id) => !ids.includes(id)).slice(0, MAX_REPORTED);
    },
    listUser: (userId, page) => listSet(ofUser(userId), page),
    listAll: (page) => listSet(ALL, page),
    listOperators: (limit) => listSet(OPERATORS, { limit }),
    countUser: (userId) => withStore(() => sets.size(ofUser(userId))),
    isEmpty: async () => (await withStore(() => sets.size(ALL))) === 0,
    claimFirst: async () => (await withStore(() => sets.add(FIRST, 'made', 1))) === 'added',
    unclaimFirst: async () => {
      await withStore(() => sets.remove(FIRST, 'made'));
    },
    claimRotation: async (id, successor) =>
      (await withStore(() => sets.add(successorOf(id), successor, 1))) === 'added',
    unclaimRotation: async (id, successor) => {
      await withStore(() => sets.remove(successorOf(id), successor));
    },
  };
}

function createEnds(sets: Sets): Pick<KeyIndex, 'addEnd' | 'listEnding' | 'forgetEnd'> {
  return {
    async addEnd(id, endsAt) {
      await withStore(() => sets.add(ENDING, endOf(id, endsAt)));
    },
    async listEnding(limit) {
      const members = await withStore(() => sets.list(ENDING, { limit }));
      return members.map((member) => ({ member, id: idOf(member), endsAt: Number.parseInt(member, 36) }));
    },
    async forgetEnd({ member }) {
      await withStore(() => sets.remove(ENDING, member));
    },
  };
}

/** Sorts by time of creation, then by id. */
export function memberOf(record: Place): string {
  return sortedBy(record.createdAt, record.id);
}

/** Reads the place of {@link memberOf}; undefined for other texts. */
export function placeOf(member: string): Place | undefined {
  const [, created, id] = /^([0-9a-z]{9})\.([0-9A-Za-z]{12})$/.exec(member) ?? [];
  return created === undefined || id === undefined ? undefined : { createdAt: Number.parseInt(created, 36), id };
}

function endOf(id: string, endsAt: number): string {
  return sortedBy(endsAt, id);
}

/** Nine digits in base 36 last until the year 5188. */
function sortedBy(unixMs: number, id: string): string {
  return `${unixMs.toString(36).padStart(9, '0')}.${id}`;
}

function idOf(member: string): string {
  return member.slice(member.indexOf('.') + 1);
}

function ofUser(userId: string): string {
  return `keys-of:${hashUser(userId)}`;
}

function ofLook(id: string): string {
  return `ids-like:${lookOf(id)}`;
}

function successorOf(id: string): string {
  return `keys-successor:${id}`;
}

/** Hash of a user id, safe in a store's key for any user id. */
export function hashUser(userId: string): string {
  return createHash('sha256').update(userId).digest('hex');
}

/**
 * Characters that look like an ASCII one, listed after it. From the table of Unicode's UTS 39: those of Latin, Greek,
 * Cyrillic and Armenian, in which ids are written. Characters that NFKC makes equal are not listed.
 */
const LOOKS = [
  'aаαɑ bЬ cсϲ dԁ eе gɡց hһհ iіιıɩ jјϳ kκк lI1|ІӀӏΙ nոп o0оοօՕ pрρ qԛ rг sѕ uυս vνѵ wԝ xхχ yуγү zᴢ',
  'AАΑ BВΒ CСϹ EЕΕ FϜ GԌ HНΗ JЈ KКΚ MМΜϺ NΝ OОΟ PРΡ SЅՏ TТΤ VѴ WԜ XХΧ YУΥҮ ZΖ',
  "-‐‑‒–—− '’‘`´ .․ ,‚ :։",
]
  .join(' ')
  .split(' ')
  .flatMap(([seen = '', ...others]) => others.map((letter) => [letter, seen] as const));

const LOOK_OF: ReadonlyMap<string, string> = new Map(LOOKS);

/** Common form of ids that look alike, which names a set of them. Two letters that look like one are replaced by it. */
function lookOf(id: string): string {
  const letters = [...id.normalize('NFKC')].map((letter) => LOOK_OF.get(letter) ?? letter);
  // Capital O looks like zero.
  const look = letters.join('').replaceAll('O', 'o').replaceAll('rn', 'm').replaceAll('vv', 'w');
  return createHash('sha256').update(look).digest('base64url');
}
