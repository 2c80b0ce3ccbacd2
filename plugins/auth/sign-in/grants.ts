import { randomInt } from 'node:crypto';
import type { Counters } from '../../../contract/index.ts';
import { networkOf } from '../../policies/kit/index.ts';
import { type Documents, withStore } from '../kit/documents.ts';
import type { IntroducedPerson } from '../kit/introductions.ts';
import { hashId, randomId } from '../kit/random-id.ts';
import type { Secrets } from '../kit/secrets.ts';

/** Program that waits for a person's approval (RFC 8628). */
export interface Grant {
  /** Name sent by the program; unverified. */
  readonly program: string;
  /** Address of its request. */
  readonly address: string;
}

/** Grant that a person can decide on, with the hash of its device code. */
export interface PendingGrant extends Grant {
  readonly device: string;
}

/** Grant found by its user code. */
export interface FoundGrant {
  readonly userCode: string;
  readonly grant: PendingGrant;
}

/** Decision of a person, by the hash of the device code; without a person it is a denial. */
export interface Decision {
  readonly person?: IntroducedPerson;
}

/** Result of a program's poll. */
export type Redeemed<T> = T | 'authorization_pending' | 'slow_down' | 'access_denied' | 'expired_token';

/** Grants in the store, shared by all nodes. `now` is in Unix milliseconds. */
export interface Grants {
  begin(of: Grant, now: number): Promise<{ readonly deviceCode: string; readonly userCode: string }>;
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
  /** By device code. */
  readonly devices: Secrets<Grant>;
  /** By user code. */
  readonly codes: Secrets<PendingGrant>;
  readonly decisions: Documents<Decision>;
  readonly counters: Pick<Counters, 'lease' | 'take'>;
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
const MAX_DRAWS = 5;

/** Normalises a typed code: any case, with or without the dash. */
export function readUserCode(text: string): string | undefined {
  if (text.length > 40) return undefined;
  const letters = text.toUpperCase().replaceAll(/[\s-]/g, '');
  if (letters.length !== 2 * HALF || [...letters].some((letter) => !LETTERS.includes(letter))) return undefined;
  return `${letters.slice(0, HALF)}-${letters.slice(HALF)}`;
}

/** Returns a user code that no other grant has. */
async function drawUserCode(counters: GrantParts['counters'], now: number): Promise<string> {
  const half = (): string => Array.from({ length: HALF }, () => LETTERS[randomInt(LETTERS.length)] ?? '').join('');
  for (let draw = 1; draw <= MAX_DRAWS; draw += 1) {
    const userCode = `${half()}-${half()}`;
    const isFree = () => counters.lease(`code.${hashId(userCode)}`, randomId(), 1, GRANT_MS, now);
    if (await withStore(isFree)) return userCode;
  }
  throw new Error('no free user code');
}

export function createGrants({ devices, codes, decisions, counters }: GrantParts): Grants {
  const isTooEarly = async (device: string, now: number): Promise<boolean> => {
    const window = { key: `poll.${device}`, limit: 1, windowMs: PACE_MS, amount: 1 };
    return (await withStore(() => counters.take([window], now))).refused !== undefined;
  };

  return {
    async begin(grant, now) {
      const network = networkOf(grant.address);
      const userCode = await drawUserCode(counters, now);
      const deviceCode = await devices.put(network, grant, now);
      await codes.put(network, { ...grant, device: hashId(deviceCode) }, now, userCode);
      return { deviceCode, userCode };
    },

    async find(userCode, now) {
      const grant = await codes.find(userCode, now);
      return grant && { userCode, grant };
    },

    async decide({ userCode }, person, now) {
      const decided = await codes.take(userCode, now, async ({ device }) => {
        await decisions.set(device, person ? { person } : {}, GRANT_MS);
        return true;
      });
      return decided === true;
    },

    async redeem(deviceCode, issue, now) {
      const device = hashId(deviceCode);
      if (!(await devices.find(deviceCode, now))) return 'expired_token';
      const decision = await decisions.get(device);
      if (!decision) return (await isTooEarly(device, now)) ? 'slow_down' : 'authorization_pending';
      const { person } = decision;
      if (!person) return 'access_denied';
      return (await devices.take(deviceCode, now, (grant) => issue(grant, person))) ?? 'expired_token';
    },
  };
}
