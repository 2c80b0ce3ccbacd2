import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { createSigner } from '../support/identity/tokens.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers are looked into, whatever their shape
type Loose = any;

/** Echo of `hi`: one token in and one out, at one dollar per million each. */
const CALL = { model: 'echo/echo', max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] };
const COST = 2;

/** Response without usage. */
const COMPLETION = {
  ...{ id: 'c', object: 'chat.completion', created: 1, model: 'm' },
  choices: [{ index: 0, message: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' }],
};

describe('usage over HTTP', () => {
  let gateway: TestGateway;
  let upstream: ScriptedUpstream;
  let admin: string;
  let annKey: string;
  let bobKey: string;
  let teamToken: string;

  before(async () => {
    upstream = await startScriptedUpstream();
    upstream.script(respondWith(200, COMPLETION));
    const signer = await createSigner('usage');
    gateway = await startGateway(
      {
        providers: {
          echo: { prices: { '*': { input: 1, output: 1 } } },
          vendor: {
            plugin: 'openai-compatible',
            apiKey: 'sk-usage-0001',
            baseUrl: `${upstream.url}/v1`,
            models: ['*'],
          },
        },
        auth: { 'api-key': {}, jwt: { issuer: 'https://idp.example', audience: 'tollgate', jwksFile: './jwks.json' } },
        tags: { team: ['search', 'ads'], project: '*' },
      },
      { files: { 'jwks.json': JSON.stringify({ keys: [signer.publicJwk] }) } },
    );
    teamToken = await signer.sign({ sub: 'team' });
    const create = async (user: string, ...more: readonly string[]): Promise<string> =>
      (await gateway.command<Loose>('keys', 'create', '--user', user, ...more)).api_key;
    admin = await create('root', '--admin');
    annKey = await create('ann', '--account', 'team');
    bobKey = await create('bob', '--account', 'team');
    for (const [key, tag] of [
      [annKey, 'team=search,project=x'],
      [annKey, 'team=search'],
      [bobKey, 'team=ads'],
      [bobKey, ''],
      [admin, ''],
    ] as const)
      await call(key, tag);
    await call(bobKey, '', { ...CALL, model: 'vendor/m' });
    await call(annKey, '', { ...CALL, model: 'echo/none', messages: [] });
    await eventually(async () => expect((await report('by=user', admin)).totals.requests).to.equal(6));
  });
  after(async () => {
    await gateway?.stop();
    await upstream?.close();
  });

  const call = async (key: string, tag: string, body: object = CALL): Promise<void> => {
    const headers = { authorization: `Bearer ${key}`, 'x-session-id': `of-${key.slice(3, 7)}` };
    await (
      await gateway.post('/v1/chat/completions', body, tag ? { ...headers, 'x-tollgate-tag': tag } : headers)
    ).text();
  };
  const get = async (path: string, key: string): Promise<{ status: number; headers: Headers; body: Loose }> => {
    const response = await gateway.get(path, { authorization: `Bearer ${key}` });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.includes('json');
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
  };
  const report = async (query: string, key: string, where = '/api/core/admin/usage'): Promise<Loose> => {
    const { status, body } = await get(`${where}?${query}`, key);
    expect(status, JSON.stringify(body)).to.equal(200);
    return body;
  };
  const micro = (usd: string): number => Math.round(Number(usd) * 1_000_000);
  const spentBy = ({ data }: Loose, name: string): object =>
    Object.fromEntries(data.map((row: Loose) => [row[name], micro(row.cost_usd)]));

  it('is grouped for operators by any dimension, with totals of the server', async () => {
    const byUser = await report('by=user', admin);
    expect(spentBy(byUser, 'user')).to.deep.equal({ ann: 2 * COST, bob: 2 * COST, root: COST });
    expect(byUser.totals).to.include({ requests: 6, cost_usd: '0.00001' });
    expect(byUser).to.include({ object: 'list', currency: 'USD', tz: 'UTC', rows: 3, has_more: false });
    expect(spentBy(await report('by=account', admin), 'account')).to.deep.equal({ team: 4 * COST, root: COST });
    expect(spentBy(await report('by=provider,model', admin), 'provider')).to.deep.equal({ echo: 5 * COST, vendor: 0 });
    expect((await report('by=session', admin)).data).to.have.length(3);
    expect((await report('by=operation,month&tz=Asia/Kolkata', admin)).data[0].operation).to.equal('chat');
  });

  it('has with "latency" the durations of successful calls per row, next to the failures', async () => {
    const { data, totals, latency_of } = await report('by=user&latency=true', admin);
    const ann = data.find((row: Loose) => row.user === 'ann');
    expect(ann).to.have.property('errors');
    expect(ann.latency).to.include({ calls: 2 });
    expect(ann.latency.duration_p95_ms).to.be.at.least(ann.latency.duration_p50_ms).and.above(0);
    expect(totals.latency.calls).to.equal(6);
    expect(latency_of).to.deep.equal({ calls: 6, is_complete: true });
    expect((await report('by=user', admin)).data[0]).not.to.have.property('latency');
    const own = await report('by=model&latency=true', annKey, '/api/core/usage');
    expect(own.totals.latency.calls, 'of the own calls alone').to.equal(2);
    for (const wrong of ['latency=yes', 'latency=true&format=csv']) {
      const { status, body } = await get(`/api/core/admin/usage?${wrong}`, admin);
      expect([status, body.error.param], wrong).to.deep.equal([400, 'latency']);
    }
    const table = await gateway.command<Loose>('usage', '--by', 'user', '--latency');
    expect(table.totals.latency.calls).to.equal(6);
  });

  it('shows calls without a price, and those with estimated tokens, separately', async () => {
    const { data, totals } = await report('by=provider', admin);
    const vendor = data.find((row: Loose) => row.provider === 'vendor');
    expect(vendor).to.include({ requests: 1, cost_usd: '0.00', unpriced_requests: 1, estimated_requests: 1 });
    expect(totals).to.include({ unpriced_requests: 1, estimated_requests: 1 });
  });

  it('G83: has a row for each tag, and a total in which a call with two tags counts once', async () => {
    const body = await report('by=tag', admin);
    expect(spentBy(body, 'tag')).to.deep.equal({
      '-': 2 * COST,
      'project=x': COST,
      'team=ads': COST,
      'team=search': 2 * COST,
    });
    expect(micro(body.totals.cost_usd)).to.equal(5 * COST);
    expect(body.shared).to.deep.equal({
      ...{ requests: 1, cost_usd: '0.000002', repeated_requests: 1, repeated_cost_usd: '0.000002' },
    });
  });

  it('G84: adds up by every dimension to the spend of the accounts', async () => {
    const spent = 5 * COST;
    for (const by of ['user', 'key', 'provider', 'model', 'operation', 'session', 'account', 'hour', 'day', 'month']) {
      const { data, totals } = await report(`by=${by}&tz=Australia/Lord_Howe`, admin);
      expect(
        data.reduce((sum: number, row: Loose) => sum + micro(row.cost_usd), 0),
        by,
      ).to.equal(spent);
      expect(micro(totals.cost_usd), by).to.equal(spent);
    }
  });

  it('G85: has pages, each with the totals of all of them', async () => {
    const names: string[] = [];
    let next: string | undefined;
    for (let page = 0; page === 0 || next !== undefined; page += 1) {
      const body = await report(`by=user&limit=1${next === undefined ? '' : `&after=${next}`}`, admin);
      expect(body.data).to.have.length(1);
      expect(body).to.include({ rows: 3, has_more: body.next !== undefined });
      expect(body.totals.requests).to.equal(6);
      names.push(body.data[0].user);
      next = body.next;
    }
    expect(names).to.deep.equal(['ann', 'bob', 'root']);
    expect((await report('by=user&sort=cost&limit=2', admin)).data.map((row: Loose) => row.user)).to.deep.equal([
      'ann',
      'bob',
    ]);
  });

  it('G86: covers exactly one day, excluding its end', async () => {
    const now = Date.now();
    const day = (at: number) => new Date(at).toISOString().slice(0, 10);
    const today = await report(`from=${day(now)}&to=${day(now + 86_400_000)}`, admin);
    const before = await report(`from=${day(now - 86_400_000)}&to=${day(now)}`, admin);
    expect(today.totals.requests + before.totals.requests).to.equal(6);
    expect(today.data.every((row: Loose) => row.day === day(now))).to.equal(true);
    expect((await report(`period=this-month&by=user`, admin)).totals.requests).to.be.at.most(6);
    expect((await report('last=1h&by=user', admin)).totals.requests).to.equal(6);
  });

  it('is filtered by the query, whatever its values', async () => {
    expect((await report('by=user&user=ann', admin)).totals.requests).to.equal(2);
    expect((await report('by=user&tag=team=search', admin)).totals.requests).to.equal(2);
    expect((await report(`by=user&key=${bobKey.slice(0, 15)}`, admin)).totals.requests).to.equal(3);
    for (const value of ["' OR 1=1 --", '%', '_', '*', 'ünïcode 🎉', '\u0000', 'x'.repeat(1000)])
      expect((await report(`by=user&user=${encodeURIComponent(value)}`, admin)).totals.requests, value).to.equal(0);
  });

  it('covers, for a key, its own usage, and for a token all of its account', async () => {
    expect((await report('by=user', annKey, '/api/core/usage')).totals.requests).to.equal(2);
    expect((await report('group_by=user', bobKey, '/api/core/usage')).data).to.have.length(1);
    const ofTeam = await report('by=user,key', teamToken, '/api/core/usage');
    expect(ofTeam.data.map((row: Loose) => row.user)).to.deep.equal(['ann', 'bob']);
    expect(ofTeam.totals.requests).to.equal(5);
    const others = await get(`/api/core/usage?key=${bobKey.slice(3, 15)}`, annKey);
    expect(others.body.error).to.include({ code: 'invalid_request', param: 'key' });
    expect((await get('/api/core/usage?account=team', annKey)).body.error).to.include({ param: 'account' });
  });

  it('covers all accounts only for operators', async () => {
    for (const path of ['/api/core/admin/usage', '/api/core/admin/calls', '/api/core/admin/calls/call_x'])
      for (const key of [annKey, teamToken])
        expect((await get(path, key)).body.error.code, path).to.equal('permission_denied');
  });

  const WRONG: readonly (readonly [query: string, param: string])[] = [
    ['by=nothing', 'by'],
    ['by=day,hour', 'by'],
    ['by=user&group_by=user', 'group_by'],
    ['group_by=nothing', 'group_by'],
    ['from=2026-11-02&to=2026-11-01', 'from'],
    ['from=2026-02-30', 'from'],
    ['tz=Mars', 'tz'],
    ['by=hour&from=2020-01-01', 'by'],
    ['limit=0', 'limit'],
    ['limit=1001', 'limit'],
    ['limit=1e9', 'limit'],
    ['limit=-1', 'limit'],
    ['after=zzz', 'after'],
    ['sort=random', 'sort'],
    ['format=xml', 'format'],
    ['format=csv&limit=5', 'limit'],
    ['tag=search', 'tag'],
    ['user=', 'user'],
    [`user=${'x'.repeat(1001)}`, 'user'],
    ['colour=red', 'colour'],
  ];
  for (const [query, param] of WRONG)
    it(`is refused for ${query.slice(0, 40)}, naming ${param}`, async () => {
      const { status, body } = await get(`/api/core/admin/usage?${query}`, admin);
      expect(status).to.equal(400);
      expect(body.error).to.include({ code: 'invalid_request', param });
    });

  it('is CSV whose columns sum to the ledger, also by tag', async () => {
    for (const by of ['user,model', 'tag']) {
      const { headers, body } = await get(`/api/core/admin/usage?by=${by}&format=csv`, admin);
      expect(headers.get('content-type')).to.include('text/csv');
      expect(headers.get('content-disposition')).to.match(/^attachment; filename="usage-[\d-]+-to-[\d-]+\.csv"$/);
      const [head, ...lines] = String(body).trim().split('\r\n');
      const at = head?.split(',').indexOf('cost_usd') ?? -1;
      expect(
        lines.reduce((sum, line) => sum + micro(line.split(',')[at] ?? ''), 0),
        by,
      ).to.equal(5 * COST);
    }
  });

  it('is listed call by call, newest first, in pages', async () => {
    const { body } = await get('/api/core/admin/calls?limit=2', admin);
    expect(body.data).to.have.length(2);
    expect(body.has_more).to.equal(true);
    const rest = await get(`/api/core/admin/calls?limit=100&after=${body.next}`, admin);
    expect(
      [...body.data, ...rest.body.data].map((one: Loose) => one.user_id).filter((user) => user === 'ann'),
    ).to.have.length(2);
    expect(new Set([...body.data, ...rest.body.data].map(({ id }: Loose) => id)).size).to.equal(6);
    const [tagged] = (await get('/api/core/admin/calls?tag=project=x', admin)).body.data;
    expect(tagged).to.include({ user_id: 'ann', account: 'team', provider: 'echo', model: 'echo', outcome: 'ok' });
    expect(tagged).to.include({ cost_usd: '0.000002', estimated: false, priced: true });
    expect(tagged.tags).to.deep.equal(['project=x', 'team=search']);
    expect(tagged.units).to.include({ prompt_tokens: 1, completion_tokens: 1 });
    const one = await get(`/api/core/admin/calls/${tagged.id}`, admin);
    expect(one.body).to.deep.equal({ ...tagged, bodies: null });
  });

  it('is found by the id of its request', async () => {
    const [one] = (await get('/api/core/admin/calls?tag=project=x', admin)).body.data;
    const { body } = await get(`/api/core/admin/calls?request=${one.request_id}`, admin);
    expect(body.data).to.deep.equal([one]);
    expect((await get(`/api/core/calls?request=${one.request_id}`, bobKey)).body.data).to.deep.equal([]);
  });

  it('is listed to callers for their own calls', async () => {
    expect((await get('/api/core/calls', annKey)).body.data).to.have.length(2);
    expect((await get('/api/core/calls?user=ann', teamToken)).body.data).to.have.length(2);
    expect((await get('/api/core/calls', teamToken)).body.data).to.have.length(5);
    expect((await get('/api/core/calls?outcome=error', teamToken)).body.data).to.have.length(0);
  });

  it('is 404 for a call that does not exist, and 400 for unknown values', async () => {
    for (const id of ['call_0', 'x', `call_${'a'.repeat(22)}`, '..%2F..%2Fetc', `call_mz0${'a'.repeat(19)}`])
      expect((await get(`/api/core/admin/calls/${id}`, admin)).body.error.code, id).to.equal('not_found');
    for (const query of [
      'outcome=fine',
      'follow=yes',
      'follow=true&from=2026-11-01',
      'limit=5000',
      'after=%00',
      'tz=Mars',
    ])
      expect((await get(`/api/core/admin/calls?${query}`, admin)).body.error.code, query).to.equal('invalid_request');
  });

  it('is printed by commands in the same terms', async () => {
    const byUser = await gateway.command<Loose>('usage', '--by', 'user', '--last', '1h');
    expect(byUser.totals).to.include({ requests: 6, cost_usd: '0.00001' });
    const calls = await gateway.command<Loose>('calls', '--user', 'ann', '--since', '1h', '--limit', '1');
    expect(calls.data).to.have.length(1);
    expect(calls).to.include({ has_more: true });
    const shown = await gateway.command<Loose>('calls', 'show', calls.data[0].id);
    expect(shown).to.include({ id: calls.data[0].id, user_id: 'ann', bodies: null });
  });
});
