import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { KEY_PATTERN } from '../../../../plugins/auth/api-key/format.ts';
import { openKeyv } from '../../../../plugins/stores/keyv/index.ts';
import { openMemory } from '../../../../plugins/stores/memory/index.ts';
import { codeOf } from '../../../support/errors.ts';
import { startKeys } from '../../../support/identity/keys.ts';
import type { FakeGateway } from '../../../support/plugins/fake-gateway.ts';

describe('the command `tollgate keys`', () => {
  let gateway: FakeGateway;
  beforeEach(async () => {
    gateway = await startKeys(await openMemory());
  });

  it('prints only a new key', async () => {
    const { out, json, talk } = await gateway.run(['keys', 'create'], { user: 'u_42' });
    expect(out).to.match(KEY_PATTERN);
    expect(talk).not.to.include(out);
    expect(json).to.have.all.keys('message', 'api_key', 'api_key_info', 'similar');
    expect(await gateway.authenticate(out)).to.include({ userId: 'u_42', account: 'u_42' });
  });

  it('E39: prints similar ids before a new key', async () => {
    await gateway.run(['keys', 'create'], { user: 'u_1' });
    const { out, talk } = await gateway.run(['keys', 'create'], { user: 'u_l' });
    expect(out).to.match(KEY_PATTERN);
    expect(talk).to.include('Keys exist for u_1, which looks like this id');
    expect((await gateway.run(['keys', 'create'], { user: 'u_2' })).talk).to.not.include('looks like');
  });

  it('accepts every option', async () => {
    const options = {
      ...{ user: 'u_42', account: 'acme', name: 'laptop', expires: '30d', models: 'a, b', providers: 'openai' },
      ...{ plan: 'pro', rpm: '60', tpm: '1000', budget: '5' },
    };
    const { out } = await gateway.run(['keys', 'create'], options);
    const { keyId: _, ...principal } = await gateway.authenticate(out);
    expect(principal).to.deep.equal({
      ...{ credential: 'key', userId: 'u_42', account: 'acme', keyName: 'laptop', models: ['a', 'b'] },
      ...{ providers: ['openai'], plan: 'pro', rpm: 60, tpm: 1000, budget: 5_000_000_000 },
    });
    const day = 86_400_000;
    expect(await gateway.authenticate(out, { now: Date.now() + 29 * day })).to.include({ userId: 'u_42' });
    expect(await codeOf(gateway.authenticate(out, { now: Date.now() + 30 * day }))).to.equal('expired_api_key');
  });

  it('makes an admin key, which no route of users can make or hand on', async () => {
    gateway = await startKeys(await openMemory(), {}, { settings: { tags: { team: ['search'], project: '*' } } });
    const made = await gateway.run(['keys', 'create'], { user: 'ann', admin: true, tag: 'team=search, project=x' });
    const { api_key_info } = made.json as { api_key_info: { id: string } };
    expect(await gateway.authenticate(made.out)).to.deep.include({ isAdmin: true, tags: ['project=x', 'team=search'] });
    expect(
      await gateway.authenticate((await gateway.run(['keys', 'create'], { user: 'ann' })).out),
    ).not.to.have.any.keys('isAdmin');
    const bearer = 'token:ann:{"isAdmin":true}';
    const plain = await gateway.request('POST', '/api/core/api_keys/create', { bearer });
    expect(await gateway.authenticate(plain.body.api_key)).not.to.have.any.keys('isAdmin');
    for (const field of ['role', 'admin', 'isAdmin', 'tags']) {
      const refused = await gateway.request('POST', '/api/core/api_keys/create', {
        bearer,
        body: { [field]: 'admin' },
      });
      expect(refused.body.error).to.include({ code: 'invalid_request' });
    }
    const rotated = await gateway.request('POST', '/api/core/api_keys/rotate', {
      bearer,
      body: { id: api_key_info.id },
    });
    expect(await gateway.authenticate(rotated.body.api_key))
      .to.deep.include({ tags: ['project=x', 'team=search'] })
      .and.not.to.have.any.keys('isAdmin');
  });

  const WRONG: readonly (readonly [string, Record<string, string>])[] = [
    ['no user', {}],
    ['an invalid duration', { user: 'u', expires: 'soon' }],
    ['a date without a zone', { user: 'u', expires: '2999-01-01T00:00' }],
    ['a limit in words', { user: 'u', rpm: 'many' }],
    ['a limit of nothing', { user: 'u', tpm: '0' }],
    ['an invalid amount', { user: 'u', budget: 'five' }],
    ['an empty name in a list', { user: 'u', models: 'a,,b' }],
    ['a tag without a value', { user: 'u', tag: 'team' }],
    ['one tag with two values', { user: 'u', tag: 'team=a,team=b' }],
    ['six tags', { user: 'u', tag: 'a=1,b=1,c=1,d=1,e=1,f=1' }],
    ['a tag that the configuration does not list', { user: 'u', tag: 'nope=x' }],
    ['a tag with a line end', { user: 'u', tag: 'team=a\nb' }],
  ];
  for (const [title, options] of WRONG) {
    it(`refuses ${title}, and makes no key`, async () => {
      expect(await codeOf(gateway.run(['keys', 'create'], options))).to.equal('invalid_request');
      expect((await gateway.run(['keys', 'list'])).json).to.deep.include({ data: [] });
    });
  }

  it('refuses a number without a unit where a duration is expected, and shows both readings', async () => {
    const { json: key } = await gateway.run(['keys', 'create'], { user: 'u' });
    const messageOf = (words: readonly string[], options: Record<string, string>): Promise<string> =>
      gateway.run(words, options).then(() => 'done', String);
    const readings = '"60" is not a duration: a unit is missing. Write "60s" for seconds or "60ms" for milliseconds.';
    expect(await messageOf(['keys', 'create'], { user: 'u', expires: '60' })).to.include(`--expires ${readings}`);
    const rotate = ['keys', 'rotate', String((key as { prefix: string }).prefix)];
    expect(await messageOf(rotate, { overlap: '60' })).to.include(`--overlap ${readings}`);
    expect(await messageOf(rotate, { overlap: '31d' })).to.include('--overlap must be a duration of at most 30d');
  });

  const UNKNOWN: readonly (readonly [title: string, option: string, value: string, param: string, hint: RegExp])[] = [
    ['plan', 'plan', 'por', 'plan', /The plan "por" does not exist. Plans of the configuration: pro\./],
    ['provider', 'providers', 'local,opnai', 'providers[1]', /Providers of the configuration: local, openai\./],
    ['provider of a model', 'models', 'nope/x', 'models[0]', /Use "provider\/model"/],
    ['model of a provider', 'models', 'openai/gpt-5,openai/gtp-5', 'models[1]', /Did you mean openai\/gpt-5/],
    ['model', 'models', 'nope', 'models[0]', /The model "nope" does not exist/],
  ];
  for (const [title, option, value, param, hint] of UNKNOWN) {
    it(`D46 refuses a ${title} that there is not, here and over HTTP, and makes no key`, async () => {
      const offers = { local: { anyModel: true }, openai: {} } as const;
      const own = await startKeys(await openMemory(), {}, { offers });
      const failed = await own.run(['keys', 'create'], { user: 'u', [option]: value }).catch((error: unknown) => error);
      expect(failed).to.include({ code: 'invalid_request', param }).and.have.property('message').that.matches(hint);
      const sent = option === 'plan' ? value : value.split(',');
      const bearer = `token:ann:${JSON.stringify(option === 'plan' ? { plan: value } : {})}`;
      const body = { [option]: sent };
      const { body: response } = await own.request('POST', '/api/core/api_keys/create', { bearer, body });
      expect(response.error).to.include({ code: 'invalid_request', param });
      expect((await own.run(['keys', 'list'])).json).to.deep.include({ data: [] });
    });
  }

  for (const models of ['*', 'openai/*', 'openai/gpt-5', 'gpt-5', 'local/whatever', 'gpt-5-2026-01-01'])
    it(`D46 accepts ${models} as a list of models`, async () => {
      const own = await startKeys(await openMemory(), {}, { offers: { local: { anyModel: true }, openai: {} } });
      expect((await own.run(['keys', 'create'], { user: 'u', models })).out).to.match(KEY_PATTERN);
    });

  it('lists keys of all users with their state, and never a secret', async () => {
    const first = (await gateway.run(['keys', 'create'], { user: 'ann', name: 'laptop' })).out;
    const second = (await gateway.run(['keys', 'create'], { user: 'bob', expires: '1d' })).out;
    await gateway.run(['keys', 'revoke', first.slice(0, 15)]);
    const { out } = await gateway.run(['keys', 'list']);
    expect(out).to.match(/^KEY +USER +NAME +CREATED UTC +USED UTC +SPENT USD +STATE$/m);
    expect(out).to.match(new RegExp(`^${first.slice(0, 15)} +ann +laptop +\\S+ +never +0\\.00 +revoked$`, 'm'));
    expect(out).to.match(new RegExp(`^${second.slice(0, 15)} +bob +- +\\S+ +never +0\\.00 +until \\S+$`, 'm'));
    expect(out).not.to.include(second.slice(16));
  });

  it('lists the keys of one user, page by page', async () => {
    for (let i = 0; i < 3; i += 1) await gateway.run(['keys', 'create'], { user: 'ann' });
    await gateway.run(['keys', 'create'], { user: 'bob' });
    const first = await gateway.run(['keys', 'list'], { user: 'ann', limit: '2' });
    const { data } = first.json as { data: { id: string }[] };
    const after = data.at(-1)?.id ?? '';
    expect(first.talk).to.include(`--after ${after}`);
    const rest = (await gateway.run(['keys', 'list'], { user: 'ann', limit: '2', after })).json as typeof first.json;
    expect(rest).to.deep.include({ has_more: false }).and.have.property('data').with.lengthOf(1);
  });

  for (const how of ['id', 'prefix', 'whole key'] as const) {
    it(`revokes by ${how}`, async () => {
      const { out } = await gateway.run(['keys', 'create'], { user: 'ann' });
      const named = { id: out.slice(3, 15), prefix: out.slice(0, 15), 'whole key': out }[how];
      const { out: said } = await gateway.run(['keys', 'revoke', named]);
      expect(said).to.include(out.slice(0, 15)).and.not.to.include(out.slice(16));
      expect(await codeOf(gateway.authenticate(out))).to.equal('revoked_api_key');
    });
  }

  it('reports an unknown key', async () => {
    expect(await codeOf(gateway.run(['keys', 'revoke', 'AAAAAAAAAAAA']))).to.equal('not_found');
    expect(await codeOf(gateway.run(['keys', 'revoke', '']))).to.equal('not_found');
  });
});

describe('the first API key', () => {
  const isDefault = { settings: { isDefault: true } };

  it('is made and shown once when the built-in configuration starts on an empty store', async () => {
    const store = await openMemory();
    const gateway = await startKeys(store, {}, isDefault);
    expect(gateway.announcements).to.have.lengthOf(1);
    const [{ value, use } = { value: '', use: undefined }] = gateway.announcements;
    expect(use).to.equal('key');
    expect(await gateway.authenticate(value)).to.include({ userId: 'local' });
    expect((await startKeys(store, {}, isDefault)).announcements).to.deep.equal([]);
    expect(JSON.stringify(gateway.logs)).not.to.include(value);
  });

  it('is created by only one of several that start concurrently', async () => {
    const store = await openMemory();
    const gateways = await Promise.all([1, 2, 3, 4].map(() => startKeys(store, {}, isDefault)));
    expect(gateways.flatMap(({ announcements }) => announcements)).to.have.lengthOf(1);
  });

  it('is not made again after it was revoked', async () => {
    const store = await openMemory();
    const gateway = await startKeys(store, {}, isDefault);
    await gateway.run(['keys', 'revoke', gateway.announcements[0]?.value ?? '']);
    expect((await startKeys(store, {}, isDefault)).announcements).to.deep.equal([]);
  });

  it('G65: is not made again at a restart on a store that cannot list its keys', async () => {
    const adapter = fileURLToPath(new URL('../../../fixtures/stores/map-adapter.mjs', import.meta.url));
    const announced: number[] = [];
    for (let start = 0; start < 3; start += 1) {
      // The documents outlive the store, the index of keys does not.
      const store = await openKeyv({ adapter, baseDir: import.meta.dirname, timeoutMs: 10_000 });
      announced.push(
        (await startKeys(store, { bootstrap: true })).announcements.filter(({ use }) => use === 'key').length,
      );
      await store.close();
    }
    expect(announced).to.deep.equal([1, 0, 0]);
  });

  it('is not created if keys exist', async () => {
    const store = await openMemory();
    await (await startKeys(store)).run(['keys', 'create'], { user: 'ann' });
    expect((await startKeys(store, { bootstrap: true })).announcements).to.deep.equal([]);
  });

  const CASES: readonly (readonly [boolean, boolean | undefined, number])[] = [
    [false, undefined, 0],
    [false, true, 1],
    [true, false, 0],
  ];
  for (const [isDefaultConfig, bootstrap, made] of CASES) {
    it(`is ${made ? '' : 'not '}made with isDefault ${isDefaultConfig} and bootstrap ${bootstrap}`, async () => {
      const config = bootstrap === undefined ? {} : { bootstrap };
      const options = { settings: { isDefault: isDefaultConfig } };
      expect((await startKeys(await openMemory(), config, options)).announcements).to.have.lengthOf(made);
    });
  }
});
