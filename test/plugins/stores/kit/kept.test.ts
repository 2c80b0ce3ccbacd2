import fs, { mkdtemp, rm } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { expect } from 'chai';
import { withStored } from '../../../../plugins/stores/kit/kept.ts';
import { openMemory } from '../../../../plugins/stores/memory/index.ts';
import { roomOf } from '../../../../plugins/stores/redis/index.ts';
import { openSqlite } from '../../../../plugins/stores/sqlite/index.ts';

const KB = 1024;
const HOUR_MS = 3_600_000;

/** Store that reports the bytes of its documents; each operation takes one turn of the event loop. */
async function measuredStore(findRoom?: (bytes: number) => number, mostBytes?: number) {
  const store = await openMemory();
  const sizes = new Map<string, number>();
  const bytes = (): number => [...sizes.values()].reduce((sum, size) => sum + size, 0);
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const keyv = (namespace: string) => {
    const real = store.keyv<unknown>(namespace);
    return {
      get: (key: string) => real.get(key),
      async set(key: string, value: unknown, ttlMs: number) {
        await turn();
        sizes.set(key, JSON.stringify(value).length);
        return real.set(key, value, ttlMs);
      },
      async delete(key: string) {
        await turn();
        sizes.delete(key);
        return real.delete(key);
      },
    };
  };
  const halves = { keyv: keyv as never, sets: store.sets };
  const { stored: kept } = withStored(halves, '1mb', findRoom && (async () => findRoom(bytes())), mostBytes);
  return { kept: kept('test'), bytes };
}

describe('stored data of accounts', () => {
  it('E29: is at most half of the free disk space of sqlite, whatever each account may store', async () => {
    const folder = await mkdtemp(path.join(os.tmpdir(), 'tollgate-room-'));
    const store = await openSqlite({ folder });
    const { statfs } = fs;
    fs.statfs = (async () => ({ bavail: 4, bsize: 512 * KB })) as never;
    syncBuiltinESMExports();
    try {
      const kept = store.stored('test');
      for (const account of ['ann', 'bob', 'cid'])
        for (let at = 0; at < 5; at += 1) await kept.set(account, `${account}-${at}`, 'x'.repeat(400 * KB), HOUR_MS);
      expect(kept.known.bytes).to.be.within(400 * KB, 3 * 1024 * KB);
      expect(await kept.set('dan', 'small', 'done', HOUR_MS), 'that something was done').to.equal(true);
    } finally {
      fs.statfs = statfs;
      syncBuiltinESMExports();
      await store.close();
      await rm(folder, { recursive: true });
    }
  });

  it('E29: is no more than three quarters of half of its machine in a Redis without maxmemory', () => {
    expect(roomOf('used_memory:100\r\nmaxmemory:1000\r\ntotal_system_memory:8000\r\n')).to.equal(650);
    expect(roomOf('used_memory:100\r\nmaxmemory:0\r\ntotal_system_memory:8000\r\n')).to.equal(2900);
    expect(roomOf('used_memory:4000\r\nmaxmemory:0\r\ntotal_system_memory:8000\r\n')).to.equal(-1000);
    expect(roomOf('')).to.equal(undefined);
  });

  it('E29: has no document larger than a quarter of an account’s limit', async () => {
    const { kept, bytes } = await measuredStore();
    expect(await kept.set('greedy', 'large', 'x'.repeat(300 * KB), HOUR_MS)).to.equal(false);
    expect([bytes(), await kept.bytes('greedy')]).to.deep.equal([0, 0]);
  });

  it('E29: goes before sessions do, which are written before', async () => {
    const { kept, bytes } = await measuredStore();
    await kept.set('ann', 'session', 'x'.repeat(200 * KB), HOUR_MS, 'lasting');
    for (let at = 0; at < 8; at += 1) await kept.set('ann', `large-${at}`, 'x'.repeat(200 * KB), HOUR_MS);
    expect(await kept.get('session')).to.have.length(200 * KB);
    expect([await kept.get('large-0'), bytes() <= 1024 * KB]).to.deep.equal([undefined, true]);
  });

  it('E29: is no more than the bound of an account, however many documents of it are written at once', async () => {
    const { kept, bytes } = await measuredStore();
    const outcomes = await Promise.all(
      Array.from({ length: 100 }, (_, at) => kept.set('greedy', `key-${at}`, 'x'.repeat(200 * KB), HOUR_MS)),
    );
    expect(bytes()).to.be.within(600 * KB, 1024 * KB);
    expect(outcomes.filter(Boolean).length, 'kept entries are reported').to.be.within(3, 5);
    expect(await kept.bytes('greedy')).to.be.within(600 * KB, 1024 * KB);
    // The newest document is stored all the same after the others were written.
    expect(await kept.set('greedy', 'last', 'x'.repeat(200 * KB), HOUR_MS)).to.equal(true);
    expect(await kept.get('last')).to.have.length(200 * KB);
    expect(bytes()).to.be.at.most(1024 * KB);
  });

  it('E29: is limited in total if the store does not report its free space, and has room again after expiry', async () => {
    const fill = async (ttlMs: number) => {
      const { kept, bytes } = await measuredStore(undefined, 4 * 1024 * KB);
      for (let account = 0; account < 20; account += 1)
        for (let at = 0; at < 5; at += 1)
          await kept.set(`a${account}`, `${account}-${at}`, 'x'.repeat(200 * KB), ttlMs);
      return { kept, bytes };
    };
    const { kept, bytes } = await fill(HOUR_MS);
    expect(bytes()).to.be.within(2048 * KB, 4 * 1024 * KB);
    expect(await kept.set('last', 'small', 'done', HOUR_MS), 'that something was done').to.equal(true);
    expect(await kept.set('last', 'large', 'x'.repeat(200 * KB), HOUR_MS)).to.equal(false);
    const over = await fill(1);
    expect(await over.kept.set('last', 'large', 'x'.repeat(200 * KB), HOUR_MS)).to.equal(true);
  });

  it('evicts the oldest data, also if all was written in one millisecond', async () => {
    const { kept } = await measuredStore();
    const { now } = Date;
    const at = now();
    Date.now = () => at;
    try {
      for (const kilobytes of [250, 240, 230, 220, 210])
        await kept.set('ann', `of ${kilobytes}`, 'x'.repeat(kilobytes * KB), HOUR_MS);
    } finally {
      Date.now = now;
    }
    expect(await kept.get('of 250')).to.equal(undefined);
    for (const kilobytes of [240, 230, 220, 210])
      expect(await kept.get(`of ${kilobytes}`)).to.have.length(kilobytes * KB);
  });

  it('E29: keeps later data under the same key, and drops expired data', async () => {
    const { kept } = await measuredStore();
    for (let at = 0; at < 30; at += 1) await kept.set('ann', 'same', `${at}`.padEnd(200 * KB), HOUR_MS);
    expect(String(await kept.get('same')).trim()).to.equal('29');
    expect(await kept.count('ann')).to.equal(1);
  });

  it('E29: is less if the store has little room, so that many accounts together do not fill it', async () => {
    const memory = 2000 * KB;
    const { kept, bytes } = await measuredStore((used) => memory * 0.75 - used);
    const accounts = Array.from({ length: 40 }, (_, at) => `account-${at}`);
    await Promise.all(
      accounts.map(async (account) => {
        for (let at = 0; at < 20; at += 1) await kept.set(account, `${account}.${at}`, 'x'.repeat(60 * KB), HOUR_MS);
      }),
    );
    expect(bytes()).to.be.within(memory / 2, memory * 0.9);
    expect(await kept.set('account-39', 'large', 'x'.repeat(200 * KB), HOUR_MS)).to.equal(false);
    // Small results are stored for every account.
    for (const account of accounts) {
      expect(await kept.set(account, `${account}.small`, 'done', HOUR_MS)).to.equal(true);
      expect(await kept.get(`${account}.small`)).to.equal('done');
    }
    expect(bytes()).to.be.at.most(memory);
  });
});
