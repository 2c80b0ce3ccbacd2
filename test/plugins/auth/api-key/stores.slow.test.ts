import { expect } from 'chai';
import type { Store } from '../../../../contract/index.ts';
import { openPostgres } from '../../../../plugins/stores/postgres/index.ts';
import { openRedis } from '../../../../plugins/stores/redis/index.ts';
import { openSqlite } from '../../../../plugins/stores/sqlite/index.ts';
import { codeOf } from '../../../support/errors.ts';
import { useTempFolder } from '../../../support/folders.ts';
import { startKeys } from '../../../support/identity/keys.ts';
import type { FakeGateway } from '../../../support/plugins/fake-gateway.ts';
import { describeWith, type TestServer } from '../../../support/processes/server-process.ts';
import { INITDB, POSTGRES, startPostgresServer } from '../../../support/stores/postgres-server.ts';
import { REDIS_SERVER, sendToRedis, startRedisServer } from '../../../support/stores/redis-server.ts';
import { eventually } from '../../../support/wait.ts';

const CREATE = '/api/core/api_keys/create';
const KEYS = '/api/core/api_keys';
const ROTATE = '/api/core/api_keys/rotate';
const TIMEOUT_MS = 1_000;
/** Store timeout for tests with many concurrent changes of one record: a busy machine must not cause refusals. */
const PATIENT_MS = 60_000;

/** Two gateways on one store, each with its own connection. */
function testTwoNodes(open: () => Promise<Store>): void {
  let stores: Store[];
  let one: FakeGateway;
  let two: FakeGateway;
  let bearer: string;
  let users = 0;

  before(async () => {
    stores = await Promise.all([open(), open()]);
    [one, two] = (await Promise.all(stores.map((store) => startKeys(store, { maxKeysPerUser: 5 })))) as [
      FakeGateway,
      FakeGateway,
    ];
  });
  after(async () => {
    await Promise.all([one, two].map((gateway) => gateway?.close()));
    await Promise.all((stores ?? []).map((store) => store.close()));
  });
  beforeEach(() => {
    users += 1;
    bearer = `token:user-${users}`;
  });

  const create = async (by = one) => (await by.request('POST', CREATE, { bearer })).body;

  it('take a key that the other made', async () => {
    const { api_key, api_key_info } = await create(one);
    expect(await two.authenticate(api_key)).to.include({ keyId: api_key_info.id });
  });

  it('S08 refuse a key within five seconds that the other revoked', async () => {
    const { api_key, api_key_info } = await create(one);
    const now = Date.now();
    await two.authenticate(api_key, { now });
    await one.request('DELETE', KEYS, { bearer, body: { id: api_key_info.id } });
    expect(await codeOf(one.authenticate(api_key, { now }))).to.equal('revoked_api_key');
    expect(await codeOf(two.authenticate(api_key, { now: now + 5000 }))).to.equal('revoked_api_key');
  });

  it('lose none of twenty concurrent changes on both', async () => {
    const { api_key, api_key_info } = await create(one);
    const options = ['name', 'rpm', 'tpm', 'budget'];
    await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        (n % 2 === 0 ? one : two).run(['keys', 'update', api_key_info.id], { [options[n % 4] ?? '']: `${n + 1}` }),
      ),
    );
    const audit = (await one.audit({ limit: 100, subject: api_key_info.prefix, action: 'key.update' })).entries;
    expect(audit).to.have.lengthOf(20);
    // Each change builds on the previous one: a chain with one end.
    const befores = new Set(audit.map(({ before }) => JSON.stringify(before)));
    expect(befores.size).to.equal(20);
    expect(audit.filter(({ after }) => !befores.has(JSON.stringify(after)))).to.have.lengthOf(1);
    for (const node of [one, two]) {
      const principal = await node.authenticate(api_key, { now: Date.now() + 5000 });
      expect(principal).to.include.all.keys('keyName', 'rpm', 'tpm', 'budget');
    }
  });

  it('refuse a key within five seconds that the other blocked, and take it again when it is unblocked', async () => {
    const { api_key, api_key_info } = await create(one);
    const now = Date.now();
    await two.authenticate(api_key, { now });
    await one.run(['keys', 'block', api_key_info.id]);
    expect(await codeOf(one.authenticate(api_key, { now }))).to.equal('permission_denied');
    expect(await codeOf(two.authenticate(api_key, { now: now + 5000 }))).to.equal('permission_denied');
    await two.run(['keys', 'unblock', api_key_info.id]);
    expect(await two.authenticate(api_key, { now: now + 5000 })).to.include({ keyId: api_key_info.id });
  });

  it('S12 create exactly the maximum number of keys of a user for fifty concurrent requests to both', async () => {
    const pending = Array.from({ length: 50 }, (_, at) =>
      (at % 2 === 0 ? one : two).request('POST', CREATE, { bearer }),
    );
    const responses = await Promise.all(pending);
    expect(responses.filter(({ status }) => status === 200)).to.have.lengthOf(5);
    expect(responses.filter(({ status }) => status === 409)).to.have.lengthOf(45);
    const { data } = (await two.request('GET', KEYS, { bearer })).body;
    const made = responses.flatMap(({ body }) => (body.api_key_info ? [body.api_key_info.id] : []));
    expect(data.map((key: { id: string }) => key.id)).to.have.members(made);
  });

  it('create one successor for a key that both rotate', async () => {
    const body = { id: (await create()).api_key_info.id, overlap_seconds: 60 };
    const responses = await Promise.all([one, two, one, two].map((by) => by.request('POST', ROTATE, { bearer, body })));
    expect(responses.filter(({ status }) => status === 200)).to.have.lengthOf(1);
    expect((await one.request('GET', KEYS, { bearer })).body.data).to.have.lengthOf(2);
  });

  it('S09 keep a revocation that one writes while the other rotates and uses the key', async () => {
    const { api_key, api_key_info } = await create();
    const body = { id: api_key_info.id };
    const now = Date.now();
    await Promise.allSettled([
      two.request('POST', ROTATE, { bearer, body }),
      one.request('DELETE', KEYS, { bearer, body }),
      two.authenticate(api_key, { now }),
    ]);
    for (const node of [one, two]) {
      expect(await codeOf(node.authenticate(api_key, { now: now + 5000 }))).to.equal('revoked_api_key');
    }
  });

  it('show each other’s use of a key', async () => {
    const { api_key } = await create(one);
    await two.authenticate(api_key);
    await eventually(async () => {
      const { data } = (await one.request('GET', KEYS, { bearer })).body;
      expect(data[0].last_used_at).not.to.equal(null);
    });
  });

  it('keep keys of user ids of every kind apart', async () => {
    const names = ['x'.repeat(256), '%', '_', "o'brien", 'a/b', 'ключ', '\u{1f511}', '__proto__'];
    for (const name of names) await one.request('POST', CREATE, { bearer: `token:${name}`, body: { name: 'k' } });
    for (const name of names) {
      const { data } = (await two.request('GET', KEYS, { bearer: `token:${name}` })).body;
      expect(data.map((key: { user_id: string }) => key.user_id)).to.deep.equal([name]);
    }
  });
}

/** One gateway on a server that fails. */
function testOutages(start: () => Promise<TestServer>, open: (url: string) => Promise<Store>): void {
  let server: TestServer;
  let store: Store;
  let gateway: FakeGateway;
  let key: string;
  let now: number;

  beforeEach(async () => {
    server = await start();
    store = await open(server.url);
    gateway = await startKeys(store);
    // A busy machine may cause a store timeout.
    key = await eventually(async () => {
      const { status, body } = await gateway.request('POST', CREATE, { bearer: 'token:ann' });
      expect(status).to.equal(200);
      return body.api_key;
    });
    now = Date.now();
  });
  afterEach(async () => {
    await gateway?.close();
    await store?.close();
    await server?.close();
  });

  /** Advances the clock past all caches, so that the store is read. */
  const check = () => {
    now += 10_000;
    return gateway.authenticate(key, { now });
  };
  const works = () => eventually(async () => expect(await check()).to.include({ userId: 'ann' }));

  it('S02 answers 503 while the server is dead, and works when it is back', async () => {
    await server.kill();
    const codes = await Promise.all(Array.from({ length: 20 }, () => codeOf(check())));
    expect(new Set(codes)).to.deep.equal(new Set(['store_unavailable']));
    const revoke = { bearer: 'token:ann', body: { id: key.slice(3, 15) } };
    expect((await gateway.request('DELETE', KEYS, revoke)).body.error.code).to.equal('store_unavailable');
    await server.start();
    await works();
  });

  it('S03 returns 503 while the server hangs, creates nothing, and recovers with it', async () => {
    server.freeze();
    const response = await gateway.request('POST', CREATE, { bearer: 'token:bob' });
    expect(response.body.error.code).to.equal('store_unavailable');
    expect(await codeOf(check())).to.equal('store_unavailable');
    server.thaw();
    await works();
    const listed = () => gateway.request('GET', KEYS, { bearer: 'token:bob' });
    await eventually(async () => expect(await listed()).to.include({ status: 200 }));
    expect((await listed()).body.data).to.deep.equal([]);
  });

  it('S01 starts while the server is down, and works when it is there', async () => {
    await server.kill();
    const lateStore = await open(server.url);
    const late = await startKeys(lateStore);
    try {
      expect(await codeOf(late.authenticate(key))).to.equal('store_unavailable');
      await server.start();
      await eventually(async () => expect(await late.authenticate(key)).to.include({ userId: 'ann' }));
    } finally {
      await late.close();
      await lateStore.close();
    }
  });
}

describe('API keys of two gateways on sqlite', () => {
  const folder = useTempFolder('keys');
  testTwoNodes(() => openSqlite({ folder }));
});

describeWith('API keys on redis', { 'redis-server': REDIS_SERVER }, function (this: void) {
  describe('of two gateways', () => {
    let server: TestServer;
    before(async () => {
      server = await startRedisServer();
    });
    after(() => server?.close());
    testTwoNodes(() => openRedis({ url: server.url, timeoutMs: PATIENT_MS }));

    it('S04 are unknown once the store was emptied', async () => {
      const store = await openRedis({ url: server.url, timeoutMs: PATIENT_MS });
      const gateway = await startKeys(store);
      const { api_key } = (await gateway.request('POST', CREATE, { bearer: 'token:ann' })).body;
      await sendToRedis(server.port, 'FLUSHALL');
      expect(await codeOf(gateway.authenticate(api_key))).to.equal('invalid_api_key');
      await gateway.close();
      await store.close();
    });
  });
  describe('while it is unavailable', () =>
    testOutages(
      () => startRedisServer(),
      (url) => openRedis({ url, timeoutMs: TIMEOUT_MS }),
    ));
});

describeWith('API keys on postgres', { postgres: POSTGRES, initdb: INITDB }, function (this: void) {
  describe('of two gateways', () => {
    let server: TestServer;
    before(async () => {
      server = await startPostgresServer();
    });
    after(() => server?.close());
    testTwoNodes(() => openPostgres({ url: server.url, timeoutMs: PATIENT_MS }));
  });
  describe('while it is unavailable', () => {
    testOutages(
      () => startPostgresServer(),
      (url) => openPostgres({ url, timeoutMs: TIMEOUT_MS }),
    );
  });
});
