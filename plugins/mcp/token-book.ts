import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';
import { type PluginApi, parseJson } from '../../contract/index.ts';

/** Tokens of one user at one server. */
export interface UserTokens {
  readonly access: string;
  readonly refresh?: string;
  /** Unix milliseconds. */
  readonly expiresAt?: number;
  readonly scope?: string;
  /** Client that the tokens were issued to. */
  readonly client: OAuthClient;
}

/** Client at an authorization server. */
export interface OAuthClient {
  readonly client_id: string;
  readonly client_secret?: string;
}

/** Sealed value. */
export interface Sealed {
  readonly sealed: string;
}

/** Maximum number of servers in the list of a user. */
const MAX_SERVERS = 1000;
const IV = 12;
const TAG = 16;

type BookApi = Pick<PluginApi, 'keyv' | 'stores'>;

/**
 * Encrypts values for one owner, such as a user and a server: AES-256-GCM with a key of that owner. Another owner's value cannot be
 * opened, even if it is moved in the store.
 */
export function createSealer(secret: string): {
  seal(owner: readonly string[], value: object): Sealed;
  open(owner: readonly string[], sealed: Sealed): unknown;
} {
  const keyOf = (owner: string): Buffer => Buffer.from(hkdfSync('sha256', secret, '', `tollgate mcp\n${owner}`, 32));
  return {
    seal(parts, value) {
      const owner = JSON.stringify(parts);
      const iv = randomBytes(IV);
      const cipher = createCipheriv('aes-256-gcm', keyOf(owner), iv).setAAD(Buffer.from(owner));
      const text = Buffer.concat([cipher.update(JSON.stringify(value), 'utf8'), cipher.final()]);
      return { sealed: Buffer.concat([iv, cipher.getAuthTag(), text]).toString('base64url') };
    },
    open(parts, { sealed }) {
      const owner = JSON.stringify(parts);
      const bytes = Buffer.from(sealed, 'base64url');
      try {
        const decipher = createDecipheriv('aes-256-gcm', keyOf(owner), bytes.subarray(0, IV))
          .setAAD(Buffer.from(owner))
          .setAuthTag(bytes.subarray(IV, IV + TAG));
        const text = Buffer.concat([decipher.update(bytes.subarray(IV + TAG)), decipher.final()]);
        return parseJson(text.toString('utf8'));
      } catch {
        // Sealed with another key, or for another owner.
        return undefined;
      }
    },
  };
}

/** Tokens of users at servers, encrypted in the store. Without a key it only counts and erases. */
export class TokenBook {
  readonly #api: BookApi;
  readonly #sealer: ReturnType<typeof createSealer> | undefined;

  constructor(api: BookApi, secret: string | undefined) {
    this.#api = api;
    this.#sealer = secret === undefined ? undefined : createSealer(secret);
  }

  async find(user: string, server: string): Promise<UserTokens | undefined> {
    const stored = await this.#documents().get(keyOf(user, server));
    return stored && (this.#sealer?.open(['tokens', user, server], stored) as UserTokens | undefined);
  }

  async save(user: string, server: string, tokens: UserTokens): Promise<void> {
    if (!this.#sealer) throw new TypeError('tokens are saved without a key');
    // Listed first: what is stored can always be erased.
    await this.#api.stores.sets.add(setOf(user), server, MAX_SERVERS);
    await this.#api.stores.sets.add(usersOf(server), user);
    await this.#documents().set(keyOf(user, server), this.#sealer.seal(['tokens', user, server], tokens));
  }

  /** Returns false if there were no tokens. */
  async remove(user: string, server: string): Promise<boolean> {
    const isRemoved = await this.#documents().delete(keyOf(user, server));
    await this.#api.stores.sets.remove(setOf(user), server);
    await this.#api.stores.sets.remove(usersOf(server), user);
    return isRemoved;
  }

  /** Users with tokens at a server, in ascending order. */
  users(server: string, page: { readonly limit: number; readonly after?: string }): Promise<readonly string[]> {
    return this.#api.stores.sets.list(usersOf(server), page);
  }

  count(user: string): Promise<number> {
    return this.#api.stores.sets.size(setOf(user));
  }

  /** Removes the tokens of a user at all servers, also at those that are no longer configured. */
  async erase(user: string): Promise<number> {
    const servers = await this.#api.stores.sets.list(setOf(user), { limit: MAX_SERVERS });
    for (const server of servers) await this.remove(user, server);
    return servers.length;
  }

  #documents() {
    return this.#api.keyv<Sealed>('tokens');
  }
}

function keyOf(user: string, server: string): string {
  return createHash('sha256')
    .update(JSON.stringify([user, server]))
    .digest('hex');
}

function usersOf(server: string): string {
  return `mcp.users:${server}`;
}

function setOf(user: string): string {
  return `mcp.connections:${createHash('sha256').update(user).digest('hex')}`;
}
