import { createHash } from 'node:crypto';
import type { Sets } from '../../../contract/index.ts';
import { isOfOperator, type KeyRecord, withStore } from './records.ts';

export interface Page {
  readonly limit: number;
  /** The record after which the page begins. */
  readonly after?: KeyRecord;
}

/** Which keys there are, by user and in all, in the order in which they were made. Revoked ones leave their user's index. */
export interface KeyIndex {
  /** Resolves with `full`, and adds nothing, when the user has `max` keys already. */
  add(record: KeyRecord, max: number): Promise<'added' | 'full'>;
  /** Removes a key from its user's index; it stays in the index of all. */
  drop(userId: string, member: string): Promise<void>;
  /** Forgets a key that was never given out. */
  forget(record: KeyRecord): Promise<void>;
  /** Ids of users and accounts that keys were made for, and that look like one of these without being it. */
  findSimilar(ids: readonly string[]): Promise<readonly string[]>;
  /** Names an id no more as one that another looks like. */
  forgetLook(id: string): Promise<void>;
  listUser(userId: string, page: Page): Promise<readonly IndexEntry[]>;
  listAll(page: Page): Promise<readonly IndexEntry[]>;
  /** The keys of operators, the oldest first. */
  listOperators(limit: number): Promise<readonly IndexEntry[]>;
  /** Notes when a key ends; a key that gets another end is there twice, until {@link KeyIndex.forgetEnd}. */
  addEnd(id: string, endsAt: number): Promise<void>;
  /** Keys by their end, the next first. */
  listEnding(limit: number): Promise<readonly EndingEntry[]>;
  forgetEnd(entry: EndingEntry): Promise<void>;
  countUser(userId: string): Promise<number>;
  isEmpty(): Promise<boolean>;
  /** True for one caller alone, ever: two workers of a new gateway make one first key between them. */
  claimFirst(): Promise<boolean>;
  unclaimFirst(): Promise<void>;
  /** Names the successor of a rotated key; false when it has one. */
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

/** How many ids that look alike are remembered, and told at once. */
const MAX_ALIKE = 100;
const MAX_TOLD = 10;

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
      return [...new Set(alike.flat())].filter((id) => !ids.includes(id)).slice(0, MAX_TOLD);
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

/** Sorts by time of making, then by id. */
export function memberOf(record: Pick<KeyRecord, 'createdAt' | 'id'>): string {
  return sortedBy(record.createdAt, record.id);
}

function endOf(id: string, endsAt: number): string {
  return sortedBy(endsAt, id);
}

/** Base 36 in nine places lasts until the year 5188. */
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

/** A name for a user that is safe as part of a store's key, however long or odd the user id is. */
export function hashUser(userId: string): string {
  return createHash('sha256').update(userId).digest('hex');
}

/**
 * Letters and signs that look like one of ASCII, each behind it. From the table of Unicode's UTS 39, those of Latin, Greek, Cyrillic and
 * Armenian, which ids are written in; whatever NFKC makes equal is not here.
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

/** What ids that look alike have in common: a name for a set of them. Two letters that look like one are that one. */
function lookOf(id: string): string {
  const letters = [...id.normalize('NFKC')].map((letter) => LOOK_OF.get(letter) ?? letter);
  // Capital O stands where a zero does.
  const look = letters.join('').replaceAll('O', 'o').replaceAll('rn', 'm').replaceAll('vv', 'w');
  return createHash('sha256').update(look).digest('base64url');
}
