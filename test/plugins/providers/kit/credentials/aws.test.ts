// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are the texts that a configuration holds.
import { expect } from 'chai';
import { signV4 } from '../../../../../plugins/providers/kit/index.ts';
import { startGateway, type TestGateway } from '../../../../support/gateways/gateway.ts';
import { completion, openAiVendor } from '../../../../support/vendors/openai-vendor.ts';
import {
  type RecordedRequest,
  respondWith,
  type ScriptedUpstream,
  startScriptedUpstream,
} from '../../../../support/vendors/scripted-upstream.ts';

/**
 * Cases of AWS's own test suite for Signature Version 4 (`aws4_testsuite`, in botocore and the SDKs) whose headers can
 * be sent. Key AKIDEXAMPLE, region us-east-1, service `service`, 2015-08-30T12:36:00Z.
 */
const KEYS = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' };
const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
const SUITE: readonly (readonly [
  name: string,
  request: string,
  headers: Readonly<Record<string, string>>,
  signed: string,
  signature: string,
])[] = [
  ['get-vanilla', 'GET /', {}, 'host;x-amz-date', '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31'],
  [
    'get-header-value-trim',
    'GET /',
    { 'my-header1': '  value1', 'my-header2': '"a   b   c"' },
    'host;my-header1;my-header2;x-amz-date',
    'acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736',
  ],
  [
    'get-header-key-duplicate',
    'GET /',
    { 'my-header1': 'value2,value2,value1' },
    'host;my-header1;x-amz-date',
    'c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea',
  ],
  [
    'get-vanilla-query-order-key-case',
    'GET /?Param2=value2&Param1=value1',
    {},
    'host;x-amz-date',
    'b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500',
  ],
  ['get-utf8', 'GET /ሴ', {}, 'host;x-amz-date', '8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85'],
  [
    'get-vanilla-query',
    'GET /',
    {},
    'host;x-amz-date',
    '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31',
  ],
  [
    'get-unreserved',
    'GET /-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz',
    {},
    'host;x-amz-date',
    '07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f',
  ],
  [
    'get-vanilla-query-unreserved',
    'GET /?-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz=-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz',
    {},
    'host;x-amz-date',
    '9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197',
  ],
  [
    'get-vanilla-query-order-key',
    'GET /?Param1=value2&Param1=Value1',
    {},
    'host;x-amz-date',
    'eedbc4e291e521cf13422ffca22be7d2eb8146eecf653089df300a15b2382bd1',
  ],
  [
    'get-vanilla-query-order-value',
    'GET /?Param1=value2&Param1=value1',
    {},
    'host;x-amz-date',
    '5772eed61e12b33fae39ee5e7012498b51d56abc0abb7c60486157bd471c4694',
  ],
  [
    'get-vanilla-utf8-query',
    'GET /?ሴ=bar',
    {},
    'host;x-amz-date',
    '2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04',
  ],
  [
    'post-header-key-sort',
    'POST /',
    { 'my-header1': 'value1' },
    'host;my-header1;x-amz-date',
    'c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c',
  ],
  [
    'post-header-value-case',
    'POST /',
    { 'my-header1': 'VALUE1' },
    'host;my-header1;x-amz-date',
    'cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d',
  ],
  [
    'post-vanilla-query',
    'POST /?Param1=value1',
    {},
    'host;x-amz-date',
    '28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11',
  ],
  [
    'post-x-www-form-urlencoded-parameters',
    'POST / Param1=value1',
    { 'content-type': 'application/x-www-form-urlencoded; charset=utf8' },
    'content-type;host;x-amz-date',
    '1a72ec8f64bd914b0e42e42607c7fbce7fb2c7465f63e3092b3b0d39fa77a6fe',
  ],
  ['post-vanilla', 'POST /', {}, 'host;x-amz-date', '5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b'],
  [
    'post-x-www-form-urlencoded',
    'POST / Param1=value1',
    FORM,
    'content-type;host;x-amz-date',
    'ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a',
  ],
];

describe('AWS Signature Version 4', () => {
  const now = new Date('2015-08-30T12:36:00Z');
  const scope = { region: 'us-east-1', service: 'service' };

  for (const [name, line, headers, signed, signature] of SUITE)
    it(`E68: is as AWS has it for ${name}`, () => {
      const [method = '', path = '', body = null] = line.split(' ');
      const url = `https://example.amazonaws.com${path}`;
      expect(signV4({ method, url, headers, body }, KEYS, scope, now)).to.deep.equal({
        authorization: `AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=${signed}, Signature=${signature}`,
        'x-amz-date': '20150830T123600Z',
      });
    });

  it('E68: signs the token of keys that end, too', () => {
    const request = { method: 'GET', url: 'https://example.amazonaws.com/', headers: {}, body: null };
    const made = signV4(request, { ...KEYS, sessionToken: 'session' }, scope, now);
    expect(made['x-amz-security-token']).to.equal('session');
    expect(made['authorization']).to.include('SignedHeaders=host;x-amz-date;x-amz-security-token,');
  });

  it('E68: omits headers that proxies may change, and encodes an encoded path again', () => {
    const at = (path: string, headers = {}) =>
      signV4({ method: 'POST', url: `https://h.example${path}`, headers, body: '{}' }, KEYS, scope, now)[
        'authorization'
      ];
    expect(at('/a', { 'user-agent': 'x', traceparent: 'y', 'accept-encoding': 'identity' })).to.equal(at('/a'));
    expect(at('/model/a%3A0')).to.not.equal(at('/model/a:0'));
  });
});

describe('a vendor at AWS, without its own key', () => {
  let vendor: ScriptedUpstream;
  let place: ScriptedUpstream;
  let gateway: TestGateway | undefined;

  beforeEach(async () => {
    vendor = await startScriptedUpstream(respondWith(200, completion()));
    place = await startScriptedUpstream();
  });
  afterEach(async () => {
    await gateway?.stop();
    gateway = undefined;
    await vendor.close();
    await place.close();
  });

  const start = async (
    aws: object,
    files: Readonly<Record<string, string>> = {},
    plugin = 'openai-compatible',
    env: Readonly<Record<string, string>> = {},
  ) => {
    const { apiKey: _apiKey, ...own } = openAiVendor({ url: `${vendor.url}/openai/v1` });
    gateway = await startGateway(
      { providers: { bedrock: { ...own, plugin, aws: { region: 'eu-west-1', ...aws } } } },
      { files, env },
    );
    return gateway;
  };
  const chat = async (): Promise<number> =>
    (
      await (gateway ?? expect.fail()).post('/v1/chat/completions', {
        ...{ model: 'bedrock/openai.gpt-oss-120b', messages: [{ role: 'user', content: 'Grüße' }] },
      })
    ).status;
  /** Checks a signature as AWS does: over the received bytes. */
  const isSigned = (
    { method, path, headers, body }: RecordedRequest,
    keys: typeof KEYS & { sessionToken?: string },
  ) => {
    const { authorization = '', 'x-amz-date': time = '' } = headers;
    const signed = /SignedHeaders=([^,]+)/.exec(authorization)?.[1]?.split(';') ?? [];
    const own = signed.filter((name) => !/^(host|x-amz-date|x-amz-security-token)$/.test(name));
    const now = new Date(time.replace(/^(....)(..)(..T..)(..)(..Z)$/, '$1-$2-$3:$4:$5'));
    const request = {
      method,
      url: vendor.url + path,
      headers: Object.fromEntries(own.map((name) => [name, headers[name] ?? ''])),
      body,
    };
    return signV4(request, keys, { region: 'eu-west-1', service: 'bedrock' }, now)['authorization'] === authorization;
  };

  it('E68: gets requests with a signature over the received bytes', async () => {
    await start({ accessKeyId: KEYS.accessKeyId, secretAccessKey: KEYS.secretAccessKey });
    expect(await chat()).to.equal(200);
    const [request] = vendor.requests;
    expect(request && isSigned(request, KEYS)).to.equal(true);
    expect(request && isSigned({ ...request, body: Buffer.from('{}') }, KEYS)).to.equal(false);
    expect(request?.headers['authorization']).to.include('SignedHeaders=content-type;host;x-amz-date');
    expect(gateway?.logText()).not.to.include(KEYS.secretAccessKey);
  });

  it('E68: that refuses a request for its time gets it signed by its own clock, once', async () => {
    const ahead = new Date(Date.now() + 3_600_000);
    const headers = { date: ahead.toUTCString(), 'x-amzn-errortype': 'InvalidSignatureException' };
    const late = respondWith(403, { message: 'Signature expired' }, headers);
    vendor.script(late, respondWith(200, completion()), respondWith(200, completion()), late);
    await start({ accessKeyId: KEYS.accessKeyId, secretAccessKey: KEYS.secretAccessKey });
    expect([await chat(), await chat()]).to.deep.equal([200, 200]);
    const times = vendor.requests.map(({ headers }) => headers['x-amz-date'] ?? '');
    const hour = (time: Date): string => time.toISOString().replace(/[-:]/g, '').slice(0, 11);
    expect(times.map((time) => time.slice(0, 11))).to.deep.equal([hour(new Date()), hour(ahead), hour(ahead)]);
    expect(await chat()).to.be.within(500, 599);
    expect(vendor.requests).to.have.length(4);
  });

  it('E68: is signed for by the keys of a role, which a container is given', async () => {
    const keys = { ...KEYS, sessionToken: 'session-1' };
    place.script(
      respondWith(200, {
        ...{ AccessKeyId: keys.accessKeyId, SecretAccessKey: keys.secretAccessKey, Token: keys.sessionToken },
        Expiration: new Date(Date.now() + 3_600_000).toISOString(),
      }),
    );
    await start({ containerUri: `${place.url}/v1/credentials`, containerTokenFile: 'pod' }, { pod: 'pod-token\n' });
    expect([await chat(), await chat()]).to.deep.equal([200, 200]);
    expect(place.requests.map(({ path, headers }) => [path, headers['authorization']])).to.deep.equal([
      ['/v1/credentials', 'pod-token'],
    ]);
    for (const request of vendor.requests) {
      expect(request.headers['x-amz-security-token']).to.equal('session-1');
      expect(isSigned(request, keys)).to.equal(true);
    }
  });

  it('E68: is signed for by the key of the environment, as the configuration names it', async () => {
    const env = {
      ...{ AWS_ACCESS_KEY_ID: KEYS.accessKeyId, AWS_SECRET_ACCESS_KEY: KEYS.secretAccessKey },
      AWS_SESSION_TOKEN: 'session-3',
    };
    const names = { accessKeyId: '${AWS_ACCESS_KEY_ID}', secretAccessKey: '${AWS_SECRET_ACCESS_KEY}' };
    await start({ ...names, sessionToken: '${AWS_SESSION_TOKEN}' }, {}, 'openai-compatible', env);
    expect(await chat()).to.equal(200);
    const [request] = vendor.requests;
    expect(request?.headers['x-amz-security-token']).to.equal('session-3');
    expect(request && isSigned(request, { ...KEYS, sessionToken: 'session-3' })).to.equal(true);
  });

  it('E68: uses a profile of ~/.aws/credentials, and the log reports a missing one', async () => {
    const home = process.env['HOME'];
    const file = `[default]\naws_access_key_id = other\n\n[work]\n# of the team\naws_access_key_id = ${KEYS.accessKeyId}\naws_secret_access_key=${KEYS.secretAccessKey}\naws_session_token = session-4\n`;
    try {
      const running = await start({ profile: 'work' }, { '.aws/credentials': file });
      process.env['HOME'] = running.folder;
      expect(await chat()).to.equal(200);
      const [request] = vendor.requests;
      expect(request && isSigned(request, { ...KEYS, sessionToken: 'session-4' })).to.equal(true);
      await running.stop();
      const none = await start({ profile: 'home' }, { '.aws/credentials': file });
      process.env['HOME'] = none.folder;
      expect(await chat()).to.be.within(500, 599);
      expect(none.logText()).to.include('has no profile home with a key').and.not.include(KEYS.secretAccessKey);
      expect(vendor.requests).to.have.length(1);
    } finally {
      process.env['HOME'] = home;
    }
  });

  it('E68: uses the keys of a role obtained with another provider’s token', async () => {
    place.script(
      respondWith(
        200,
        `<AssumeRoleWithWebIdentityResponse><Credentials><SessionToken>session-2</SessionToken><SecretAccessKey>${KEYS.secretAccessKey}</SecretAccessKey><Expiration>2099-01-01T00:00:00Z</Expiration><AccessKeyId>${KEYS.accessKeyId}</AccessKeyId></Credentials></AssumeRoleWithWebIdentityResponse>`,
      ),
    );
    const roleArn = 'arn:aws:iam::123456789012:role/tollgate';
    await start({ roleArn, webIdentityTokenFile: 'token', sts: place.url }, { token: 'jwt-1' });
    expect(await chat()).to.equal(200);
    expect(Object.fromEntries(new URLSearchParams(String(place.requests[0]?.body)))).to.deep.equal({
      ...{ Action: 'AssumeRoleWithWebIdentity', Version: '2011-06-15', RoleArn: roleArn },
      ...{ RoleSessionName: 'tollgate', WebIdentityToken: 'jwt-1' },
    });
    expect(vendor.requests[0]?.headers['x-amz-security-token']).to.equal('session-2');
  });

  it('E68: without keys is not called, and the log has the reason', async () => {
    place.script(
      respondWith(
        403,
        '<ErrorResponse><Error><Message>Not authorized to perform sts</Message></Error></ErrorResponse>',
      ),
    );
    await start({ roleArn: 'arn:x', webIdentityTokenFile: 'token', sts: place.url }, { token: 'jwt-1' });
    expect(await chat()).to.be.within(500, 599);
    expect(vendor.requests).to.have.length(0);
    expect(gateway?.logText()).to.include('Not authorized to perform sts').and.not.include('jwt-1');
  });

  it('E68: has Claude on its own wire by the plugin anthropic', async () => {
    await start({ accessKeyId: KEYS.accessKeyId, secretAccessKey: KEYS.secretAccessKey }, {}, 'anthropic');
    await chat();
    const [request] = vendor.requests;
    expect(request?.path).to.match(/\/v1\/messages$/);
    expect(request?.headers).to.not.have.property('x-api-key');
    expect(request && isSigned(request, KEYS)).to.equal(true);
  });

  for (const [title, aws, problem] of [
    ['none of the ways', {}, 'needs one of accessKeyId, profile, webIdentityTokenFile, containerUri, instanceRole'],
    ['two of them', { profile: 'x', instanceRole: true }, 'has profile and instanceRole'],
    ['half a key', { accessKeyId: 'A' }, 'needs `secretAccessKey`'],
    ['a token without a role', { webIdentityTokenFile: 'token' }, 'needs `roleArn`'],
  ] as const)
    it(`E68: is refused with ${title}`, async () => {
      const message = await start(aws).then(String, (error: Error) => error.message);
      expect(message).to.include('providers.bedrock.aws').and.include(problem);
    });
});
