import { generateKeyPairSync } from 'node:crypto';
import { expect } from 'chai';
import { loadConfig } from '../../../config/load-config.ts';
import { ConfigError } from '../../../config/problems.ts';
import { connect } from '../../../egress/http-client.ts';
import { makeFolder, removeFolders } from '../../support/folders.ts';
import { startGateway } from '../../support/gateways/gateway.ts';
import { completion, openAiVendor } from '../../support/vendors/openai-vendor.ts';
import { respondWith, startScriptedUpstream } from '../../support/vendors/scripted-upstream.ts';
import { type ScriptedManager, startScriptedManager, versioned } from './scripted-manager.ts';

const ref = (text: string): string => `$\{${text}}`;

describe('managers of secrets', () => {
  let manager: ScriptedManager;
  before(async () => {
    manager = await startScriptedManager();
  });
  after(() => manager.close());
  beforeEach(() => {
    manager.requests.length = 0;
    manager.responses = {};
  });
  afterEach(removeFolders);

  /** Loads a configuration whose provider has the API key `key`. */
  const load = (secrets: object, key: string, files: Record<string, string> = {}) =>
    loadConfig({
      ...{ cwd: makeFolder(files), env: { VAULT_TOKEN: 't-1' }, connect },
      config: { secrets, auth: {}, providers: { openai: { apiKey: key } } },
    });
  const keyOf = async (...given: Parameters<typeof load>): Promise<unknown> =>
    (await load(...given)).config.instances.find(({ name }) => name === 'openai')?.config['apiKey'];
  const problemOf = async (...given: Parameters<typeof load>): Promise<string> => {
    const error = await load(...given).catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(ConfigError);
    return (error as ConfigError).message;
  };
  const vault = () => ({ vault: { address: manager.url, token: ref('VAULT_TOKEN') } });

  it('E68: provide a provider’s key before any call, and show it nowhere', async () => {
    const vendor = await startScriptedUpstream(respondWith(200, completion('hi')));
    manager.responses['GET /v1/secret/data/openai'] = () => [200, versioned({ key: 'sk-of-the-vault-1234' })];
    const gateway = await startGateway(
      {
        secrets: { vault: { address: manager.url, token: ref('VAULT_TOKEN') } },
        providers: { main: { ...openAiVendor(vendor), apiKey: ref('vault:secret/data/openai#key') } },
      },
      { env: { VAULT_TOKEN: 't-1' } },
    );
    try {
      const response = await gateway.post('/v1/chat/completions', {
        ...{ model: 'main/m', messages: [{ role: 'user', content: 'Hi' }] },
      });
      expect(response.status).to.equal(200);
      expect(vendor.requests[0]?.headers['authorization']).to.equal('Bearer sk-of-the-vault-1234');
      expect(gateway.logText()).not.to.include('sk-of-the-vault');
    } finally {
      await gateway.stop();
      await vendor.close();
    }
  });

  it('E68: hide their secrets in output, also if no schema marks them as secret', async () => {
    manager.responses['GET /v1/kv/gate'] = () => [
      200,
      { lease_id: '', lease_duration: 2764800, data: { host: 'gate-internal', port: 8443 } },
    ];
    const { config } = await loadConfig({
      ...{ cwd: makeFolder(), env: { VAULT_TOKEN: 't-1' }, connect },
      config: { secrets: vault(), auth: {}, server: { host: ref('vault:kv/gate#host') }, providers: { echo: {} } },
    });
    expect(config.server.host).to.equal('gate-internal');
    expect(JSON.stringify(config.printable())).not.to.include('gate-internal');
    expect(config.sources.get('/server/host')).to.equal('secret vault:kv/gate#host');
  });

  it('E68: are not called without a reference', async () => {
    expect(await keyOf(vault(), 'sk-plain')).to.equal('sk-plain');
    expect(manager.requests).to.deep.equal([]);
  });

  describe('vault', () => {
    it('E68: signs in by AppRole and Kubernetes, in a namespace, and reads a path once for all of its fields', async () => {
      manager.responses = {
        'POST /v1/auth/approle/login': () => [200, { auth: { client_token: 't-2', lease_duration: 3600 } }],
        'POST /v1/auth/k8s/login': () => [200, { auth: { client_token: 't-3', lease_duration: 60 } }],
        'GET /v1/db/creds/r': () => [
          200,
          { lease_id: 'db/creds/r/1', lease_duration: 600, data: { username: 'u', password: 'p' } },
        ],
      };
      const both = `${ref('vault:db/creds/r#username')}:${ref('vault:db/creds/r#password')}`;
      const byRole = {
        address: manager.url,
        namespace: 'team',
        appRole: { roleId: 'r', secretId: ref('VAULT_TOKEN') },
      };
      expect(await keyOf({ vault: byRole }, both)).to.equal('u:p');
      expect(manager.requests.map(({ line }) => line)).to.deep.equal([
        'POST /v1/auth/approle/login',
        'GET /v1/db/creds/r',
      ]);
      expect(JSON.parse(manager.requests[0]?.body ?? '')).to.deep.equal({ role_id: 'r', secret_id: 't-1' });
      expect(manager.requests[1]?.headers).to.include({ 'x-vault-token': 't-2', 'x-vault-namespace': 'team' });
      manager.requests.length = 0;
      const kubernetes = { role: 'gate', mount: 'k8s', tokenFile: 'token' };
      const loaded = await load({ vault: { address: manager.url, kubernetes } }, both, { token: 'jwt-of-the-pod\n' });
      expect(JSON.parse(manager.requests[0]?.body ?? '')).to.deep.equal({ role: 'gate', jwt: 'jwt-of-the-pod' });
      // A dynamic secret ends with its login: renewed after two thirds of a minute.
      expect(loaded.raw.secrets.get('vault:db/creds/r#password')?.againMs).to.equal(40_000);
    });

    it('E68: reports the problem at the place of the reference, without a value', async () => {
      manager.responses = {
        'GET /v1/secret/data/openai': () => [200, versioned({ other: 'sk-secret', list: [] })],
        'GET /v1/secret/data/gone': () => [200, versioned(null)],
        'GET /v1/secret/data/closed': () => [403, { errors: ['1 error occurred:\n\t* permission denied\n'] }],
        'GET /v1/secret/openai': () => [
          404,
          { errors: [], warnings: ['Invalid path for a versioned K/V secrets engine.'] },
        ],
      };
      const cases: readonly (readonly [string, string])[] = [
        ['vault:secret/data/openai#key', 'has no field "key"; its fields are other, list'],
        ['vault:secret/data/openai#list', 'its field "list" is not text'],
        ['vault:secret/data/openai', 'use path#field'],
        ['vault:secret/data/gone#key', 'its latest version was deleted'],
        ['vault:secret/data/closed#key', 'status 403: 1 error occurred'],
        ['vault:secret/openai#key', 'Invalid path for a versioned'],
        ['vault:../sys/seal#key', 'an invalid path'],
        [
          'vualt:secret/data/openai#key',
          'needs the secret manager "vualt", which is not under "secrets"; did you mean "vault"?',
        ],
      ];
      for (const [text, words] of cases) {
        const problem = await problemOf(vault(), ref(text));
        expect(problem, text).to.include(words).and.to.include('providers.openai.apiKey');
        expect(problem, text).not.to.include('sk-secret').and.not.to.include('t-1');
      }
    });

    it('E68: reports that it is unreachable, and problems of its own options @slow', async () => {
      const away = await problemOf({ vault: { address: 'http://127.0.0.1:9', token: 'x' } }, ref('vault:a/b#c'));
      // Node 24 sometimes reports a refused connection with another code than Node 20.
      expect(away).to.match(/Vault cannot be reached \((ECONNREFUSED|ERR_SOCKET_CLOSED_BEFORE_CONNECTION)\)/);
      const two = { address: manager.url, token: 'x', kubernetes: { role: 'r' } };
      expect(await problemOf({ vault: two }, ref('vault:a/b#c'))).to.include('has token and kubernetes');
      const wrong = await problemOf({ vault: { address: manager.url, tokn: 'x' } }, ref('vault:a/b#c'));
      expect(wrong).to.include('secrets.vault.tokn').and.to.include('whose own configuration has an error');
    });
  });

  describe('aws-sm', () => {
    const options = (more: object = {}) => {
      const aws = { region: 'eu-west-1', accessKeyId: 'AKID', secretAccessKey: ref('VAULT_TOKEN') };
      return { 'aws-sm': { endpoint: manager.url, aws, ...more } };
    };

    it('E68: reads texts, fields and bytes by requests that are signed for it', async () => {
      const texts: Record<string, object> = {
        'prod/openai': { SecretString: '{"key":"sk-1"}' },
        'arn:aws:secretsmanager:eu-west-1:1:secret:x': { SecretBinary: Buffer.from('sk-2').toString('base64') },
      };
      manager.responses['POST /'] = ({ body }) => [
        200,
        texts[(JSON.parse(body) as { SecretId: string }).SecretId] ?? {},
      ];
      expect(await keyOf(options(), ref('aws-sm:prod/openai#key'))).to.equal('sk-1');
      expect(await keyOf(options(), ref('aws-sm:arn:aws:secretsmanager:eu-west-1:1:secret:x'))).to.equal('sk-2');
      const headers = manager.requests[0]?.headers;
      expect(headers).to.include({
        'x-amz-target': 'secretsmanager.GetSecretValue',
        'content-type': 'application/x-amz-json-1.1',
      });
      expect(headers?.authorization).to.match(
        /^AWS4-HMAC-SHA256 Credential=AKID\/\d{8}\/eu-west-1\/secretsmanager\/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-target, Signature=[0-9a-f]{64}$/,
      );
    });

    it('E68: reports the error of AWS, and the existing fields', async () => {
      manager.responses['POST /'] = () => [
        400,
        {
          __type: 'com.amazonaws#ResourceNotFoundException',
          Message: 'Secrets Manager can’t find the specified secret.',
        },
      ];
      expect(await problemOf(options(), ref('aws-sm:none'))).to.include(
        'status 400: ResourceNotFoundException: Secrets',
      );
      manager.responses['POST /'] = () => [200, { SecretString: 'sk-plain-text' }];
      const problem = await problemOf(options(), ref('aws-sm:one#key'));
      expect(problem).to.include('not a JSON object').and.not.to.include('sk-plain');
    });
  });

  describe('gcp-sm', () => {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' });
    const account = JSON.stringify({ client_email: 'gate@p.example', private_key: pem, private_key_id: 'k' });
    const options = () => ({
      'gcp-sm': {
        endpoint: manager.url,
        google: { serviceAccount: ref('file:account.json'), tokenUrl: `${manager.url}/token` },
      },
    });
    const files = { 'account.json': account };
    beforeEach(() => {
      manager.responses['POST /token'] = () => [200, { access_token: 'ya29', expires_in: 3600 }];
    });

    it('E68: reads the latest version, or the one that is named, with the token of a service account', async () => {
      const payload = (text: string) => ({ payload: { data: Buffer.from(text).toString('base64') } });
      manager.responses['GET /v1/projects/p/secrets/s/versions/latest:access'] = () => [200, payload('{"key":"sk-1"}')];
      manager.responses['GET /v1/projects/p/secrets/s/versions/3:access'] = () => [200, payload('sk-3')];
      expect(await keyOf(options(), ref('gcp-sm:projects/p/secrets/s#key'), files)).to.equal('sk-1');
      expect(await keyOf(options(), ref('gcp-sm:projects/p/secrets/s/versions/3'), files)).to.equal('sk-3');
      expect(manager.requests[1]?.headers.authorization).to.equal('Bearer ya29');
    });

    it('E68: reports the error of Google', async () => {
      const line = 'GET /v1/projects/p/secrets/s/versions/latest:access';
      manager.responses[line] = () => [403, { error: { message: 'Permission denied on resource.' } }];
      const problem = await problemOf(options(), ref('gcp-sm:projects/p/secrets/s'), files);
      expect(problem).to.include('status 403: Permission denied on resource.').and.not.to.include('ya29');
      expect(await problemOf(options(), ref('gcp-sm:s'), files)).to.include('projects/p/secrets/name');
    });
  });
});
