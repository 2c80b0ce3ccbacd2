import { createPublicKey, hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { decodeJwt, type JSONWebKeySet, type JWTPayload, type JWTVerifyGetKey, type JWTVerifyResult } from 'jose';
import { LRUCache } from 'lru-cache';
import {
  definePlugin,
  GatewayError,
  isGatewayError,
  type Log,
  OptionError,
  type PluginApi,
  type Principal,
  type Problem,
  parseUsd,
  problemsOf,
} from '../../../contract/index.ts';
import { maxEntries } from '../../policies/kit/index.ts';
import { fetchDiscovery, readEndpoint } from '../kit/discovery.ts';
import { type Fetch, fetchJson } from '../kit/fetch-json.ts';
import { createKeySource } from '../kit/key-source.ts';
import { omitUndefined } from '../kit/omit-undefined.ts';
import { readClaim, splitWords } from '../kit/read-claim.ts';
import { rightsOfWords, wordsOfClaims } from '../kit/role-map.ts';
import { readKeySet, verifyJwt } from '../kit/verify-jwt.ts';
import { CONFIG_SCHEMA } from './config-schema.ts';
import {
  checkRoles,
  type JwtConfig,
  type JwtOptions,
  type KeyOrigin,
  normalizeTyp,
  readOptions,
  readOrigin,
  readTolerance,
} from './options.ts';

/** Permission for key management routes; `auth.jwt.permission` maps a word of a token to it. */
const KEYS_WRITE = 'keys:write';
const MAX_USER_LENGTH = 256;
const CONTROL = /\p{Cc}|\p{Cs}/u;

type ClaimsConfig = Pick<
  JwtConfig,
  'claims' | 'permission' | 'roleClaims' | 'roles' | 'permissionClaims' | 'userPrefix'
>;

/** Invalid claim; the message is for the log. */
export class ClaimError extends Error {
  override readonly name = 'ClaimError';
}

/**
 * Converts a verified token to a principal. An unreadable limit throws a {@link ClaimError}: ignoring it would remove
 * the limit.
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
  return Object.freeze({
    credential: 'token',
    userId: `${userPrefix}${userId}`,
    account: `${userPrefix}${account ?? userId}`,
    permissions: Object.freeze(readPermissions(payload, config)),
    ...rightsOfWords(wordsOfClaims(payload, config.roleClaims ?? []), config.roles),
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

/**
 * Reads all words of the permission claims. The configured one counts as `keys:write`; a literal `keys:write` is
 * dropped, except when it is the configured one.
 */
function readPermissions(payload: JWTPayload, { permission, permissionClaims }: ClaimsConfig): readonly string[] {
  const found = new Set(wordsOfClaims(payload, permissionClaims));
  const allowed = found.has(permission);
  found.delete(KEYS_WRITE);
  if (allowed) found.add(KEYS_WRITE);
  return [...found];
}

/** User ids are not normalised: two that differ in case or Unicode form are two users. */
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
  if (!words) throw new ClaimError(`the claim "${claim}" must be a list of words or a text`);
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
    // Rejected below.
  }
  throw new ClaimError(`the claim "${claim}" is not an amount of US dollars`);
}

/** Cache time of a verified token. */
const REMEMBER_MS = 60_000;
const MAX_REMEMBERED = 10_000;
const MAX_TOKEN_LENGTH = 8192;
/** Three base64url parts. */
const SHAPE = /^([\w-]+)\.([\w-]+)\.([\w-]+)$/;

/** Types of a payload that different providers use for tokens other than access tokens. */
const OTHER_TYPES: ReadonlySet<unknown> = new Set(['ID', 'Refresh', 'Offline', 'Logout']);
const ID_TOKEN_CLAIMS = ['at_hash', 'c_hash', 's_hash', 'events'];
const ACCESS_TOKEN_TYPES: ReadonlySet<string | undefined> = new Set([undefined, 'jwt', 'at+jwt']);

interface Remembered {
  readonly principal: Principal;
  readonly from: number;
  readonly until: number;
}

interface TokenVerifier {
  /**
   * Verifies a token and returns its principal; undefined for another issuer. Throws `invalid_token`, and
   * `store_unavailable` if the verification keys cannot be read. `now` is in Unix milliseconds.
   */
  verify(token: string, now: number): Principal | Promise<Principal | undefined>;
}

export function createTokenVerifier(
  options: JwtOptions,
  key: JWTVerifyGetKey | Uint8Array,
  readPrincipal: (payload: JWTPayload) => Principal,
  log: Log,
): TokenVerifier {
  // Keyed by the hash of the complete token: tokens with the same prefix are unrelated.
  const remembered = new LRUCache<string, Remembered>(maxEntries(MAX_REMEMBERED));

  const verifyFresh = async (token: string, digest: string, now: number): Promise<Principal | undefined> => {
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
      log.debug({ reason: (error as Error).message }, 'token rejected');
      throw invalidToken();
    }
  };

  return {
    verify(token, now) {
      if (token.length > MAX_TOKEN_LENGTH) throw invalidToken();
      const digest = hash('sha256', token, 'base64');
      const known = remembered.get(digest);
      if (known && now >= known.from && now < known.until) return known.principal;
      return verifyFresh(token, digest, now);
    },
  };
}

/** The same message for every reason: details are in the log, for the operator. */
function invalidToken(): GatewayError {
  return new GatewayError(
    'invalid_token',
    'Invalid token. Send an unexpired access token, issued for this gateway and signed by its identity provider.',
  );
}

/** Spaces, padding and unused last bits would give one token many spellings. */
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
    throw new ClaimError(`tokens of the type "${typ}" are not accepted`);
  }
  const isOther = OTHER_TYPES.has(payload['typ']) || payload['token_use'] === 'id';
  // A nonce belongs to the sign-in and thus to an ID token. Keycloak's access tokens repeat it, but declare themselves
  // bearers.
  const isOfSignIn = Object.hasOwn(payload, 'nonce') && payload['typ'] !== 'Bearer' && typ !== 'at+jwt';
  if (isOther || isOfSignIn || ID_TOKEN_CLAIMS.some((claim) => Object.hasOwn(payload, claim))) {
    throw new ClaimError('it is an ID, refresh or logout token, not an access token');
  }
}

/** Checks claims that jose does not. Returns the token's expiry in Unix milliseconds. */
function checkClaims({ exp, aud }: JWTPayload, options: JwtOptions): number {
  if (exp === undefined || !Number.isSafeInteger(exp) || exp <= 0) throw new ClaimError('exp is not a whole number');
  const named = typeof aud === 'string' ? [aud] : (aud ?? []);
  const own = named.filter((name) => options.audiences.includes(name));
  const foreign = named.filter((name) => !options.audiences.includes(name) && !options.otherAudiences.includes(name));
  if (own.length !== 1 || foreign.length > 0) {
    throw new ClaimError('aud has audiences other than this gateway; auth.jwt.otherAudiences can allow them');
  }
  return exp * 1000;
}

/** Tokens of an identity provider: the user, their limits, and the permission to manage keys. */
export default definePlugin({
  name: 'jwt',
  kind: 'auth',
  apiVersion: 1,
  // The issuer names the hosts of its keys.
  permissions: ['hosts'],
  credentials: ['token'],
  isCredential: (text) => SHAPE.test(text),
  configSchema: CONFIG_SCHEMA,
  check: (config, { baseDir }) => findProblems(config, baseDir),

  async setup(api, config) {
    const options = readOptions(config, api.settings.baseDir);
    const key = await openKey(api, options.origin);
    const verifier = createTokenVerifier(options, key, (payload) => toPrincipal(payload, config), api.log);

    api.hook('authenticate', ({ credential, bearer, now }) =>
      bearer && isTokenShaped(credential) ? verifier.verify(credential, now) : undefined,
    );
    // Runs after all issuers: a token unknown to all of them is an invalid token, not an invalid API key.
    api.hook('authenticate', {
      order: 'post',
      handler({ credential, bearer }) {
        if (bearer && isTokenShaped(credential)) throw invalidToken();
        return undefined;
      },
    });
  },
});

/** Opens the verification keys. A file is read now, so that an invalid one stops the start. */
async function openKey(api: PluginApi, origin: KeyOrigin): Promise<Uint8Array | JWTVerifyGetKey> {
  if (origin.kind === 'secret') return origin.secret;
  const source = createKeySource({
    load: () => loadKeys(origin, api.fetch),
    onFailure: (error) => api.log.warn({ err: error }, 'The signing keys of the identity provider cannot be read.'),
    now: () => performance.now(),
  });
  if (origin.kind === 'file') await source.refresh();
  // Prefetch keys for the first token without waiting: an unavailable provider does not stop the start.
  else api.onReady(() => void source.refresh().catch(() => undefined));
  return source.getKey;
}

/** A JWT has three parts, an encrypted one five; other bearer credentials have no dots. */
function isTokenShaped(credential: string): boolean {
  return credential.indexOf('.') !== credential.lastIndexOf('.');
}

/** Finds all problems of a configuration. Reads a key file, but fetches nothing. */
function findProblems(config: JwtConfig, baseDir: string): Promise<readonly Problem[]> {
  return problemsOf(
    () => readOptions(config, baseDir),
    () => readTolerance(config.clockTolerance),
    () => checkRoles(config),
    async () => {
      const origin = readOrigin(config, baseDir);
      if (origin.kind === 'file') await readKeyFile(origin.path);
    },
  );
}

/** Reads the public keys from their origin; throws an Error for the log on failure. */
export async function loadKeys(
  origin: Exclude<KeyOrigin, { kind: 'secret' }>,
  fetchBy: Fetch = fetch,
): Promise<JSONWebKeySet> {
  if (origin.kind === 'file') return readKeyFile(origin.path);
  const url = origin.kind === 'jwks' ? origin.url : await discover(origin, fetchBy);
  return readKeySet(await fetchJson(url, fetchBy), url.href);
}

/** Reads the keys of the file `jwksFile`; throws an {@link OptionError}. */
async function readKeyFile(path: string): Promise<JSONWebKeySet> {
  try {
    return readKeySet(parseKeyFile(await readFile(path, 'utf8')), 'the file');
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const problem = code === undefined ? `is invalid: ${message}` : `cannot be read from ${path}: ${code}`;
    throw new OptionError('/jwksFile', problem, 'The file must contain a JWK set, one JWK or a public key in PEM.');
  }
}

async function discover({ url, issuer }: Extract<KeyOrigin, { kind: 'discovery' }>, fetchBy: Fetch): Promise<URL> {
  return readEndpoint(url, await fetchDiscovery(url, issuer, fetchBy), 'jwks_uri');
}

function parseKeyFile(text: string): unknown {
  if (text.includes('-----BEGIN PUBLIC KEY-----')) {
    return { keys: [createPublicKey(text).export({ format: 'jwk' })] };
  }
  const value = JSON.parse(text) as { keys?: unknown };
  return Array.isArray(value.keys) ? value : { keys: [value] };
}
