import { createHmac } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { expect } from 'chai';
import { runPluginCommand } from '../../cli/plugin-commands.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { captureTerminal } from '../support/processes/plugin-command.ts';
import { eventually } from '../support/wait.ts';

/** Model with a price of 0.002 dollars per output token and free input; it echoes its prompt. */
const PROVIDERS = { echo: { prices: { '*': { input: 0, output: 2000 } } } };

interface Reply {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly body: any;
}

describe('budgets in calendar windows', () => {
  let gateways: TestGateway[] = [];
  let folder: string;
  let operator: string;
  before(async () => {
    folder = await mkdtemp(path.join(os.tmpdir(), 'tollgate-budgets-'));
  });
  after(() => rm(folder, { recursive: true, force: true }));
  afterEach(async () => {
    for (const gateway of gateways) await gateway.stop();
    gateways = [];
  });

  const start = async (config: object = {}): Promise<TestGateway> => {
    const gateway = await startGateway({ providers: PROVIDERS, ...config });
    gateways.push(gateway);
    return gateway;
  };
  const startWithOperator = async (config: object = {}): Promise<TestGateway> => {
    const gateway = await start({ tags: { team: ['search'] }, ...config });
    const { api_key } = await gateway.command<{ api_key: string }>('keys', 'create', '--user', 'op', '--admin');
    operator = api_key;
    return gateway;
  };
  const send = async (
    { url }: TestGateway,
    method: string,
    where: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Reply> => {
    const response = await fetch(`${url}/api/core/admin/budgets${where}`, {
      method,
      headers: { authorization: `Bearer ${operator}`, 'content-type': 'application/json', ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return { status: response.status, headers: response.headers, body: await response.json() };
  };
  /** Sends a chat that costs this many dollars and reserves the same amount. */
  const chat = (gateway: TestGateway, dollars: number, key = gateway.key): Promise<Response> =>
    gateway.post(
      '/v1/chat/completions',
      {
        model: 'echo/echo',
        max_tokens: dollars * 500,
        messages: [{ role: 'user', content: 'word '.repeat(dollars * 700) }],
      },
      { authorization: `Bearer ${key}` },
    );

  it('refuse a call that one of them does not cover, with its name, the rest and the time of its reset', async () => {
    const gateway = await start({
      budgets: [
        { name: 'week', amount_usd: 100, every: 'week' },
        { name: 'daily', amount_usd: 2, every: 'day', timezone: 'Europe/Berlin' },
      ],
    });
    expect((await chat(gateway, 1)).status).to.equal(200);
    const refused = await chat(gateway, 2);
    const { error } = (await refused.json()) as { error: { message: string; code: string } };
    expect(refused.status).to.equal(402);
    expect(error.code).to.equal('insufficient_balance');
    expect(error.message).to.match(
      /^The budget "daily" of 2\.00 USD a day does not cover the call: 1\.00 USD are left, and the call may cost 2\.00 USD\. It resets at \d{4}-\d\d-\d\dT2[23]:00:00Z\./,
    );
    expect(refused.headers.get('x-should-retry')).to.equal('false');
    const wait = Number(refused.headers.get('retry-after'));
    const resets = Date.parse(/resets at (\S+)\. /.exec(error.message)?.[1] ?? '');
    expect(Math.abs(resets - Date.now() - wait * 1000)).to.be.below(5000);
  });

  for (const model of ['echo', 'echo/echo', 'echo/e*', 'ech*', 'quick'])
    it(`count the model "${model}", under the name in requests, by whichever name it is called (E42)`, async () => {
      const gateway = await startWithOperator({ models: { quick: 'echo/echo' } });
      const put = await send(gateway, 'PUT', '/narrow', { amount_usd: 3, every: 'day', model });
      expect(put.status, JSON.stringify(put.body)).to.equal(200);
      await eventually(async () => {
        expect((await chat(gateway, 1)).status).to.equal(200);
        const { body } = await send(gateway, 'GET', '/narrow');
        expect(Number(body.spent_usd)).to.be.above(0);
      });
      await eventually(async () => expect((await chat(gateway, 3)).status).to.equal(402));
    });

  it('are refused for an unknown model, with the nearest names, in every place (E42)', async () => {
    const providers = {
      one: { plugin: 'openai-compatible', baseUrl: 'http://127.0.0.1:9', apiKey: 'k', models: ['large'] },
    };
    const gateway = await startWithOperator({ providers, models: { quick: 'one/large' } });
    const wrong = { amount_usd: 3, every: 'day' };
    for (const [more, hint] of [
      [{ model: 'one/larg' }, /"model" names a model that no provider lists\. Did you mean one\/large/],
      [{ model: 'quik' }, /Did you mean quick/],
      [{ model: 'nope*' }, /"model" names a model/],
      [{ model: 'nope', provider: 'one' }, /"model" names a model that "one" does not list/],
    ] as const) {
      const { status, body } = await send(gateway, 'PUT', '/wrong', { ...wrong, ...more });
      expect([status, body.error.param], JSON.stringify(more)).to.deep.equal([400, 'model']);
      expect(body.error.message).to.match(hint);
    }
    const plan = await fetch(`${gateway.url}/api/core/admin/plans/team`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${operator}`, 'content-type': 'application/json' },
      body: JSON.stringify({ budgets: [{ ...wrong, model: 'quik' }] }),
    });
    expect([plan.status, await plan.text()].join(' ')).to.match(/^400 .*budgets\.0\.model.*quick/);
    for (const config of [
      { budgets: [{ ...wrong, name: 'b', model: 'one/larg' }] },
      { plans: { free: { budgets: [{ ...wrong, model: 'one/larg' }] } } },
    ]) {
      const refused = await start({ providers, ...config }).catch(String);
      expect(refused).to.match(
        /budgets\.0: its "model" names a model that no provider lists\. Did you mean one\/large/,
      );
    }
  });

  it('are listed with their amounts', async () => {
    const gateway = await startWithOperator({ store: 'sqlite:./data', models: { quick: 'echo/echo' } });
    for (const [name, filter] of Object.entries({
      all: {},
      model: { model: 'quick' },
      provider: { provider: 'echo' },
      two: { user: 'ann', tag: 'team=search', model: 'echo/e*' },
    }))
      expect((await send(gateway, 'PUT', `/${name}`, { amount_usd: 3, every: 'day', ...filter })).status).to.equal(200);
    const { terminal, out } = captureTerminal();
    const config = path.join(gateway.folder, 'tollgate.config.json');
    const context = { terminal, globals: { config, json: false }, args: ['list'], options: {} };
    await runPluginCommand('budgets', ['list'], context, { cwd: gateway.folder, env: process.env });
    expect(
      out()
        .split('\n')
        .map((line) => line.split(/ {2,}/).slice(0, 2)),
    ).to.deep.include.members([
      ['all', 'all'],
      ['model', 'model quick'],
      ['provider', 'provider echo'],
      ['two', 'ann team=search model echo/e*'],
    ]);
  });

  it('of a plan are separate for each account; a balance shows all budgets of its caller', async () => {
    const gateway = await startWithOperator({
      budgets: [
        { name: 'everyone', amount_usd: 50, soft_usd: 40, every: 'month', timezone: 'Asia/Kolkata', provider: 'echo' },
      ],
      plans: { free: { budgets: [{ amount_usd: 2, every: 'day' }] } },
      defaultPlan: 'free',
    });
    const make = async (user: string) =>
      (await gateway.command<{ api_key: string }>('keys', 'create', '--user', user, '--budget', '9')).api_key;
    const [ann, bob] = [await make('ann'), await make('bob')];
    expect((await chat(gateway, 2, ann)).status).to.equal(200);
    expect((await chat(gateway, 1, ann)).status).to.equal(402);
    expect((await chat(gateway, 1, bob)).status).to.equal(200);
    await eventually(async () => {
      const response = await gateway.get('/api/core/balance', { authorization: `Bearer ${ann}` });
      const { budgets, limits } = (await response.json()) as { budgets: Record<string, unknown>[]; limits: object };
      expect(limits).to.not.have.property('budgets');
      const shown = budgets.map(({ starts_at: _starts, resets_at, ...rest }) => ({
        ...rest,
        resets: resets_at !== null,
      }));
      expect(shown).to.have.deep.members([
        {
          ...{ name: 'budget_usd', of: 'key', every: 'total', timezone: 'UTC', amount_usd: '9.00' },
          ...{ spent_usd: '2.00', held_usd: '0.00', left_usd: '7.00', resets: false },
        },
        {
          ...{ name: 'day', of: 'plan', every: 'day', timezone: 'UTC', amount_usd: '2.00' },
          ...{ spent_usd: '2.00', held_usd: '0.00', left_usd: '0.00', resets: true },
        },
        {
          ...{
            name: 'everyone',
            of: 'all',
            every: 'month',
            timezone: 'Asia/Kolkata',
            amount_usd: '50.00',
            soft_usd: '40.00',
          },
          ...{ provider: 'echo', spent_usd: '3.00', held_usd: '0.00', left_usd: '47.00', resets: true },
        },
      ]);
    });
  });

  it('of a key carry over to the key that replaces it, and are shown with it', async () => {
    const gateway = await startWithOperator();
    const made = await gateway.command<{ api_key: string; api_key_info: { id: string; budgets: unknown } }>(
      ...['keys', 'create', '--user', 'ann', '--budgets', 'day=2,month=20@Europe/Berlin'],
    );
    expect(made.api_key_info.budgets).to.deep.equal([
      { name: 'day', amount_usd: '2.00', every: 'day', timezone: 'UTC' },
      { name: 'month', amount_usd: '20.00', every: 'month', timezone: 'Europe/Berlin' },
    ]);
    const { id } = made.api_key_info;
    expect((await chat(gateway, 1, made.api_key)).status).to.equal(200);
    const second = await gateway.command<{ api_key: string; api_key_info: { id: string } }>('keys', 'rotate', id);
    const third = await gateway.command<{ api_key: string }>('keys', 'rotate', second.api_key_info.id);
    expect((await chat(gateway, 2, third.api_key)).status).to.equal(402);
    expect((await chat(gateway, 1, third.api_key)).status).to.equal(200);
    // A budget named by the second of three keys counts the third too.
    await send(gateway, 'PUT', '/named', { amount_usd: 1, every: 'total', key: second.api_key_info.id });
    await gateway.command('keys', 'update', id, '--clear', 'budgets');
    const fourth = await gateway.command<{ api_key: string; api_key_info: { id: string; budgets: unknown } }>(
      ...['keys', 'create', '--user', 'ann'],
    );
    expect(fourth.api_key_info.budgets).to.equal(null);
    await eventually(async () => {
      const response = await gateway.get('/api/core/balance', { authorization: `Bearer ${third.api_key}` });
      const { budgets } = (await response.json()) as { budgets: { name: string; left_usd: string }[] };
      expect(budgets.map(({ name, left_usd }) => [name, left_usd])).to.deep.equal([
        ['day', '0.00'],
        ['month', '18.00'],
        // Earlier spending of the key counts too, completely.
        ['named', '0.00'],
      ]);
    });
  });

  it('of a key are shown to operators with spend and rest on the key’s page', async () => {
    const gateway = await startWithOperator();
    const first = await gateway.command<{ api_key: string; api_key_info: { id: string } }>(
      ...['keys', 'create', '--user', 'ann', '--budgets', 'total=9,month=20@Asia/Kolkata'],
    );
    const { id } = first.api_key_info;
    expect((await chat(gateway, 2, first.api_key)).status).to.equal(200);
    const second = await gateway.command<{ api_key_info: { id: string } }>('keys', 'rotate', id);
    const read = async (where: string): Promise<Record<string, unknown>> => {
      const response = await gateway.get(`/api/core/admin/keys${where}`, { authorization: `Bearer ${operator}` });
      return (await response.json()) as Record<string, unknown>;
    };
    interface Shown {
      readonly budgets: readonly Record<string, unknown>[];
    }
    // The rotated key continues with the spend of its predecessor.
    for (const key of [id, second.api_key_info.id]) {
      const [total, month] = ((await read(`/${key}`)) as unknown as Shown).budgets;
      expect(total).to.include({
        name: 'total',
        spent_usd: '2.00',
        held_usd: '0.00',
        left_usd: '7.00',
        resets_at: null,
      });
      expect(month).to.include({ amount_usd: '20.00', spent_usd: '2.00', left_usd: '18.00' });
      expect(month?.['resets_at']).to.match(/T18:30:00Z$/);
      expect((await gateway.command<Shown>('keys', 'show', key)).budgets).to.deep.equal([total, month]);
    }
    const { data } = (await read('?user=ann')) as unknown as { data: readonly Shown[] };
    for (const { budgets } of data) for (const budget of budgets) expect(budget).to.not.have.property('left_usd');
  });

  describe('that operators create at run time', () => {
    const BUDGET = { amount_usd: '1.00', every: 'day', tag: 'team=search' };

    it('are created, read, listed, raised and deleted, each change with an entity tag', async () => {
      const gateway = await startWithOperator({ budgets: [{ name: 'ours', amount_usd: 5, every: 'week' }] });
      const made = await send(gateway, 'PUT', '/search', { ...BUDGET, soft_usd: 0.5, timezone: 'Europe/Berlin' });
      expect(made.status, JSON.stringify(made.body)).to.equal(200);
      expect(made.body).to.include({
        name: 'search',
        owner: 'store',
        of: 'tag',
        tag: 'team=search',
        amount_usd: '1.00',
      });
      expect(made.body).to.include({
        soft_usd: '0.50',
        spent_usd: '0.00',
        left_usd: '1.00',
        timezone: 'Europe/Berlin',
      });
      const etag = made.headers.get('etag') ?? '';
      expect((await send(gateway, 'GET', '/search')).headers.get('etag')).to.equal(etag);

      const changed = await send(gateway, 'PUT', '/search', { ...BUDGET, amount_usd: 3 }, { 'if-match': etag });
      expect(changed.status).to.equal(200);
      const late = await send(gateway, 'PUT', '/search', { ...BUDGET, amount_usd: 9 }, { 'if-match': etag });
      expect([late.status, late.body.error.code]).to.deep.equal([412, 'precondition_failed']);

      const until = new Date(Date.now() + 3_600_000).toISOString();
      const raised = await send(gateway, 'POST', '/ours/raises', { amount_usd: '2.50', until });
      expect(raised.body).to.include({ amount_usd: '5.00', raised_usd: '2.50', left_usd: '7.50', owner: 'file' });
      expect((await send(gateway, 'DELETE', '/ours/raises')).body).to.include({ left_usd: '5.00' });

      const pages = [await send(gateway, 'GET', '?limit=1'), await send(gateway, 'GET', '?limit=1&after=ours')];
      expect(
        pages.map(({ body }) => [body.data.map(({ name }: { name: string }) => name), body.has_more, body.next]),
      ).to.deep.equal([
        [['ours'], true, 'ours'],
        [['search'], false, undefined],
      ]);

      expect((await send(gateway, 'DELETE', '/search')).body).to.include({ name: 'search', amount_usd: '3.00' });
      expect((await send(gateway, 'GET', '/search')).status).to.equal(404);
      expect((await send(gateway, 'DELETE', '/search')).status).to.equal(404);
    });

    it('do not include those of the configuration, which cannot be changed', async () => {
      const gateway = await startWithOperator({ budgets: [{ name: 'ours', amount_usd: 5, every: 'week' }] });
      for (const [method, body] of [['PUT', BUDGET], ['DELETE']] as const) {
        const { status, body: response } = await send(gateway, method, '/ours', body);
        expect([status, response.error.code]).to.deep.equal([409, 'conflict']);
        expect(response.error.message).to.include('The budget "ours" is in the configuration file');
      }
    });

    it('apply on another gateway of the store, raises too @slow', async () => {
      const store = `sqlite:${path.join(folder, 'two')}`;
      const one = await startWithOperator({ store });
      const two = await start({ store });
      await chat(two, 1, one.key);
      await send(one, 'PUT', '/all', { amount_usd: 1, every: 'day' });
      await eventually(async () => expect((await chat(two, 2, one.key)).status).to.equal(402));
      // Calls before the budget was known count too.
      await send(one, 'POST', '/all/raises', { amount_usd: 1000, until: new Date(Date.now() + 60_000).toISOString() });
      await eventually(async () => expect((await chat(two, 2, one.key)).status).to.equal(200));
    });

    it('include what their window has spent before they were created, and while they were removed', async () => {
      const gateway = await startWithOperator();
      await chat(gateway, 1, gateway.key);
      const put = () => send(gateway, 'PUT', '/all', { amount_usd: 4, every: 'day', timezone: 'Asia/Kathmandu' });
      expect((await put()).body).to.include({ spent_usd: '1.00', left_usd: '3.00' });
      await send(gateway, 'DELETE', '/all');
      await chat(gateway, 2, gateway.key);
      expect((await put()).body).to.include({ spent_usd: '3.00', left_usd: '1.00' });
      expect((await chat(gateway, 2, gateway.key)).status).to.equal(402);
      expect((await chat(gateway, 1, gateway.key)).status).to.equal(200);
    });

    it('are managed by the same terms on the command line', async () => {
      const gateway = await startWithOperator({ budgets: [{ name: 'ours', amount_usd: 5, every: 'week' }] });
      const put = await gateway.command(
        'budgets',
        'set',
        'ann',
        '2',
        '--every',
        'month',
        '--starts-on',
        '15',
        '--user',
        'ann',
      );
      expect(put).to.include({
        name: 'ann',
        amount_usd: '2.00',
        every: 'month',
        starts_on: 15,
        of: 'user',
        user: 'ann',
      });
      expect(await gateway.command('budgets', 'raise', 'ours', '1.5', '--until', '2d')).to.include({
        raised_usd: '1.50',
      });
      const { data: listed } = await gateway.command<{ data: Record<string, unknown>[] }>('budgets', 'list');
      expect(listed.map(({ name, left_usd }) => [name, left_usd])).to.deep.equal([
        ['ann', '2.00'],
        ['ours', '6.50'],
      ]);
      const bare = await gateway.command('budgets', 'raise', 'ours', '1', '--until', '60').catch(String);
      expect(bare).to.include('--until "60" is not a duration').and.include('"60s" for seconds or "60ms"');
      expect(await gateway.command('budgets', 'raise', 'ours', '--end')).to.not.have.property('raised_usd');
      expect(await gateway.command('budgets', 'delete', 'ann')).to.include({ name: 'ann', amount_usd: '2.00' });
    });

    it('of a plan are raised for one account only, over the API and on the command line @slow', async () => {
      const gateway = await startWithOperator({
        plans: { free: { budgets: [{ amount_usd: 2, every: 'day' }] } },
        defaultPlan: 'free',
      });
      const make = async (user: string) =>
        (await gateway.command<{ api_key: string }>('keys', 'create', '--user', user)).api_key;
      const [ann, bob] = [await make('ann'), await make('bob')];
      for (const key of [ann, bob]) expect((await chat(gateway, 2, key)).status).to.equal(200);
      expect((await chat(gateway, 1, ann)).status).to.equal(402);
      const until = new Date(Date.now() + 3_600_000).toISOString();
      const raised = await send(gateway, 'POST', '/../accounts/ann/raises', { budget: 'day', amount_usd: 1, until });
      expect(raised.body, JSON.stringify(raised.body)).to.include({
        account: 'ann',
        budget: 'day',
        raised_usd: '1.00',
      });
      const more = await gateway.command('budgets', 'raise', 'day', '1.5', '--until', '2d', '--account', 'ann');
      expect(more).to.include({ raised_usd: '2.50' });
      await eventually(async () => expect((await chat(gateway, 2, ann)).status).to.equal(200));
      expect((await chat(gateway, 1, ann)).status).to.equal(402);
      expect((await chat(gateway, 1, bob)).status).to.equal(402);

      const response = await gateway.get('/api/core/balance', { authorization: `Bearer ${ann}` });
      const { budgets } = (await response.json()) as { budgets: readonly object[] };
      expect(budgets[0]).to.include({ name: 'day', of: 'plan', amount_usd: '2.00', raised_usd: '2.50' });
      const { body } = await send(gateway, 'GET', '/../accounts/ann/raises');
      expect(body.data).to.have.lengthOf(1);
      expect(body.data[0].raises).to.have.lengthOf(2);
      expect((await send(gateway, 'GET', '/../accounts/bob/raises')).body.data).to.deep.equal([]);

      expect(await gateway.command('budgets', 'raise', 'day', '--end', '--account', 'ann')).to.include({
        raised_usd: '0.00',
      });
      const log = await gateway.get('/api/core/admin/audit?subject=ann', { authorization: `Bearer ${operator}` });
      // biome-ignore lint/suspicious/noExplicitAny: entries of every shape
      const { data } = (await log.json()) as { data: any[] };
      expect(data.map(({ action, before, after }) => [action, before.raised_usd, after.raised_usd])).to.deep.equal([
        ['account.end_raises', '2.50', '0.00'],
        ['account.raise', '1.00', '2.50'],
        ['account.raise', '0.00', '1.00'],
      ]);
    });

    it('of a plan are not raised under an unknown name, nor by other callers', async () => {
      const gateway = await startWithOperator({ plans: { free: { budgets: [{ amount_usd: 2, every: 'day' }] } } });
      const until = new Date(Date.now() + 3_600_000).toISOString();
      const raise = (body: object, account = 'ann') => send(gateway, 'POST', `/../accounts/${account}/raises`, body);
      const misspelt = await raise({ budget: 'days', amount_usd: 1, until });
      expect([misspelt.status, misspelt.body.error.message]).to.deep.equal([
        404,
        'No plan has a budget "days". Did you mean "day"?',
      ]);
      for (const [body, param] of [
        [{ budget: 'day', amount_usd: 0, until }, 'amount_usd'],
        [{ budget: 'day', amount_usd: 1, until: '2020-01-01T00:00:00Z' }, 'until'],
        [{ budget: 'day', amount_usd: 1, until, account: 'bob' }, 'account'],
      ] as const) {
        const { status, body: response } = await raise(body);
        expect([status, response.error.param]).to.deep.equal([400, param]);
      }
      expect((await raise({ budget: 'day', amount_usd: 1, until }, '%00')).status).to.equal(400);
      expect((await send(gateway, 'DELETE', '/../accounts/ann/raises?budget=day')).status).to.equal(404);
      operator = gateway.key;
      expect((await raise({ budget: 'day', amount_usd: 1, until })).status).to.equal(403);
    });

    it('can belong to a plan created by operators', async () => {
      const gateway = await startWithOperator();
      const put = async (body: object): Promise<Response> =>
        fetch(`${gateway.url}/api/core/admin/plans/small`, {
          method: 'PUT',
          headers: { authorization: `Bearer ${operator}`, 'content-type': 'application/json' },
          body: JSON.stringify(body),
        });
      const wrong = await put({ budgets: [{ amount_usd: 2, every: 'day', timezone: 'Here' }] });
      expect(wrong.status).to.equal(400);
      expect(((await wrong.json()) as { error: { message: string } }).error.message).to.equal(
        '"budgets.0.timezone" is not a time zone. Use an IANA name such as Europe/Berlin, America/New_York or UTC.',
      );
      const made = await put({ rpm: 100, budgets: [{ amount_usd: 2, every: 'day' }] });
      expect((await made.json()) as object).to.deep.include({
        rpm: 100,
        budgets: [{ name: 'day', amount_usd: '2.00', every: 'day', timezone: 'UTC' }],
      });
      const { api_key } = await gateway.command<{ api_key: string }>(
        'keys',
        'create',
        '--user',
        'ann',
        '--plan',
        'small',
      );
      expect((await chat(gateway, 2, api_key)).status).to.equal(200);
      expect((await chat(gateway, 1, api_key)).status).to.equal(402);
    });

    it('are in the audit log with their previous values', async () => {
      const gateway = await startWithOperator();
      await send(gateway, 'PUT', '/search', BUDGET);
      await send(gateway, 'PUT', '/search', { ...BUDGET, amount_usd: 3 });
      await gateway.command('budgets', 'delete', 'search');
      const response = await gateway.get('/api/core/admin/audit?subject=search', {
        authorization: `Bearer ${operator}`,
      });
      // biome-ignore lint/suspicious/noExplicitAny: entries of every shape
      const { data } = (await response.json()) as { data: any[] };
      expect(
        data.map(({ action, actor, before, after }) => [action, actor.via, before?.amount_usd, after?.amount_usd]),
      ).to.deep.equal([
        ['budget.remove', 'cli', '3.00', undefined],
        ['budget.put', 'api', '1.00', '3.00'],
        ['budget.put', 'api', undefined, '1.00'],
      ]);
    });

    it('are for operators only', async () => {
      const gateway = await startWithOperator();
      operator = gateway.key;
      expect((await send(gateway, 'GET', '')).status).to.equal(403);
      expect((await send(gateway, 'PUT', '/x', BUDGET)).status).to.equal(403);
    });

    it('are refused for an invalid field, with its name and the valid values', async () => {
      const gateway = await startWithOperator();
      const cases: readonly (readonly [path: string, body: object, param: string])[] = [
        ['/x', { amount_usd: 0, every: 'day' }, 'amount_usd'],
        ['/x', { amount_usd: '1e9', every: 'day' }, 'amount_usd'],
        ['/x', { amount_usd: 1, every: 'year' }, 'every'],
        ['/x', { amount_usd: 1, every: 'day', timezone: '../../etc/passwd' }, 'timezone'],
        ['/x', { amount_usd: 1, every: 'month', starts_on: 31 }, 'starts_on'],
        ['/x', { amount_usd: 1, every: 'day', plan: 'gold' }, 'plan'],
        ['/x', { amount_usd: 1, every: 'day', provider: 'missing' }, 'provider'],
        ['/x', { amount_usd: 1, soft_usd: 2, every: 'day' }, 'soft_usd'],
        ['/x', { amount_usd: 1, every: 'day', user: 'u'.repeat(500) }, 'user'],
        ['/x', { amount_usd: 1, every: 'day', owner: 'file' }, 'owner'],
        ['/x', { amount_usd: 1, every: 'day', tag: 'team=serch' }, 'tag'],
        ['/x%2Fy', { amount_usd: 1, every: 'day' }, 'name'],
        [`/${'n'.repeat(200)}`, { amount_usd: 1, every: 'day' }, 'name'],
      ];
      for (const [where, body, param] of cases) {
        const { status, body: response } = await send(gateway, 'PUT', where, body);
        expect([status, response.error.param], JSON.stringify(response)).to.deep.equal([400, param]);
      }
      const misspelt = await send(gateway, 'PUT', '/x', { amount_usd: 1, every: 'day', tag: 'team=serch' });
      expect(misspelt.body.error.message).to.equal(
        '"tag" refers to a tag that is not in "tags" of the configuration. Did you mean "team=search"?',
      );
      await send(gateway, 'PUT', '/x', { amount_usd: 1, every: 'day' });
      for (const [body, param] of [
        [{ amount_usd: -1, until: '2099-01-01T00:00:00Z' }, 'amount_usd'],
        [{ amount_usd: 1, until: '2020-01-01T00:00:00Z' }, 'until'],
        [{ amount_usd: 1, until: '2099-01-01T00:00:00Z' }, 'until'],
        [{ amount_usd: 1, until: 'tomorrow' }, 'until'],
      ] as const) {
        const { status, body: response } = await send(gateway, 'POST', '/x/raises', body);
        expect([status, response.error.param]).to.deep.equal([400, param]);
      }
      expect((await send(gateway, 'GET', '/constructor')).status).to.equal(404);
      expect((await send(gateway, 'GET', '?limit=1000000')).status).to.equal(400);
    });

    it('lose none of twenty concurrent changes', async () => {
      const gateway = await startWithOperator();
      const names = Array.from({ length: 20 }, (_, at) => `b${at}`);
      const made = await Promise.all(
        names.map((name) => send(gateway, 'PUT', `/${name}`, { amount_usd: 1, every: 'day' })),
      );
      expect(made.map(({ status }) => status)).to.deep.equal(names.map(() => 200));
      const { body } = await send(gateway, 'GET', '?limit=100');
      expect(body.data.map(({ name }: { name: string }) => name)).to.have.members(names);
    });
  });

  describe('with a soft limit', () => {
    let server: Server;
    let posts: { readonly signature: string; readonly body: string }[];
    let statuses: number[];
    beforeEach(async () => {
      posts = [];
      statuses = [];
      server = createServer((request, response) => {
        let body = '';
        request.on('data', (bytes: Buffer) => {
          body += String(bytes);
        });
        request.on('end', () => {
          posts.push({ signature: String(request.headers['x-tollgate-signature']), body });
          response.writeHead(statuses.shift() ?? 204, { location: '/elsewhere' }).end();
        });
      });
      await new Promise<void>((resolve) => {
        server.listen(0, '127.0.0.1', resolve);
      });
    });
    afterEach(() => new Promise((resolve) => void server.close(resolve)));

    it('warn in the log, in a header and by a signed webhook, once per window', async () => {
      const secret = 'a secret of the test';
      const gateway = await start({
        budgets: [{ name: 'all', amount_usd: 3, soft_usd: 1, every: 'total' }],
        policies: {
          accounts: {
            budgetWebhook: { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, secret },
          },
        },
      });
      expect((await chat(gateway, 1)).headers.get('x-tollgate-budget-warning')).to.equal(null);
      await eventually(async () => expect(posts).to.have.lengthOf(1));
      expect((await chat(gateway, 1)).headers.get('x-tollgate-budget-warning')).to.equal('all 1.00/3.00 resets never');
      expect((await chat(gateway, 2)).status).to.equal(402);
      expect((await chat(gateway, 2)).status).to.equal(402);
      await eventually(async () => expect(posts).to.have.lengthOf(2));
      const [soft, usedUp] = posts.map(({ body }) => JSON.parse(body) as Record<string, unknown>);
      expect(soft).to.include({ type: 'budget.soft_limit', budget: 'all', used: '1.00', amount: '3.00', soft: '1.00' });
      expect(usedUp).to.include({ type: 'budget.used_up', budget: 'all', used: '2.00', resets_at: null });
      for (const { signature, body } of posts) {
        const [, t = '', v1] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(signature) ?? [];
        expect(v1).to.equal(createHmac('sha256', secret).update(`${t}.${body}`).digest('hex'));
      }
      const warned = gateway.logs.filter(({ budget }) => budget === 'all').map(({ level, msg }) => [level, msg]);
      expect(warned).to.have.lengthOf(2);
      expect(gateway.logText()).to.not.include(secret);
    });
  });
});
