import { createHash } from 'node:crypto';
import type { Sets } from '../../../core/index.ts';
import { type KeyRecord, withStore } from './records.ts';

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
  listUser(userId: string, page: Page): Promise<readonly IndexEntry[]>;
  listAll(page: Page): Promise<readonly IndexEntry[]>;
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

const ALL = 'keys-all';
const FIRST = 'keys-first';

export function createKeyIndex(sets: Sets): KeyIndex {
  const listSet = async (set: string, { limit, after }: Page): Promise<readonly IndexEntry[]> => {
    const page = { limit, ...(after && { after: memberOf(after) }) };
    return (await withStore(() => sets.list(set, page))).map((member) => ({ member, id: idOf(member) }));
  };

  return {
    async add(record, max) {
      const member = memberOf(record);
      const outcome = await withStore(() => sets.add(ofUser(record.userId), member, max));
      if (outcome === 'full') return 'full';
      await withStore(() => sets.add(ALL, member));
      return 'added';
    },
    async drop(userId, member) {
      await withStore(() => sets.remove(ofUser(userId), member));
    },
    async forget(record) {
      await withStore(() => sets.remove(ofUser(record.userId), memberOf(record)));
      await withStore(() => sets.remove(ALL, memberOf(record)));
    },
    listUser: (userId, page) => listSet(ofUser(userId), page),
    listAll: (page) => listSet(ALL, page),
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

/** Sorts by time of making, then by id: base 36 in nine places lasts until the year 5188. */
export function memberOf(record: Pick<KeyRecord, 'createdAt' | 'id'>): string {
  return `${record.createdAt.toString(36).padStart(9, '0')}.${record.id}`;
}

function idOf(member: string): string {
  return member.slice(member.indexOf('.') + 1);
}

function ofUser(userId: string): string {
  return `keys-of:${hashUser(userId)}`;
}

function successorOf(id: string): string {
  return `keys-successor:${id}`;
}

/** A name for a user that is safe as part of a store's key, however long or odd the user id is. */
export function hashUser(userId: string): string {
  return createHash('sha256').update(userId).digest('hex');
}
