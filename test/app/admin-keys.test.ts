import { expect } from 'chai';
import { type Operator, startOperator } from '../support/gateways/operator.ts';

describe('keys on the admin API', () => {
  let operator: Operator;
  before(async () => {
    operator = await startOperator();
  });
  after(() => operator.gateway.stop());

  it('are created, listed, shown and changed; an omitted field stays, and null removes it', async () => {
    const { call } = operator;
    const made = await call('POST', '/keys', {
      ...{ user_id: 'ann', name: 'laptop', rpm: 60, budget_usd: '5', models: ['echo/echo'], tags: ['team=search'] },
    });
    expect(made.status).to.equal(200);
    const { id, prefix } = made.body.api_key_info;
    expect(made.body.api_key).to.match(/^tg_/);
    const shown = await call('GET', `/keys/${id}`);
    expect(shown.headers.get('etag')).to.equal('"0"');
    expect(shown.headers.get('cache-control')).to.equal('no-store');
    expect(shown.body).to.deep.include({ user_id: 'ann', name: 'laptop', rpm: 60, tags: ['team=search'] });

    const changed = await call('PATCH', `/keys/${prefix}`, { rpm: 5, models: null, plan: 'pro' });
    expect(changed.headers.get('etag')).to.equal('"1"');
    expect(changed.body).to.deep.include({ name: 'laptop', rpm: 5, models: null, plan: 'pro', budget_usd: '5.00' });
    const { callable_models: models, ...again } = (await call('GET', `/keys/${id}`)).body;
    expect(again).to.deep.equal(changed.body);
    expect(models.callable).to.include('echo/echo');

    const ofAnn = await call('GET', '/keys?user=ann&limit=1');
    expect(ofAnn.body).to.deep.include({ object: 'list', has_more: false });
    expect(ofAnn.body.data.map((key: { id: string }) => key.id)).to.deep.equal([id]);
    const first = await call('GET', '/keys?limit=1');
    expect(first.body).to.deep.include({ has_more: true, next: first.body.data[0].id });
    const next = await call('GET', `/keys?limit=1&after=${first.body.next}`);
    expect(next.body.data[0].id).not.to.equal(first.body.next);
  });

  for (const [what, hidden] of [
    ['a mark of direction', '\u202e'],
    ['a zero-width space', '\u200b'],
    ['a zero-width joiner', '\u200d'],
    ['a byte order mark', '\ufeff'],
    ['a soft hyphen', '\u00ad'],
    ['a filler letter', '\u3164'],
    ['a variation selector', '\ufe0f'],
    ['a line separator', '\u2028'],
    ['a control character', '\u0085'],
  ] as const)
    it(`E39: are not created for an id with ${what}, over HTTP and on the command line`, async () => {
      const { call, gateway } = operator;
      const id = `an${hidden}n`;
      for (const [field, body] of [
        ['user_id', { user_id: id }],
        ['account', { user_id: 'ann', account: id }],
      ] as const) {
        const { status, body: response } = await call('POST', '/keys', body);
        expect(status).to.equal(400);
        expect(response.error).to.include({ code: 'invalid_request', param: field });
        expect(response.error.message).to.match(/invisible character U\+[0-9A-F]{4}\./);
      }
      const refused = await gateway.command('keys', 'create', '--user', id).then(
        () => undefined,
        (error: unknown) => error,
      );
      expect(String(refused)).to.match(/invisible character|not a line of text/);
    });

  for (const [what, other] of [
    ['letters of another alphabet', 'раul'],
    ['a capital in place of a small letter', 'pauI'],
    ['wide letters', 'ｐaul'],
    ['a digit in place of a letter', 'pau1'],
  ] as const)
    it(`E39: for an id similar to an existing one, by ${what}, return a warning`, async () => {
      const { call, gateway } = operator;
      await call('POST', '/keys', { user_id: 'paul' });
      const { status, body } = await call('POST', '/keys', { user_id: other });
      expect(status).to.equal(200);
      expect(body.similar).to.include('paul').and.not.include(other);
      const alike = await call('POST', '/keys', { user_id: `${what} apart`, account: other });
      expect(alike.body.similar).to.include('paul');
      const made = await gateway.command<{ similar: readonly string[] }>('keys', 'create', '--user', other);
      expect(made.similar).to.include('paul');
    });

  it('E39: for a new id return no warning, nor do further keys of the same id', async () => {
    for (const user_id of ['quinn', 'quinn', 'quin', 'Quinn', 'quïnn'])
      expect((await operator.call('POST', '/keys', { user_id })).body.similar, user_id).to.deep.equal([]);
  });

  it('E39: are created for ids with any letters', async () => {
    for (const user_id of ['Zoë', 'ann@example.com', '山田', 'ан-на', 'u_42'])
      expect((await operator.call('POST', '/keys', { user_id })).body.api_key_info.user_id).to.equal(user_id);
  });

  it('apply changes immediately on this node', async () => {
    const { call, chat } = operator;
    const {
      api_key,
      api_key_info: { id },
    } = (await call('POST', '/keys', { user_id: 'bea' })).body;
    expect((await chat(api_key)).status).to.equal(200);
    await call('PATCH', `/keys/${id}`, { models: ['quick'] });
    expect((await chat(api_key)).code).to.equal('model_not_allowed');
    await call('PATCH', `/keys/${id}`, { models: null, rpm: 1 });
    expect((await chat(api_key)).status).to.equal(200);
    expect((await chat(api_key)).code).to.equal('rate_limited');
    await call('PATCH', `/keys/${id}`, { rpm: null });
    expect((await chat(api_key)).status).to.equal(200);

    const blocked = await call('POST', `/keys/${id}/block`, { reason: 'leaked?' });
    expect(blocked.body).to.include({ blocked_reason: 'leaked?' }).and.have.property('blocked_at').that.is.a('string');
    const refused = await chat(api_key);
    expect(refused).to.include({ status: 403, code: 'permission_denied' });
    expect(refused.message).to.match(/blocked by an operator/);
    expect((await call('POST', `/keys/${id}/rotate`)).body.error.code).to.equal('permission_denied');
    await call('POST', `/keys/${id}/unblock`);
    expect((await chat(api_key)).status).to.equal(200);

    const rotated = await call('POST', `/keys/${id}/rotate`, { overlap_seconds: 0 });
    expect((await chat(api_key)).code).to.equal('revoked_api_key');
    expect((await chat(rotated.body.api_key)).status).to.equal(200);
    await call('POST', `/keys/${rotated.body.api_key_info.id}/revoke`);
    expect((await chat(rotated.body.api_key)).code).to.equal('revoked_api_key');
    expect((await call('PATCH', `/keys/${id}`, { name: 'x' })).body.error.code).to.equal('conflict');
  });

  it('are created for operators by operators; such a key can call models, and its successor after a rotation has the same role', async () => {
    const { call, chat, gateway } = operator;
    const made = (await call('POST', '/keys', { user_id: 'eve', role: 'admin' })).body;
    expect(made.api_key_info.role).to.equal('admin');
    expect((await chat(made.api_key)).status).to.equal(200);
    const rotated = (await call('POST', `/keys/${made.api_key_info.id}/rotate`)).body;
    const own = await gateway.get('/api/core/admin/keys', { authorization: `Bearer ${rotated.api_key}` });
    expect(own.status).to.equal(200);
    await own.body?.cancel();
  });

  it('apply every one of twenty concurrent changes, and each audit entry has the previous value', async () => {
    const { call } = operator;
    const { id, prefix } = (await call('POST', '/keys', { user_id: 'many' })).body.api_key_info;
    const fields = ['name', 'rpm', 'tpm', 'budget_usd'] as const;
    const changes = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        call('PATCH', `/keys/${id}`, {
          [fields[n % 4] ?? 'name']: n % 4 === 0 ? `n${n}` : n % 4 === 3 ? String(n) : n,
        }),
      ),
    );
    expect(changes.map(({ status }) => status)).to.deep.equal(changes.map(() => 200));
    const key = await call('GET', `/keys/${id}`);
    expect(key.headers.get('etag')).to.equal('"20"');
    for (const field of fields) expect(key.body[field], field).not.to.equal(null);
    const { data } = (await call('GET', `/audit?subject=${prefix}&action=key.update`)).body;
    expect(data).to.have.lengthOf(20);
    // The changes form a chain, whatever the order of their entries.
    const befores = new Set(data.map(({ before }: { before: object }) => JSON.stringify(before)));
    const afters = data.map(({ after }: { after: object }) => JSON.stringify(after));
    expect(befores.size).to.equal(20);
    expect(afters.filter((after: string) => !befores.has(after))).to.have.lengthOf(1);
  });

  it('accept one of many changes to one version, and refuse the others', async () => {
    const { call } = operator;
    const { id } = (await call('POST', '/keys', { user_id: 'once' })).body.api_key_info;
    const etag = (await call('GET', `/keys/${id}`)).headers.get('etag') ?? '';
    const changes = await Promise.all(
      Array.from({ length: 20 }, (_, n) => call('PATCH', `/keys/${id}`, { rpm: n + 1 }, { 'if-match': etag })),
    );
    expect(changes.filter(({ status }) => status === 200)).to.have.lengthOf(1);
    const refused = changes.filter(({ status }) => status === 412);
    expect(refused).to.have.lengthOf(19);
    expect(refused[0]?.body.error).to.include({ code: 'precondition_failed' });
    let rpm = 100;
    for (const [value, status] of [
      ['"1"', 200],
      ['*', 200],
      ['"9", "3"', 200],
      ['W/"4"', 412],
      ['"99"', 412],
      ['4', 400],
      ['"', 400],
    ] as const)
      expect((await call('PATCH', `/keys/${id}`, { rpm: ++rpm }, { 'if-match': value })).status, value).to.equal(
        status,
      );
  });

  it('are refused invalid values with the field’s name, and stay unchanged', async () => {
    const { call } = operator;
    const { id } = (await call('POST', '/keys', { user_id: 'hostile', name: 'mine' })).body.api_key_info;
    const wrong: readonly (readonly [object, string])[] = [
      [{ plan: 'por' }, 'plan'],
      [{ providers: ['nope'] }, 'providers[0]'],
      [{ models: ['nope/x'] }, 'models[0]'],
      [{ tags: ['nope=x'] }, 'tags[0]'],
      [{ tags: ['team=search', 'team=ads'] }, 'tags'],
      [{ name: 'x'.repeat(10_240) }, 'name'],
      [{ name: 'a\u0000b' }, 'name'],
      [{ expires_at: '2001-01-01T00:00:00Z' }, 'expires_at'],
      [{ budget_usd: '-1' }, 'budget_usd'],
      [{ rpm: 1e12 }, 'rpm'],
      [{ rpm: 0 }, 'rpm'],
      [{ role: 'admin' }, 'role'],
      [{ user_id: 'other' }, 'user_id'],
      [{ hashed_key: '0' }, 'hashed_key'],
    ];
    for (const [body, param] of wrong) {
      const { status, body: response } = await call('PATCH', `/keys/${id}`, body);
      expect(status, JSON.stringify(body).slice(0, 80)).to.equal(400);
      expect(response.error).to.include({ code: 'invalid_request', param });
    }
    expect((await call('PATCH', `/keys/${id}`, {})).status).to.equal(400);
    const key = await call('GET', `/keys/${id}`);
    expect(key.headers.get('etag')).to.equal('"0"');
    expect(key.body).to.include({ name: 'mine', role: null, user_id: 'hostile' });
  });

  it('are not found by invalid ids, and pages are limited', async () => {
    const { call } = operator;
    for (const id of ['nope', 'a%2Fb', '..%2F..%2Fetc', '%00', 'x'.repeat(300), 'tg_AAAAAAAAAAAA'])
      expect((await call('GET', `/keys/${id}`)).body.error.code, id).to.equal('not_found');
    for (const query of ['limit=1e9', 'limit=0', 'limit=1001', 'limit=-1', 'after=', 'nope=1'])
      expect((await call('GET', `/keys?${query}`)).status, query).to.equal(400);
    expect((await call('GET', '/keys?limit=1000')).status).to.equal(200);
  });

  it('are for operators only', async () => {
    const { gateway } = operator;
    for (const [method, path] of [
      ['GET', '/keys'],
      ['POST', '/keys'],
      ['PATCH', '/keys/x'],
      ['POST', '/keys/x/block'],
      ['GET', '/audit'],
      ['POST', '/users/ann/block'],
    ] as const) {
      const send = async (headers: Record<string, string>) => {
        const response = await fetch(`${gateway.url}/api/core/admin${path}`, { method, headers });
        return ((await response.json()) as { error: { code: string } }).error.code;
      };
      expect(await send({})).to.equal('missing_api_key');
      expect(await send({ authorization: `Bearer ${gateway.key}` })).to.equal('permission_denied');
    }
  });
});
