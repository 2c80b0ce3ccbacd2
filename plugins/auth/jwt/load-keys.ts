import { createPublicKey } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { JSONWebKeySet } from 'jose';
import { OptionError } from '../../../core/index.ts';
import { fetchDiscovery, readEndpoint } from '../kit/discovery.ts';
import { fetchJson } from '../kit/fetch-json.ts';
import { readKeySet } from '../kit/verify-jwt.ts';
import type { KeyOrigin } from './options.ts';

/** Reads the public keys from where they are; throws an Error for the log when that cannot be done. */
export async function loadKeys(origin: Exclude<KeyOrigin, { kind: 'secret' }>): Promise<JSONWebKeySet> {
  if (origin.kind === 'file') return readKeyFile(origin.path);
  const url = origin.kind === 'jwks' ? origin.url : await discover(origin);
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

async function discover({ url, issuer }: Extract<KeyOrigin, { kind: 'discovery' }>): Promise<URL> {
  return readEndpoint(url, await fetchDiscovery(url, issuer), 'jwks_uri');
}

function parseKeyFile(text: string): unknown {
  if (text.includes('-----BEGIN PUBLIC KEY-----')) {
    return { keys: [createPublicKey(text).export({ format: 'jwk' })] };
  }
  const value = JSON.parse(text) as { keys?: unknown };
  return Array.isArray(value.keys) ? value : { keys: [value] };
}
