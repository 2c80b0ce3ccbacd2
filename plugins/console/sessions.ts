import { GatewayError, type PluginApi, type Principal } from '../../contract/index.ts';
import { createStoredDocuments, createUserDocuments, withStore } from '../auth/kit/documents.ts';
import { hashId, randomId } from '../auth/kit/random-id.ts';

/** Session created by a link or a key. */
export interface ConsoleSession {
  readonly principal: Principal;
  /** Unix milliseconds. */
  readonly startedAt: number;
  readonly endsAt: number;
}

/** Single-use link for signing in. */
interface Link {
  readonly userId: string;
  readonly endsAt: number;
}

export interface ConsoleSessions {
  /** Creates a link's token for a user. */
  makeLink(userId: string, now: number): Promise<string>;
  /** Returns the user of a token; throws if it was used, expired or never existed. */
  takeLink(token: string, now: number): Promise<string>;
  /** Creates a session that ends with its key at the latest; returns the id for the browser. */
  begin(principal: Principal, now: number): Promise<{ readonly id: string; readonly session: ConsoleSession }>;
  /** Finds the session of an id; undefined if it has ended. */
  find(id: string, now: number): Promise<ConsoleSession | undefined>;
  end(id: string): Promise<void>;
}

export const LINK_MS = 120_000;
const TOKEN = /^[\w-]{43}$/;
/** Interval between checks of a session's key. */
const LOOK_MS = 5000;

/**
 * Links and sessions in the store, under hashes: all workers and nodes share them, and the store's content does not
 * suffice to use them.
 */
export function createConsoleSessions(
  api: Pick<PluginApi, 'stores' | 'operators'>,
  sessionForMs: number,
): ConsoleSessions {
  const sessions = createStoredDocuments<ConsoleSession>(api.stores.stored, 'sessions');
  const ofUsers = createUserDocuments(api.stores.sets, 'sessions');
  api.stores.personalData(ofUsers.personal('sessions', sessions));
  /** Time of the last check of a session's key, by the session's hash. */
  const looked = new Map<string, number>();

  /** A session ends with any change of its key: revoked, blocked, or with other limits. */
  const isKeyChanged = async (hash: string, { principal: { keyId }, startedAt }: ConsoleSession, now: number) => {
    if (keyId === undefined || now - (looked.get(hash) ?? 0) < LOOK_MS) return false;
    const { entries } = await api.operators.auditLog({
      subject: `tg_${keyId}`,
      action: 'key',
      from: startedAt,
      limit: 1,
    });
    if (looked.size > 1000) looked.clear();
    looked.set(hash, now);
    return entries.length > 0;
  };

  return {
    ...createLinks(api),

    async begin(principal, now) {
      const id = randomId();
      const endsAt = Math.min(now + sessionForMs, principal.expiresAt ?? Infinity);
      const session = { principal, startedAt: now, endsAt };
      await ofUsers.add(principal.userId, hashId(id), endsAt, now, sessions.delete);
      await sessions.set(principal.account, hashId(id), session, endsAt - now);
      return { id, session };
    },

    async find(id, now) {
      const hash = hashId(id);
      const session = await sessions.get(hash);
      if (!session || now >= session.endsAt) return undefined;
      if (!(await isKeyChanged(hash, session, now))) return session;
      await sessions.delete(hash);
      return undefined;
    },

    end: (id) => sessions.delete(hashId(id)),
  };
}

/** Links, each of which signs in once. */
function createLinks(api: Pick<PluginApi, 'stores'>): Pick<ConsoleSessions, 'makeLink' | 'takeLink'> {
  const links = createStoredDocuments<Link>(api.stores.stored, 'links');
  return {
    async makeLink(userId, now) {
      const token = randomId();
      await links.set(userId, hashId(token), { userId, endsAt: now + LINK_MS }, LINK_MS);
      return token;
    },

    async takeLink(token, now) {
      const hash = hashId(token);
      const link = TOKEN.test(token) ? await links.get(hash) : undefined;
      const take = () => api.stores.counters.lease(`link.${hash}`, randomId(), 1, LINK_MS, now);
      if (link === undefined || now >= link.endsAt || !(await withStore(take)))
        throw new GatewayError(
          'invalid_token',
          'This link was used already, or is older than two minutes. "tollgate users console" prints a new one.',
        );
      await links.delete(hash);
      return link.userId;
    },
  };
}
