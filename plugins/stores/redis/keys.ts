import { createHash } from 'node:crypto';
import { hourOf } from '../kit/call-rows.ts';
import { digest, storeKey } from '../kit/check.ts';

/** The keys of one account. */
export interface AccountKeys {
  readonly account: string;
  readonly entries: string;
  readonly credits: string;
  request(member: string): string;
  /** What `due` lists a request as; `request` takes it. It begins with the digest of the account. */
  member(requestId: string): string;
}

/**
 * Names the keys of accounts, sets and counters under a prefix. What users choose is hashed before it becomes part of a key. All
 * keys of the ledger have one hash tag: a script changes an account and budgets of many accounts, and must find them
 * on one node of a cluster.
 */
export function createKeys(prefix: string) {
  const ledger = `${prefix}:{ledger}`;
  const ofDigest = (id: string): AccountKeys => ({
    account: `${ledger}:account:${id}`,
    entries: `${ledger}:entries:${id}`,
    credits: `${ledger}:credits:${id}`,
    request: (member) => `${ledger}:request:${member}`,
    member: (requestId) => `${id}:${storeKey(requestId)}`,
  });
  return {
    prefix,
    /** What all keys of the ledger begin with: scripts make the names of those that depend on what they find. */
    ledger,
    ofDigest,
    ofAccount: (account: string): AccountKeys => ofDigest(digest(account)),
    /** The keys of the account that a member of `due` belongs to. */
    ofMember: (member: string): AccountKeys => ofDigest(digestOfMember(member)),
    /** The requests that are held, by the time they expire. */
    due: `${ledger}:due`,
    /** The names of accounts, as JSON. */
    accounts: `${ledger}:accounts`,
    budget: (id: string): string => `${ledger}:budget:${digest(id)}`,
    /** The hours that have a rollup, and those that have records. */
    hours: `${ledger}:hours`,
    recordHours: `${ledger}:record-hours`,
    /** The time from which on the records are whole. */
    recordsFrom: `${ledger}:records-from`,
    rollup: (hour: number): string => `${ledger}:rollup:${hour}`,
    calls: (at: number): string => `${ledger}:calls:${hourOf(at)}`,
    callsOf: (accountDigest: string): string => `${ledger}:calls-of:${accountDigest}`,
    /** The ids of calls by what they have of this name; hashed as the scripts hash it. */
    callsBy: (name: string, value: string): string =>
      `${ledger}:calls-by:${name}:${createHash('sha1').update(value).digest('hex')}`,
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
