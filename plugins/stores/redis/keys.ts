import { createHash } from 'node:crypto';
import { digest, storeKey } from '../kit/check.ts';

/** How many hash tags the accounts are spread over: the most nodes of a cluster that can share the ledger's work. */
export const SHARDS = 32;

/** The keys of one account. All have the hash tag of its shard, so that one script may touch them on a cluster. */
export interface AccountKeys {
  readonly account: string;
  readonly entries: string;
  readonly credits: string;
  /** The requests of the shard that are held, by the time they expire. */
  readonly due: string;
  request(member: string): string;
  usage(day: string): string;
  /** What `due` lists a request as; `request` takes it. */
  member(requestId: string): string;
}

/** Names the keys of accounts, sets and counters under a prefix. What users choose is hashed before it becomes part of a key. */
export function createKeys(prefix: string) {
  const shardTag = (shard: number): string => `${prefix}:{${shard}}`;
  const ofId = (tag: string, id: string): AccountKeys => ({
    account: `${tag}:account:${id}`,
    entries: `${tag}:entries:${id}`,
    credits: `${tag}:credits:${id}`,
    due: `${tag}:due`,
    request: (member) => `${tag}:request:${member}`,
    usage: (day) => `${tag}:usage:${id}:${day}`,
    member: (requestId) => `${id}:${storeKey(requestId)}`,
  });
  return {
    ofAccount(account: string): AccountKeys {
      const id = digest(account);
      return ofId(shardTag(shardOf(id)), id);
    },
    /** The keys of the account that a member of a shard's `due` belongs to. */
    ofMember(shard: number, member: string): AccountKeys {
      return ofId(shardTag(shard), member.slice(0, member.indexOf(':')));
    },
    due: (shard: number): string => `${shardTag(shard)}:due`,
    set: (name: string): string => `${prefix}:set:${digest(name)}`,
    window: (key: string): string => `${prefix}:window:${digest(key)}`,
    lease: (key: string): string => `${prefix}:lease:${digest(key)}`,
    number: (key: string): string => `${prefix}:number:${digest(key)}`,
    documents: (namespace: string): string => `${prefix}:doc:${namespace}`,
  };
}

export type Keys = ReturnType<typeof createKeys>;

function shardOf(id: string): number {
  return createHash('sha256').update(id).digest().readUInt16BE() % SHARDS;
}
