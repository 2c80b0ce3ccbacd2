import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { type OpenIdProvider, startOpenIdProvider } from '../support/identity/openid-provider.ts';
import { eventually } from '../support/wait.ts';

const KEYS = '/api/core/api_keys';
const CHAT = { model: 'echo', messages: [{ role: 'user', content: 'Hi there' }] };

// biome-ignore lint/suspicious/noExplicitAny: answers are looked into, whatever their shape
type Loose = any;

interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Loose;
}

describe('an API key over HTTP', () => {
  let provider: OpenIdProvider;
  let folder: string;
  let gateway: TestGateway;
  let ann: string;
  let bob: string;

  before(async () => {
    folder = await mkdtemp(path.join(os.tmpdir(), 'tollgate-keys-'));
    provider = await startOpenIdProvider({ users: { ann: {}, bob: {} }, audience: 'tollgate' });
    gateway = await startNode();
    [ann, bob] = await Promise.all([provider.token('ann'), provider.token('bob')]);
  });
  after(async () => {
    await gateway?.stop();
    await provider?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  /** Starts a gateway on the shared store of this file. */
  const startNode = (config: object = {}) =>
    startGateway(
      {
        store: `sqlite:${path.join(folder, 'data')}`,
        providers: { echo: { prices: { '*': { input: 1, output: 1 } } }, other: { plugin: 'echo' } },
        auth: { 'api-key': {}, jwt: { issuer: provider.issuer, audience: 'tollgate' } },
        ...config,
      },
      { level: 'debug' },
    );

  const send = async (
    method: string,
    where: string,
    credential: string | undefined,
    body?: unknown,
    by = gateway,
  ): Promise<Reply> => {
    const response = await fetch(by.url + where, {
      method,
      headers: {
        ...(credential !== undefined && { authorization: `Bearer ${credential}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return { status: response.status, headers: response.headers, body: await response.json() };
  };
  const create = async (token = ann, body?: unknown) => (await send('POST', `${KEYS}/create`, token, body)).body;
  const chat = (key: string, by = gateway) => send('POST', '/api/core/echo/chat/completions', key, CHAT, by);

  it('is created without a body, with the specified response', async () => {
    const { status, headers, body } = await send('POST', `${KEYS}/create`, ann);
    expect(status).to.equal(200);
    expect(headers.get('cache-control')).to.equal('no-store');
    expect(body).to.have.all.keys('message', 'api_key', 'api_key_info');
    expect(body.api_key_info).to.include({ user_id: 'ann', revoked_at: null, deleted: false });
  });

  it('is accepted as a bearer and as x-api-key, and is distinguished from another one in the same request', async () => {
    const { api_key } = await create();
    expect((await chat(api_key)).body.choices[0].message.content).to.equal('Hi there');
    const send2 = (headers: Record<string, string>) => fetch(`${gateway.url}/v1/models`, { headers });
    expect((await send2({ 'x-api-key': api_key })).status).to.equal(200);
    const other = (await create()).api_key;
    const both = await send2({ 'x-api-key': api_key, authorization: `Bearer ${other}` });
    expect(((await both.json()) as Loose).error.code).to.equal('ambiguous_credentials');
  });

  it('is listed, rotated and deleted', async () => {
    const { api_key, api_key_info } = await create(ann, { name: 'life', rpm: 100 });
    const { id } = api_key_info;
    expect((await send('GET', `${KEYS}?limit=100`, ann)).body.data.map((key: Loose) => key.id)).to.include(id);

    const rotated = await send('POST', `${KEYS}/rotate`, ann, { id, overlap_seconds: 60 });
    expect(rotated.body.api_key_info).to.include({ name: 'life', rpm: 100 });
    expect((await chat(api_key)).status).to.equal(200);
    expect((await chat(rotated.body.api_key)).status).to.equal(200);

    const deleted = await send('DELETE', KEYS, ann, { id });
    expect(deleted.body.api_key_info).to.include({ id, deleted: true });
    expect((await send('DELETE', KEYS, ann, { id })).status).to.equal(200);
    const refused = await chat(api_key);
    expect([refused.status, refused.body.error.code]).to.deep.equal([401, 'revoked_api_key']);
    expect(refused.headers.get('www-authenticate')).to.equal('Bearer');
    expect((await chat(rotated.body.api_key)).status).to.equal(200);
  });

  it('allows its permissions, and nothing else', async () => {
    const { api_key } = await create(ann, { models: ['other/echo'] });
    expect((await chat(api_key)).body.error.code).to.equal('model_not_allowed');
    const elsewhere = await create(ann, { providers: ['other'] });
    expect((await chat(elsewhere.api_key)).body.error.code).to.equal('model_not_allowed');
  });

  it('D47 is not created without an identity provider: 503 with the required configuration', async () => {
    const own = await startGateway();
    try {
      for (const headers of [{}, { authorization: 'Bearer a.b.c' }, { authorization: '' }]) {
        const response = await own.post(`${KEYS}/create`, {}, headers);
        const { error } = (await response.json()) as { error: { code: string; message: string } };
        expect([response.status, error.code]).to.deep.equal([503, 'feature_disabled']);
        expect(error.message).to.include('needs a token of the identity provider').and.include('under "auth"');
      }
      expect((await own.get('/v1/models')).status).to.equal(200);
    } finally {
      await own.stop();
    }
  });

  it('shows its spend, with and without a budget', async () => {
    for (const body of [{}, { budget_usd: '5.00' }]) {
      const { api_key, api_key_info } = await create(ann, body);
      expect((await chat(api_key)).status).to.equal(200);
      await eventually(async () => {
        const { data } = (await send('GET', `${KEYS}?limit=100`, ann)).body;
        const { spent_usd } = data.find((key: Loose) => key.id === api_key_info.id);
        expect(Number(spent_usd), JSON.stringify(body)).to.be.greaterThan(0);
      });
    }
  });

  it('stops at its budget', async () => {
    const { api_key } = await create(ann, { budget_usd: '0.000001' });
    const { status, body } = await chat(api_key);
    expect([status, body.error.code]).to.deep.equal([402, 'insufficient_balance']);
  });

  const REFUSED: readonly (readonly [string, unknown, string | null])[] = [
    ['a limit in words', { rpm: 'many' }, 'rpm'],
    ['an unknown field', { admin: true }, 'admin'],
    ['a past expiry', { expires_at: '2001-01-01T00:00:00Z' }, 'expires_at'],
    ['an invalid budget', { budget_usd: 'five' }, 'budget_usd'],
    ['an empty model list', { models: [] }, 'models'],
    ['a plan of the caller’s choice', { plan: 'pro' }, 'plan'],
  ];
  for (const [title, body, param] of REFUSED) {
    it(`is not created with ${title}`, async () => {
      const { status, body: response } = await send('POST', `${KEYS}/create`, ann, body);
      expect(status).to.be.oneOf([400, 403]);
      expect(response.error.param).to.equal(param);
    });
  }

  it('is managed with a token and used alone: neither replaces the other', async () => {
    const { api_key } = await create();
    expect((await send('POST', `${KEYS}/create`, api_key)).body.error.code).to.equal('invalid_token');
    expect((await send('GET', KEYS, undefined)).body.error.code).to.equal('missing_api_key');
    expect((await chat(ann)).status).to.equal(401);
    for (const bad of ['a.b.c', `${ann}x`, await provider.token('ann', 'keys:write', 'other')]) {
      for (const [method, where] of [
        ['POST', `${KEYS}/create`],
        ['GET', '/v1/models'],
      ] as const) {
        const { status, body } = await send(method, where, bad);
        expect([status, body.error.code]).to.deep.equal([401, 'invalid_token']);
      }
    }
    const powerless = await provider.token('ann', 'keys:read');
    expect((await send('POST', `${KEYS}/create`, powerless)).body.error.code).to.equal('permission_denied');
  });

  it('can be seen, rotated and deleted only by its owner', async () => {
    const { id } = (await create(ann)).api_key_info;
    for (const strange of [id, `tg_${id}`, 'AAAAAAAAAAAA', '%', '../x']) {
      const responses = await Promise.all([
        send('DELETE', KEYS, bob, { id: strange }),
        send('POST', `${KEYS}/rotate`, bob, { id: strange }),
        send('GET', `${KEYS}?after=${encodeURIComponent(strange)}`, bob),
      ]);
      expect(responses.map(({ body }) => body.error.code)).to.deep.equal(['not_found', 'not_found', 'not_found']);
    }
    const list = (await send('GET', KEYS, bob)).body;
    expect(list.data.map((key: Loose) => key.user_id)).not.to.include('ann');
  });

  it('is listed up to the last of two limits in a query, and that one is validated', async () => {
    expect((await send('GET', `${KEYS}?limit=99999&limit=1`, ann)).body.data).to.have.lengthOf(1);
    expect((await send('GET', `${KEYS}?limit=1&limit=99999`, ann)).status).to.equal(400);
  });

  it('ends on every node, revoked over HTTP or on the command line @slow', async () => {
    const other = await startNode();
    try {
      for (const revoke of [
        (id: string) => send('DELETE', KEYS, ann, { id }),
        (id: string) => gateway.command('keys', 'revoke', id),
      ]) {
        const { api_key, api_key_info } = await create();
        expect((await chat(api_key, other)).status).to.equal(200);
        expect((await chat(api_key)).status).to.equal(200);
        await revoke(api_key_info.id);
        await eventually(async () => {
          const responses = await Promise.all([chat(api_key), chat(api_key, other)]);
          expect(responses.map(({ body }) => body.error?.code)).to.deep.equal(['revoked_api_key', 'revoked_api_key']);
        });
      }
    } finally {
      await other.stop();
    }
  });

  it('is created, listed and revoked on the command line while the gateway runs', async () => {
    const made = await gateway.command<Loose>(
      'keys',
      'create',
      '--user',
      'u_42',
      '--name',
      'laptop',
      '--expires',
      '30d',
    );
    expect((await chat(made.api_key)).status).to.equal(200);
    const { data } = await gateway.command<Loose>('keys', 'list', '--user', 'u_42');
    expect(data.map((key: Loose) => [key.name, key.id])).to.deep.equal([['laptop', made.api_key_info.id]]);
  });

  it('needs its pepper: the gateway does not start on its store with another one', async () => {
    const pepper = 'Zt5Rb8Nc4Hd6Jf1Gp0YsAqWeUiOpmK3v9Xq2Lw7T';
    const problem = await startNode({ auth: { 'api-key': { pepper } } }).then(
      async (started) => {
        await started.stop();
        return 'it started';
      },
      (error: Error) => error.message,
    );
    expect(problem).to.match(/"api-key".*belong to another pepper/s);
  });

  it('is distinguished from the keys of a user of the same name at another issuer', async () => {
    const partner = await startOpenIdProvider({ users: { ann: {} }, audience: 'tollgate' });
    const issuers = {
      jwt: { issuer: provider.issuer, audience: 'tollgate' },
      partner: { plugin: 'jwt', issuer: partner.issuer, audience: 'tollgate', userPrefix: 'partner:' },
    };
    const both = await startNode({ auth: { 'api-key': {}, ...issuers } });
    try {
      const made = (await send('POST', `${KEYS}/create`, await partner.token('ann'), undefined, both)).body;
      expect(made.api_key_info.user_id).to.equal('partner:ann');
      const { id } = made.api_key_info;
      expect((await send('DELETE', KEYS, ann, { id }, both)).status).to.equal(404);
      expect((await send('GET', KEYS, ann, undefined, both)).status).to.equal(200);
      expect((await send('GET', KEYS, 'a.b.c', undefined, both)).body.error.code).to.equal('invalid_token');
    } finally {
      await both.stop();
      await partner.stop();
    }
  });

  it('is not in the log, nor is a token', async () => {
    const { api_key } = await create();
    await chat(api_key);
    await chat(`${api_key.slice(0, -1)}!`);
    await send('GET', KEYS, `${ann}x`);
    const text = gateway.logText();
    expect(text).to.include(KEYS);
    for (const secret of [api_key.slice(16), ann.split('.')[2] ?? '', ann.split('.')[1] ?? '']) {
      expect(text).not.to.include(secret);
    }
  });
});
