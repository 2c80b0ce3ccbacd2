import { expect } from 'chai';
import type { Principal } from '../../../../contract/index.ts';
import apiKey from '../../../../plugins/auth/api-key/index.ts';
import jwt, { createTokenVerifier, loadKeys } from '../../../../plugins/auth/jwt/index.ts';
import { readOptions } from '../../../../plugins/auth/jwt/options.ts';
import { createKeySource } from '../../../../plugins/auth/kit/key-source.ts';
import { openMemory } from '../../../../plugins/stores/memory/index.ts';
import { codeOf } from '../../../support/errors.ts';
import { PEPPER } from '../../../support/identity/keys.ts';
import { type OpenIdProvider, startOpenIdProvider } from '../../../support/identity/openid-provider.ts';
import { createSilentLog } from '../../../support/log.ts';
import { type FakeGateway, setUpPlugins } from '../../../support/plugins/fake-gateway.ts';
import { until } from '../../../support/wait.ts';
import { jwtConfig } from './jwt-config.ts';

const AUDIENCE = 'tollgate';
const USERS = { ann: { plan: 'pro', 'https://acme.example/account': 'acme', limits: { rpm: 9 } }, bob: {} };
const CREATE = '/api/core/api_keys/create';
const KEYS = '/api/core/api_keys';

describe('tokens of a real OpenID provider', () => {
  let provider: OpenIdProvider;
  beforeEach(async () => {
    provider = await startOpenIdProvider({ users: USERS, audience: AUDIENCE });
  });
  afterEach(() => provider.stop());

  const start = async (config: object = {}): Promise<FakeGateway> => {
    const gateway = await setUpPlugins(await openMemory(), [
      { plugin: apiKey, config: { pepper: PEPPER } },
      { plugin: jwt, config: { issuer: provider.issuer, audience: AUDIENCE, ...config } },
    ]);
    await gateway.ready();
    return gateway;
  };

  it('let a user create, list, use, rotate and delete a key', async () => {
    const gateway = await start();
    const bearer = await provider.token('ann');
    const { api_key, api_key_info } = (await gateway.request('POST', CREATE, { bearer })).body;
    expect(await gateway.authenticate(api_key)).to.include({ credential: 'key', userId: 'ann' });
    const body = { id: api_key_info.id };
    const rotated = (await gateway.request('POST', `${KEYS}/rotate`, { bearer, body })).body;
    const list = (await gateway.request('GET', KEYS, { bearer })).body;
    expect(list.data.map((key: { id: string }) => key.id)).to.have.members([body.id, rotated.api_key_info.id]);
    expect((await gateway.request('DELETE', KEYS, { bearer, body })).status).to.equal(200);
    expect(await codeOf(gateway.authenticate(api_key))).to.equal('revoked_api_key');
    expect(await gateway.authenticate(rotated.api_key)).to.include({ userId: 'ann' });
  });

  it('contain user, account, plan and limits', async () => {
    const claims = { plan: 'plan', account: 'https://acme.example/account', rpm: 'limits.rpm' };
    const principal = await (await start({ claims, userPrefix: 'idp:' })).authenticate(await provider.token('ann'));
    expect(principal).to.deep.equal({
      credential: 'token',
      userId: 'idp:ann',
      account: 'idp:acme',
      plan: 'pro',
      rpm: 9,
      userLimits: { rpm: 9 },
      permissions: ['keys:write'],
    });
  });

  it('keep two users apart', async () => {
    const gateway = await start();
    const [ann, bob] = await Promise.all([provider.token('ann'), provider.token('bob')]);
    const { id } = (await gateway.request('POST', CREATE, { bearer: ann })).body.api_key_info;
    const responses = await Promise.all([
      gateway.request('DELETE', KEYS, { bearer: bob, body: { id } }),
      gateway.request('POST', `${KEYS}/rotate`, { bearer: bob, body: { id } }),
      gateway.request('GET', KEYS, { bearer: bob, query: { after: id } }),
    ]);
    expect(responses.map(({ status }) => status)).to.deep.equal([404, 404, 404]);
    expect((await gateway.request('GET', KEYS, { bearer: bob })).body.data).to.deep.equal([]);
  });

  it('are refused without the permission', async () => {
    const bearer = await provider.token('ann', 'keys:read');
    expect((await (await start()).request('POST', CREATE, { bearer })).body.error.code).to.equal('permission_denied');
  });

  it('grant the permission by the configured value', async () => {
    const gateway = await start({ permission: 'keys:read' });
    const responses = await Promise.all(
      ['keys:read', 'keys:write'].map(async (scope) =>
        gateway.request('POST', CREATE, { bearer: await provider.token('ann', scope) }),
      ),
    );
    expect(responses.map(({ status }) => status)).to.deep.equal([200, 403]);
  });

  it('are refused when they are for another audience', async () => {
    expect(await codeOf((await start()).authenticate(await provider.token('ann', 'keys:write', 'other')))).to.equal(
      'invalid_token',
    );
  });

  it('are not read from x-api-key', async () => {
    const gateway = await start();
    expect(await codeOf(gateway.authenticate(await provider.token('ann'), { bearer: false }))).to.equal(
      'invalid_api_key',
    );
  });

  it('cause one fetch of the keys for concurrent requests', async () => {
    const gateway = await setUpPlugins(await openMemory(), [
      { plugin: jwt, config: { issuer: provider.issuer, audience: AUDIENCE } },
    ]);
    const tokens = await Promise.all(Array.from({ length: 20 }, () => provider.token('ann')));
    await Promise.all(tokens.map((token) => gateway.authenticate(token)));
    expect(provider.requests.filter((path) => path.startsWith('/jwks'))).to.have.lengthOf(1);
  });

  it('support two issuers at the same time, without confusing them', async () => {
    const other = await startOpenIdProvider({ users: { ann: {} }, audience: AUDIENCE });
    try {
      const gateway = await setUpPlugins(await openMemory(), [
        { plugin: jwt, config: { issuer: provider.issuer, audience: AUDIENCE }, instance: 'one' },
        { plugin: jwt, config: { issuer: other.issuer, audience: AUDIENCE, userPrefix: 'two:' }, instance: 'two' },
      ]);
      expect(await gateway.authenticate(await provider.token('ann'))).to.include({ userId: 'ann' });
      expect(await gateway.authenticate(await other.token('ann'))).to.include({ userId: 'two:ann' });
    } finally {
      await other.stop();
    }
  });

  it('do not keep the gateway from starting while the provider is unavailable', async () => {
    await provider.goAway();
    const gateway = await start();
    // The keys are fetched concurrently with the start: the provider is back only after the fetch has failed.
    await until('the failure is logged', () => gateway.logs.some(({ level }) => level === 'warn'));
    await provider.comeBack();
    const token = await provider.token('ann');
    await provider.goAway();
    const error = await gateway.authenticate(token).then(
      () => expect.fail('it was let through'),
      (thrown) => thrown,
    );
    expect([error.code, error.status]).to.deep.equal(['store_unavailable', 503]);
    expect(error.message).not.to.include('127.0.0.1');
  });

  describe('over time', () => {
    let nowMs: number;
    let verify: (token: string) => Promise<Principal | undefined>;
    beforeEach(() => {
      nowMs = 0;
      const config = jwtConfig({ issuer: provider.issuer, audience: AUDIENCE });
      const options = readOptions(config, '/');
      if (options.origin.kind !== 'discovery') throw new Error('discovery is the default');
      const { origin } = options;
      const source = createKeySource({ load: () => loadKeys(origin), onFailure: () => undefined, now: () => nowMs });
      const read = ({ sub = '' }): Principal => ({ credential: 'token', userId: sub, account: sub });
      const verifier = createTokenVerifier(options, source.getKey, read, createSilentLog());
      verify = async (token) => verifier.verify(token, Date.now());
    });

    it('are taken under a new key as soon as the cooldown allows, and no longer under the old one', async () => {
      const before = await provider.token('ann');
      expect(await verify(before)).to.include({ userId: 'ann' });
      await provider.rotateKeys();
      nowMs += 31_000;
      expect(await verify(await provider.token('bob'))).to.include({ userId: 'bob' });
      nowMs += 1000;
      expect(await codeOf(verify(`${await strangeToken()}`))).to.equal('invalid_token');
    });

    /** Token signed with a key that the provider never had. */
    const strangeToken = async (): Promise<string> => {
      const { createSigner } = await import('../../../support/identity/tokens.ts');
      return (await createSigner('strange')).sign({ iss: provider.issuer });
    };

    it('are accepted with known keys while the provider is unavailable, for an hour', async () => {
      const tokens = await Promise.all([1, 2, 3].map(() => provider.token('ann')));
      const [first = '', second = '', third = ''] = tokens;
      expect(await verify(first)).to.include({ userId: 'ann' });
      await provider.goAway();
      nowMs += 3_599_000;
      expect(await verify(second)).to.include({ userId: 'ann' });
      nowMs += 10_000;
      expect(await codeOf(verify(third))).to.equal('store_unavailable');
      await provider.comeBack();
      nowMs += 6000;
      expect(await verify(third)).to.include({ userId: 'ann' });
    });

    it('are neither rejected nor accepted when their key may be new and the provider is unavailable', async () => {
      expect(await verify(await provider.token('ann'))).to.include({ userId: 'ann' });
      await provider.rotateKeys();
      const token = await provider.token('bob');
      await provider.goAway();
      nowMs += 31_000;
      expect(await codeOf(verify(token))).to.equal('store_unavailable');
    });
  });
});
