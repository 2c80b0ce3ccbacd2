import { createHash } from 'node:crypto';
import type { PersonalData, PluginApi, Principal } from '../../../contract/index.ts';
import {
  listSession,
  type MemoryLimits,
  nameSession,
  outdatedKey,
  readPrefix,
  type SessionStore,
  type StoredSummary,
  type StoredTurn,
  sessionDocuments,
  type Turn,
  turnKeys,
  wipeSession,
  wipeUser,
} from './session-store.ts';

/** Session as read by one call. */
export interface OpenSession {
  readonly summary: string | undefined;
  /** Oldest first, within the limits. */
  readonly turns: readonly Turn[];
  /** Older turns beyond the limits, to be summarised; may be empty. */
  readonly excess: readonly Turn[];
  /** Replaces the excess turns by a summary; without one they are dropped. */
  compact(summary: string | undefined): Promise<void>;
  /** Stores this call's exchange; skipped if the session was wiped since it was opened. */
  remember(turn: Turn): Promise<void>;
}

export interface AgentMemory {
  open(principal: Principal, session: string): Promise<OpenSession>;
  /**
   * Deletes one session, or all of the user's; returns the number that had content. A wipe overrides calls in flight.
   */
  wipe(principal: Principal, session?: string): Promise<number>;
  /** Number of the user's sessions. */
  count(principal: Principal): Promise<number>;
}

/** Personal data of a user: the sessions, whichever account paid for them. */
export function personalMemories({ count, wipe }: Pick<AgentMemory, 'count' | 'wipe'>): PersonalData {
  const sum = async (accounts: readonly string[], countOf: (account: string) => Promise<number>): Promise<number> =>
    (await Promise.all(accounts.map(countOf))).reduce((total, found) => total + found, 0);
  return {
    name: 'memories',
    count: ({ userId, accounts }) => sum(accounts, (account) => count({ credential: 'key', userId, account })),
    erase: ({ userId, accounts }) => sum(accounts, (account) => wipe({ credential: 'key', userId, account })),
  };
}

/** Longest text of one side of a turn, in characters. */
const MAX_SIDE = 4000;

/**
 * Memory in a plugin's own documents. Every turn is a document, numbered by a counter, so parallel calls lose nothing.
 * Keys contain hashes of the user and the session, and their generations. A wipe increments a generation, which makes
 * everything older unreachable at once, including writes of calls in flight.
 */
export function createAgentMemory(
  api: { readonly instance: string; readonly stores: Pick<PluginApi['stores'], 'counters' | 'sets' | 'stored'> },
  limits: MemoryLimits,
  now: () => number = Date.now,
): AgentMemory {
  const { counters, sets, stored } = api.stores;
  const storeOf = ({ account }: Principal): SessionStore => {
    return { instance: api.instance, documents: sessionDocuments(stored, account), counters, sets, limits };
  };
  return {
    open: (principal, session) => openSession(storeOf(principal), hashUser(principal), hash(session), now),
    wipe(principal, session) {
      const store = storeOf(principal);
      const user = hashUser(principal);
      return session === undefined
        ? wipeUser(store, user)
        : wipeSession(store, nameSession(store, user, hash(session)));
    },
    count: (principal) => sets.size(nameSession(storeOf(principal), hashUser(principal), '').list),
  };
}

async function openSession(
  store: SessionStore,
  user: string,
  session: string,
  now: () => number,
): Promise<OpenSession> {
  const { documents, counters, limits } = store;
  const names = nameSession(store, user, session);
  const prefix = await readPrefix(store, names);
  await listSession(store, user, names);
  const last = await counters.next(names.turns, 0);
  const found = await documents.get(`${prefix}.summary`);
  const summarised = found && 'upTo' in found ? found : { summary: undefined, upTo: 0 };
  const all = await readTurns(store, turnKeys(store, prefix, last, summarised.upTo));
  const { shown, excess } = divideTurns(all, limits);

  /** Writes a document in place of outdated ones, and deletes it if a wipe came first. */
  const write = async (key: string, document: StoredTurn | StoredSummary, outdated: readonly string[]) => {
    await documents.set(key, document, limits.ttlMs);
    await documents.delete(...outdated);
    if ((await readPrefix(store, names)) === prefix) await listSession(store, user, names);
    else await documents.delete(key);
  };
  return {
    summary: summarised.summary,
    turns: shown.map(({ turn }) => turn),
    excess: excess.map(({ turn }) => turn),
    async compact(summary = summarised.summary) {
      const upTo = Number(excess.at(-1)?.key.split('.').at(-1) ?? summarised.upTo);
      const outdated = excess.map(({ key }) => key);
      await write(`${prefix}.summary`, { summary, upTo }, outdated);
    },
    async remember({ message, content }) {
      const number = await counters.next(names.turns);
      const turn = { message: clip(message), content: clip(content), at: now() };
      await write(`${prefix}.${number}`, turn, [outdatedKey(store, prefix, number)]);
    },
  };
}

interface KeyedTurn {
  readonly key: string;
  readonly turn: StoredTurn;
}

async function readTurns({ documents }: SessionStore, keys: readonly string[]): Promise<readonly KeyedTurn[]> {
  const found = await documents.getMany(keys);
  return found.flatMap((turn, index) => (turn && 'at' in turn ? [{ key: keys[index] ?? '', turn }] : []));
}

/**
 * Returns the newest turns that fit. If some do not, all but the newest half of the space is returned for summarising.
 */
function divideTurns(
  all: readonly KeyedTurn[],
  limits: MemoryLimits,
): { shown: readonly KeyedTurn[]; excess: readonly KeyedTurn[] } {
  const shown = newestTurns(all, limits.turns, limits.bytes);
  if (shown.length === all.length) return { shown, excess: [] };
  const stored = newestTurns(all, Math.floor(limits.turns / 2), limits.bytes / 2);
  return { shown, excess: all.slice(0, all.length - stored.length) };
}

function newestTurns(all: readonly KeyedTurn[], turns: number, bytes: number): readonly KeyedTurn[] {
  let room = bytes;
  let from = all.length;
  while (from > 0 && all.length - from < turns) {
    const turn = all[from - 1]?.turn;
    room -= Buffer.byteLength(turn?.message ?? '') + Buffer.byteLength(turn?.content ?? '');
    if (room < 0) break;
    from -= 1;
  }
  return all.slice(from);
}

function clip(text: string): string {
  return text.length <= MAX_SIDE ? text : `${text.slice(0, MAX_SIDE)} …`;
}

function hashUser({ account, userId }: Principal): string {
  return hash(`${account}\0${userId}`);
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}
