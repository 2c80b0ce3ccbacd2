// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are the texts that a configuration holds.
import { X509Certificate } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect } from 'chai';
import { decodeProtectedHeader, jwtVerify } from 'jose';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { createSelfSigned } from '../support/identity/self-signed.ts';
import { completion, delta } from '../support/vendors/openai-vendor.ts';
import {
  respondWith,
  type ScriptedUpstream,
  sse,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';
import { wholeBody } from '../support/vendors/vendor-wires.ts';

const SECRET = 'entra-secret-0123456789';
const rsa = createSelfSigned({ isRsa: true });

describe('azure with Microsoft Entra instead of a key', () => {
  let directory: ScriptedUpstream;
  let vendor: ScriptedUpstream;
  let gateway: TestGateway | undefined;

  const token = (value: string) => respondWith(200, { token_type: 'Bearer', expires_in: 3599, access_token: value });
  const start = async (entra: object, files: Readonly<Record<string, string>> = {}): Promise<TestGateway> => {
    gateway = await startGateway(
      { providers: { azure: { baseUrl: `${vendor.url}/openai/v1`, entra: { authority: directory.url, ...entra } } } },
      { files },
    );
    return gateway;
  };
  const chat = (rest: object = {}) =>
    (gateway ?? expect.fail()).post('/v1/chat/completions', {
      ...{ model: 'azure/gpt-4o', messages: [{ role: 'user', content: 'hi' }], ...rest },
    });
  const sentBy = (request: number): string | undefined => vendor.requests[request]?.headers['authorization'];

  beforeEach(async () => {
    directory = await startScriptedUpstream(token('t-1'));
    vendor = await startScriptedUpstream(respondWith(200, completion()));
  });
  afterEach(async () => {
    await gateway?.stop();
    gateway = undefined;
    await directory.close();
    await vendor.close();
  });

  it('E68: requests a token once, and sends it and no key to the vendor, with and without a stream', async () => {
    await start({ tenant: 'acme', clientId: 'app-1', clientSecret: SECRET });
    const both = await Promise.all([chat(), chat()]);
    expect(both.map(({ status }) => status)).to.deep.equal([200, 200]);
    vendor.script(sse(delta('hello', 'stop'), '[DONE]'));
    expect(await (await chat({ stream: true })).text()).to.include('hello');
    expect(directory.requests).to.have.length(1);
    expect(directory.requests[0]?.path).to.equal('/acme/oauth2/v2.0/token');
    expect(Object.fromEntries(new URLSearchParams(String(directory.requests[0]?.body)))).to.deep.equal({
      grant_type: 'client_credentials',
      client_id: 'app-1',
      client_secret: SECRET,
      scope: 'https://cognitiveservices.azure.com/.default',
    });
    expect([0, 1, 2].map(sentBy)).to.deep.equal(['Bearer t-1', 'Bearer t-1', 'Bearer t-1']);
    expect(vendor.requests.some(({ headers }) => 'api-key' in headers)).to.equal(false);
    expect(gateway?.logText()).not.to.include(SECRET).and.not.include('t-1');
  });

  it('E68: signs in for Claude in Microsoft Foundry too, in Anthropic’s format', async () => {
    vendor.script(respondWith(200, wholeBody('anthropic', { pieces: [{ text: 'Hello' }] })));
    const entra = { authority: directory.url, tenant: 'acme', clientId: 'app-1', clientSecret: SECRET };
    const foundry = { plugin: 'anthropic', baseUrl: `${vendor.url}/anthropic`, entra };
    gateway = await startGateway({ providers: { foundry } });
    const response = await chat({ model: 'foundry/claude-opus-5' });
    expect(await response.text()).to.include('Hello');
    const [sent] = vendor.requests;
    expect([sent?.path, sent?.headers['authorization']]).to.deep.equal(['/anthropic/v1/messages', 'Bearer t-1']);
    expect(sent?.headers).to.not.have.property('x-api-key');
  });

  it('E68: authenticates by a certificate, as documented by Microsoft', async () => {
    await start(
      { tenant: 'acme', clientId: 'app-1', certificate: '${file:entra.pem}' },
      { 'entra.pem': rsa.cert + rsa.key },
    );
    expect((await chat()).status).to.equal(200);
    const form = new URLSearchParams(String(directory.requests[0]?.body));
    expect(form.get('client_assertion_type')).to.equal('urn:ietf:params:oauth:client-assertion-type:jwt-bearer');
    const assertion = form.get('client_assertion') ?? '';
    const certificate = new X509Certificate(rsa.cert);
    const { payload } = await jwtVerify(assertion, certificate.publicKey, {
      audience: `${directory.url}/acme/oauth2/v2.0/token`,
      issuer: 'app-1',
      subject: 'app-1',
      algorithms: ['PS256'],
    });
    expect((payload.exp ?? 0) - (payload.iat ?? 0)).to.equal(300);
    const thumbprint = Buffer.from(certificate.fingerprint256.replaceAll(':', ''), 'hex').toString('base64url');
    expect(decodeProtectedHeader(assertion)).to.include({ typ: 'JWT', 'x5t#S256': thumbprint });
  });

  it('E68: reads the token of a workload from its file at sign-in', async () => {
    const { folder } = await start({ tenant: 'acme', clientId: 'app-1', tokenFile: 'token' });
    await writeFile(path.join(folder, 'token'), 'federated\n');
    expect((await chat()).status).to.equal(200);
    expect(new URLSearchParams(String(directory.requests[0]?.body)).get('client_assertion')).to.equal('federated');
  });

  it('E68: uses the identity of the machine', async () => {
    const end = Math.floor(Date.now() / 1000) + 3600;
    directory.script(respondWith(200, { access_token: 't-2', expires_on: String(end) }));
    const identityEndpoint = `${directory.url}/msi/token`;
    await start({ managedIdentity: true, clientId: 'user-assigned', identityEndpoint, identityHeader: 'header-1' });
    expect((await chat()).status).to.equal(200);
    const [request] = directory.requests;
    expect([request?.method, request?.path]).to.deep.equal([
      'GET',
      '/msi/token?api-version=2019-08-01&resource=https%3A%2F%2Fcognitiveservices.azure.com&client_id=user-assigned',
    ]);
    expect(request?.headers['x-identity-header']).to.equal('header-1');
    expect(sentBy(0)).to.equal('Bearer t-2');
  });

  it('E68: reports to callers that the provider refuses, and logs the reason, if the secret has expired', async () => {
    const why = 'AADSTS7000222: The provided client secret keys for app are expired.';
    directory.script(respondWith(401, { error: 'invalid_client', error_description: why }));
    await start({ tenant: 'acme', clientId: 'app-1', clientSecret: SECRET });
    const response = await chat();
    expect(response.status).to.be.within(500, 599);
    expect(await response.text()).not.to.include('AADSTS');
    expect(gateway?.logText()).to.include(why).and.not.include(SECRET);
    expect(vendor.requests).to.have.length(0);
  });

  it('E68: sends no key to a directory outside the configuration, and follows no redirect', async () => {
    const other = await startScriptedUpstream(token('t-1'));
    directory.script(respondWith(307, '', { location: `${other.url}/acme/oauth2/v2.0/token` }));
    await start({ tenant: 'acme', clientId: 'app-1', clientSecret: SECRET });
    expect((await chat()).status).to.be.within(500, 599);
    expect(other.requests).to.have.length(0);
    await other.close();
  });

  for (const [title, options, problem] of [
    ['none of the ways', { tenant: 'a', clientId: 'b' }, 'needs one of'],
    [
      'two ways',
      { tenant: 'a', clientId: 'b', clientSecret: 'x', managedIdentity: true },
      'has clientSecret and managedIdentity',
    ],
    ['no tenant', { clientId: 'b', clientSecret: 'x' }, 'needs `tenant`'],
    ['no certificate', { tenant: 'a', clientId: 'b', certificate: 'x' }, 'is not a certificate and its private key'],
    [
      'the key of another certificate',
      { tenant: 'a', clientId: 'b', certificate: rsa.cert + createSelfSigned({ isRsa: true }).key },
      'has a private key of another certificate',
    ],
    [
      'a key that Entra does not take',
      { tenant: 'a', clientId: 'b', certificate: Object.values(createSelfSigned()).join('') },
      'has a key that is not RSA',
    ],
  ] as const)
    it(`E68: refuses a configuration with ${title}`, async () => {
      const message = await start(options).then(
        () => 'it started',
        (error: Error) => error.message,
      );
      expect(message).to.include('providers.azure.entra').and.include(problem);
    });

  it('E68: refuses a key in addition to it', async () => {
    const own = { baseUrl: vendor.url, apiKey: 'k-0123456789', entra: { managedIdentity: true } };
    const message = await startGateway({ providers: { azure: own } }).then(String, (error: Error) => error.message);
    expect(message).to.include('cannot be combined with `apiKey`');
  });
});
