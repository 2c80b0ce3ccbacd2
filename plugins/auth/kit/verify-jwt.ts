import {
  errors,
  type JSONWebKeySet,
  type JWK,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
  type JWTVerifyResult,
  jwtVerify,
} from 'jose';

/** Signature algorithms with a private key. */
export const ASYMMETRIC: readonly string[] = Object.freeze(
  'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' '),
);

const MAX_KEYS = 100;
/** 2048 bits in base64url, with or without a leading zero byte. */
const MIN_RSA_LENGTH = 342;

/** Reads the keys that may verify signatures. Others (symmetric, private, for encryption, too short) are omitted. */
export function readKeySet(value: unknown, source: string): JSONWebKeySet {
  const keys = (value as { keys?: unknown } | null)?.keys;
  if (!Array.isArray(keys)) throw new Error(`${source} contains no JWK set`);
  if (keys.length > MAX_KEYS) throw new Error(`${source} contains ${keys.length} keys; the limit is ${MAX_KEYS}`);
  const usable = keys.filter(isUsable);
  if (usable.length === 0) throw new Error(`${source} contains no key that can verify a signature`);
  return { keys: usable };
}

function isUsable(key: unknown): key is JWK {
  if (typeof key !== 'object' || key === null) return false;
  const { kty, use, d, n } = key as JWK;
  if (d !== undefined || (use !== undefined && use !== 'sig')) return false;
  if (kty === 'RSA') return typeof n === 'string' && n.length >= MIN_RSA_LENGTH;
  return kty === 'EC' || kty === 'OKP';
}

/** Verifies a token by a key, or by any matching key of a provider if the token names none. Throws like jose. */
export async function verifyJwt(
  token: string,
  key: JWTVerifyGetKey | Uint8Array,
  expected: JWTVerifyOptions,
): Promise<JWTVerifyResult> {
  try {
    return await jwtVerify(token, key as JWTVerifyGetKey, expected);
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
    for await (const candidate of error) {
      const result = await jwtVerify(token, candidate, expected).catch(skipWrongKey);
      if (result) return result;
    }
    throw error;
  }
}

function skipWrongKey(error: unknown): undefined {
  if (!(error instanceof errors.JWSSignatureVerificationFailed)) throw error;
}
