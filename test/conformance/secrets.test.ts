import awsSm from '../../plugins/secrets/aws-sm.ts';
import gcpSm from '../../plugins/secrets/gcp-sm.ts';
import vault from '../../plugins/secrets/vault.ts';
import { type SecretsKit, testSecrets } from './index.ts';

const SECRET = 'secret-of-the-gateway-0123456789';
const TEXT = 'sk-of-the-manager-0123456789';
const NONE = { status: 404, body: { errors: [], message: 'Not found.' } };

const ofVault: SecretsKit['respond'] = ({ url }) =>
  url.endsWith('/login')
    ? { body: { auth: { client_token: 'hvs.of-the-login', lease_duration: 3600 } } }
    : url.endsWith('/v1/secret/data/openai')
      ? { body: { lease_id: '', data: { data: { key: TEXT }, metadata: { version: 1 } } } }
      : NONE;

for (const way of [{ token: SECRET }, { appRole: { roleId: 'gateway', secretId: SECRET } }])
  testSecrets({
    plugin: vault,
    config: { address: 'https://vault.example:8200', ...way },
    respond: ofVault,
    right: [{ name: 'secret/data/openai#key', text: TEXT }],
    missing: ['secret/data/openai#other', 'secret/data/none#key', 'secret/data/openai'],
    secrets: [SECRET, 'hvs.of-the-login'],
  });

testSecrets({
  plugin: awsSm,
  config: { aws: { region: 'eu-west-1', accessKeyId: 'AKIDEXAMPLE', secretAccessKey: SECRET } },
  respond: ({ body }) =>
    (JSON.parse(body) as { SecretId?: unknown }).SecretId === 'prod/openai'
      ? { body: { SecretString: `{"key":"${TEXT}"}` } }
      : { status: 400, body: { __type: 'ResourceNotFoundException', Message: 'Not found.' } },
  right: [{ name: 'prod/openai#key', text: TEXT }],
  missing: ['prod/openai#other', 'prod/none'],
  secrets: [SECRET],
});

testSecrets({
  plugin: gcpSm,
  config: { google: { metadata: true } },
  respond: ({ url }) =>
    url.includes('/computeMetadata/')
      ? { body: { access_token: SECRET, expires_in: 3600 } }
      : url.endsWith('/v1/projects/acme/secrets/openai/versions/latest:access')
        ? { body: { payload: { data: Buffer.from(TEXT).toString('base64') } } }
        : NONE,
  right: [{ name: 'projects/acme/secrets/openai', text: TEXT }],
  missing: ['projects/acme/secrets/openai#key', 'projects/acme/secrets/none', 'openai'],
  secrets: [SECRET],
});
