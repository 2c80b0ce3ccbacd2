import { expect } from 'chai';
import { KEY_PATTERN } from '../../../../plugins/auth/api-key/format.ts';
import { openMemory } from '../../../../plugins/stores/memory/index.ts';
import { codeOf } from '../../../support/errors.ts';
import { startKeys } from '../../../support/identity/keys.ts';
import type { FakeGateway } from '../../../support/plugins/fake-gateway.ts';
import { until } from '../../../support/wait.ts';

const CREATE = '/api/core/api_keys/create';
const KEYS = '/api/core/api_keys';
const ROTATE = '/api/core/api_keys/rotate';
const ANN = 'token:ann';
const BOB = 'token:bob';

const INFO_FIELDS = [
  ...[
    'id',
    'user_id',
    'name',
    'role',
    'tags',
    'hashed_key',
    'prefix',
    'created_at',
    'revoked_at',
    'deleted',
    'blocked_at',
    'blocked_reason',
    'expires_at',
  ],
  ...[
    'last_used_at',
    'plan',
    'models',
    'providers',
    'server_tools',
    'rpm',
    'tpm',
    'budget_usd',
    'budgets',
    'addresses',
    'spent_usd',
  ],
];

describe('the routes of API keys', () => {
  let gateway: FakeGateway;
  beforeEach(async () => {
    gateway = await startKeys(await openMemory());
  });
  afterEach(() => gateway.close());

  const create = async (bearer = ANN, body?: object) => (await gateway.request('POST', CREATE, { bearer, body })).body;

  describe('create', () => {
    it('returns the response of spec 2.5 for a request without a body', async () => {
      const { status, headers, body } = await gateway.request('POST', CREATE, { bearer: ANN });
      expect(status).to.equal(200);
      expect(headers).to.include({ 'cache-control': 'no-store' });
      expect(body).to.have.all.keys('message', 'api_key', 'api_key_info');
      expect(body.api_key).to.match(KEY_PATTERN);
      expect(body.api_key_info).to.have.all.keys(INFO_FIELDS);
      expect(body.api_key_info).to.include({ user_id: 'ann', deleted: false, revoked_at: null, spent_usd: '0.00' });
      expect(body.api_key).to.satisfy((key: string) => key.startsWith(`${body.api_key_info.prefix}_`));
      expect(body.api_key_info.prefix).to.equal(`tg_${body.api_key_info.id}`);
    });

    it('creates a key with the caller’s identity and rights', async () => {
      const request = {
        name: ' laptop ',
        models: ['gpt-5'],
        providers: ['openai'],
        rpm: 60,
        tpm: 1000,
        budget_usd: '2.50',
      };
      const { api_key, api_key_info } = await create(ANN, request);
      expect(api_key_info).to.deep.include({ ...request, name: 'laptop' });
      expect(await gateway.authenticate(api_key)).to.deep.equal({
        credential: 'key',
        userId: 'ann',
        account: 'ann',
        keyId: api_key_info.id,
        keyName: 'laptop',
        models: ['gpt-5'],
        providers: ['openai'],
        rpm: 60,
        tpm: 1000,
        budget: 2_500_000_000,
      });
    });

    it('treats null as an omitted field', async () => {
      const nothing = {
        name: null,
        expires_at: null,
        models: null,
        providers: null,
        server_tools: null,
        plan: null,
        rpm: null,
        budget_usd: null,
      };
      expect((await create(ANN, nothing)).api_key_info).to.deep.include({ name: '', models: null, rpm: null });
    });

    it('books the key on the account that the token names', async () => {
      const { api_key } = await create('token:ann:{"account":"acme"}');
      expect(await gateway.authenticate(api_key)).to.include({ userId: 'ann', account: 'acme' });
    });

    it('never grants more than the token has', async () => {
      const response = await gateway.request('POST', CREATE, { bearer: 'token:ann:{"rpm":5}', body: { rpm: 6 } });
      expect(response.status).to.equal(403);
      expect(response.body.error).to.include({ code: 'permission_denied', param: 'rpm' });
      expect((await create('token:ann:{"rpm":5}')).api_key_info.rpm).to.equal(5);
    });

    const WRONG: readonly (readonly [string, object, string | null])[] = [
      ['a time that is past', { expires_at: '2001-01-01T00:00:00Z' }, 'expires_at'],
      ['a time without a zone', { expires_at: '2999-01-01T00:00:00' }, 'expires_at'],
      ['a day that does not exist', { expires_at: '2999-02-31T25:00:00Z' }, 'expires_at'],
      ['a name with a line break', { name: 'a\nb' }, 'name'],
      ['a negative budget', { budget_usd: -1 }, 'budget_usd'],
      ['a budget with ten decimals', { budget_usd: '0.0000000001' }, 'budget_usd'],
      ['a budget in words', { budget_usd: 'five' }, 'budget_usd'],
      ['an unknown field', { scopes: ['*'] }, null],
      ['an owner', { user_id: 'bob' }, null],
      ['a limit of nothing', { rpm: 0 }, null],
      ['an empty model list', { models: [] }, null],
    ];
    for (const [title, body, param] of WRONG) {
      it(`refuses ${title}`, async () => {
        const response = await gateway.request('POST', CREATE, { bearer: ANN, body });
        expect(response.body.error).to.include({ code: 'invalid_request', param });
        expect((await gateway.request('GET', KEYS, { bearer: ANN })).body.data).to.deep.equal([]);
      });
    }

    it('creates exactly the maximum number of keys of a user under concurrent requests', async () => {
      gateway = await startKeys(await openMemory(), { maxKeysPerUser: 5 });
      const responses = await Promise.all(
        Array.from({ length: 50 }, () => gateway.request('POST', CREATE, { bearer: ANN })),
      );
      const statuses = responses.map(({ status }) => status).sort();
      expect(statuses).to.deep.equal([...Array(5).fill(200), ...Array(45).fill(409)]);
      expect((await gateway.request('GET', KEYS, { bearer: ANN })).body.data).to.have.lengthOf(5);
      expect((await gateway.request('POST', CREATE, { bearer: BOB })).status).to.equal(200);
    });

    it('does not count expired and deleted keys', async () => {
      gateway = await startKeys(await openMemory(), { maxKeysPerUser: 2 });
      const soon = new Date(Date.now() + 15).toISOString();
      await create(ANN, { expires_at: soon });
      const second = await create(ANN);
      await until('the key is expired', () => Date.now() > Date.parse(soon));
      expect(await create(ANN)).to.have.property('api_key');
      await gateway.request('DELETE', KEYS, { bearer: ANN, body: { id: second.api_key_info.id } });
      expect(await create(ANN)).to.have.property('api_key');
      expect((await gateway.request('POST', CREATE, { bearer: ANN })).body.error.code).to.equal('conflict');
    });

    it('stops a user who makes and deletes keys without end', async () => {
      gateway = await startKeys(await openMemory(), { maxKeysPerUser: 1 });
      for (let i = 0; i < 200; i += 1) {
        const { api_key_info } = await create(ANN);
        await gateway.request('DELETE', KEYS, { bearer: ANN, body: { id: api_key_info.id } });
      }
      const response = await gateway.request('POST', CREATE, { bearer: ANN });
      expect([response.status, response.body.error.code]).to.deep.equal([429, 'rate_limited']);
    });
  });

  describe('list', () => {
    it('pages through the keys, oldest first', async () => {
      const ids: string[] = [];
      for (let i = 0; i < 5; i += 1) ids.push((await create(ANN, { name: `key ${i}` })).api_key_info.id);
      const seen: string[] = [];
      let after: string | undefined;
      for (let more = true; more; ) {
        const query = { limit: '2', ...(after !== undefined && { after }) };
        const { body } = await gateway.request('GET', KEYS, { bearer: ANN, query });
        expect(body.object).to.equal('list');
        seen.push(...body.data.map((key: { id: string }) => key.id));
        after = seen.at(-1);
        more = body.has_more;
      }
      expect([...seen].sort()).to.deep.equal([...ids].sort());
      expect(seen).to.have.lengthOf(5);
    });

    it('never shows a key itself', async () => {
      const { api_key } = await create();
      const { headers, body } = await gateway.request('GET', KEYS, { bearer: ANN });
      expect(JSON.stringify(body)).not.to.include(api_key.slice(16));
      expect(headers).to.include({ 'cache-control': 'no-store' });
    });

    it('shows when a key was last used', async () => {
      const { api_key } = await create();
      await gateway.authenticate(api_key);
      await until('the use is reported', async () => {
        const { body } = await gateway.request('GET', KEYS, { bearer: ANN });
        return body.data[0].last_used_at !== null;
      });
    });

    for (const limit of ['0', '101', '-1', 'x', '1e1', '']) {
      it(`refuses a limit of ${JSON.stringify(limit)}`, async () => {
        expect((await gateway.request('GET', KEYS, { bearer: ANN, query: { limit } })).status).to.equal(400);
      });
    }
  });

  describe('delete', () => {
    it('revokes immediately and returns the time', async () => {
      const { api_key, api_key_info } = await create();
      await gateway.authenticate(api_key);
      const { status, body } = await gateway.request('DELETE', KEYS, { bearer: ANN, body: { id: api_key_info.id } });
      expect(status).to.equal(200);
      expect(body).to.have.all.keys('message', 'api_key_info');
      expect(body.api_key_info).to.include({ id: api_key_info.id, deleted: true });
      expect(Date.parse(body.api_key_info.revoked_at)).to.be.at.most(Date.now());
      expect(await codeOf(gateway.authenticate(api_key))).to.equal('revoked_api_key');
      expect((await gateway.request('GET', KEYS, { bearer: ANN })).body.data).to.deep.equal([]);
    });

    it('answers a second time as the first', async () => {
      const { api_key_info } = await create();
      const body = { id: `tg_${api_key_info.id}` };
      const first = await gateway.request('DELETE', KEYS, { bearer: ANN, body });
      expect(await gateway.request('DELETE', KEYS, { bearer: ANN, body })).to.deep.equal(first);
    });
  });

  describe('rotate', () => {
    it('creates a new key with the same rights and keeps the old one valid for the overlap', async () => {
      const old = await create(ANN, { name: 'ci', rpm: 7, models: ['gpt-5'] });
      const { status, headers, body } = await gateway.request('POST', ROTATE, {
        bearer: ANN,
        body: { id: old.api_key_info.id, overlap_seconds: 60 },
      });
      expect(status).to.equal(200);
      expect(headers).to.include({ 'cache-control': 'no-store' });
      expect(body.api_key_info).to.deep.include({ name: 'ci', rpm: 7, models: ['gpt-5'], user_id: 'ann' });
      expect(body.api_key_info.id).not.to.equal(old.api_key_info.id);

      const now = Date.now();
      expect(await gateway.authenticate(body.api_key)).to.include({ rpm: 7 });
      expect(await gateway.authenticate(old.api_key)).to.include({ keyId: old.api_key_info.id });
      expect(await codeOf(gateway.authenticate(old.api_key, { now: now + 61_000 }))).to.equal('expired_api_key');
      expect(await gateway.authenticate(body.api_key, { now: now + 61_000 })).to.include({ rpm: 7 });
    });

    it('revokes the old key at once when no overlap is wanted', async () => {
      const old = await create();
      await gateway.authenticate(old.api_key);
      await gateway.request('POST', ROTATE, { bearer: ANN, body: { id: old.api_key_info.id, overlap_seconds: 0 } });
      expect(await codeOf(gateway.authenticate(old.api_key))).to.equal('revoked_api_key');
    });

    it('never lengthens the life of a key', async () => {
      const expires_at = new Date(Date.now() + 5000).toISOString();
      const old = await create(ANN, { expires_at });
      const id = old.api_key_info.id;
      const { body } = await gateway.request('POST', ROTATE, { bearer: ANN, body: { id, overlap_seconds: 3600 } });
      expect(body.api_key_info.expires_at).to.equal(expires_at);
      expect(await codeOf(gateway.authenticate(old.api_key, { now: Date.now() + 6000 }))).to.equal('expired_api_key');
    });

    it('creates one successor under concurrent requests', async () => {
      const body = { id: (await create()).api_key_info.id, overlap_seconds: 60 };
      const responses = await Promise.all(
        Array.from({ length: 10 }, () => gateway.request('POST', ROTATE, { bearer: ANN, body })),
      );
      expect(responses.map(({ status }) => status).sort()).to.deep.equal([200, ...Array(9).fill(409)]);
      expect((await gateway.request('GET', KEYS, { bearer: ANN })).body.data).to.have.lengthOf(2);
    });

    it('works for a user who has as many keys as allowed', async () => {
      gateway = await startKeys(await openMemory(), { maxKeysPerUser: 1 });
      const { api_key_info } = await create();
      expect((await gateway.request('POST', ROTATE, { bearer: ANN, body: { id: api_key_info.id } })).status).to.equal(
        200,
      );
    });

    it('refuses a key that was revoked', async () => {
      const body = { id: (await create()).api_key_info.id };
      await gateway.request('DELETE', KEYS, { bearer: ANN, body });
      expect((await gateway.request('POST', ROTATE, { bearer: ANN, body })).body.error.code).to.equal('conflict');
    });

    it('creates no key with more rights than its token', async () => {
      const { api_key_info } = await create(ANN, { rpm: 100 });
      const bearer = 'token:ann:{"rpm":5}';
      const response = await gateway.request('POST', ROTATE, { bearer, body: { id: api_key_info.id } });
      expect(response.body.error).to.include({ code: 'permission_denied', param: 'rpm' });
    });

    it('keeps the plan that the operator gave a key', async () => {
      const { json } = await gateway.run(['keys', 'create'], { user: 'ann', plan: 'pro' });
      const { id } = (json as { api_key_info: { id: string } }).api_key_info;
      const { body } = await gateway.request('POST', ROTATE, { bearer: ANN, body: { id } });
      expect(body.api_key_info.plan).to.equal('pro');
    });
  });

  describe('between two users', () => {
    it('responds to another user’s id as to an unknown one', async () => {
      const { id } = (await create(ANN)).api_key_info;
      for (const strange of [id, `tg_${id}`, 'AAAAAAAAAAAA', 'nonsense', '%', '../x']) {
        const requests = [
          gateway.request('DELETE', KEYS, { bearer: BOB, body: { id: strange } }),
          gateway.request('POST', ROTATE, { bearer: BOB, body: { id: strange } }),
          gateway.request('GET', KEYS, { bearer: BOB, query: { after: strange } }),
        ];
        const responses = await Promise.all(requests);
        expect(responses.map(({ status }) => status)).to.deep.equal([404, 404, 404]);
        expect(new Set(responses.map(({ body }) => body.error.message)).size).to.equal(1);
      }
      expect((await gateway.request('GET', KEYS, { bearer: ANN })).body.data[0]).to.include({ id, deleted: false });
    });

    it('lists to each only their own', async () => {
      const ann = await create(ANN);
      const bob = await create(BOB);
      const ids = async (bearer: string) =>
        (await gateway.request('GET', KEYS, { bearer })).body.data.map((key: { id: string }) => key.id);
      expect(await ids(ANN)).to.deep.equal([ann.api_key_info.id]);
      expect(await ids(BOB)).to.deep.equal([bob.api_key_info.id]);
    });

    it('distinguishes users whose names differ only by case, form or a wildcard', async () => {
      const names = ['ann', 'Ann', 'ANN', 'an%', 'an_', 'e\u0301', '\u00e9', 'a/b', 'a b', '__proto__'];
      for (const name of names) await create(`token:${name}`, { name });
      for (const name of names) {
        const { body } = await gateway.request('GET', KEYS, { bearer: `token:${name}` });
        expect(body.data.map((key: { name: string; user_id: string }) => [key.name, key.user_id])).to.deep.equal([
          [name, name],
        ]);
      }
    });
  });

  describe('credentials', () => {
    const ROUTES = [
      ['POST', CREATE],
      ['GET', KEYS],
      ['DELETE', KEYS],
      ['POST', ROTATE],
    ] as const;
    for (const [method, path] of ROUTES) {
      it(`accepts no API key for ${method} ${path}`, async () => {
        const { api_key } = await create();
        expect((await gateway.request(method, path, { bearer: api_key })).status).to.equal(401);
      });

      it(`wants the permission for ${method} ${path}`, async () => {
        const response = await gateway.request(method, path, { bearer: 'token:ann:{"permissions":["keys:read"]}' });
        expect([response.status, response.body.error.code]).to.deep.equal([403, 'permission_denied']);
      });
    }
  });
});
