import type { Counters } from '../../../contract/index.ts';
import { type StoredDocuments, type UserDocuments, withStore } from '../kit/documents.ts';
import { hashId, randomId } from '../kit/random-id.ts';

/** Session of a person. Written once, and removed only at its end. */
export interface Session {
  readonly userId: string;
  readonly name?: string;
  /** Unix milliseconds. */
  readonly startedAt: number;
  readonly endsAt: number;
}

/** Current or former id of a session in a browser. */
export interface SessionId {
  /** Key of the session, which no browser knows. */
  readonly session: string;
  readonly issuedAt: number;
  /** Time at which another id replaced it. */
  readonly replacedAt?: number;
}

export interface SessionParts {
  /** By the hash of the id. */
  readonly ids: StoredDocuments<SessionId>;
  /** By the session's key, like `seen`: the time of the last request. */
  readonly sessions: StoredDocuments<Session>;
  readonly seen: StoredDocuments<number>;
  readonly ofUsers: Pick<UserDocuments, 'add'>;
  readonly counters: Pick<Counters, 'lease'>;
}

export interface SessionTimes {
  readonly sessionForMs: number;
  readonly idleForMs: number;
}

/** Session found by one of its ids. */
export interface FoundSession extends Session {
  /** Time at which it ends without another request. */
  readonly idleAt: number;
}

/** New id that replaces a former one, with the latest end of its session. */
export interface NewId {
  readonly id: string;
  readonly endsAt: number;
}

/** Sessions in the store, shared by all nodes. `now` is in Unix milliseconds. */
export interface Sessions {
  /** Creates a session; returns its first id. */
  begin(who: Omit<Session, 'startedAt' | 'endsAt'>, now: number): Promise<string>;
  find(id: string, now: number): Promise<FoundSession | undefined>;
  /** Records a request, and with `mayReplace` regularly returns a new id for the browser. */
  renew(id: string, now: number, mayReplace: boolean): Promise<NewId | undefined>;
  /** Ends the session with all its ids; returns it, or undefined if it had ended. */
  end(id: string, now: number): Promise<Session | undefined>;
}

/** Lifetime of an id before it is replaced. */
export const REPLACE_MS = 15 * 60_000;
/** Time for which a replaced id stays valid for requests in flight. */
export const OVERLAP_MS = 10_000;
/** Shortest interval between writes of the last request's time. */
const NOTE_MS = 15_000;

/**
 * The session is a separate document from its ids and the time of the last request. Removing this document ends the
 * session, and no concurrent write restores it.
 */
export function createSessions(parts: SessionParts, { sessionForMs, idleForMs }: SessionTimes): Sessions {
  const { ids, sessions, seen, ofUsers, counters } = parts;

  const look = async (id: string, now: number) => {
    const known = await ids.get(hashId(id));
    if (!known || (known.replacedAt !== undefined && now >= known.replacedAt + OVERLAP_MS)) return undefined;
    const [session, seenAt] = await Promise.all([sessions.get(known.session), seen.get(known.session)]);
    if (!session || seenAt === undefined || now >= session.endsAt || now >= seenAt + idleForMs) return undefined;
    return { known, session, seenAt };
  };

  type Found = NonNullable<Awaited<ReturnType<typeof look>>>;
  const replace = async (id: string, { known, session }: Found, now: number): Promise<NewId | undefined> => {
    const { userId, endsAt } = session;
    // Of several concurrent requests, on any node, only one replaces it.
    const isFirst = await withStore(() => counters.lease(`replace.${hashId(id)}`, randomId(), 1, REPLACE_MS, now));
    if (!isFirst) return undefined;
    const next = randomId();
    await ids.set(userId, hashId(next), { session: known.session, issuedAt: now }, endsAt - now);
    await ids.set(userId, hashId(id), { ...known, replacedAt: now }, OVERLAP_MS);
    return { id: next, endsAt };
  };

  return {
    async begin(who, now) {
      const [id, key] = [randomId(), randomId()];
      const endsAt = now + sessionForMs;
      await ofUsers.add(who.userId, key, endsAt, now, sessions.delete);
      await sessions.set(who.userId, key, { ...who, startedAt: now, endsAt }, sessionForMs);
      await seen.set(who.userId, key, now, idleForMs);
      await ids.set(who.userId, hashId(id), { session: key, issuedAt: now }, sessionForMs);
      return id;
    },

    async find(id, now) {
      const found = await look(id, now);
      return found && { ...found.session, idleAt: Math.min(found.seenAt + idleForMs, found.session.endsAt) };
    },

    async renew(id, now, mayReplace) {
      const found = await look(id, now);
      if (!found) return undefined;
      const { known, session, seenAt } = found;
      if (now - seenAt >= NOTE_MS) await seen.set(session.userId, known.session, now, idleForMs);
      if (!mayReplace || known.replacedAt !== undefined || now - known.issuedAt < REPLACE_MS) return undefined;
      return replace(id, found, now);
    },

    async end(id, now) {
      const found = await look(id, now);
      if (!found) return undefined;
      await sessions.delete(found.known.session);
      // Without the session these are useless; if the removal fails they expire.
      await Promise.all([seen.delete(found.known.session), ids.delete(hashId(id))]).catch(() => undefined);
      return found.session;
    },
  };
}
