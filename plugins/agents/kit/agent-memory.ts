import { createHash } from 'node:crypto';
import type { PluginApi, Principal } from '../../../core/index.ts';

/** One exchange, as later calls see it. */
export interface Turn {
  readonly message: string;
  /** The result's content as JSON. */
  readonly content: string;
}

export interface MemoryLimits {
  /** Turns that agents are shown word for word. */
  readonly turns: number;
  /** Bytes of them together. */
  readonly bytes: number;
  /** Sessions of one user; the one that was silent longest makes room. */
  readonly sessions: number;
  readonly ttlMs: number;
}

/** A session as one call found it. */
export interface OpenSession {
  readonly summary: string | undefined;
  /** Oldest first, within the limits. */
  readonly turns: readonly Turn[];
  /** The older turns when there are more than the limits allow; empty when there is nothing to fold. */
  readonly excess: readonly Turn[];
  /** Puts a summary in the place of the excess turns; without one they are dropped. */
  fold(summary: string | undefined): Promise<void>;
  /** Remembers this call's exchange, unless the session was wiped since it was opened. */
  remember(turn: Turn): Promise<void>;
}

export interface AgentMemory {
  open(principal: Principal, session: string): Promise<OpenSession>;
  /** Forgets one session, or all of the user's; answers how many held something. A wipe wins over calls in flight. */
  wipe(principal: Principal, session?: string): Promise<number>;
}

type Stored = (Turn & { readonly at: number }) | { readonly summary: string | undefined; readonly upTo: number };
type StoredTurn = Extract<Stored, { message: string }>;

/** The longest text of one side of a turn, in characters. */
const MAX_SIDE = 4000;

/** Turns that may wait for a summary, as a multiple of those shown; older ones are dropped. */
const BACKLOG = 3;

/**
 * Memory in a plugin's own documents. Every turn is a document, numbered by a counter, so parallel calls lose nothing.
 * Keys hold hashes of the user and the session, and their generations: a wipe raises a generation, and everything from
 * before it is out of reach at once, also what a call in flight is about to write.
 */
export function createAgentMemory(
  api: Pick<PluginApi, 'instance' | 'keyv' | 'stores'>,
  limits: MemoryLimits,
  now: () => number = Date.now,
): AgentMemory {
  const documents = api.keyv<Stored>('agent-memory');
  const { counters, sets } = api.stores;
  const scope = `agent-memory:${api.instance}`;

  const readGeneration = async (user: string, session: string) => {
    const [all, one] = await Promise.all([
      counters.next(`${scope}:${user}`, 0),
      counters.next(`${scope}:${user}.${session}`, 0),
    ]);
    return `${all}.${one}`;
  };
  const prefixOf = (user: string, session: string, generation: string) =>
    `${api.instance}.${user}.${session}.${generation}`;
  const lastNumber = (user: string, session: string) => counters.next(`${scope}:${user}.${session}.turns`, 0);
  /** Keys of all turns that can still exist, oldest first. */
  const turnKeys = (prefix: string, last: number, after = 0) => {
    const from = Math.max(after, last - limits.turns * BACKLOG) + 1;
    return Array.from({ length: Math.max(0, last - from + 1) }, (_, index) => `${prefix}.${from + index}`);
  };

  /** Deletes a session's documents of one generation; answers whether there were any. */
  const erase = async (user: string, session: string, generation: string): Promise<boolean> => {
    const prefix = prefixOf(user, session, generation);
    const keys = [`${prefix}.summary`, ...turnKeys(prefix, await lastNumber(user, session))];
    const held = (await documents.getMany(keys)).some((one) => one !== undefined);
    if (held) await documents.deleteMany(keys);
    await sets.remove(`${scope}:${user}`, session);
    return held;
  };
  const wipeSession = async (user: string, session: string): Promise<number> => {
    if (!(await sets.has(`${scope}:${user}`, session))) return 0;
    const generation = await readGeneration(user, session);
    await counters.next(`${scope}:${user}.${session}`);
    return (await erase(user, session, generation)) ? 1 : 0;
  };
  const wipeUser = async (user: string): Promise<number> => {
    const sessions = await sets.list(`${scope}:${user}`, { limit: 1000 });
    const generations = await Promise.all(sessions.map((session) => readGeneration(user, session)));
    await counters.next(`${scope}:${user}`);
    const held = await Promise.all(sessions.map((session, index) => erase(user, session, generations[index] ?? '')));
    return held.filter(Boolean).length;
  };

  const enlist = async (user: string, session: string): Promise<void> => {
    const index = `${scope}:${user}`;
    if ((await sets.add(index, session, limits.sessions)) !== 'full') return;
    const silent = await findSilent(user);
    if (silent !== undefined) await wipeSession(user, silent);
    await sets.add(index, session, limits.sessions);
  };
  const findSilent = async (user: string): Promise<string | undefined> => {
    const sessions = await sets.list(`${scope}:${user}`, { limit: 1000 });
    const dated = sessions.map(async (session) => {
      const prefix = prefixOf(user, session, await readGeneration(user, session));
      const last = await documents.get(`${prefix}.${await lastNumber(user, session)}`);
      return { session, at: last && 'at' in last ? last.at : 0 };
    });
    return (await Promise.all(dated)).sort((one, other) => one.at - other.at)[0]?.session;
  };

  return {
    async open(principal, name) {
      const user = hash(`${principal.account}\0${principal.userId}`);
      const session = hash(name);
      const generation = await readGeneration(user, session);
      await enlist(user, session);
      const prefix = prefixOf(user, session, generation);
      const last = await lastNumber(user, session);
      const found = await documents.get(`${prefix}.summary`);
      const folded = found && 'upTo' in found ? found : { summary: undefined, upTo: 0 };
      const keys = turnKeys(prefix, last, folded.upTo);
      const all = (await documents.getMany(keys)).flatMap((turn, index) =>
        turn && 'at' in turn ? [{ key: keys[index] ?? '', turn: turn as StoredTurn }] : [],
      );
      const { shown, excess } = divide(all, limits);
      /** Undoes a write that a wipe has overtaken. */
      const settle = async (key: string) => {
        if ((await readGeneration(user, session)) === generation) await enlist(user, session);
        else await documents.delete(key);
      };
      return {
        summary: folded.summary,
        turns: shown.map(({ turn }) => turn),
        excess: excess.map(({ turn }) => turn),
        async fold(summary) {
          const upTo = Number(excess.at(-1)?.key.split('.').at(-1) ?? folded.upTo);
          await documents.set(`${prefix}.summary`, { summary: summary ?? folded.summary, upTo }, limits.ttlMs);
          await documents.deleteMany(excess.map(({ key }) => key));
          await settle(`${prefix}.summary`);
        },
        async remember({ message, content }) {
          const number = await counters.next(`${scope}:${user}.${session}.turns`);
          const turn = { message: clip(message), content: clip(content), at: now() };
          await documents.set(`${prefix}.${number}`, turn, limits.ttlMs);
          await documents.delete(`${prefix}.${number - limits.turns * BACKLOG}`);
          await settle(`${prefix}.${number}`);
        },
      };
    },
    wipe(principal, name) {
      const user = hash(`${principal.account}\0${principal.userId}`);
      return name === undefined ? wipeUser(user) : wipeSession(user, hash(name));
    },
  };
}

interface Keyed {
  readonly key: string;
  readonly turn: StoredTurn;
}

/** The newest turns that fit; when some do not, everything but the newest half of the room is due to be folded. */
function divide(all: readonly Keyed[], limits: MemoryLimits): { shown: readonly Keyed[]; excess: readonly Keyed[] } {
  const shown = newest(all, limits.turns, limits.bytes);
  if (shown.length === all.length) return { shown, excess: [] };
  const kept = newest(all, Math.floor(limits.turns / 2), limits.bytes / 2);
  return { shown, excess: all.slice(0, all.length - kept.length) };
}

function newest(all: readonly Keyed[], turns: number, bytes: number): readonly Keyed[] {
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

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}
