import { createHash, createHmac } from 'node:crypto';
import os from 'node:os';
import path from 'node:path';
import type {
  Credential,
  CredentialHeaders,
  CredentialRequest,
  JsonObject,
  PluginApi,
} from '../../../../contract/index.ts';
import { OptionError, readString } from '../../../../contract/index.ts';
import {
  createRenewed,
  type Dated,
  failed,
  fetchDated,
  fetchText,
  type Lease,
  type Renewed,
  readSecretFile,
} from './renewed.ts';

/** Keys that sign requests to AWS. */
export interface AwsKeys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
}

interface Scope {
  readonly region: string;
  readonly service: string;
}

/** Headers that a proxy may change, or that the client sets later. */
const UNSIGNED: ReadonlySet<string> = new Set(
  'accept-encoding authorization connection content-length expect keep-alive te traceparent tracestate trailer transfer-encoding upgrade user-agent'.split(
    ' ',
  ),
);

/**
 * Headers that sign a request with AWS Signature Version 4: `authorization`, `x-amz-date`, `x-amz-security-token`.
 * Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
 */
export function signV4(
  request: CredentialRequest,
  keys: AwsKeys,
  { region, service }: Scope,
  now: Date,
): CredentialHeaders {
  const time = now.toISOString().replace(/[-:]|\.\d+/g, '');
  const day = time.slice(0, 8);
  const token = keys.sessionToken === undefined ? {} : { 'x-amz-security-token': keys.sessionToken };
  const [, host = '', target = '/'] = /^https?:\/\/([^/?]+)(.*)$/.exec(request.url) ?? [];
  const [uri = '/', query = ''] = target.split(/\?(.*)/s);
  const headers = Object.entries({ ...request.headers, host, 'x-amz-date': time, ...token })
    .filter(([name]) => !UNSIGNED.has(name))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const names = headers.map(([name]) => name).join(';');
  const canonical = [
    request.method,
    (uri || '/').split('/').map(encode).join('/'),
    canonicalQuery(query),
    ...headers.map(([name, value]) => `${name}:${value.trim().replace(/ +/g, ' ')}`),
    '',
    names,
    sha256(request.body ?? ''),
  ].join('\n');
  const scope = `${day}/${region}/${service}/aws4_request`;
  const text = `AWS4-HMAC-SHA256\n${time}\n${scope}\n${sha256(canonical)}`;
  const signature = createHmac('sha256', signingKey(keys, day, region, service))
    .update(text)
    .digest('hex');
  const authorization = `AWS4-HMAC-SHA256 Credential=${keys.accessKeyId}/${scope}, SignedHeaders=${names}, Signature=${signature}`;
  return { authorization, 'x-amz-date': time, ...token };
}

function sha256(text: string | Uint8Array): string {
  return createHash('sha256').update(text).digest('hex');
}

/**
 * Encodes by RFC 3986: all characters except letters, digits, `-`, `.`, `_` and `~`. An encoded path is encoded once
 * more, as AWS requires.
 */
function encode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function canonicalQuery(query: string): string {
  if (query === '') return '';
  return query
    .split('&')
    .map((pair) => {
      const [name = '', value = ''] = pair.split(/=(.*)/s);
      return [encode(decodeURIComponent(name)), encode(decodeURIComponent(value))] as const;
    })
    .sort(([a, x], [b, y]) => (a < b ? -1 : a > b ? 1 : x < y ? -1 : 1))
    .map(([name, value]) => `${name}=${value}`)
    .join('&');
}

/** Last derived key, by its source keys: it is valid for a day, and deriving it is half of the work. */
const derived = new WeakMap<AwsKeys, { readonly of: string; readonly key: Buffer }>();

function signingKey(keys: AwsKeys, ...parts: readonly string[]): Buffer {
  const of = parts.join('/');
  const known = derived.get(keys);
  if (known?.of === of) return known.key;
  let key: Buffer = Buffer.from(`AWS4${keys.secretAccessKey}`);
  for (const part of [...parts, 'aws4_request']) key = createHmac('sha256', key).update(part).digest();
  derived.set(keys, { of, key });
  return key;
}

/** Option `aws` of a provider. */
export interface AwsOptions {
  readonly region?: string;
  readonly service?: string;
  readonly accessKeyId?: string;
  readonly secretAccessKey?: string;
  readonly sessionToken?: string;
  readonly profile?: string;
  readonly sts?: string;
  readonly roleArn?: string;
  readonly webIdentityTokenFile?: string;
  readonly containerUri?: string;
  readonly containerTokenFile?: string;
  readonly instanceRole?: boolean;
}

const TEXT = { type: 'string', minLength: 1 } as const;
const reference = (name: string): string => `\`$\{${name}}\``;

const STS = 'https://sts.amazonaws.com';

export const AWS_OPTION = Object.freeze({
  type: 'object',
  additionalProperties: false,
  required: ['region'],
  description:
    'Signs requests with AWS Signature Version 4 instead of an API key. Needs one of: `accessKeyId`, `profile`, `webIdentityTokenFile`, `containerUri`, `instanceRole`.',
  properties: {
    region: { ...TEXT, pattern: '^[a-z0-9-]{1,40}$', description: 'AWS region, such as `us-east-1`.' },
    service: {
      ...TEXT,
      pattern: '^[a-z0-9-]{1,60}$',
      description:
        'Service name in the signature. Default: `bedrock`, or `bedrock-mantle` if the address begins with it.',
    },
    accessKeyId: { ...TEXT, secret: true, description: `Id of the access key: ${reference('AWS_ACCESS_KEY_ID')}.` },
    secretAccessKey: {
      ...TEXT,
      secret: true,
      description: `Secret access key: ${reference('AWS_SECRET_ACCESS_KEY')}.`,
    },
    sessionToken: {
      ...TEXT,
      secret: true,
      description: `Session token of a temporary key: ${reference('AWS_SESSION_TOKEN')}.`,
    },
    profile: {
      ...TEXT,
      description: 'Profile with a key in `~/.aws/credentials`. The file is read again every five minutes.',
    },
    roleArn: {
      ...TEXT,
      description: `Role to assume with the web identity token: ${reference('AWS_ROLE_ARN')}.`,
    },
    webIdentityTokenFile: {
      ...TEXT,
      format: 'path',
      description: `File of the web identity token, read for each sign-in: ${reference('AWS_WEB_IDENTITY_TOKEN_FILE')} on Kubernetes (IRSA).`,
    },
    sts: {
      ...TEXT,
      format: 'url',
      default: STS,
      description: 'URL of AWS STS; a regional one is `https://sts.eu-west-1.amazonaws.com`.',
    },
    containerUri: {
      ...TEXT,
      format: 'url',
      description: `URL of the container’s credentials: ${reference('AWS_CONTAINER_CREDENTIALS_FULL_URI')} on EKS, \`http://169.254.170.2$\{AWS_CONTAINER_CREDENTIALS_RELATIVE_URI}\` on ECS.`,
    },
    containerTokenFile: {
      ...TEXT,
      format: 'path',
      description: `File of the authorization token for \`containerUri\`: ${reference('AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE')}.`,
    },
    instanceRole: { type: 'boolean', description: 'Uses the role of the EC2 instance that the gateway runs on.' },
  },
} as const);

/** Metadata service of AWS machines, reachable only from them. */
const MACHINE = 'http://169.254.169.254';

/** Throws an {@link OptionError} for incompatible options. Reads no file. */
export function readAws(options: AwsOptions, apiKey?: unknown): void {
  if (apiKey !== undefined) throw new OptionError('/aws', 'cannot be combined with `apiKey`', 'Remove one of them.');
  const { accessKeyId, secretAccessKey, profile, roleArn, webIdentityTokenFile, containerUri, instanceRole } = options;
  const ways = { accessKeyId, profile, webIdentityTokenFile, containerUri, instanceRole: instanceRole || undefined };
  const given = Object.entries(ways).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  const all = Object.keys(ways).join(', ');
  if (given.length === 0)
    throw new OptionError('/aws', `needs one of ${all}`, 'A reference to an unset variable counts as missing.');
  if (given.length > 1) throw new OptionError('/aws', `has ${given.join(' and ')}`, `Keep only one of ${all}.`);
  if (accessKeyId !== undefined && secretAccessKey === undefined)
    throw new OptionError('/aws', 'needs `secretAccessKey`', 'Set the secret of this access key.');
  if (webIdentityTokenFile !== undefined && roleArn === undefined)
    throw new OptionError('/aws', 'needs `roleArn`', 'Set the role to assume with the token.');
}

type Api = Pick<PluginApi, 'http' | 'log'> & { readonly settings: Pick<PluginApi['settings'], 'baseDir'> };

/** Source of machine credentials, for a plugin's `hosts`; other sources are options. */
export const AWS_HOSTS: readonly string[] = Object.freeze([new URL(MACHINE).host]);

/** Maximum clock skew before AWS rejects signatures, with a margin: AWS allows five minutes. */
const MAX_SKEW_MS = 240_000;

/**
 * Signs each request. If AWS rejects a request for its time, the clock is corrected by AWS's. Expiring keys are
 * renewed ahead of time.
 */
export function awsCredential(
  api: Api,
  options: AwsOptions,
  baseUrl: string,
  now: () => number = Date.now,
): Credential {
  readAws(options);
  const { host } = new URL(baseUrl);
  const service = options.service ?? (host.startsWith('bedrock-mantle.') ? 'bedrock-mantle' : 'bedrock');
  const scope = { region: options.region ?? '', service };
  const keys = keysOf(api, options);
  let skewMs = 0;
  const sign = (request: CredentialRequest, own: AwsKeys): CredentialHeaders =>
    signV4(request, own, scope, new Date(now() + skewMs));
  return {
    header: 'authorization',
    value: undefined,
    required: false,
    headers(request) {
      const own = keys.get();
      return own instanceof Promise ? own.then((made) => sign(request, made)) : sign(request, own);
    },
    refused(status, { date = '' }) {
      if (status !== 403 && status !== 401 && status !== 400) return false;
      const offMs = Date.parse(date) - now();
      if (Math.abs(offMs - skewMs) > MAX_SKEW_MS) {
        skewMs = offMs;
        return true;
      }
      return status !== 400 && keys.forget();
    },
  };
}

function keysOf(api: Api, options: AwsOptions): Renewed<AwsKeys> {
  const { accessKeyId, secretAccessKey, sessionToken, profile } = options;
  if (accessKeyId !== undefined && secretAccessKey !== undefined) {
    const keys = Object.freeze({ accessKeyId, secretAccessKey, sessionToken });
    return { get: () => keys, forget: () => false };
  }
  const fetch = (): Promise<Lease<AwsKeys>> =>
    profile !== undefined
      ? readProfile(profile)
      : options.webIdentityTokenFile !== undefined
        ? assumeRole(api, options)
        : options.containerUri !== undefined
          ? fetchOfContainer(api, options)
          : fetchOfMachine(api);
  return createRenewed({ what: 'the keys of AWS', fetch, log: api.log });
}

/** Cache lifetime of a profile. */
const PROFILE_MS = 300_000;

async function readProfile(profile: string): Promise<Lease<AwsKeys>> {
  const text = await readSecretFile(path.join(os.homedir(), '.aws', 'credentials'), 'the file ~/.aws/credentials');
  const values = new Map<string, string>();
  let section: string | undefined;
  for (const line of text.split(/\r?\n/)) {
    section = /^\s*\[\s*(?:profile\s+)?([^\]]+?)\s*\]/.exec(line)?.[1] ?? section;
    const [, name, value] = /^\s*(aws_\w+)\s*=\s*(\S+)\s*$/.exec(line) ?? [];
    if (section === profile && name !== undefined && value !== undefined) values.set(name, value);
  }
  const [accessKeyId, secretAccessKey] = [values.get('aws_access_key_id'), values.get('aws_secret_access_key')];
  if (accessKeyId === undefined || secretAccessKey === undefined)
    throw failed(
      'authentication',
      `~/.aws/credentials has no profile ${profile} with a key; profiles with a role or \`credential_process\` are not supported`,
    );
  const keys = { accessKeyId, secretAccessKey, sessionToken: values.get('aws_session_token') };
  return { value: keys, endsAt: Date.now() + PROFILE_MS };
}

/** Source: https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html */
async function assumeRole(
  api: Api,
  { sts = STS, roleArn = '', webIdentityTokenFile = '' }: AwsOptions,
): Promise<Lease<AwsKeys>> {
  const file = path.resolve(api.settings.baseDir, webIdentityTokenFile);
  const token = await readSecretFile(file, 'the file of aws.webIdentityTokenFile');
  const { body: text, clockMs } = await fetchText(api.http, {
    who: 'AWS STS',
    url: sts,
    form: {
      Action: 'AssumeRoleWithWebIdentity',
      Version: '2011-06-15',
      RoleArn: roleArn,
      RoleSessionName: 'tollgate',
      WebIdentityToken: token,
    },
  });
  const read = (name: string): string | undefined => new RegExp(`<${name}>([^<]+)</${name}>`).exec(text)?.[1];
  const body = {
    AccessKeyId: read('AccessKeyId'),
    SecretAccessKey: read('SecretAccessKey'),
    Token: read('SessionToken'),
    Expiration: read('Expiration'),
  };
  return readKeys('AWS STS', { body, clockMs });
}

/** Source: https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html */
async function fetchOfContainer(
  api: Api,
  { containerUri = '', containerTokenFile }: AwsOptions,
): Promise<Lease<AwsKeys>> {
  const file = containerTokenFile === undefined ? undefined : path.resolve(api.settings.baseDir, containerTokenFile);
  const token = file === undefined ? undefined : await readSecretFile(file, 'the file of aws.containerTokenFile');
  const request = {
    who: 'the container',
    url: containerUri,
    ...(token !== undefined && { headers: { authorization: token } }),
  };
  return readKeys('the container', await fetchDated(api.http, request));
}

/** Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html (IMDSv2) */
async function fetchOfMachine(api: Api): Promise<Lease<AwsKeys>> {
  const who = 'the EC2 instance';
  const ttl = { 'x-aws-ec2-metadata-token-ttl-seconds': '60' };
  const token = await fetchText(api.http, { who, url: `${MACHINE}/latest/api/token`, method: 'PUT', headers: ttl });
  const headers = { 'x-aws-ec2-metadata-token': token.body };
  const url = `${MACHINE}/latest/meta-data/iam/security-credentials/`;
  const [role = ''] = (await fetchText(api.http, { who, url, headers })).body.split('\n');
  return readKeys(who, await fetchDated(api.http, { who, url: `${url}${encodeURIComponent(role.trim())}`, headers }));
}

function readKeys(who: string, { body, clockMs }: Dated<JsonObject>): Lease<AwsKeys> {
  const { AccessKeyId, SecretAccessKey, Token, Expiration } = body;
  const [accessKeyId, secretAccessKey] = [readString(AccessKeyId), readString(SecretAccessKey)];
  // This time is on the server's clock.
  const endsAt = Date.now() + Date.parse(readString(Expiration) ?? '') - clockMs;
  if (!accessKeyId || !secretAccessKey || Number.isNaN(endsAt))
    throw failed('upstream_error', `${who} returned no keys`);
  return { value: { accessKeyId, secretAccessKey, sessionToken: readString(Token) }, endsAt };
}
