import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';
import { GatewayError, type PluginApi, parseJson } from '../../contract/index.ts';

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

/** Stored tokens of one user at one server. */
export interface StoredTokens {
  /** Changes with each renewal. */
  readonly version: string;
  readonly tokens: UserTokens;
}

/** Maximum number of versions in the list of a user: one for each server, and those that are being written. */
const MAX_VERSIONS = 4000;
const VERSION_DIGITS = 8;
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

/**
 * Tokens of users at servers, encrypted in the store. Without a key it only counts and erases.
 *
 * Each write has a version of its own, which is listed before its document exists. It replaces the version that its writer read, and
 * only if the list still has that one: tokens that were revoked or erased meanwhile are not stored again.
 */
export class TokenBook {
  readonly #api: BookApi;
  readonly #sealer: ReturnType<typeof createSealer> | undefined;

  constructor(api: BookApi, secret: string | undefined) {
    this.#api = api;
    this.#sealer = secret === undefined ? undefined : createSealer(secret);
  }

  async find(user: string, server: string): Promise<StoredTokens | undefined> {
    for (let before = ''; ; ) {
      const versions = await this.#versions(user, server);
      for (const version of versions.toReversed()) {
        const stored = await this.#documents().get(keyOf(user, version));
        const tokens = stored && (this.#sealer?.open(['tokens', user, server], stored) as UserTokens | undefined);
        if (stored) return tokens && { version, tokens };
      }
      // The tokens may have been replaced after their version was read.
      const listed = versions.join();
      if (listed === before) return undefined;
      before = listed;
    }
  }

  /** Returns the version that a new connection replaces. It ends with the next revocation or erasure. */
  async reserve(user: string, server: string): Promise<string> {
    const newest = (await this.#versions(user, server)).at(-1);
    if (newest !== undefined && !(await this.#documents().get(keyOf(user, newest)))) return newest;
    return this.#list(user, server);
  }

  /** Saves the tokens of a new connection, and removes former ones. Returns false, and saves nothing, if its version has ended. */
  async save(user: string, server: string, reserved: string, tokens: UserTokens): Promise<boolean> {
    const version = await this.#replace(user, server, reserved, tokens);
    if (version === undefined) return false;
    for (const former of await this.#versions(user, server)) if (former < version) await this.#drop(user, former);
    return true;
  }

  /** Replaces tokens by renewed ones. Returns false, and saves nothing, if they were replaced, revoked or erased meanwhile. */
  async renew(user: string, server: string, version: string, tokens: UserTokens): Promise<boolean> {
    return (await this.#replace(user, server, version, tokens)) !== undefined;
  }

  /** Returns false if there were no tokens. */
  async remove(user: string, server: string): Promise<boolean> {
    let isRemoved = false;
    // A renewal may have listed another version after the list was read. The one that it replaces goes first, so that it fails.
    for (let versions = await this.#versions(user, server); versions.length > 0; ) {
      for (const version of versions) isRemoved = (await this.#drop(user, version)) || isRemoved;
      versions = await this.#versions(user, server);
    }
    await this.#api.stores.sets.remove(usersOf(server), user);
    return isRemoved;
  }

  /** Users with tokens at a server, in ascending order. */
  users(server: string, page: { readonly limit: number; readonly after?: string }): Promise<readonly string[]> {
    return this.#api.stores.sets.list(usersOf(server), page);
  }

  async count(user: string): Promise<number> {
    const versions = await this.#api.stores.sets.list(setOf(user), { limit: MAX_VERSIONS });
    const stored = await Promise.all(versions.map((version) => this.#documents().get(keyOf(user, version))));
    return new Set(versions.filter((_, index) => stored[index] !== undefined).map(serverOf)).size;
  }

  /** Removes the tokens of a user at all servers, also at those that are no longer configured. */
  async erase(user: string): Promise<number> {
    const versions = await this.#api.stores.sets.list(setOf(user), { limit: MAX_VERSIONS });
    let count = 0;
    for (const server of new Set(versions.map(serverOf))) if (await this.remove(user, server)) count += 1;
    return count;
  }

  /** Writes a version in place of another one. Undefined, and nothing is stored, if that one is no longer listed. */
  async #replace(user: string, server: string, replaced: string, tokens: UserTokens): Promise<string | undefined> {
    if (!this.#sealer) throw new TypeError('tokens are saved without a key');
    const { sets } = this.#api.stores;
    const version = await this.#list(user, server);
    await this.#documents().set(keyOf(user, version), this.#sealer.seal(['tokens', user, server], tokens));
    await sets.add(usersOf(server), user);
    // Of a renewal and a revocation at the same time, one removes it.
    if (await sets.remove(setOf(user), replaced)) {
      await this.#documents().delete(keyOf(user, replaced));
      return version;
    }
    await this.#drop(user, version);
    if ((await this.#versions(user, server)).length === 0) await sets.remove(usersOf(server), user);
    return undefined;
  }

  /** Lists a new version, so that an erasure finds what is stored for it. */
  async #list(user: string, server: string): Promise<string> {
    const newest = (await this.#versions(user, server)).at(-1);
    const number = newest === undefined ? 0 : Number(newest.slice(server.length + 1).split('.', 1)[0]);
    const digits = String(number + 1).padStart(VERSION_DIGITS, '0');
    const version = `${server}/${digits}.${randomBytes(9).toString('base64url')}`;
    if ((await this.#api.stores.sets.add(setOf(user), version, MAX_VERSIONS)) === 'full')
      throw new GatewayError('conflict', 'This user has too many connections. Disconnect one of them.');
    return version;
  }

  /** Removes a version. Returns whether it had tokens. */
  async #drop(user: string, version: string): Promise<boolean> {
    await this.#api.stores.sets.remove(setOf(user), version);
    return this.#documents().delete(keyOf(user, version));
  }

  /** Versions of one user at one server, in ascending order. */
  async #versions(user: string, server: string): Promise<readonly string[]> {
    const prefix = `${server}/`;
    const listed = await this.#api.stores.sets.list(setOf(user), { limit: PAGE, after: prefix });
    return listed.filter((version) => version.startsWith(prefix));
  }

  #documents() {
    return this.#api.keyv<Sealed>('tokens');
  }
}

/** Maximum number of versions of one server that are read at a time. */
const PAGE = 20;

function serverOf(version: string): string {
  return version.slice(0, version.lastIndexOf('/'));
}

function keyOf(user: string, version: string): string {
  return createHash('sha256')
    .update(JSON.stringify([user, version]))
    .digest('hex');
}

function usersOf(server: string): string {
  return `mcp.users:${server}`;
}

function setOf(user: string): string {
  return `mcp.connections:${createHash('sha256').update(user).digest('hex')}`;
}
