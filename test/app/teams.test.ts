import { expect } from 'chai';
import { type Browser, bodyOf, openBrowser } from '../support/clients/browser.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { type Operator, type Reported, startOperator } from '../support/gateways/operator.ts';
import { CLIENT_SECRET, type OpenIdPeople, startOpenIdPeople } from '../support/identity/openid-people.ts';
import { AUDIENCE, ISSUER, signShared } from '../support/identity/tokens.ts';
import { freePort } from '../support/processes/server-process.ts';

const SECRET = 'kT8w2Zr5Xv9Bn4Qm7Hd1Lf6Gj3Cs0YpA';
const ADMIN = '/api/core/admin';
const SEARCH = encodeURIComponent('team=search');
const ADS = encodeURIComponent('team=ads');
const OWN = `/own-teams/${SEARCH}`;

describe('teams with their own admins (E41)', () => {
  let operator: Operator;
  let owner: string;

  before(async () => {
    const jwt = { issuer: ISSUER, audience: AUDIENCE, secret: SECRET };
    operator = await startOperator({
      tags: { team: ['search', 'ads'], project: ['x'] },
      providers: { echo: { prices: { '*': { input: 1, output: 1 } } } },
      plans: { free: {}, pro: { rpm: 1000 }, tools: { serverTools: ['web_search'] } },
      budgets: [{ name: 'of-file', amount_usd: 5, every: 'day', tag: 'team=search' }],
      auth: {
        'api-key': { bootstrap: true },
        jwt: { ...jwt, roleClaims: ['groups'], roles: { leads: 'team', ops: 'team' } },
      },
    });
    const { call } = operator;
    owner = (await call('POST', '/keys', { user_id: 'ann', role: 'team' })).body.api_key;
    await put(SEARCH, {
      owners: { users: ['ann'], groups: ['leads'] },
      ...{ members: ['bob'], models: ['echo/echo'], plans: ['free'], budget: { amount_usd: '20', every: 'day' } },
    });
    await put(ADS, { owners: { users: ['zoe'] }, members: ['*'] });
  });
  after(() => operator.gateway.stop());

  const put = async (team: string, body: object): Promise<Reported> => {
    const reported = await operator.call('PUT', `/teams/${team}`, body);
    expect(reported.status, JSON.stringify(reported.body)).to.equal(200);
    return reported;
  };
  const send = async (method: string, path: string, body?: object, bearer = owner): Promise<Reported> => {
    const response = await fetch(operator.gateway.url + ADMIN + path, {
      method,
      headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    return { status: response.status, headers: response.headers, body: await bodyOf(response) };
  };
  const refused = async (method: string, path: string, body?: object, param?: string, bearer = owner) => {
    const reported = await send(method, path, body, bearer);
    expect([path, reported.status, reported.body.error.code]).to.deep.equal([path, 403, 'permission_denied']);
    if (param !== undefined) expect(reported.body.error.param).to.equal(param);
    return reported.body.error.message as string;
  };
  const make = async (more: object = {}, bearer = owner): Promise<{ id: string; text: string }> => {
    const { status, body } = await send('POST', `${OWN}/keys`, more, bearer);
    expect(status, JSON.stringify(body)).to.equal(200);
    return { id: body.api_key_info.id, text: body.api_key };
  };

  it('let an owner create, list, rotate and revoke keys of the tag, which the team pays for', async () => {
    const made = await send('POST', `${OWN}/keys`, { name: 'batch', rpm: 60, budget_usd: 2 });
    expect(made.status).to.equal(200);
    expect(made.body.api_key_info).to.deep.include({
      ...{ user_id: 'team=search', tags: ['team=search'], models: ['echo/echo'], plan: null, role: null },
    });
    const key = made.body.api_key as string;
    expect((await operator.chat(key)).status).to.equal(200);
    expect((await operator.call('GET', `/accounts/${SEARCH}`)).body.spent_usd).to.be.a('string');
    const { id } = made.body.api_key_info;
    expect((await send('GET', `${OWN}/keys`)).body.data.map((each: { id: string }) => each.id)).to.include(id);
    const next = await send('POST', `${OWN}/keys/${id}/rotate`, { overlap_seconds: 0 });
    expect(next.body.api_key_info).to.deep.include({ tags: ['team=search'], rpm: 60, budget_usd: '2.00' });
    expect((await operator.chat(key)).code).to.equal('revoked_api_key');
    const successor = next.body.api_key_info.id;
    expect((await send('POST', `${OWN}/keys/${successor}/revoke`)).body.deleted).to.equal(true);
    expect((await operator.chat(next.body.api_key)).code).to.equal('revoked_api_key');
    const { data } = (await operator.call('GET', '/audit?actor=ann')).body;
    const actions = data.map(({ action }: { action: string }) => action);
    expect(actions).to.include.members(['key.create', 'key.rotate', 'key.revoke']);
  });

  it('give access only to their owners, and owners no other access', async () => {
    const { call } = operator;
    const other = (await call('POST', '/keys', { user_id: 'eve', role: 'team' })).body.api_key;
    const plain = (await call('POST', '/keys', { user_id: 'ann' })).body.api_key;
    const viewer = (await call('POST', '/keys', { user_id: 'ann', role: 'viewer' })).body.api_key;
    for (const bearer of [other, plain, viewer])
      for (const path of ['/keys', '/budgets', '/usage', '/calls'])
        await refused('GET', OWN + path, undefined, undefined, bearer);
    const there = await refused('GET', `/own-teams/${ADS}/keys`);
    const nowhere = await refused('GET', `/own-teams/${encodeURIComponent('team=no')}/keys`);
    expect(there.replace('ads', 'no')).to.equal(nowhere);
    expect((await send('GET', '/own-teams')).body.data.map(({ tag }: { tag: string }) => tag)).to.deep.equal([
      'team=search',
    ]);
    expect((await send('GET', '/own-teams', undefined, other)).body.data).to.deep.equal([]);
    for (const path of [
      '/keys',
      '/users/ann',
      '/accounts',
      '/budgets',
      '/usage',
      '/calls',
      '/plans',
      '/audit',
      '/targets',
      '/teams',
      '/configuration',
    ])
      await refused('GET', path);
    await refused('PUT', `/teams/${SEARCH}`, { owners: { users: ['ann'] } });
    await refused('POST', '/accounts/ann/credit', { amount_usd: 5 });
    expect((await operator.chat(owner)).message).to.include('"models:call"');
  });

  it('grant no more than the team has: no other tag, user, account, model, plan, tool or right', async () => {
    const path = `${OWN}/keys`;
    await refused('POST', path, { tags: ['team=ads'] }, 'tags');
    await refused('POST', path, { tags: ['team=search', 'project=x'] }, 'tags');
    await refused('POST', path, { user_id: 'zoe' }, 'user_id');
    await refused('POST', path, { models: ['echo/other'] }, 'models[0]');
    await refused('POST', path, { plan: 'tools' }, 'plan');
    await refused('POST', path, { server_tools: ['web_search'] }, 'server_tools[0]');
    for (const more of [{ role: 'admin' }, { scopes: ['keys:write'] }, { account: 'root' }])
      expect((await send('POST', path, more)).status).to.equal(400);
    const { text } = await make({ user_id: 'bob', plan: 'free', models: ['echo/echo'], tags: ['team=search'] });
    expect((await operator.chat(text)).status).to.equal(200);
    expect((await send('GET', `${OWN}/keys`, undefined, text)).status).to.equal(403);
  });

  it('return no key that operators created with more, and change no key of others', async () => {
    const { call } = operator;
    const tags = ['team=search'];
    const strangers = [
      { user_id: 'root', tags },
      { user_id: 'bob', account: 'root', tags },
      { user_id: 'bob', account: 'team=search', tags: [...tags, 'project=x'] },
      { user_id: 'bob', account: 'team=search', tags, role: 'admin' },
      { user_id: 'bob', account: 'team=search', tags, models: ['echo/other'] },
      { user_id: 'bob', account: 'team=search', tags, plan: 'tools' },
    ];
    for (const body of strangers) {
      const { id } = (await call('POST', '/keys', body)).body.api_key_info;
      const reported = await send('POST', `${OWN}/keys/${id}/rotate`);
      expect([JSON.stringify(body), reported.status]).to.deep.equal([JSON.stringify(body), 403]);
    }
    const admin = (await call('POST', '/keys', { user_id: 'root', role: 'admin', tags })).body.api_key_info.id;
    await refused('POST', `${OWN}/keys/${admin}/revoke`);
    const ads = (await call('POST', '/keys', { user_id: 'zoe', tags: ['team=ads'] })).body.api_key_info.id;
    for (const word of ['rotate', 'revoke'])
      expect((await send('POST', `${OWN}/keys/${ads}/${word}`)).body.error.code).to.equal('not_found');
    expect((await send('PATCH', `${OWN}/keys/${ads}`, { tags: ['team=search'] })).status).to.be.oneOf([404, 405]);
    // A cursor that is a key must be one of the team.
    expect((await send('GET', `${OWN}/keys?after=${ads}`)).body.error.code).to.equal('not_found');
    const listed: string[] = [];
    for (let after = ''; ; ) {
      const { body } = await send('GET', `${OWN}/keys?limit=1${after && `&after=${after}`}`);
      for (const each of body.data) {
        expect(each.tags).to.include('team=search');
        listed.push(each.id);
      }
      if (!body.has_more) break;
      after = body.next;
    }
    expect(listed).to.include(admin).and.not.include(ads);
    // A page that scanned many keys of others ends at the place of one.
    const { id: last, text } = await make();
    expect(text).to.match(/^tg_/);
    const createdAt = Date.parse((await call('GET', `/keys/${ads}`)).body.created_at);
    const place = `${createdAt.toString(36).padStart(9, '0')}.${ads}`;
    const { status, body } = await send('GET', `${OWN}/keys?after=${place}`);
    expect([status, body.data.map((each: { id: string }) => each.id)]).to.deep.equal([200, [last]]);
  });

  it('limit owners’ budgets to the tag and to the budget of the team, and do not touch those of others', async () => {
    const { call } = operator;
    const path = `${OWN}/budgets`;
    const day = { amount_usd: 20, every: 'day' };
    expect((await send('PUT', `${path}/bob`, { ...day, user: 'bob' })).body).to.deep.include({
      ...{ name: 'team=search~bob', tag: 'team=search', user: 'bob', owner: 'store' },
    });
    await refused('PUT', `${path}/bob`, { ...day, tag: 'team=ads' }, 'tag');
    await refused('PUT', `${path}/bob`, { amount_usd: 20.01, every: 'day' }, 'amount_usd');
    await refused('PUT', `${path}/bob`, { amount_usd: 21, every: 'hour' }, 'amount_usd');
    await refused('PUT', `${path}/bob`, { amount_usd: 20 * 31 + 1, every: 'month' }, 'amount_usd');
    expect((await send('PUT', `${path}/month`, { amount_usd: 600, every: 'month' })).status).to.equal(200);
    await call('PUT', '/budgets/cap', { amount_usd: 9, every: 'day', tag: 'team=search' });
    const names = (await send('GET', path)).body.data.map(({ name }: { name: string }) => name);
    expect(names).to.have.members(['of-file', 'cap', 'team=search', 'team=search~bob', 'team=search~month']);
    for (const name of ['cap', 'of-file', SEARCH]) {
      expect((await send('DELETE', `${path}/${name}`)).status, name).to.be.oneOf([400, 404]);
      const reported = await send('PUT', `${path}/${name}`, { amount_usd: 10, every: 'day' });
      if (reported.status === 200) expect(reported.body.name).to.equal(`team=search~${name}`);
      else expect(reported.status).to.equal(400);
    }
    expect((await call('GET', '/budgets/cap')).body.amount_usd).to.equal('9.00');
    expect((await call('GET', `/budgets/${SEARCH}`)).body.amount_usd).to.equal('20.00');
    expect((await call('DELETE', `/budgets/${SEARCH}`)).body.error.code).to.equal('conflict');
    expect((await send('DELETE', `${path}/bob`)).status).to.equal(200);
    expect((await call('GET', '/budgets/team=search~bob')).status).to.equal(404);
    for (let at = 0; at < 20; at += 1) await send('PUT', `${path}/b${at}`, day);
    expect((await send('PUT', `${path}/more`, day)).body.error.code).to.equal('conflict');
  });

  it('show usage and calls of the tag only, whatever the query', async () => {
    const { call, chat } = operator;
    const own = await make();
    const ads = (await call('POST', '/keys', { user_id: 'zoe', tags: ['team=ads'] })).body.api_key;
    for (const key of [own.text, ads, ads, own.text, ads]) expect((await chat(key)).status).to.equal(200);
    const all = (await call('GET', '/calls?limit=100')).body.data as { id: string; tags: readonly string[] }[];
    const foreign = all.find(({ tags }) => tags.includes('team=ads'))?.id;
    const cursor = (await call('GET', '/calls?limit=1')).body.next as string;
    const queries = [
      '',
      '?limit=1',
      '?user=zoe',
      '?account=zoe',
      '?outcome=ok',
      `?after=${encodeURIComponent(cursor)}`,
    ];
    for (const query of queries) {
      const { status, body } = await send('GET', `${OWN}/calls${query}`);
      expect([query, status]).to.deep.equal([query, 200]);
      for (const each of body.data) expect(each.tags, query).to.include('team=search');
    }
    await refused('GET', `${OWN}/calls?tag=${ADS}`, undefined, 'tag');
    await refused('GET', `${OWN}/usage?tag=${ADS}`, undefined, 'tag');
    const [mine] = (await send('GET', `${OWN}/calls?limit=1`)).body.data;
    expect((await send('GET', `${OWN}/calls/${mine.id}`)).body).to.not.have.property('bodies');
    expect((await send('GET', `${OWN}/calls/${foreign}`)).body.error.code).to.equal('not_found');
    const byUser = (await send('GET', `${OWN}/usage?by=user&last=30d`)).body;
    const users = byUser.data.map(({ user }: { user: string }) => user);
    expect(users).to.include('team=search').and.not.include('zoe');
    const whole = (await call('GET', `/usage?by=user&last=30d&tag=${SEARCH}`)).body.totals;
    expect(byUser.totals).to.deep.equal(whole);
  });

  it('are owned by groups of tokens, by keys and by those that replace them, until the operators change it', async () => {
    const { call, gateway } = operator;
    const token = (groups: readonly string[]) => signShared(SECRET, { sub: 'lea', groups });
    expect((await send('GET', `${OWN}/keys`, undefined, token(['leads']))).status).to.equal(200);
    await refused('GET', `${OWN}/keys`, undefined, undefined, token(['ops']));
    await refused('GET', `${OWN}/keys`, undefined, undefined, token(['other']));
    const robot = (await call('POST', '/keys', { user_id: 'robot', role: 'team' })).body;
    const { tag, ...team } = (await call('GET', `/teams/${SEARCH}`)).body;
    expect(tag).to.equal('team=search');
    const { object: _object, ...values } = team;
    await put(SEARCH, { ...values, owners: { ...values.owners, keys: [robot.api_key_info.prefix] } });
    expect((await send('GET', `${OWN}/keys`, undefined, robot.api_key)).status).to.equal(200);
    const next = (await call('POST', `/keys/${robot.api_key_info.id}/rotate`)).body.api_key;
    expect((await send('GET', `${OWN}/keys`, undefined, next)).status).to.equal(200);
    await put(SEARCH, { ...values, owners: { users: ['ann'] } });
    await refused('GET', `${OWN}/keys`, undefined, undefined, next);
    await refused('GET', `${OWN}/keys`, undefined, undefined, token(['leads']));
    const shown = await gateway.command<{ owners: object }>('teams', 'show', 'team=search');
    expect(shown.owners).to.deep.equal({ users: ['ann'] });
  });

  it('are created and deleted on the command line; their limits stay', async () => {
    const { gateway, call } = operator;
    const words = ['--owner-user', 'mia', '--models', 'echo/*', '--budget', '0.5', '--every', 'total'];
    await gateway.command('teams', 'set', 'project=x', ...words);
    const list = await gateway.command<{ data: { tag: string }[] }>('teams', 'list');
    expect(list.data.map(({ tag }) => tag)).to.deep.equal(['project=x', 'team=ads', 'team=search']);
    expect((await call('GET', '/budgets/project=x')).body).to.include({
      amount_usd: '0.50',
      every: 'total',
      tag: 'project=x',
    });
    const mia = (await call('POST', '/keys', { user_id: 'mia', role: 'team' })).body.api_key;
    const path = `/own-teams/${encodeURIComponent('project=x')}`;
    const { text } = await send('POST', `${path}/keys`, {}, mia).then(({ body }) => ({ text: body.api_key as string }));
    await gateway.command('teams', 'delete', 'project=x');
    await refused('GET', `${path}/keys`, undefined, undefined, mia);
    expect((await operator.chat(text)).status).to.equal(200);
    expect((await call('GET', '/budgets/project=x')).status).to.equal(200);
    expect((await call('DELETE', '/budgets/project=x')).status).to.equal(200);
    for (const [team, body, param] of [
      ['team=none', { owners: { users: ['ann'] } }, 'tag'],
      [SEARCH, { owners: { users: ['ann'] }, plans: ['gold'] }, 'plans[0]'],
      [SEARCH, { owners: { users: ['ann'] }, models: ['nope/x'] }, 'models[0]'],
    ] as const) {
      const reported = await call('PUT', `/teams/${team}`, body);
      expect([reported.status, reported.body.error.param]).to.deep.equal([400, param]);
    }
  });

  it('stop at their budget, whoever created the key', async () => {
    const { call, chat } = operator;
    await put(ADS, { owners: { users: ['zoe'] }, budget: { amount_usd: '0.000001', every: 'total' } });
    const key = (await call('POST', '/keys', { user_id: 'uma', tags: ['team=ads'] })).body.api_key;
    const { status, message } = await chat(key);
    expect(status, message).to.equal(402);
    expect(message).to.include('"team=ads"');
  });
});

describe('a team that a group of an OpenID provider owns (E41)', () => {
  let people: OpenIdPeople;
  let gateway: TestGateway;
  let browser: Browser;
  let origin: string;

  before(async () => {
    const port = await freePort();
    origin = `http://127.0.0.1:${port}`;
    const named = { lea: { roles: ['leads'] }, tom: { roles: ['others'] } };
    people = await startOpenIdPeople({ people: named, redirectUris: [`${origin}${ADMIN}/callback`] });
    const client = { issuer: people.issuer, clientId: 'gateway', clientSecret: CLIENT_SECRET, publicUrl: origin };
    gateway = await startGateway({
      server: { port, drainTimeout: '2s' },
      tags: { team: ['search'] },
      auth: {
        'api-key': { bootstrap: true },
        openid: { ...client, roleClaims: ['roles'], roles: { leads: 'team', others: 'team' } },
      },
    });
    await gateway.command('teams', 'set', 'team=search', '--owner-group', 'leads');
  });
  after(async () => {
    await gateway?.stop();
    await people?.stop();
  });

  it('is open only to people signed in with that group', async () => {
    for (const [person, status] of [
      ['lea', 200],
      ['tom', 403],
    ] as const) {
      people.person = person;
      browser = openBrowser();
      await browser.visit(`${origin}${ADMIN}/login`);
      const keys = await browser.send(`${origin}${ADMIN}${OWN}/keys`);
      expect([person, keys.status]).to.deep.equal([person, status]);
      expect((await browser.send(`${origin}${ADMIN}/keys`)).status).to.equal(403);
      await keys.body?.cancel();
    }
  });
});
