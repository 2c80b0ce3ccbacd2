import { errors, type JWTVerifyGetKey, type JWTVerifyOptions, type JWTVerifyResult, jwtVerify } from 'jose';

/** Verifies a token by a key, or by whichever key of a provider fits one that does not name its key. Throws as jose does. */
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
