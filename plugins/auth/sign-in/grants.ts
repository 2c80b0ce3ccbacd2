import { randomInt } from 'node:crypto';
import type { Counters } from '../../../contract/index.ts';
import { type Documents, withStore } from '../kit/documents.ts';
import type { IntroducedPerson } from '../kit/introductions.ts';
import { hashId, randomId } from '../kit/random-id.ts';

/** Program that waits for a person's approval (RFC 8628). */
export interface Grant {
  /** Name sent by the program; unverified. */
  readonly program: string;
  /** Address of its request. */
  readonly address: string;
  /** Unix milliseconds. */
  readonly endsAt: number;
  readonly state: 'pending' | 'approved' | 'denied';
  /** Person who approved it. */
  readonly person?: IntroducedPerson;
}

/** Grant found by its user code. */
export interface FoundGrant {
  readonly key: string;
  readonly grant: Grant;
}

/** Result of a program's poll. */
export type Redeemed<T> = T | 'authorization_pending' | 'slow_down' | 'access_denied' | 'expired_token';

/** Grants in the store, shared by all nodes. `now` is in Unix milliseconds. */
export interface Grants {
  begin(
    of: Pick<Grant, 'program' | 'address'>,
    now: number,
  ): Promise<{ readonly deviceCode: string; readonly userCode: string }>;
  /** Finds the grant of a code from {@link readUserCode}; undefined if it is unknown, expired or decided. */
  find(userCode: string, now: number): Promise<FoundGrant | undefined>;
  /** Approves, or denies without a person. Returns false if it was decided before. */
  decide(found: FoundGrant, person: IntroducedPerson | undefined, now: number): Promise<boolean>;
  /** Redeems a device code. For an approved one `issue` is called, once over all nodes. */
  redeem<T extends object>(
    deviceCode: string,
    issue: (grant: Grant, person: IntroducedPerson) => Promise<T>,
    now: number,
  ): Promise<Redeemed<T>>;
}

export interface GrantParts {
  /** By the hash of the device code. */
  readonly grants: Documents<Grant>;
  /** Keys of grants by the hash of their user code. */
  readonly codes: Documents<string>;
  readonly counters: Pick<Counters, 'lease' | 'release' | 'take'>;
}

/** Time for a person to decide. */
export const GRANT_MS = 10 * 60_000;
/** Interval between two polls of a program, in seconds. */
export const INTERVAL_S = 5;
/** A poll within this time after the previous one is too early; less than the interval, because requests take time. */
const PACE_MS = (INTERVAL_S - 1) * 1000;

/** No vowels, so that no words occur, and no letters that look alike (RFC 8628, section 6.1). */
const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ';
const HALF = 4;
const DEVICE_CODE = /^[\w-]{43}$/;
const MAX_DRAWS = 5;

/** Normalises a typed code: any case, with or without the dash. */
export function readUserCode(text: string): string | undefined {
  if (text.length > 40) return undefined;
  const letters = text.toUpperCase().replaceAll(/[\s-]/g, '');
  if (letters.length !== 2 * HALF || [...letters].some((letter) => !LETTERS.includes(letter))) return undefined;
  return `${letters.slice(0, HALF)}-${letters.slice(HALF)}`;
}

function drawUserCode(): string {
  const half = (): string => Array.from({ length: HALF }, () => LETTERS[randomInt(LETTERS.length)] ?? '').join('');
  return `${half()}-${half()}`;
}

/** True for only one of several on any node; the lease lasts as long as a grant may. */
function isFirst(
  counters: GrantParts['counters'],
  what: 'code' | 'decide' | 'redeem',
  key: string,
  holder: string,
  now: number,
): Promise<boolean> {
  return withStore(() => counters.lease(`${what}.${key}`, holder, 1, GRANT_MS, now));
}

/** Returns a user code that no other grant has. */
async function claimCode(counters: GrantParts['counters'], key: string, now: number): Promise<string> {
  for (let draw = 1; draw <= MAX_DRAWS; draw += 1) {
    const userCode = drawUserCode();
    if (await isFirst(counters, 'code', hashId(userCode), key, now)) return userCode;
  }
  throw new Error('no free user code');
}

export function createGrants({ grants, codes, counters }: GrantParts): Grants {
  const isTooEarly = async (key: string, now: number): Promise<boolean> => {
    const window = { key: `poll.${key}`, limit: 1, windowMs: PACE_MS, amount: 1 };
    return (await withStore(() => counters.take([window], now))).refused !== undefined;
  };

  return {
    async begin({ program, address }, now) {
      const deviceCode = randomId();
      const key = hashId(deviceCode);
      const userCode = await claimCode(counters, key, now);
      await grants.set(key, { program, address, endsAt: now + GRANT_MS, state: 'pending' }, GRANT_MS);
      await codes.set(hashId(userCode), key, GRANT_MS);
      return { deviceCode, userCode };
    },

    async find(userCode, now) {
      const key = await codes.get(hashId(userCode));
      const grant = key === undefined ? undefined : await grants.get(key);
      if (key === undefined || grant?.state !== 'pending' || now >= grant.endsAt) return undefined;
      return { key, grant };
    },

    async decide({ key, grant }, person, now) {
      if (!(await isFirst(counters, 'decide', key, randomId(), now))) return false;
      const decided: Grant = person ? { ...grant, state: 'approved', person } : { ...grant, state: 'denied' };
      await grants.set(key, decided, grant.endsAt - now);
      return true;
    },

    async redeem(deviceCode, issue, now) {
      if (!DEVICE_CODE.test(deviceCode)) return 'expired_token';
      const key = hashId(deviceCode);
      const grant = await grants.get(key);
      if (!grant || now >= grant.endsAt) return 'expired_token';
      if (grant.state === 'denied') return 'access_denied';
      const { person } = grant;
      if (!person) return (await isTooEarly(key, now)) ? 'slow_down' : 'authorization_pending';
      const holder = randomId();
      if (!(await isFirst(counters, 'redeem', key, holder, now))) return 'expired_token';
      try {
        const issued = await issue(grant, person);
        await grants.delete(key).catch(() => undefined);
        return issued;
      } catch (error) {
        // No tokens were issued: the next poll may get them.
        await counters.release(`redeem.${key}`, holder).catch(() => undefined);
        throw error;
      }
    },
  };
}
