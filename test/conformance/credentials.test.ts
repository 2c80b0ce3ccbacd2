import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {
  type AwsOptions,
  awsCredential,
  type EntraOptions,
  entraCredential,
  type GoogleOptions,
  googleCredential,
} from '../../plugins/providers/kit/index.ts';
import { createSelfSigned } from '../support/identity/self-signed.ts';
import { type CredentialKit, testCredential } from './index.ts';

const SECRET = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY';
const TOKEN = 'jwt-of-the-workload-0123456789';
const folder = mkdtempSync(path.join(os.tmpdir(), 'tollgate-credentials-'));
const tokenFile = path.join(folder, 'token');
writeFileSync(tokenFile, `${TOKEN}\n`);
after(() => rmSync(folder, { recursive: true }));

/** `20150830T123600Z` of `x-amz-date`. */
const signedAt: CredentialKit['signedAt'] = (headers) =>
  Date.parse((headers['x-amz-date'] ?? '').replace(/^(....)(..)(..T..)(..)(..Z)$/, '$1-$2-$3:$4:$5'));

const isoOf = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
const keysOf: CredentialKit['issue'] = (_request, { mark, endsAt }) => ({
  body: { AccessKeyId: 'ASIAEXAMPLE', SecretAccessKey: SECRET, Token: mark, Expiration: isoOf(endsAt) },
});

const aws = (name: string, options: AwsOptions, rest: Partial<CredentialKit> = {}): void =>
  testCredential({
    name: `aws, by ${name}`,
    open: (api) => awsCredential(api, { region: 'eu-west-1', ...options }, 'https://vendor.example'),
    ...{ secrets: [SECRET, TOKEN], signedAt, issue: keysOf, ...rest },
  });

testCredential({
  name: 'aws, by a key',
  open: (api) =>
    awsCredential(
      api,
      { region: 'eu-west-1', accessKeyId: 'AKIDEXAMPLE', secretAccessKey: SECRET },
      'https://vendor.example',
    ),
  ...{ secrets: [SECRET], signedAt },
});
aws('the role of a container', { containerUri: 'http://169.254.170.2/v2/credentials', containerTokenFile: tokenFile });
aws(
  'the token of another provider',
  { roleArn: 'arn:aws:iam::123456789012:role/tollgate', webIdentityTokenFile: tokenFile },
  {
    issue: (_request, { mark, endsAt }) => ({
      headers: { 'content-type': 'text/xml' },
      body: `<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>ASIAEXAMPLE</AccessKeyId><SecretAccessKey>${SECRET}</SecretAccessKey><SessionToken>${mark}</SessionToken><Expiration>${isoOf(endsAt)}</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`,
    }),
    refusal: {
      status: 400,
      body: '<ErrorResponse><Error><Code>ExpiredTokenException</Code><Message>Token expired</Message></Error></ErrorResponse>',
    },
  },
);
aws(
  'the role of the instance',
  { instanceRole: true },
  {
    issue: (request, issued) =>
      request.method === 'PUT'
        ? { body: 'token-of-the-machine' }
        : request.url.endsWith('/security-credentials/')
          ? { body: 'gateway-role\n' }
          : (keysOf?.(request, issued) ?? { body: '' }),
  },
);

/** Format of the token endpoints of Google and Entra. */
const token: CredentialKit['issue'] = (_request, { mark, seconds }) => ({
  body: { token_type: 'Bearer', access_token: mark, expires_in: seconds },
});

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const serviceAccount = JSON.stringify({ client_email: 'tollgate@acme.iam.gserviceaccount.com', private_key: pem });
const google = (name: string, options: GoogleOptions, secrets: readonly string[]): void =>
  testCredential({
    name: `google, by ${name}`,
    open: (api) => googleCredential(api, options),
    ...{ issue: token, secrets, refusal: { status: 400, body: { error: 'invalid_grant' } } },
  });

google('a service account', { serviceAccount }, [pem]);
google('a pool of workload identities', { audience: '//iam.googleapis.com/projects/1', tokenFile }, [TOKEN]);
google('the machine', { metadata: true }, []);

const rsa = createSelfSigned({ isRsa: true });
const entra = (name: string, options: EntraOptions, secrets: readonly string[], issue = token): void =>
  testCredential({
    name: `entra, by ${name}`,
    open: (api) => entraCredential(api, options),
    ...{ issue, secrets },
  });
const app = { tenant: 'acme', clientId: 'app-1' };

entra('a secret', { ...app, clientSecret: SECRET }, [SECRET]);
entra('a certificate', { ...app, certificate: rsa.cert + rsa.key }, [rsa.key]);
entra('the token of a workload', { ...app, tokenFile }, [TOKEN]);
entra('the machine', { managedIdentity: true }, []);
entra(
  'the identity of App Service',
  { managedIdentity: true, identityEndpoint: 'http://127.0.0.1:41741/msi/token', identityHeader: SECRET },
  [SECRET],
  (_request, { mark, endsAt }) => ({
    body: { access_token: mark, expires_on: String(Math.floor(endsAt / 1000)), token_type: 'Bearer' },
  }),
);
