import { createPublicKey } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { JSONWebKeySet, JWK } from 'jose';
import { OptionError } from '../../../core/index.ts';
import { fetchJson } from './fetch-json.ts';
import { type KeyOrigin, parseSafeUrl } from './options.ts';

const MAX_KEYS = 100;
/** 2048 bits in base64url, with a leading zero byte or without. */
const MIN_RSA_LENGTH = 342;

/** Reads the public keys from where they are; throws an Error for the log when that cannot be done. */
export async function loadKeys(origin: Exclude<KeyOrigin, { kind: 'secret' }>): Promise<JSONWebKeySet> {
  if (origin.kind === 'file') return readKeyFile(origin.path);
  const url = origin.kind === 'jwks' ? origin.url : await discover(origin.url, origin.issuer);
  return readKeySet(await fetchJson(url), url.href);
}

/** The keys of the file `jwksFile`; throws an {@link OptionError}. */
export async function readKeyFile(path: string): Promise<JSONWebKeySet> {
  try {
    return readKeySet(parseKeyFile(await readFile(path, 'utf8')), 'the file');
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const problem = code === undefined ? `cannot be used: ${message}` : `cannot be read from ${path}: ${code}`;
    throw new OptionError('/jwksFile', problem, 'It holds a JWK set, one JWK, or a public key in PEM.');
  }
}

/** The address of the keys in a discovery document that is the issuer's own (OpenID Connect Discovery, section 4.3). */
async function discover(url: URL, issuer: string): Promise<URL> {
  const document = (await fetchJson(url)) as { issuer?: unknown; jwks_uri?: unknown } | null;
  if (document?.issuer !== issuer) {
    throw new Error(`${url.href} belongs to the issuer ${JSON.stringify(document?.issuer)}, not to ${issuer}`);
  }
  const jwksUri = typeof document.jwks_uri === 'string' ? parseSafeUrl(document.jwks_uri) : undefined;
  if (!jwksUri) throw new Error(`${url.href} has no jwks_uri that is an https URL`);
  return jwksUri;
}

function parseKeyFile(text: string): unknown {
  if (text.includes('-----BEGIN PUBLIC KEY-----')) {
    return { keys: [createPublicKey(text).export({ format: 'jwk' })] };
  }
  const value = JSON.parse(text) as { keys?: unknown };
  return Array.isArray(value.keys) ? value : { keys: [value] };
}

/** The keys that may verify a signature. Others (symmetric, private, for encryption, too short) are left out. */
function readKeySet(value: unknown, source: string): JSONWebKeySet {
  const keys = (value as { keys?: unknown } | null)?.keys;
  if (!Array.isArray(keys)) throw new Error(`${source} holds no JWK set`);
  if (keys.length > MAX_KEYS) throw new Error(`${source} holds ${keys.length} keys, and at most ${MAX_KEYS} are taken`);
  const usable = keys.filter(isUsable);
  if (usable.length === 0) throw new Error(`${source} holds no key that can verify a signature`);
  return { keys: usable };
}

function isUsable(key: unknown): key is JWK {
  if (typeof key !== 'object' || key === null) return false;
  const { kty, use, d, n } = key as JWK;
  if (d !== undefined || (use !== undefined && use !== 'sig')) return false;
  if (kty === 'RSA') return typeof n === 'string' && n.length >= MIN_RSA_LENGTH;
  return kty === 'EC' || kty === 'OKP';
}
