import { LRUCache } from 'lru-cache';
import type { Counters } from '../../../contract/index.ts';
import { maxEntries } from '../../policies/kit/index.ts';
import { type StoredDocuments, type UserDocuments, withStore } from '../kit/documents.ts';
import type { IntroducedPerson } from '../kit/introductions.ts';
import type { FindPerson } from '../kit/people.ts';
import { hashId, randomId } from '../kit/random-id.ts';

/** Sign-in of a person's program. Written once, and removed only at its end. */
export interface SignIn extends Omit<IntroducedPerson, 'words'> {
  /** Name sent by the program. */
  readonly program: string;
  /** Address of its request. */
  readonly address: string;
  /** Unix milliseconds. */
  readonly startedAt: number;
  readonly endsAt: number;
}

/** Stored form of an access token. */
export interface AccessToken {
  /** Id of the sign-in. */
  readonly signIn: string;
  readonly endsAt: number;
}

/** Stored form of a refresh token. */
export interface RefreshToken {
  readonly signIn: string;
  /** Time at which others replaced it. */
  readonly usedAt?: number;
}

export interface SignInParts {
  /** By the hash of the token. */
  readonly accesses: StoredDocuments<AccessToken>;
  readonly refreshes: StoredDocuments<RefreshToken>;
  /** By id. */
  readonly signIns: StoredDocuments<SignIn>;
  readonly ofUsers: Pick<UserDocuments, 'add' | 'keys'>;
  readonly counters: Pick<Counters, 'lease' | 'release'>;
  /** Finds the person of a sign-in, as `openid` knows them now. */
  readonly findPerson: FindPerson;
}

export interface SignInTimes {
  readonly accessForMs: number;
  readonly signInForMs: number;
}

/** Tokens issued to a program. */
export interface Tokens {
  readonly access: string;
  readonly refresh: string;
  readonly expiresInMs: number;
  readonly signIn: SignIn;
}

/** Sign-in with its id, which is not a credential, and the present words of its person. */
export interface FoundSignIn extends SignIn {
  readonly words: readonly string[];
  readonly id: string;
}

/** Throws for a person who may no longer sign in; the refresh token stays valid. */
export type CheckSignIn = (signIn: FoundSignIn) => Promise<void>;

/** Reason why a refresh token was refused. */
export type Refused = 'unknown' | 'used' | 'reused';

/** Sign-ins of people's programs in the store, shared by all nodes. `now` is in Unix milliseconds. */
export interface SignIns {
  begin(who: Omit<SignIn, 'startedAt' | 'endsAt'>, now: number): Promise<Tokens>;
  /**
   * Exchanges a refresh token, once. A reuse ends the sign-in, since the token was copied. Within {@link OVERLAP_MS} a
   * reuse is only refused, because two programs may share a token file.
   */
  refresh(token: string, now: number, check?: CheckSignIn): Promise<Tokens | Refused>;
  /**
   * Finds the sign-in of an access token, by store data of at most {@link KNOWN_MS} ago. `beforeLookup` is called
   * before a look-up.
   */
  find(token: string, now: number, beforeLookup?: () => void): Promise<FoundSignIn | undefined>;
  /** Ends the sign-in of a token of either kind; returns it, or undefined if it had ended. */
  endByToken(token: string, now: number): Promise<FoundSignIn | undefined>;
  end(id: string, now: number): Promise<FoundSignIn | undefined>;
  get(id: string, now: number): Promise<FoundSignIn | undefined>;
  ofUser(userId: string, now: number): Promise<readonly FoundSignIn[]>;
}

export const ACCESS_PREFIX = 'tg-access-';
const REFRESH_PREFIX = 'tg-refresh-';
const ACCESS = /^tg-access-[\w-]{43}$/;
const REFRESH = /^tg-refresh-[\w-]{43}$/;

/** Ids are shown, and typed on command lines, so they must not begin with a dash. */
const ID_PREFIX = 'si_';
const ID_LENGTH = 22;

/** A refresh token reused within this time was sent by two programs at once, or its response was lost. */
export const OVERLAP_MS = 30_000;
/** Maximum age of cached store data: every node sees the end of a sign-in within this time. */
export const KNOWN_MS = 2000;
const KNOWN_MAX = 10_000;

export function createSignIns(parts: SignInParts, times: SignInTimes): SignIns {
  return new StoredSignIns(parts, times);
}

class StoredSignIns implements SignIns {
  readonly #parts: SignInParts;
  readonly #times: SignInTimes;
  readonly #known = new LRUCache<string, { readonly found: FoundSignIn; readonly until: number; readonly at: number }>(
    maxEntries(KNOWN_MAX),
  );

  constructor(parts: SignInParts, times: SignInTimes) {
    this.#parts = parts;
    this.#times = times;
  }

  async begin(who: Omit<SignIn, 'startedAt' | 'endsAt'>, now: number): Promise<Tokens> {
    const { ofUsers, signIns } = this.#parts;
    const { signInForMs } = this.#times;
    const id = `${ID_PREFIX}${randomId().slice(0, ID_LENGTH)}`;
    const signIn: SignIn = { ...who, startedAt: now, endsAt: now + signInForMs };
    await ofUsers.add(who.userId, id, signIn.endsAt, now, signIns.delete);
    await signIns.set(who.userId, id, signIn, signInForMs);
    return this.#issue(id, signIn, now);
  }

  async refresh(token: string, now: number, check?: CheckSignIn): Promise<Tokens | Refused> {
    const { refreshes, counters } = this.#parts;
    if (!REFRESH.test(token)) return 'unknown';
    const key = hashId(token);
    const stored = await refreshes.get(key);
    const signIn = stored && (await this.get(stored.signIn, now));
    if (!stored || !signIn) return 'unknown';
    const { id, words: _words, ...rest } = signIn;
    const holder = randomId();
    const lifeMs = signIn.endsAt - now;
    // Of several concurrent requests, on any node, only one continues.
    const isFirst = await withStore(() => counters.lease(`refresh.${key}`, holder, 1, 2 * OVERLAP_MS, now));
    if (stored.usedAt !== undefined && now >= stored.usedAt + OVERLAP_MS) {
      await this.end(id, now);
      return 'reused';
    }
    if (!isFirst || stored.usedAt !== undefined) return 'used';
    try {
      await check?.(signIn);
      const tokens = await this.#issue(id, rest, now);
      await refreshes.set(signIn.userId, key, { signIn: id, usedAt: now }, lifeMs);
      return tokens;
    } catch (error) {
      // No tokens were issued: the token is still valid.
      await counters.release(`refresh.${key}`, holder).catch(() => undefined);
      throw error;
    }
  }

  async find(token: string, now: number, beforeLookup?: () => void): Promise<FoundSignIn | undefined> {
    if (!ACCESS.test(token)) return undefined;
    const key = hashId(token);
    const last = this.#known.get(key);
    if (last && now >= last.at && now < Math.min(last.at + KNOWN_MS, last.until)) return last.found;
    if (!last) beforeLookup?.();
    this.#known.delete(key);
    const stored = await this.#parts.accesses.get(key);
    if (!stored || now >= stored.endsAt) return undefined;
    const found = await this.get(stored.signIn, now);
    if (found) this.#known.set(key, { found, until: stored.endsAt, at: now });
    return found;
  }

  async endByToken(token: string, now: number): Promise<FoundSignIn | undefined> {
    const { accesses, refreshes } = this.#parts;
    const documents = ACCESS.test(token) ? accesses : REFRESH.test(token) ? refreshes : undefined;
    const stored = await documents?.get(hashId(token));
    return stored && this.end(stored.signIn, now);
  }

  async end(id: string, now: number): Promise<FoundSignIn | undefined> {
    const found = await this.get(id, now);
    // Without it all its tokens are useless; they expire on their own.
    await this.#parts.signIns.delete(id);
    for (const [key, { found: one }] of this.#known) if (one.id === id) this.#known.delete(key);
    return found;
  }

  async get(id: string, now: number): Promise<FoundSignIn | undefined> {
    const signIn = await this.#parts.signIns.get(id);
    const person = signIn && now < signIn.endsAt ? await this.#parts.findPerson(signIn.userId) : undefined;
    return signIn && person && { ...signIn, words: person.words, id };
  }

  async ofUser(userId: string, now: number): Promise<readonly FoundSignIn[]> {
    const ids = await this.#parts.ofUsers.keys(userId);
    const found = await Promise.all(ids.map((id) => this.get(id, now)));
    return found.filter((each) => each !== undefined);
  }

  async #issue(id: string, signIn: SignIn, now: number): Promise<Tokens> {
    const { accesses, refreshes } = this.#parts;
    const [access, refresh] = [`${ACCESS_PREFIX}${randomId()}`, `${REFRESH_PREFIX}${randomId()}`];
    const endsAt = Math.min(now + this.#times.accessForMs, signIn.endsAt);
    await accesses.set(signIn.userId, hashId(access), { signIn: id, endsAt }, endsAt - now);
    await refreshes.set(signIn.userId, hashId(refresh), { signIn: id }, signIn.endsAt - now);
    return { access, refresh, expiresInMs: endsAt - now, signIn };
  }
}
