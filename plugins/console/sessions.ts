import { GatewayError, type PluginApi, type Principal } from '../../contract/index.ts';
import { createKeptDocuments, createUserDocuments, withStore } from '../auth/kit/documents.ts';
import { hashId, randomId } from '../auth/kit/random-id.ts';

/** How a link or a key made somebody sign in. */
export interface ConsoleSession {
  readonly principal: Principal;
  /** Unix milliseconds. */
  readonly startedAt: number;
  readonly endsAt: number;
}

/** A link that somebody may sign in by, once. */
interface Link {
  readonly userId: string;
  readonly endsAt: number;
}

export interface ConsoleSessions {
  /** Makes a link's token, for a user to sign in as. */
  makeLink(userId: string, now: number): Promise<string>;
  /** Whom a token signs in; throws for one that was used, has ended or never was. */
  takeLink(token: string, now: number): Promise<string>;
  /** Makes a session, which does not outlive the key that it was begun with; answers the id that the browser keeps. */
  begin(principal: Principal, now: number): Promise<{ readonly id: string; readonly session: ConsoleSession }>;
  /** The session of an id; undefined for one that has ended. */
  find(id: string, now: number): Promise<ConsoleSession | undefined>;
  end(id: string): Promise<void>;
}

export const LINK_MS = 120_000;
const TOKEN = /^[\w-]{43}$/;
/** How often the key of a session is looked at again. */
const LOOK_MS = 5000;

/** Links and sessions in the store, under hashes: all workers and nodes know them, and nobody who reads the store can use them. */
export function createConsoleSessions(
  api: Pick<PluginApi, 'stores' | 'operators'>,
  sessionForMs: number,
): ConsoleSessions {
  const sessions = createKeptDocuments<ConsoleSession>(api.stores.kept, 'sessions');
  const ofUsers = createUserDocuments(api.stores.sets, 'sessions');
  api.stores.personalData(ofUsers.personal('sessions', sessions));
  /** When the key of a session was last found unchanged, by the session's hash. */
  const looked = new Map<string, number>();

  /** A session ends with any change of the key that began it: revoked, blocked, or limited in another way. */
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

/** The links, each of which signs in once. */
function createLinks(api: Pick<PluginApi, 'stores'>): Pick<ConsoleSessions, 'makeLink' | 'takeLink'> {
  const links = createKeptDocuments<Link>(api.stores.kept, 'links');
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
