import { createHash } from 'node:crypto';
import { hourOf } from '../kit/call-sums.ts';
import { digest, storeKey } from '../kit/check.ts';

/** How many parts the requests that are held are listed in; the keys of accounts name theirs, since version 2. */
export const SHARDS = 32;

/** The keys of one account. */
export interface AccountKeys {
  readonly account: string;
  readonly entries: string;
  readonly credits: string;
  /** The requests of the shard that are held, by the time they expire. */
  readonly due: string;
  request(member: string): string;
  /** What `due` lists a request as; `request` takes it. It begins with the digest of the account. */
  member(requestId: string): string;
}

/** Names the keys of accounts, sets and counters under a prefix. What users choose is hashed before it becomes part of a key. */
export function createKeys(prefix: string) {
  const shardTag = (shard: number): string => `${prefix}:{${shard}}`;
  const ofDigest = (id: string): AccountKeys => {
    const tag = shardTag(shardOf(id));
    return {
      account: `${tag}:account:${id}`,
      entries: `${tag}:entries:${id}`,
      credits: `${tag}:credits:${id}`,
      due: `${tag}:due`,
      request: (member) => `${tag}:request:${member}`,
      member: (requestId) => `${id}:${storeKey(requestId)}`,
    };
  };
  return {
    prefix,
    ofDigest,
    ofAccount: (account: string): AccountKeys => ofDigest(digest(account)),
    /** The keys of the account that a member of a shard's `due` belongs to. */
    ofMember: (member: string): AccountKeys => ofDigest(digestOfMember(member)),
    due: (shard: number): string => `${shardTag(shard)}:due`,
    /** What accounts are called, as JSON; of one whose name is not known yet `~` and its digest. */
    accounts: `${prefix}:accounts`,
    /** Digests of accounts of version 2 that have become budgets: nobody lists or counts them. */
    dropped: `${prefix}:dropped`,
    budget: (id: string): string => `${prefix}:budget:${digest(id)}`,
    /** The hours that have a rollup, and those that have records. */
    hours: `${prefix}:hours`,
    recordHours: `${prefix}:record-hours`,
    /** The time from which on the records are whole. */
    recordsFrom: `${prefix}:records-from`,
    migrated: `${prefix}:migrated`,
    rollup: (hour: number): string => `${prefix}:rollup:${hour}`,
    calls: (at: number): string => `${prefix}:calls:${hourOf(at)}`,
    callsOf: (accountDigest: string): string => `${prefix}:calls-of:${accountDigest}`,
    set: (name: string): string => `${prefix}:set:${digest(name)}`,
    window: (key: string): string => `${prefix}:window:${digest(key)}`,
    lease: (key: string): string => `${prefix}:lease:${digest(key)}`,
    number: (key: string): string => `${prefix}:number:${digest(key)}`,
    documents: (namespace: string): string => `${prefix}:doc:${namespace}`,
  };
}

export type Keys = ReturnType<typeof createKeys>;

/** The digest of the account that a member of `due` begins with. */
export function digestOfMember(member: string): string {
  return member.slice(0, member.indexOf(':'));
}

const CLIPPED = /~([\w-]{43})$/;

/** The digest of an account as records and lists tell it: in full, or clipped with the digest behind a `~`. */
export function digestOfName(name: string): string {
  return CLIPPED.exec(name)?.[1] ?? digest(name);
}

function shardOf(id: string): number {
  return createHash('sha256').update(id).digest().readUInt16BE() % SHARDS;
}
