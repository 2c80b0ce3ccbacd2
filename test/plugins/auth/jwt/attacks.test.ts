import { generateKeyPairSync, sign as signBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { CompactEncrypt, exportJWK, generateKeyPair, SignJWT } from 'jose';
import { GatewayError } from '../../../../contract/index.ts';
import apiKey from '../../../../plugins/auth/api-key/index.ts';
import jwt from '../../../../plugins/auth/jwt/index.ts';
import { openMemory } from '../../../../plugins/stores/memory/index.ts';
import { corpusJson } from '../../../support/corpus.ts';
import { PEPPER } from '../../../support/identity/keys.ts';
import {
  AUDIENCE,
  type Claims,
  createSigner,
  forge,
  goodClaims,
  ISSUER,
  signShared,
  type TestSigner,
} from '../../../support/identity/tokens.ts';
import { type FakeGateway, setUpPlugins } from '../../../support/plugins/fake-gateway.ts';

const SHARED_SECRET = 'bV9xq4Lr7Zt2Kc8Wn5Jf1Hd6Pg3Sy0Ua_Ee-Oo';

/**
 * Recipes of the corpus, each built below under its id (J03 in secrets.slow.test.ts, J21 in key-source.test.ts). Other
 * ids are our own.
 */
const COVERED = ['J01', 'J03', 'J05', 'J07', 'J09', 'J11', 'J13', 'J15', 'J17', 'J19', 'J21', 'J23', 'J25'];

describe('attacks on tokens', () => {
  let folder: string;
  let signer: TestSigner;
  let gateway: FakeGateway;
  let shared: FakeGateway;

  const start = async (config: object) => {
    const store = await openMemory();
    const base = { issuer: ISSUER, audience: AUDIENCE };
    const plugins = [
      { plugin: apiKey, config: { pepper: PEPPER } },
      { plugin: jwt, config: { ...base, ...config } },
    ];
    return setUpPlugins(store, plugins, { settings: { baseDir: folder } });
  };

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tollgate-jwt-'));
    signer = await createSigner('one');
    await writeFile(join(folder, 'keys.json'), JSON.stringify({ keys: [signer.publicJwk] }));
    gateway = await start({ jwksFile: 'keys.json' });
    shared = await start({ secret: SHARED_SECRET });
  });
  after(() => rm(folder, { recursive: true }));

  /** Asserts the constant error on the route that creates keys, and that no key was created. */
  const expectRefused = async (token: string, by = gateway): Promise<void> => {
    const { status, body } = await by.request('POST', '/api/core/api_keys/create', { bearer: token });
    const constant = await by.request('POST', '/api/core/api_keys/create', { bearer: 'a.b.c' });
    expect([status, body.error.code]).to.deep.equal([401, 'invalid_token']);
    expect(body).to.deep.equal(constant.body);
    const list = await by.request('GET', '/api/core/api_keys', { bearer: await goodToken(by) });
    expect(list.body.data).to.deep.equal([]);
  };
  const goodToken = (by: FakeGateway) => (by === shared ? signShared(SHARED_SECRET) : signer.sign());

  it('covers every recipe of the corpus', () => {
    const { cases } = corpusJson('gateway-cases/jwt-attacks.json') as { cases: { id: string }[] };
    expect(cases.map(({ id }) => id)).to.deep.equal(COVERED);
  });

  it('accepts the valid tokens that the attacks start from', async () => {
    expect(await gateway.authenticate(await signer.sign())).to.include({ userId: 'ann', credential: 'token' });
    expect(await shared.authenticate(signShared(SHARED_SECRET))).to.include({ userId: 'ann' });
  });

  for (const alg of ['none', 'None', 'NONE', 'nOnE', '']) {
    it(`J01 refuses the algorithm ${JSON.stringify(alg)}`, async () => {
      await expectRefused(forge({ alg }, goodClaims()));
      await expectRefused(forge({ alg }, goodClaims()), shared);
      const [, payload, signature] = (await signer.sign()).split('.');
      await expectRefused(
        `${Buffer.from(JSON.stringify({ alg, kid: 'one' })).toString('base64url')}.${payload}.${signature}`,
      );
    });
  }

  it('J02 refuses a public key used as a shared secret', async () => {
    for (const secret of [signer.publicPem, signer.publicPem.trim(), JSON.stringify(signer.publicJwk)]) {
      await expectRefused(signShared(secret, {}, { kid: 'one' }));
    }
  });

  it('J05 refuses keys in the token or at its URLs, and requests none of them', async () => {
    const attacker = await createSigner('evil');
    const requests: string[] = [];
    const server = await listen((url) => requests.push(url));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`;
    for (const header of [
      { jwk: attacker.publicJwk },
      { jku: url },
      { x5u: url },
      { x5c: ['MIIB'] },
      { jku: url, kid: 'one' },
    ]) {
      await expectRefused(await attacker.sign({}, header));
    }
    server.close();
    expect(requests).to.deep.equal([]);
  });

  for (const kid of ['../../../../dev/null', "' OR 1=1 --", '', 'one\u0000', '__proto__']) {
    it(`J06 refuses a signature of a strange key under the id ${JSON.stringify(kid)}`, async () => {
      await expectRefused(await (await createSigner(kid)).sign());
    });
  }

  it('J07 refuses unencoded payloads', async () => {
    await expectRefused(await signer.sign({}, { b64: false, crit: ['b64'] }).catch(() => unencoded()));
    await expectRefused(unencoded());
  });

  /** A token that jose does not create: signed, with a header that requests an unencoded payload. */
  const unencoded = (): string => {
    const header = Buffer.from(JSON.stringify({ alg: 'RS256', kid: 'one', b64: false, crit: ['b64'] })).toString(
      'base64url',
    );
    const payload = Buffer.from(JSON.stringify(goodClaims())).toString('base64url');
    const signature = signBytes('sha256', Buffer.from(`${header}.${payload}`), {
      key: signer.privateJwk,
      format: 'jwk',
    } as never);
    return `${header}.${payload}.${signature.toString('base64url')}`;
  };

  it('J08 refuses unknown critical extensions', async () => {
    const header = { alg: 'RS256', kid: 'one', crit: ['x'], x: 1 };
    await expectRefused(signRaw(signer, header, JSON.stringify(goodClaims())));
  });

  const EXPIRIES: readonly (readonly [string, string])[] = [
    ['a text', '"4102444800"'],
    ['a fraction', '4102444800.5'],
    ['infinite', '1e400'],
    ['beyond whole numbers', '1e300'],
    ['negative', '-1'],
    ['zero', '0'],
    ['null', 'null'],
    ['a list', '[4102444800]'],
    ['true', 'true'],
  ];
  for (const [title, exp] of EXPIRIES) {
    it(`J09 refuses an expiry that is ${title}`, async () => {
      const payload = JSON.stringify({ ...goodClaims(), exp: 'EXP' }).replace('"EXP"', exp);
      await expectRefused(signRaw(signer, { alg: 'RS256', kid: 'one', typ: 'at+jwt' }, payload));
    });
  }

  const BAD_CLAIMS: readonly (readonly [string, Claims])[] = [
    ['J09 refuses a token without an expiry', { exp: undefined }],
    ['J09 refuses a token that expired', { exp: Math.floor(Date.now() / 1000) - 31 }],
    ['J10 refuses a token that is not valid yet', { nbf: Math.floor(Date.now() / 1000) + 3600 }],
    ['J11 refuses a token without an audience', { aud: undefined }],
    ['J11 refuses a token for somebody else', { aud: 'other' }],
    ['J11 refuses a token without an audience', { aud: [] }],
    ['J11 refuses an audience that only begins alike', { aud: 'tollgate.evil' }],
    ['J11 refuses an audience in other letters', { aud: 'Tollgate' }],
    ['J11 refuses a token for this gateway and others', { aud: [AUDIENCE, 'other'] }],
    ['J11 refuses an audience that is an object', { aud: { tollgate: true } }],
    ['J12 refuses a token without an issuer', { iss: undefined }],
    ['J12 refuses another issuer', { iss: 'https://evil.example' }],
    ['J12 refuses the issuer with a slash more', { iss: `${ISSUER}/` }],
    ['J12 refuses a list of issuers', { iss: [ISSUER] }],
    ['J13 refuses an ID token', { at_hash: 'x' }],
    ['J13 refuses an ID token of Keycloak', { typ: 'ID' }],
    ['J13 refuses an ID token of Cognito', { token_use: 'id' }],
    ['J13 refuses a logout token', { events: { 'http://schemas.openid.net/event/backchannel-logout': {} } }],
    ['J14 refuses a token without a subject', { sub: undefined }],
    ['J14 refuses an empty subject', { sub: '' }],
    ['J14 refuses a subject that is a number', { sub: 42 }],
    ['J14 refuses a subject with control characters', { sub: 'ann\u0000' }],
    ['J14 refuses a subject with half a character', { sub: 'ann\ud800' }],
    ['J14 refuses a subject longer than 256 characters', { sub: 'a'.repeat(257) }],
  ];
  for (const [title, claims] of BAD_CLAIMS) {
    it(title, async () => expectRefused(await signer.sign(claims)));
  }

  for (const typ of ['logout+jwt', 'id_token', 'dpop+jwt', 'secevent+jwt', 'JOSE', 'application/logout+jwt']) {
    it(`J13 refuses the type ${typ}`, async () => expectRefused(await signer.sign({}, { typ })));
  }

  for (const typ of ['at+jwt', 'AT+JWT', 'application/at+jwt', 'JWT', undefined]) {
    it(`J13 accepts the type ${typ}`, async () => {
      expect(await gateway.authenticate(await signer.sign({}, { typ }))).to.include({ userId: 'ann' });
    });
  }

  for (const typ of ['JWT', undefined])
    it(`J13 refuses an ID token, which has the nonce of a sign-in, of the type ${typ}`, async () =>
      expectRefused(await signer.sign({ nonce: 'n-0S6_WzA2Mj' }, { typ })));

  it('J13 accepts an access token of Keycloak, which repeats the nonce', async () => {
    const token = await signer.sign({ nonce: 'n-0S6_WzA2Mj', typ: 'Bearer' }, { typ: 'JWT' });
    expect(await gateway.authenticate(token)).to.include({ userId: 'ann' });
  });

  it('J15 keeps subjects apart that differ by case or Unicode form only', async () => {
    const subjects = ['ann', 'Ann', 'ann ', '\u00e9', 'e\u0301', '\uff41nn'];
    const users = await Promise.all(
      subjects.map(async (sub) => (await gateway.authenticate(await signer.sign({ sub }))).userId),
    );
    expect(users).to.deep.equal(subjects);
  });

  it('J16 grants no permission for other values', async () => {
    for (const scope of ['', 'keys', 'keys:writeall', 'keys:write,other', 'KEYS:WRITE', 'admin', '*', undefined]) {
      const bearer = await signer.sign({ scope });
      const response = await gateway.request('POST', '/api/core/api_keys/create', { bearer });
      expect([scope, response.status, response.body.error?.code]).to.deep.equal([scope, 403, 'permission_denied']);
    }
  });

  it('J17 refuses encrypted tokens, also such that would cost a lot to open', async () => {
    const { publicKey } = await generateKeyPair('RSA-OAEP');
    const plain = new TextEncoder().encode(JSON.stringify(goodClaims()));
    await expectRefused(
      await new CompactEncrypt(plain).setProtectedHeader({ alg: 'RSA-OAEP', enc: 'A256GCM' }).encrypt(publicKey),
    );
    const bomb = Buffer.from(
      JSON.stringify({ alg: 'PBES2-HS256+A128KW', p2c: 2 ** 31, p2s: 'AAAA', enc: 'A128GCM', zip: 'DEF' }),
    );
    await expectRefused(`${bomb.toString('base64url')}.AAAA.AAAA.AAAA.AAAA`);
  });

  it('J18 refuses a changed payload under a good signature', async () => {
    const [header, , signature] = (await signer.sign()).split('.');
    const payload = Buffer.from(JSON.stringify({ ...goodClaims(), sub: 'admin' })).toString('base64url');
    await expectRefused(`${header}.${payload}.${signature}`);
  });

  it('J19 refuses other spellings of a good token, also of one that is remembered', async () => {
    const token = await signer.sign();
    await gateway.authenticate(token);
    const [header, payload, signature = ''] = token.split('.');
    const last = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'.indexOf(signature.at(-1) ?? '');
    const loose = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'[last ^ 1];
    const spellings = [
      `${token}=`,
      `${token}==`,
      `${header}.${payload}.${signature} `,
      ` ${token}`,
      `${header}=.${payload}.${signature}`,
    ];
    for (const spelling of [...spellings, `${header}.${payload}.${signature.slice(0, -1)}${loose}`, `${token}.`]) {
      await expectRefused(spelling);
    }
  });

  it('J20 keeps tokens apart that begin alike', async () => {
    const pad = 'x'.repeat(200);
    const ann = await signer.sign({ aaa: pad, sub: 'ann' });
    const bob = await signer.sign({ aaa: pad, sub: 'bob' });
    expect((await gateway.authenticate(ann)).userId).to.equal('ann');
    expect((await gateway.authenticate(bob)).userId).to.equal('bob');
  });

  it('J23 leaves weak, symmetric and private keys of a set aside', async () => {
    const weak = generateKeyPairSync('rsa', { modulusLength: 1024 });
    const weakJwk = { ...weak.publicKey.export({ format: 'jwk' }), kid: 'weak', alg: 'RS256' };
    const oct = { kty: 'oct', k: Buffer.from(SHARED_SECRET).toString('base64url'), kid: 'oct', alg: 'HS256' };
    const leaked = await createSigner('leaked');
    await writeFile(
      join(folder, 'mixed.json'),
      JSON.stringify({ keys: [weakJwk, oct, leaked.privateJwk, signer.publicJwk] }),
    );
    const mixed = await start({ jwksFile: 'mixed.json' });
    const weakSigned = signRaw(
      { privateJwk: weak.privateKey.export({ format: 'jwk' }) },
      { alg: 'RS256', kid: 'weak' },
      JSON.stringify(goodClaims()),
    );
    const refused = [weakSigned, signShared(SHARED_SECRET, {}, { kid: 'oct' }), await leaked.sign()];
    for (const token of refused) expect(await codeFrom(mixed, token)).to.equal('invalid_token');
    expect(await mixed.authenticate(await signer.sign())).to.include({ userId: 'ann' });
    expect(await mixed.authenticate(await signer.sign({}, { kid: undefined }))).to.include({ userId: 'ann' });
  });

  it('J24 accepts an algorithm only for a key of its kind', async () => {
    const elliptic = await createSigner('curve', 'ES256');
    await expectRefused(await elliptic.sign({}, { kid: 'one' }));
    const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true });
    const token = await new SignJWT(goodClaims())
      .setProtectedHeader({ alg: 'ES256', jwk: await exportJWK(publicKey) })
      .sign(privateKey);
    await expectRefused(token);
  });

  it('J25 refuses a token of 64 KiB without looking into it', async () => {
    await expectRefused(await signer.sign({ junk: 'x'.repeat(64 * 1024) }));
    await expectRefused('.'.repeat(64 * 1024));
  });

  for (const token of ['..', 'a..', '.a.', 'a.b.c', 'e30.e30.', 'bnVsbA.bnVsbA.bnVsbA', `${'a.'.repeat(2000)}a`]) {
    it(`refuses ${JSON.stringify(token.slice(0, 30))}`, async () => expectRefused(token));
  }
});

function signRaw(signer: { readonly privateJwk: object }, header: unknown, payload: string): string {
  const body = forge(header, payload).slice(0, -1);
  const key = { key: signer.privateJwk, format: 'jwk' };
  return `${body}.${signBytes('sha256', Buffer.from(body), key as never).toString('base64url')}`;
}

async function codeFrom(gateway: FakeGateway, token: string): Promise<string> {
  try {
    await gateway.authenticate(token);
  } catch (error) {
    if (error instanceof GatewayError) return error.code;
    throw error;
  }
  return 'let through';
}

async function listen(onRequest: (url: string) => void): Promise<Server> {
  const server = createServer((request, response) => {
    onRequest(request.url ?? '');
    response.end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}
