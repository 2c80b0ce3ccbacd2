import type { JWTPayload } from 'jose';
import { type Principal, parseUsd } from '../../../core/index.ts';
import { omitUndefined } from '../kit/omit-undefined.ts';
import { readClaim, splitWords } from '../kit/read-claim.ts';
import type { JwtConfig } from './options.ts';

/** What the routes of key management need; `auth.jwt.permission` says which word of a token gives it. */
const KEYS_WRITE = 'keys:write';
const MAX_USER_LENGTH = 256;
const CONTROL = /\p{Cc}|\p{Cs}/u;

type ClaimsConfig = Pick<JwtConfig, 'claims' | 'permission' | 'adminPermission' | 'permissionClaims' | 'userPrefix'>;

/** A claim that does not say what it should; the message is for the log. */
export class ClaimError extends Error {
  override readonly name = 'ClaimError';
}

/**
 * Who a verified token stands for. A limit that is there but cannot be read throws a {@link ClaimError}: left out, it
 * would be no limit.
 */
export function toPrincipal(payload: JWTPayload, config: ClaimsConfig): Principal {
  const { claims, userPrefix } = config;
  const userId = readName(payload, claims.user);
  if (userId === undefined) throw new ClaimError(`the claim "${claims.user}" is missing`);
  const account = claims.account === undefined ? undefined : readName(payload, claims.account);
  const limits = omitUndefined({
    rpm: readCount(payload, claims.rpm),
    tpm: readCount(payload, claims.tpm),
    budget: readMoney(payload, claims.budget_usd),
  });
  const words = permissionWords(payload, config);
  return Object.freeze({
    credential: 'token',
    userId: `${userPrefix}${userId}`,
    account: `${userPrefix}${account ?? userId}`,
    permissions: Object.freeze(readPermissions(words, config)),
    ...(words.has(config.adminPermission) && { isAdmin: true }),
    ...omitUndefined({
      plan: claims.plan === undefined ? undefined : readName(payload, claims.plan),
      models: readWords(payload, claims.models),
      providers: readWords(payload, claims.providers),
      serverTools: readWords(payload, claims.server_tools),
    }),
    ...limits,
    ...(Object.keys(limits).length > 0 && { userLimits: Object.freeze(limits) }),
  });
}

function permissionWords(payload: JWTPayload, { permissionClaims }: ClaimsConfig): ReadonlySet<string> {
  return new Set(permissionClaims.flatMap((name) => splitWords(readClaim(payload, name)) ?? []));
}

/** All words of the permission claims; the configured one counts as `keys:write`; the word `keys:write` itself does not, unless it is the configured one. */
function readPermissions(words: ReadonlySet<string>, { permission }: ClaimsConfig): readonly string[] {
  const found = new Set(words);
  const allowed = found.has(permission);
  found.delete(KEYS_WRITE);
  if (allowed) found.add(KEYS_WRITE);
  return [...found];
}

/** User ids stay exactly as they are: two that differ in case or in Unicode form are two users. */
function readName(payload: JWTPayload, claim: string): string | undefined {
  const value = readClaim(payload, claim);
  if (value === undefined || value === null) return undefined;
  const sound = typeof value === 'string' && value !== '' && value.length <= MAX_USER_LENGTH && !CONTROL.test(value);
  if (!sound) throw new ClaimError(`the claim "${claim}" is not a text of 1 to ${MAX_USER_LENGTH} plain characters`);
  return value;
}

function readWords(payload: JWTPayload, claim: string | undefined): readonly string[] | undefined {
  const value = claim === undefined ? undefined : readClaim(payload, claim);
  if (value === undefined || value === null) return undefined;
  const words = splitWords(value);
  if (!words) throw new ClaimError(`the claim "${claim}" is neither a list of words nor a text`);
  return Object.freeze(words);
}

function readCount(payload: JWTPayload, claim: string | undefined): number | undefined {
  const value = claim === undefined ? undefined : readClaim(payload, claim);
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  throw new ClaimError(`the claim "${claim}" is not a whole number`);
}

function readMoney(payload: JWTPayload, claim: string | undefined): number | undefined {
  const value = claim === undefined ? undefined : readClaim(payload, claim);
  if (value === undefined || value === null) return undefined;
  try {
    const amount = parseUsd(value as string | number);
    if (amount >= 0) return amount;
  } catch {
    // Refused below.
  }
  throw new ClaimError(`the claim "${claim}" is not an amount of US dollars`);
}
