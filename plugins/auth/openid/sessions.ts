import type { Counters } from '../../../contract/index.ts';
import { type KeptDocuments, type UserDocuments, withStore } from '../kit/documents.ts';
import { hashId, randomId } from '../kit/random-id.ts';

/** A person who signed in. It is written once; only its end removes it. */
export interface Session {
  readonly userId: string;
  readonly name?: string;
  /** Those of the person's roles that made them an operator. */
  readonly roles: readonly string[];
  readonly issuer: string;
  readonly clientId: string;
  /** Unix milliseconds. */
  readonly startedAt: number;
  readonly endsAt: number;
}

/** An id that a browser has or had for a session. */
export interface SessionId {
  /** The key of the session, which no browser knows. */
  readonly session: string;
  readonly issuedAt: number;
  /** Since when another id stands in its place. */
  readonly replacedAt?: number;
}

export interface SessionParts {
  /** By the hash of the id. */
  readonly ids: KeptDocuments<SessionId>;
  /** By the session's key, as is `seen`: when a request last came. */
  readonly sessions: KeptDocuments<Session>;
  readonly seen: KeptDocuments<number>;
  readonly ofUsers: Pick<UserDocuments, 'add'>;
  readonly counters: Pick<Counters, 'lease'>;
}

export interface SessionTimes {
  readonly sessionForMs: number;
  readonly idleForMs: number;
}

/** What is known of a session by one of its ids. */
export interface FoundSession extends Session {
  /** When it ends if no other request comes. */
  readonly idleAt: number;
}

/** An id in place of a former one, and when its session ends at the latest. */
export interface NewId {
  readonly id: string;
  readonly endsAt: number;
}

/** Sessions of people in the store, so that all nodes know them. `now` is in Unix milliseconds. */
export interface Sessions {
  /** Makes a session; answers its first id. */
  begin(who: Omit<Session, 'startedAt' | 'endsAt'>, now: number): Promise<string>;
  find(id: string, now: number): Promise<FoundSession | undefined>;
  /** Notes that a request came, and answers a new id once in a while, for the browser to use from now on, when `mayReplace`. */
  renew(id: string, now: number, mayReplace: boolean): Promise<NewId | undefined>;
  /** Ends the session with all its ids; answers it unless it had ended. */
  end(id: string, now: number): Promise<Session | undefined>;
}

/** An id is used for this long, then replaced. */
export const REPLACE_MS = 15 * 60_000;
/** A replaced id is good for this long: requests under way still have it. */
export const OVERLAP_MS = 10_000;
/** How often it is written down at most that requests come. */
const NOTE_MS = 15_000;

/**
 * The session is a document separate from its ids and the time of the last request: to end it is to remove that one document,
 * and no write that comes at the same time brings it back.
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
    // Of several requests at once, on whichever node, one replaces it.
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
      // Without the session these lead nowhere; when this fails they end by themselves.
      await Promise.all([seen.delete(found.known.session), ids.delete(hashId(id))]).catch(() => undefined);
      return found.session;
    },
  };
}
