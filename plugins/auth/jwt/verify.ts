import { hash } from 'node:crypto';
import { decodeJwt, type JWTPayload, type JWTVerifyGetKey, type JWTVerifyResult } from 'jose';
import { LRUCache } from 'lru-cache';
import { GatewayError, isGatewayError, type Log, type Principal } from '../../../core/index.ts';
import { verifyJwt } from '../kit/verify-jwt.ts';
import { ClaimError } from './claims.ts';
import { type JwtOptions, normalizeTyp } from './options.ts';

/** A verified token is not verified again for this long. */
const REMEMBER_MS = 60_000;
const MAX_REMEMBERED = 10_000;
const MAX_TOKEN_LENGTH = 8192;
/** Three base64url parts. */
export const SHAPE = /^([\w-]+)\.([\w-]+)\.([\w-]+)$/;

/** Types of a payload that say, in one provider's way or another's, that it is no access token. */
const OTHER_TYPES: ReadonlySet<unknown> = new Set(['ID', 'Refresh', 'Offline', 'Logout']);
const ID_TOKEN_CLAIMS = ['at_hash', 'c_hash', 's_hash', 'events'];
const ACCESS_TOKEN_TYPES: ReadonlySet<string | undefined> = new Set([undefined, 'jwt', 'at+jwt']);

interface Remembered {
  readonly principal: Principal;
  readonly from: number;
  readonly until: number;
}

export interface TokenVerifier {
  /**
   * Who a token stands for; undefined when it names another issuer. Throws `invalid_token`, and `store_unavailable` when
   * the keys to verify it with cannot be read. `now` is in Unix milliseconds.
   */
  verify(token: string, now: number): Principal | Promise<Principal | undefined>;
}

export function createTokenVerifier(
  options: JwtOptions,
  key: JWTVerifyGetKey | Uint8Array,
  readPrincipal: (payload: JWTPayload) => Principal,
  log: Log,
): TokenVerifier {
  // By the hash of the whole token: two tokens that begin alike have nothing in common.
  const remembered = new LRUCache<string, Remembered>({ max: MAX_REMEMBERED });

  const verifyAnew = async (token: string, digest: string, now: number): Promise<Principal | undefined> => {
    try {
      if (!isCanonical(token)) throw new ClaimError('the token is not three canonical base64url parts');
      if (decodeJwt(token).iss !== options.issuer) return undefined;
      const { payload } = await checkSignature(token, key, options, now);
      const expiresAt = checkClaims(payload, options);
      const principal = readPrincipal(payload);
      remembered.set(digest, { principal, from: now, until: Math.min(expiresAt, now + REMEMBER_MS) });
      return principal;
    } catch (error) {
      if (isGatewayError(error)) throw error;
      log.debug({ reason: (error as Error).message }, 'A token was refused.');
      throw invalidToken();
    }
  };

  return {
    verify(token, now) {
      if (token.length > MAX_TOKEN_LENGTH) throw invalidToken();
      const digest = hash('sha256', token, 'base64');
      const known = remembered.get(digest);
      if (known && now >= known.from && now < known.until) return known.principal;
      return verifyAnew(token, digest, now);
    },
  };
}

/** One sentence for every reason: what exactly was wrong is in the log, for the operator. */
export function invalidToken(): GatewayError {
  return new GatewayError(
    'invalid_token',
    'This token is not valid here: it must be an unexpired access token, issued for this gateway and signed by its identity provider.',
  );
}

/** Spaces, padding and loose last bits would let one token have many spellings. */
function isCanonical(token: string): boolean {
  const parts = SHAPE.exec(token)?.slice(1);
  return parts?.every((part) => Buffer.from(part, 'base64url').toString('base64url') === part) ?? false;
}

async function checkSignature(
  token: string,
  key: JWTVerifyGetKey | Uint8Array,
  options: JwtOptions,
  now: number,
): Promise<Pick<JWTVerifyResult, 'payload'>> {
  const expected = {
    algorithms: [...options.algorithms],
    issuer: options.issuer,
    audience: [...options.audiences],
    requiredClaims: ['exp', 'sub'],
    clockTolerance: options.clockToleranceSeconds,
    currentDate: new Date(now),
  };
  const result = await verifyJwt(token, key, expected);
  checkType(result, options.typ);
  return result;
}

function checkType({ protectedHeader, payload }: JWTVerifyResult, wanted: string | undefined): void {
  const typ = protectedHeader.typ === undefined ? undefined : normalizeTyp(protectedHeader.typ);
  if (wanted === undefined ? !ACCESS_TOKEN_TYPES.has(typ) : typ !== wanted) {
    throw new ClaimError(`tokens of the type "${typ}" are not taken`);
  }
  const isOther = OTHER_TYPES.has(payload['typ']) || payload['token_use'] === 'id';
  // A nonce belongs to the sign-in and so to an ID token; Keycloak's access tokens repeat it, and say that they are bearers.
  const isOfSignIn = Object.hasOwn(payload, 'nonce') && payload['typ'] !== 'Bearer' && typ !== 'at+jwt';
  if (isOther || isOfSignIn || ID_TOKEN_CLAIMS.some((claim) => Object.hasOwn(payload, claim))) {
    throw new ClaimError('it is an ID, refresh or logout token, not an access token');
  }
}

/** Checks what jose leaves open. Returns when the token expires, in Unix milliseconds. */
function checkClaims({ exp, aud }: JWTPayload, options: JwtOptions): number {
  if (exp === undefined || !Number.isSafeInteger(exp) || exp <= 0) throw new ClaimError('exp is not a whole number');
  const named = typeof aud === 'string' ? [aud] : (aud ?? []);
  const own = named.filter((name) => options.audiences.includes(name));
  const foreign = named.filter((name) => !options.audiences.includes(name) && !options.otherAudiences.includes(name));
  if (own.length !== 1 || foreign.length > 0) {
    throw new ClaimError('aud names other audiences beside this gateway; auth.jwt.otherAudiences can allow them');
  }
  return exp * 1000;
}
