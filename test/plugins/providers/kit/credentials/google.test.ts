// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are the texts that a configuration holds.
import { generateKeyPairSync } from 'node:crypto';
import { expect } from 'chai';
import { jwtVerify } from 'jose';
import { startGateway, type TestGateway } from '../../../../support/gateways/gateway.ts';
import { completion, openAiVendor } from '../../../../support/vendors/openai-vendor.ts';
import {
  respondWith,
  type ScriptedUpstream,
  startScriptedUpstream,
} from '../../../../support/vendors/scripted-upstream.ts';

const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const ACCOUNT = JSON.stringify({
  type: 'service_account',
  client_email: 'tollgate@acme.iam.gserviceaccount.com',
  private_key_id: 'key-1',
  private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
  token_uri: 'https://elsewhere.example/token',
});

describe('a vendor at Google Cloud, without a key', () => {
  let vendor: ScriptedUpstream;
  let place: ScriptedUpstream;
  let gateway: TestGateway | undefined;

  beforeEach(async () => {
    vendor = await startScriptedUpstream(respondWith(200, completion()));
    place = await startScriptedUpstream(respondWith(200, { access_token: 'ya29.token-1', expires_in: 3599 }));
  });
  afterEach(async () => {
    await gateway?.stop();
    gateway = undefined;
    await vendor.close();
    await place.close();
  });

  const start = async (google: object, files: Readonly<Record<string, string>> = {}): Promise<void> => {
    const { apiKey: _apiKey, ...own } = openAiVendor({ url: `${vendor.url}/v1/projects/acme` });
    gateway = await startGateway({ providers: { vertex: { ...own, google } } }, { files });
  };
  const chat = async (): Promise<number> => {
    const body = { model: 'vertex/google/gemini-2.5-pro', messages: [{ role: 'user', content: 'hi' }] };
    return (await (gateway ?? expect.fail()).post('/v1/chat/completions', body)).status;
  };
  const form = () => Object.fromEntries(new URLSearchParams(String(place.requests[0]?.body)));

  it('E68: gets the tokens of a service account, whose key signs for them, and the address in its file counts for nothing', async () => {
    await start(
      { serviceAccount: '${file:account.json}', tokenUrl: `${place.url}/token` },
      { 'account.json': ACCOUNT },
    );
    expect([await chat(), await chat()]).to.deep.equal([200, 200]);
    expect(place.requests).to.have.length(1);
    const { grant_type: grant, assertion = '' } = form();
    expect(grant).to.equal('urn:ietf:params:oauth:grant-type:jwt-bearer');
    const { payload, protectedHeader } = await jwtVerify(assertion, publicKey, {
      issuer: 'tollgate@acme.iam.gserviceaccount.com',
      audience: `${place.url}/token`,
      algorithms: ['RS256'],
    });
    expect(payload['scope']).to.equal('https://www.googleapis.com/auth/cloud-platform');
    expect((payload.exp ?? 0) - (payload.iat ?? 0)).to.equal(3600);
    expect(protectedHeader.kid).to.equal('key-1');
    expect(vendor.requests.map(({ headers }) => headers['authorization'])).to.deep.equal([
      'Bearer ya29.token-1',
      'Bearer ya29.token-1',
    ]);
    expect(gateway?.logText()).not.to.include('PRIVATE KEY').and.not.include('ya29.');
  });

  it('E68: gets the tokens of a pool for those of another identity provider', async () => {
    const audience = '//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/k8s';
    await start({ audience, tokenFile: 'token', stsUrl: `${place.url}/v1/token` }, { token: 'jwt-1\n' });
    expect(await chat()).to.equal(200);
    expect(form()).to.deep.equal({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      ...{ audience, scope: 'https://www.googleapis.com/auth/cloud-platform', subject_token: 'jwt-1' },
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    });
  });

  it('E68: is not called if Google returns no token, and the log has the reason', async () => {
    place.script(respondWith(400, { error: 'invalid_grant', error_description: 'Invalid JWT Signature.' }));
    await start({ serviceAccount: ACCOUNT, tokenUrl: place.url });
    expect(await chat()).to.be.within(500, 599);
    expect(vendor.requests).to.have.length(0);
    expect(gateway?.logText()).to.include('invalid_grant: Invalid JWT Signature.').and.not.include('the clock of');
  });

  it('E68: is not called if the clock of the machine is wrong, and the log has the difference', async () => {
    const date = new Date(Date.now() + 7_200_000).toUTCString();
    const error = { error: 'invalid_grant', error_description: 'Invalid JWT: Check your iat and exp values.' };
    place.script(respondWith(400, error, { date }));
    await start({ serviceAccount: ACCOUNT, tokenUrl: place.url });
    expect(await chat()).to.be.within(500, 599);
    expect(vendor.requests).to.have.length(0);
    expect(gateway?.logText()).to.match(
      /Check your iat and exp values\.; the clock of this machine is 7[12]\d\d s behind/,
    );
  });

  for (const [title, google, problem] of [
    ['none of the ways', {}, 'needs one of'],
    ['two of them', { metadata: true, serviceAccount: ACCOUNT }, 'has serviceAccount and metadata'],
    ['a file of no service account', { serviceAccount: '{}' }, 'is not a JSON key of a service account'],
    ['a token without a pool', { tokenFile: 'token' }, 'needs `audience`'],
  ] as const)
    it(`E68: is refused with ${title}`, async () => {
      const message = await start(google).then(String, (error: Error) => error.message);
      expect(message).to.include('providers.vertex.google').and.include(problem);
    });
});
