import type { AccountDocuments, Counters, Sets } from '../../../contract/index.ts';

/** One exchange, as shown to later calls. */
export interface Turn {
  readonly message: string;
  /** The result's content as JSON. */
  readonly content: string;
}

export type StoredTurn = Turn & { readonly at: number };
export type StoredSummary = { readonly summary: string | undefined; readonly upTo: number };

export interface MemoryLimits {
  /** Maximum turns that agents get verbatim. */
  readonly turns: number;
  /** Maximum bytes of these turns together. */
  readonly bytes: number;
  /** Maximum sessions of one user; the least recently used one is evicted. */
  readonly sessions: number;
  readonly ttlMs: number;
}

type Stored = StoredTurn | StoredSummary;

/** Session documents of one account. */
interface SessionDocuments {
  get(key: string): Promise<Stored | undefined>;
  getMany(keys: readonly string[]): Promise<readonly (Stored | undefined)[]>;
  set(key: string, document: Stored, ttlMs: number): Promise<unknown>;
  delete(...keys: readonly string[]): Promise<unknown>;
}

/**
 * Session documents count towards the account's stored documents: the least recently written ones are evicted above the
 * limit.
 */
export function sessionDocuments(stored: AccountDocuments, account: string): SessionDocuments {
  const keyOf = (key: string): string => `memory.${key}`;
  return {
    get: (key) => stored.get(keyOf(key)),
    getMany: (keys) => Promise.all(keys.map((key) => stored.get<Stored>(keyOf(key)))),
    set: (key, document, ttlMs) => stored.set(account, keyOf(key), document, ttlMs),
    delete: (...keys) => Promise.all(keys.map((key) => stored.delete(account, keyOf(key)))),
  };
}

/** Storage of sessions. */
export interface SessionStore {
  readonly instance: string;
  readonly documents: SessionDocuments;
  readonly counters: Counters;
  readonly sets: Sets;
  readonly limits: MemoryLimits;
}

/** Storage names of one session; user and session are hashes. */
export interface SessionNames {
  readonly session: string;
  /** Set of the user's sessions; also the counter of wipes of all of them. */
  readonly list: string;
  /** Counter of wipes of this session. */
  readonly wipes: string;
  /** Counter of its turns. */
  readonly turns: string;
  /** Prefix of its documents' keys; the generation follows. */
  readonly documents: string;
}

/** Turns that may wait for a summary, as a multiple of those shown; older ones are dropped. */
const BACKLOG = 3;

export function nameSession({ instance }: SessionStore, user: string, session: string): SessionNames {
  const list = `agent-memory:${instance}:${user}`;
  const wipes = `${list}.${session}`;
  return { session, list, wipes, turns: `${wipes}.turns`, documents: `${instance}.${user}.${session}` };
}

/** Current prefix of the session's document keys. A wipe changes it, so that older documents are unreachable. */
export async function readPrefix({ counters }: SessionStore, names: SessionNames): Promise<string> {
  const [all, one] = await Promise.all([counters.next(names.list, 0), counters.next(names.wipes, 0)]);
  return `${names.documents}.${all}.${one}`;
}

/** Keys of all turns after a number that may still exist, oldest first. */
export function turnKeys({ limits }: SessionStore, prefix: string, last: number, after = 0): readonly string[] {
  const from = Math.max(after, last - limits.turns * BACKLOG) + 1;
  return Array.from({ length: Math.max(0, last - from + 1) }, (_, index) => `${prefix}.${from + index}`);
}

/** Key of the turn that the turn with this number replaces. */
export function outdatedKey({ limits }: SessionStore, prefix: string, number: number): string {
  return `${prefix}.${number - limits.turns * BACKLOG}`;
}

/** Adds a session to its user's list; above the limit the least recently used one is wiped. */
export async function listSession(store: SessionStore, user: string, names: SessionNames): Promise<void> {
  const { sets, limits } = store;
  if ((await sets.add(names.list, names.session, limits.sessions)) !== 'full') return;
  const silent = await findSilent(store, user);
  if (silent) await wipeSession(store, silent);
  await sets.add(names.list, names.session, limits.sessions);
}

async function findSilent(store: SessionStore, user: string): Promise<SessionNames | undefined> {
  const dated = (await listNames(store, user)).map(async (names) => {
    const prefix = await readPrefix(store, names);
    const last = await store.documents.get(`${prefix}.${await store.counters.next(names.turns, 0)}`);
    return { names, at: last && 'at' in last ? last.at : 0 };
  });
  return (await Promise.all(dated)).sort((one, other) => one.at - other.at)[0]?.names;
}

async function listNames(store: SessionStore, user: string): Promise<readonly SessionNames[]> {
  const sessions = await store.sets.list(nameSession(store, user, '').list, { limit: 1000 });
  return sessions.map((session) => nameSession(store, user, session));
}

/** Wipes one session; returns 1 if it had content, else 0. */
export async function wipeSession(store: SessionStore, names: SessionNames): Promise<number> {
  if (!(await store.sets.has(names.list, names.session))) return 0;
  const prefix = await readPrefix(store, names);
  await store.counters.next(names.wipes);
  return (await deleteSession(store, names, prefix)) ? 1 : 0;
}

/** Wipes all sessions of a user; returns the number that had content. */
export async function wipeUser(store: SessionStore, user: string): Promise<number> {
  const sessions = await listNames(store, user);
  const prefixes = await Promise.all(sessions.map((names) => readPrefix(store, names)));
  await store.counters.next(nameSession(store, user, '').list);
  const held = await Promise.all(sessions.map((names, index) => deleteSession(store, names, prefixes[index] ?? '')));
  return held.filter(Boolean).length;
}

/** Deletes the documents of a session under a prefix; returns true if there were any. */
async function deleteSession(store: SessionStore, names: SessionNames, prefix: string): Promise<boolean> {
  const last = await store.counters.next(names.turns, 0);
  const keys = [`${prefix}.summary`, ...turnKeys(store, prefix, last)];
  const held = (await store.documents.getMany(keys)).some((one) => one !== undefined);
  if (held) await store.documents.delete(...keys);
  await store.sets.remove(names.list, names.session);
  return held;
}
