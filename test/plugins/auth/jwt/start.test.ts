import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import jwt from '../../../../plugins/auth/jwt/index.ts';
import { findSecretWeakness } from '../../../../plugins/auth/kit/secret-strength.ts';
import { openMemory } from '../../../../plugins/stores/memory/index.ts';
import { corpusText } from '../../../support/corpus.ts';
import { AUDIENCE, createSigner, ISSUER, signShared, type TestSigner } from '../../../support/identity/tokens.ts';
import { type FakeGateway, setUpPlugins } from '../../../support/plugins/fake-gateway.ts';

const GOOD = { issuer: ISSUER, audience: AUDIENCE };
const SECRET = 'bV9xq4Lr7Zt2Kc8Wn5Jf1Hd6Pg3Sy0Ua_Ee-Oo';

describe('the start of the jwt plugin', () => {
  let folder: string;
  let signer: TestSigner;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tollgate-jwt-'));
    signer = await createSigner('one');
    await writeFile(join(folder, 'set.json'), JSON.stringify({ keys: [signer.publicJwk] }));
    await writeFile(join(folder, 'one.json'), JSON.stringify(signer.publicJwk));
    await writeFile(join(folder, 'key.pem'), signer.publicPem);
    await writeFile(join(folder, 'private.json'), JSON.stringify(signer.privateJwk));
    await writeFile(join(folder, 'no.json'), '{ no');
    await writeFile(join(folder, 'many.json'), JSON.stringify({ keys: Array(101).fill(signer.publicJwk) }));
  });
  after(() => rm(folder, { recursive: true }));

  const start = async (config: object): Promise<FakeGateway> =>
    setUpPlugins(await openMemory(), [{ plugin: jwt, config }], { settings: { baseDir: folder } });

  const REFUSED: readonly (readonly [string, object, RegExp])[] = [
    ['without an issuer', { audience: AUDIENCE }, /issuer/],
    ['without an audience', { issuer: ISSUER }, /audience/],
    ['with an empty issuer', { ...GOOD, issuer: '' }, /issuer/],
    ['with an empty audience', { ...GOOD, audience: '' }, /audience/],
    ['with no audience in a list', { ...GOOD, audience: [] }, /audience/],
    ['with an issuer over plain http', { ...GOOD, issuer: 'http://idp.example' }, /issuer must be an https URL/],
    ['with an issuer that is only a name', { ...GOOD, issuer: 'acme' }, /jwksUri, jwksFile or secret/],
    ['with a user name in the issuer', { ...GOOD, issuer: 'https://a:b@idp.example' }, /user name/],
    ['with a host that only begins like this machine', { ...GOOD, issuer: 'http://127.0.0.1.evil.example' }, /https/],
    ['with keys over plain http', { ...GOOD, jwksUri: 'http://idp.example/keys' }, /jwksUri must be an https URL/],
    ['with keys from a file URL', { ...GOOD, jwksUri: 'file:///etc/passwd' }, /jwksUri must be an https URL/],
    [
      'with a secret and public keys',
      { ...GOOD, secret: SECRET, jwksUri: 'https://idp.example/k' },
      /secret and jwksUri/,
    ],
    ['with a short secret', { ...GOOD, secret: 'x'.repeat(31) }, /secret has 31 bytes, but needs at least 32/],
    ['with an empty secret', { ...GOOD, secret: '' }, /secret has 0 bytes/],
    ['with a placeholder for a secret', { ...GOOD, secret: 'a-string-secret-at-least-256-bits-long' }, /placeholder/],
    ['with one letter for a secret', { ...GOOD, secret: 'x'.repeat(64) }, /different characters/],
    ['with a secret too short for its algorithm', { ...GOOD, secret: SECRET, algorithms: ['HS512'] }, /HS512 needs 64/],
    [
      'with a shared algorithm for public keys',
      { ...GOOD, algorithms: ['RS256', 'HS256'] },
      /HS256, but .* public keys/,
    ],
    [
      'with a public algorithm for a secret',
      { ...GOOD, secret: SECRET, algorithms: ['RS256'] },
      /RS256, but .* shared secret/,
    ],
    ['with no signature at all', { ...GOOD, algorithms: ['none'] }, /allowed values/],
    ['with clocks more than a minute apart', { ...GOOD, clockTolerance: '61s' }, /at most 60s/],
    ['with a key file that is not there', { ...GOOD, jwksFile: 'absent.json' }, /absent\.json/],
    ['with a key file that is broken', { ...GOOD, jwksFile: 'no.json' }, /JSON/],
    ['with a key file that holds a private key only', { ...GOOD, jwksFile: 'private.json' }, /no key that can verify/],
    ['with a key file of a hundred and one keys', { ...GOOD, jwksFile: 'many.json' }, /the limit is 100/],
    ['with an unknown option', { ...GOOD, audiences: ['x'] }, /additional properties/],
  ];
  for (const [title, config, message] of REFUSED) {
    it(`is refused ${title}`, async () => {
      const problem = await start(config).then(
        () => 'it started',
        (error: Error) => error.message,
      );
      expect(problem).to.match(message);
    });
  }

  for (const jwksFile of ['set.json', 'one.json', 'key.pem']) {
    it(`reads public keys from ${jwksFile}, in the folder of the configuration`, async () => {
      const gateway = await start({ ...GOOD, jwksFile });
      const header = jwksFile === 'key.pem' ? { kid: undefined } : {};
      expect(await gateway.authenticate(await signer.sign({}, header))).to.include({ userId: 'ann' });
    });
  }

  it('accepts several audiences, of which a token names one', async () => {
    const gateway = await start({ ...GOOD, audience: ['a', 'b'], otherAudiences: ['userinfo'], jwksFile: 'set.json' });
    for (const aud of ['a', 'b', ['a'], ['b', 'userinfo']]) {
      expect(await gateway.authenticate(await signer.sign({ aud }))).to.include({ userId: 'ann' });
    }
    for (const aud of [['a', 'b'], 'userinfo', ['a', 'x']]) {
      expect(await gateway.authenticate(await signer.sign({ aud })).catch((error) => error.code)).to.equal(
        'invalid_token',
      );
    }
  });

  it('wants a subject also when another claim names the user', async () => {
    const gateway = await start({ ...GOOD, claims: { user: 'email' }, jwksFile: 'set.json' });
    const email = 'ann@acme.example';
    expect(await gateway.authenticate(await signer.sign({ email }))).to.include({ userId: email });
    const bare = await signer.sign({ email, sub: undefined });
    expect(await gateway.authenticate(bare).catch((error) => error.code)).to.equal('invalid_token');
  });

  it('accepts only one type if configured', async () => {
    const gateway = await start({ ...GOOD, typ: 'at+jwt', jwksFile: 'set.json' });
    expect(await gateway.authenticate(await signer.sign({}, { typ: 'application/at+jwt' }))).to.include({
      userId: 'ann',
    });
    expect(await gateway.authenticate(await signer.sign({}, { typ: 'JWT' })).catch((e) => e.code)).to.equal(
      'invalid_token',
    );
  });

  it('finds the key of a token without a key id among several', async () => {
    const other = await createSigner('two');
    await writeFile(join(folder, 'two.json'), JSON.stringify({ keys: [other.publicJwk, signer.publicJwk] }));
    const gateway = await start({ ...GOOD, jwksFile: 'two.json' });
    expect(await gateway.authenticate(await signer.sign({}, { kid: undefined }))).to.include({ userId: 'ann' });
    const strange = await (await createSigner('three')).sign({}, { kid: undefined });
    expect(await gateway.authenticate(strange).catch((error) => error.code)).to.equal('invalid_token');
  });

  for (const alg of ['ES256', 'EdDSA', 'PS256', 'ES512']) {
    it(`accepts signatures of ${alg}`, async () => {
      const elliptic = await createSigner(alg, alg);
      await writeFile(join(folder, `${alg}.json`), JSON.stringify(elliptic.publicJwk));
      const gateway = await start({ ...GOOD, jwksFile: `${alg}.json` });
      expect(await gateway.authenticate(await elliptic.sign())).to.include({ userId: 'ann' });
    });
  }

  it('accepts HS384 with a long enough secret', async () => {
    const secret = `${SECRET}-qN8vR2xT5w`;
    const gateway = await start({ ...GOOD, secret, algorithms: ['HS384'] });
    expect(await gateway.authenticate(signShared(secret, {}, { alg: 'HS384' }, 'sha384'))).to.include({
      userId: 'ann',
    });
    expect(await gateway.authenticate(signShared(secret)).catch((error) => error.code)).to.equal('invalid_token');
  });

  it('remembers a token for no longer than it lives', async () => {
    const gateway = await start({ ...GOOD, jwksFile: 'set.json', clockTolerance: '0s' });
    const now = Math.floor(Date.now() / 1000);
    const token = await signer.sign({ exp: now + 20 });
    await gateway.authenticate(token, { now: now * 1000 });
    expect(await gateway.authenticate(token, { now: (now + 19) * 1000 })).to.include({ userId: 'ann' });
    expect(await gateway.authenticate(token, { now: (now + 21) * 1000 }).catch((e) => e.code)).to.equal(
      'invalid_token',
    );
  });

  it('finds every short secret of the known ones weak', () => {
    const short = corpusText('jwt-secrets/jwt.secrets.list')
      .split('\n')
      .filter((secret) => Buffer.byteLength(secret) < 32);
    expect(short.filter((secret) => findSecretWeakness(secret) === undefined)).to.deep.equal([]);
  });
});
