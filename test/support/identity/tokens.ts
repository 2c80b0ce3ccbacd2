import { createHmac } from 'node:crypto';
import { exportJWK, exportSPKI, generateKeyPair, type JWK, type JWTPayload, SignJWT } from 'jose';

export const ISSUER = 'https://idp.example';
export const AUDIENCE = 'tollgate';

/** Key pair of an identity provider, and its signing function. */
export interface TestSigner {
  readonly kid: string;
  readonly publicJwk: JWK;
  readonly publicPem: string;
  readonly privateJwk: JWK;
  /** Valid access token; `claims` and `header` replace or add values, undefined removes one. */
  sign(claims?: Claims, header?: Readonly<Record<string, unknown>>): Promise<string>;
}

export type Claims = Readonly<Record<string, unknown>>;

export async function createSigner(kid: string, alg = 'RS256'): Promise<TestSigner> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
  return {
    kid,
    publicJwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' },
    publicPem: await exportSPKI(publicKey),
    privateJwk: { ...(await exportJWK(privateKey)), kid, alg, use: 'sig' },
    sign: (claims, header) =>
      new SignJWT(drop({ ...goodClaims(), ...claims }) as JWTPayload)
        .setProtectedHeader(drop({ alg, kid, typ: 'at+jwt', ...header }) as { alg: string })
        .sign(privateKey),
  };
}

export function goodClaims(): Claims {
  const now = Math.floor(Date.now() / 1000);
  return { iss: ISSUER, aud: AUDIENCE, sub: 'ann', iat: now, exp: now + 600, scope: 'keys:write' };
}

/** Handmade token: any header, any payload, any signature. */
export function forge(header: unknown, payload: unknown, signature = ''): string {
  return `${encode(header)}.${encode(payload)}.${signature}`;
}

/** Token signed with HMAC over a secret. */
export function signShared(secret: string | Buffer, claims: Claims = {}, header: Claims = {}, hash = 'sha256'): string {
  const body = `${encode({ alg: 'HS256', typ: 'JWT', ...header })}.${encode(drop({ ...goodClaims(), ...claims }))}`;
  return `${body}.${createHmac(hash, secret).update(body).digest('base64url')}`;
}

/** Text is treated as JSON, so that a test can write text that `JSON.stringify` never produces. */
function encode(value: unknown): string {
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');
}

function drop(value: Claims): Claims {
  return Object.fromEntries(Object.entries(value).filter(([, entry]) => entry !== undefined));
}
