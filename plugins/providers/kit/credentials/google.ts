import { createPrivateKey, type KeyObject } from 'node:crypto';
import path from 'node:path';
import type { Credential, PluginApi } from '../../../../contract/index.ts';
import { isObject, OptionError, parseJson, readString } from '../../../../contract/index.ts';
import { createRenewed, fetchCredential, type Lease, readSecretFile, readToken, tokenCredential } from './renewed.ts';

/** Option `google` of a provider: tokens of Google Cloud in place of a key. */
export interface GoogleOptions {
  readonly serviceAccount?: string;
  readonly audience?: string;
  readonly tokenFile?: string;
  readonly metadata?: boolean;
  readonly tokenUrl?: string;
  readonly stsUrl?: string;
}

const TOKEN_URL = 'https://oauth2.googleapis.com/token';
const STS_URL = 'https://sts.googleapis.com/v1/token';
/** Metadata service of Google machines, reachable only from them. By IP address: a proxy would not resolve the name. */
const MACHINE = 'http://169.254.169.254/computeMetadata/v1/instance/service-accounts/default/token';
const SCOPE = 'https://www.googleapis.com/auth/cloud-platform';

const TEXT = { type: 'string', minLength: 1 } as const;

export const GOOGLE_OPTION = Object.freeze({
  type: 'object',
  additionalProperties: false,
  description:
    'Signs in to Google Cloud instead of an API key. Needs one of: `serviceAccount`, `tokenFile` with `audience`, `metadata`.',
  properties: {
    serviceAccount: {
      ...TEXT,
      secret: true,
      description: 'JSON key file of a service account: `$' + '{file:…}`.',
    },
    audience: {
      ...TEXT,
      description:
        'Provider of a workload identity pool: `//iam.googleapis.com/projects/…/locations/global/workloadIdentityPools/…/providers/…`.',
    },
    tokenFile: {
      ...TEXT,
      format: 'path',
      description: 'File with a token of the identity provider that the pool trusts, read for each sign-in.',
    },
    metadata: { type: 'boolean', description: 'Uses the service account of the machine that the gateway runs on.' },
    tokenUrl: { ...TEXT, format: 'url', default: TOKEN_URL, description: 'Token URL of service accounts.' },
    stsUrl: { ...TEXT, format: 'url', default: STS_URL, description: 'Token URL of workload identity pools.' },
  },
} as const);

type Proof =
  | { readonly kind: 'account'; readonly email: string; readonly keyId: string | undefined; readonly key: KeyObject }
  | { readonly kind: 'pool'; readonly audience: string; readonly file: string }
  | { readonly kind: 'machine' };

/** Configured credential; throws an {@link OptionError} for incompatible options. Reads no file. */
export function readGoogle({ serviceAccount, audience, tokenFile, metadata }: GoogleOptions): Proof {
  const given = Object.entries({ serviceAccount, tokenFile, metadata: metadata || undefined })
    .filter(([, value]) => value !== undefined)
    .map(([name]) => name);
  if (given.length !== 1)
    throw new OptionError(
      '/google',
      given.length === 0 ? 'needs one of `serviceAccount`, `tokenFile` and `metadata`' : `has ${given.join(' and ')}`,
      given.length === 0 ? 'A reference to an unset variable counts as missing.' : 'Keep only one of them.',
    );
  if (metadata === true) return { kind: 'machine' };
  if (serviceAccount !== undefined) return readAccount(serviceAccount);
  if (audience === undefined)
    throw new OptionError('/google', 'needs `audience`', 'Set the pool and provider of the token.');
  return { kind: 'pool', audience, file: tokenFile ?? '' };
}

function readAccount(text: string): Proof {
  const file: unknown = parseJson(text);
  const { client_email: email, private_key: pem, private_key_id: keyId } = isObject(file) ? file : {};
  const key = (() => {
    try {
      return typeof pem === 'string' ? createPrivateKey(pem) : undefined;
    } catch {
      // OpenSSL's message may contain part of it.
      return undefined;
    }
  })();
  if (typeof email === 'string' && key?.asymmetricKeyType === 'rsa')
    return { kind: 'account', email, keyId: readString(keyId), key };
  throw new OptionError(
    '/google/serviceAccount',
    'is not a JSON key of a service account',
    'Set a reference to the key file from Google, which has client_email and private_key.',
  );
}

type Api = Pick<PluginApi, 'http' | 'log'> & { readonly settings: Pick<PluginApi['settings'], 'baseDir'> };

/** Credential of a provider by Google tokens, which are sent only to the provider's host. */
export function googleCredential(api: Api, options: GoogleOptions): Credential {
  const proof = readGoogle(options);
  const what = 'the token of Google Cloud';
  return tokenCredential(createRenewed({ what, fetch: () => fetchToken(api, options, proof), log: api.log }));
}

const WHO = 'Google Cloud';

/**
 * Sources: https://developers.google.com/identity/protocols/oauth2/service-account (JWT bearer),
 * https://cloud.google.com/iam/docs/reference/sts/rest/v1/TopLevel/token, https://cloud.google.com/compute/docs/metadata/querying-metadata
 */
async function fetchToken(
  api: Api,
  { tokenUrl = TOKEN_URL, stsUrl = STS_URL }: GoogleOptions,
  proof: Proof,
): Promise<Lease<string>> {
  if (proof.kind === 'machine') {
    const request = { who: WHO, url: MACHINE, headers: { 'metadata-flavor': 'Google' } };
    return readToken(await fetchCredential(api.http, request), WHO, Date.now());
  }
  if (proof.kind === 'account') {
    const grant = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
    const form = { grant_type: grant, assertion: await signAssertion(proof, tokenUrl) };
    return readToken(await fetchCredential(api.http, { who: WHO, url: tokenUrl, form }), WHO, Date.now());
  }
  const file = path.resolve(api.settings.baseDir, proof.file);
  const token = await readSecretFile(file, 'the file of google.tokenFile');
  const form = {
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    audience: proof.audience,
    scope: SCOPE,
    subject_token: token,
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
  };
  return readToken(await fetchCredential(api.http, { who: WHO, url: stsUrl, form }), WHO, Date.now());
}

async function signAssertion(
  { email, keyId, key }: Extract<Proof, { kind: 'account' }>,
  audience: string,
): Promise<string> {
  const { SignJWT } = await import('jose');
  return new SignJWT({ scope: SCOPE })
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT', ...(keyId !== undefined && { kid: keyId }) })
    .setIssuer(email)
    .setAudience(audience)
    .setIssuedAt()
    .setExpirationTime('1h')
    .sign(key);
}
