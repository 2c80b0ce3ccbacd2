import { GatewayError, isGatewayError, type PluginApi, type Principal } from '../../contract/index.ts';
import { createDocuments, createStoredDocuments, createUserDocuments } from '../auth/kit/documents.ts';
import { hashId, randomId } from '../auth/kit/random-id.ts';
import { createSecrets } from '../auth/kit/secrets.ts';
import { admitKey } from '../policies/kit/index.ts';

/** Session created by a link or a key. */
export interface ConsoleSession {
  /** Person of a link. Of a key only its id counts: its rights are those of the key at each use. */
  readonly principal: Principal;
  /** Unix milliseconds. */
  readonly startedAt: number;
  readonly endsAt: number;
}

export interface ConsoleSessions {
  /** Creates a link's token for a user. */
  makeLink(userId: string, now: number): Promise<string>;
  /** Returns the user of a token; throws if it was used, expired or never existed. */
  takeLink(token: string, now: number): Promise<string>;
  /** Creates a session that ends with its key at the latest; returns the id for the browser. */
  begin(principal: Principal, now: number): Promise<{ readonly id: string; readonly session: ConsoleSession }>;
  /**
   * Finds the session of an id; undefined if it has ended. That of a key ends with the key, and has its current rights.
   * Throws `permission_denied` for a key that is blocked or not allowed from the address.
   */
  find(id: string, request: { readonly now: number; readonly address: string }): Promise<ConsoleSession | undefined>;
  /** Finds the session of an id without a check of its key. */
  peek(id: string, now: number): Promise<ConsoleSession | undefined>;
  end(id: string): Promise<void>;
}

export const LINK_MS = 120_000;

/**
 * Links and sessions in the store, under hashes: all workers and nodes share them, and the store's content does not
 * suffice to use them.
 */
export function createConsoleSessions(
  api: Pick<PluginApi, 'stores' | 'operators' | 'keyv'>,
  sessionForMs: number,
): ConsoleSessions {
  const sessions = createStoredDocuments<ConsoleSession>(api.stores.stored, 'sessions');
  const ofUsers = createUserDocuments(api.stores.sets, 'sessions');
  api.stores.personalData(ofUsers.personal('sessions', sessions));
  const peek: ConsoleSessions['peek'] = async (id, now) => {
    const session = await sessions.get(hashId(id));
    return session && now < session.endsAt ? session : undefined;
  };

  return {
    ...createLinks(api),

    async begin(principal, now) {
      const id = randomId();
      const endsAt = Math.min(now + sessionForMs, principal.expiresAt ?? Infinity);
      const { keyId, userId, account } = principal;
      // No copy of the rights of a key.
      const kept: Principal = keyId === undefined ? principal : { credential: 'session', userId, account, keyId };
      const session = { principal: kept, startedAt: now, endsAt };
      await ofUsers.add(principal.userId, hashId(id), endsAt, now, sessions.delete);
      await sessions.set(principal.account, hashId(id), session, endsAt - now);
      return { id, session };
    },

    peek,

    async find(id, request) {
      const session = await peek(id, request.now);
      const keyId = session?.principal.keyId;
      if (!session || keyId === undefined) return session;
      try {
        const current = await admitKey(api, keyId, request);
        return { ...session, principal: { ...current, credential: 'session' } };
      } catch (error) {
        // The key was revoked, or has expired.
        if (!isGatewayError(error) || error.status !== 401) throw error;
        await sessions.delete(hashId(id));
        return undefined;
      }
    },

    end: (id) => sessions.delete(hashId(id)),
  };
}

/** Links, each of which signs in once. */
function createLinks(api: Pick<PluginApi, 'stores' | 'keyv'>): Pick<ConsoleSessions, 'makeLink' | 'takeLink'> {
  const links = createSecrets<{ readonly userId: string }>(
    'links',
    LINK_MS,
    createDocuments(api.keyv('links')),
    api.stores.counters,
  );
  return {
    makeLink: (userId, now) => links.put(userId, { userId }, now),

    async takeLink(token, now) {
      const link = await links.take(token, now);
      if (link) return link.userId;
      throw new GatewayError(
        'invalid_token',
        'This link was used already, or is older than two minutes. "tollgate users console" prints a new one.',
      );
    },
  };
}
