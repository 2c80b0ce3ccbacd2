import { createHash, createPrivateKey, type KeyObject, randomUUID, X509Certificate } from 'node:crypto';
import path from 'node:path';
import type { Credential, PluginApi } from '../../../../contract/index.ts';
import { OptionError } from '../../../../contract/index.ts';
import {
  createRenewed,
  fetchCredential,
  fetchDated,
  type Lease,
  readSecretFile,
  readToken,
  tokenCredential,
} from './renewed.ts';

/**
 * Tokens of Microsoft Entra in place of a key. They are obtained by a secret, a certificate, a token of another
 * identity provider (workload identity), or the managed identity of the machine. Sources, all of learn.microsoft.com:
 * entra/identity-platform/v2-oauth2-client-creds-grant-flow, entra/identity-platform/certificate-credentials,
 * entra/identity/managed-identities-azure-resources/how-to-use-vm-token, azure/app-service/overview-managed-identity.
 */
export interface EntraOptions {
  readonly tenant?: string;
  readonly clientId?: string;
  readonly clientSecret?: string;
  readonly certificate?: string;
  readonly tokenFile?: string;
  readonly managedIdentity?: boolean;
  readonly scope?: string;
  readonly authority?: string;
  readonly identityEndpoint?: string;
  readonly identityHeader?: string;
}

const AUTHORITY = 'https://login.microsoftonline.com';
const SCOPE = 'https://cognitiveservices.azure.com/.default';
/** Metadata service of Azure machines, reachable only from them. */
const MACHINE = 'http://169.254.169.254/metadata/identity/oauth2/token';

/** Token sources, for a plugin's `hosts`. */
export const ENTRA_HOSTS: readonly string[] = Object.freeze([new URL(AUTHORITY).host, new URL(MACHINE).host]);

const TEXT = { type: 'string', minLength: 1 } as const;

/** Option `entra` of a provider. */
export const ENTRA_OPTION = Object.freeze({
  type: 'object',
  additionalProperties: false,
  description:
    'Signs in to Microsoft Entra instead of an API key. Needs `tenant`, `clientId` and one of `clientSecret`, `certificate` and `tokenFile`; or `managedIdentity`.',
  properties: {
    tenant: { ...TEXT, pattern: '^[A-Za-z0-9.-]{1,253}$', description: 'Id or domain of the directory.' },
    clientId: {
      ...TEXT,
      description: 'Id of the application; with `managedIdentity`, id of a user-assigned identity.',
    },
    clientSecret: { ...TEXT, secret: true, description: 'Secret of the application.' },
    certificate: {
      ...TEXT,
      secret: true,
      description: 'Certificate of the application and its private key as PEM, usually `$' + '{file:…}`.',
    },
    tokenFile: {
      ...TEXT,
      format: 'path',
      description:
        'File with a token of another identity provider (workload identity), read for each sign-in: `$' +
        '{AZURE_FEDERATED_TOKEN_FILE}` on Kubernetes.',
    },
    managedIdentity: { type: 'boolean', description: 'Uses the identity of the machine that the gateway runs on.' },
    scope: { ...TEXT, default: SCOPE, description: 'Scope of the token.' },
    authority: {
      ...TEXT,
      format: 'url',
      default: AUTHORITY,
      description: 'URL of the directory; sovereign clouds have their own, such as `https://login.microsoftonline.us`.',
    },
    identityEndpoint: {
      ...TEXT,
      format: 'url',
      description:
        'URL of the managed identity service if it is not the machine’s: `$' +
        '{IDENTITY_ENDPOINT}` of App Service and Container Apps.',
    },
    identityHeader: {
      ...TEXT,
      secret: true,
      description: 'Value of its header `X-IDENTITY-HEADER`: `$' + '{IDENTITY_HEADER}`.',
    },
  },
} as const);

/** Credential of the application. */
type Proof =
  | { readonly kind: 'secret'; readonly secret: string }
  | { readonly kind: 'certificate'; readonly certificate: X509Certificate; readonly key: KeyObject }
  | { readonly kind: 'file'; readonly file: string }
  | { readonly kind: 'machine' };

/** Configured credential; throws an {@link OptionError} for incompatible options. Reads no file. */
export function readEntra(options: EntraOptions): Proof {
  const { clientSecret, certificate, tokenFile, managedIdentity } = options;
  const given = Object.entries({ clientSecret, certificate, tokenFile, managedIdentity: managedIdentity || undefined })
    .filter(([, value]) => value !== undefined)
    .map(([name]) => name);
  const ways = '`clientSecret`, `certificate`, `tokenFile` and `managedIdentity`';
  if (given.length !== 1)
    throw new OptionError(
      '/entra',
      given.length === 0 ? `needs one of ${ways}` : `has ${given.join(' and ')}`,
      given.length === 0 ? 'A reference to an unset variable counts as missing.' : `Keep only one of ${ways}.`,
    );
  if (managedIdentity === true) return { kind: 'machine' };
  for (const name of ['tenant', 'clientId'] as const)
    if (options[name] === undefined)
      throw new OptionError('/entra', `needs \`${name}\``, 'Both are on the overview of the application in Entra.');
  if (clientSecret !== undefined) return { kind: 'secret', secret: clientSecret };
  if (certificate !== undefined) return { kind: 'certificate', ...readCertificate(certificate) };
  return { kind: 'file', file: tokenFile ?? '' };
}

function readCertificate(pem: string): { readonly certificate: X509Certificate; readonly key: KeyObject } {
  const parts = (() => {
    try {
      return { certificate: new X509Certificate(pem), key: createPrivateKey(pem) };
    } catch {
      // OpenSSL's message may contain part of it.
      return undefined;
    }
  })();
  const at = '/entra/certificate';
  if (!parts)
    throw new OptionError(
      at,
      'is not a certificate and its private key',
      'Put both as PEM into one file and set a reference to it.',
    );
  if (!parts.certificate.checkPrivateKey(parts.key))
    throw new OptionError(
      at,
      'has a private key of another certificate',
      'Use the private key that belongs to the certificate.',
    );
  if (parts.key.asymmetricKeyType !== 'rsa')
    throw new OptionError(at, 'has a key that is not RSA', 'Entra accepts RSA keys only.');
  return parts;
}

/** Credential of a provider by Entra tokens, which are sent only to the provider's host. */
export function entraCredential(api: Pick<PluginApi, 'http' | 'log' | 'settings'>, options: EntraOptions): Credential {
  const proof = readEntra(options);
  const requestToken = proof.kind === 'machine' ? fetchOfMachine : fetchOfDirectory;
  return tokenCredential(
    createRenewed({
      what: 'the token of Microsoft Entra',
      fetch: () => requestToken(api, options, proof),
      log: api.log,
    }),
  );
}

type Api = Pick<PluginApi, 'http' | 'settings'>;

async function fetchOfDirectory(api: Api, options: EntraOptions, proof: Proof): Promise<Lease<string>> {
  const { tenant = '', clientId = '', scope = SCOPE, authority = AUTHORITY } = options;
  const url = `${authority.replace(/\/+$/, '')}/${tenant}/oauth2/v2.0/token`;
  const body = await fetchCredential(api.http, {
    who: 'Microsoft Entra',
    url,
    form: { grant_type: 'client_credentials', client_id: clientId, scope, ...(await prove(api, proof, clientId, url)) },
  });
  return readToken(body, 'Microsoft Entra', Date.now());
}

const ASSERTION = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

async function prove(api: Api, proof: Proof, clientId: string, url: string): Promise<Readonly<Record<string, string>>> {
  if (proof.kind === 'secret') return { client_secret: proof.secret };
  if (proof.kind === 'certificate')
    return { client_assertion_type: ASSERTION, client_assertion: await signAssertion(proof, clientId, url) };
  if (proof.kind === 'machine') return {};
  const file = path.resolve(api.settings.baseDir, proof.file);
  const token = await readSecretFile(file, 'the file of entra.tokenFile');
  return { client_assertion_type: ASSERTION, client_assertion: token };
}

async function signAssertion(
  { certificate, key }: Extract<Proof, { kind: 'certificate' }>,
  clientId: string,
  url: string,
): Promise<string> {
  const { SignJWT } = await import('jose');
  const thumbprint = createHash('sha256').update(certificate.raw).digest('base64url');
  return new SignJWT()
    .setProtectedHeader({ alg: 'PS256', typ: 'JWT', 'x5t#S256': thumbprint })
    .setAudience(url)
    .setIssuer(clientId)
    .setSubject(clientId)
    .setJti(randomUUID())
    .setIssuedAt()
    .setNotBefore('0s')
    .setExpirationTime('5m')
    .sign(key);
}

async function fetchOfMachine(api: Api, options: EntraOptions): Promise<Lease<string>> {
  const { clientId, scope = SCOPE, identityEndpoint, identityHeader } = options;
  const url = new URL(identityEndpoint ?? MACHINE);
  url.searchParams.set('api-version', identityHeader === undefined ? '2018-02-01' : '2019-08-01');
  url.searchParams.set('resource', scope.replace(/\/?\.default$/, ''));
  if (clientId !== undefined) url.searchParams.set('client_id', clientId);
  const { body, clockMs } = await fetchDated(api.http, {
    who: 'the managed identity',
    url: url.href,
    headers: identityHeader === undefined ? { metadata: 'true' } : { 'x-identity-header': identityHeader },
  });
  // App Service returns the expiry time of a token, not its lifetime.
  const { expires_in = (Number(body['expires_on']) * 1000 - clockMs) / 1000 } = body;
  return readToken({ ...body, expires_in }, 'the managed identity', Date.now());
}
