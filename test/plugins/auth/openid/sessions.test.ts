import { expect } from 'chai';
import type { Store } from '../../../../contract/index.ts';
import { createStoredDocuments, createUserDocuments } from '../../../../plugins/auth/kit/documents.ts';
import { createSessions, OVERLAP_MS, REPLACE_MS, type Sessions } from '../../../../plugins/auth/openid/sessions.ts';
import { withStored } from '../../../../plugins/stores/kit/kept.ts';
import { openMemory } from '../../../../plugins/stores/memory/index.ts';
import { codeOf } from '../../../support/errors.ts';
import { openShakyStore, type ShakyStore } from '../../../support/stores/shaky-store.ts';

const HOUR_MS = 3_600_000;
const ANN = { userId: 'ann', roles: ['admin'], issuer: 'https://idp.example', clientId: 'gateway' };

/** Sessions of one node on a store. */
function open(store: Store): Sessions {
  const parts = {
    ids: createStoredDocuments<never>(store.stored('auth'), 'ids'),
    sessions: createStoredDocuments<never>(store.stored('auth'), 'sessions'),
    seen: createStoredDocuments<never>(store.stored('auth'), 'seen'),
    ofUsers: createUserDocuments(store.sets, 'sessions'),
    counters: store.counters,
  };
  return createSessions(parts, { sessionForMs: 8 * HOUR_MS, idleForMs: HOUR_MS / 2 });
}

describe('a session of a person', () => {
  let store: ShakyStore;
  let sessions: Sessions;
  let start: number;
  let id: string;
  beforeEach(async () => {
    store = openShakyStore(await openMemory());
    sessions = open(store);
    start = Date.now();
    id = await sessions.begin(ANN, start);
  });
  const isGood = async (at: number, by = id) => (await sessions.find(by, at)) !== undefined;

  it('is known on every node by its id, and by nothing that the store holds', async () => {
    expect(await open(store).find(id, start)).to.deep.include({ ...ANN, endsAt: start + 8 * HOUR_MS });
    const stored = store.writes.join('\n');
    expect(stored).not.to.include(id);
    for (const text of new Set(stored.match(/[\w-]{43}/g))) expect(await isGood(start, text), text).to.equal(false);
  });

  it('ends after the idle time', async () => {
    expect(await isGood(start + HOUR_MS / 2 - 1)).to.equal(true);
    expect(await isGood(start + HOUR_MS / 2)).to.equal(false);
  });

  it('continues with requests, and ends at its absolute expiry all the same', async () => {
    let by = id;
    const end = start + 8 * HOUR_MS;
    for (let at = start; at < end; at += HOUR_MS / 4) {
      expect(await isGood(at, by), `after ${(at - start) / 60_000} minutes`).to.equal(true);
      by = (await sessions.renew(by, at, true))?.id ?? by;
    }
    expect(await isGood(end - 1, by)).to.equal(true);
    expect(await isGood(end, by)).to.equal(false);
  });

  it('keeps its id for a while, then gets another, and the former one is good for some seconds', async () => {
    expect(await sessions.renew(id, start + REPLACE_MS - 1, true)).to.equal(undefined);
    const at = start + REPLACE_MS;
    const newer = await sessions.renew(id, at, true);
    expect(newer?.id)
      .to.match(/^[\w-]{43}$/)
      .and.not.to.equal(id);
    expect(newer?.endsAt).to.equal(start + 8 * HOUR_MS);
    expect([await isGood(at), await isGood(at + OVERLAP_MS - 1)]).to.deep.equal([true, true]);
    expect(await isGood(at + OVERLAP_MS)).to.equal(false);
    expect(await isGood(at + OVERLAP_MS, newer?.id)).to.equal(true);
  });

  it('gets one new id under concurrent requests on several nodes', async () => {
    const nodes = [sessions, open(store), open(store)];
    const at = start + REPLACE_MS;
    const made = await Promise.all([...nodes, ...nodes, ...nodes].map((node) => node.renew(id, at, true)));
    expect(made.filter(Boolean)).to.have.lengthOf(1);
    expect(await sessions.renew(id, at + 1, true), 'nor does the former one get another').to.equal(undefined);
  });

  it('keeps its id if a new one could not reach the browser', async () => {
    expect(await sessions.renew(id, start + REPLACE_MS, false)).to.equal(undefined);
    expect(await isGood(start + REPLACE_MS + OVERLAP_MS)).to.equal(true);
  });

  it('ends with all its ids, also simultaneous ones', async () => {
    const at = start + REPLACE_MS;
    for (let round = 0; round < 20; round += 1) {
      const one = await sessions.begin(ANN, start);
      const [newer] = await Promise.all([sessions.renew(one, at, true), open(store).end(one, at)]);
      expect(await isGood(at, one)).to.equal(false);
      if (newer) expect(await isGood(at, newer.id)).to.equal(false);
    }
  });

  it('ends by a former id as well', async () => {
    const at = start + REPLACE_MS;
    const newer = await sessions.renew(id, at, true);
    expect(await sessions.end(id, at + 1)).to.include({ userId: 'ann' });
    expect(await isGood(at + 2, newer?.id)).to.equal(false);
  });

  it('is one of several of the same person, and its end leaves the others', async () => {
    const other = await sessions.begin(ANN, start);
    await sessions.end(id, start);
    expect([await isGood(start), await isGood(start, other)]).to.deep.equal([false, true]);
    expect(await sessions.end(id, start)).to.equal(undefined);
  });

  it('is neither good nor bad while the store does not answer', async () => {
    store.fail();
    const tries = [
      sessions.find(id, start),
      sessions.begin(ANN, start),
      sessions.end(id, start),
      sessions.renew(id, start, true),
    ];
    expect(await Promise.all(tries.map(codeOf))).to.deep.equal(tries.map(() => 'store_unavailable'));
    store.recover();
    expect(await isGood(start)).to.equal(true);
  });

  it('counts towards the person’s stored data: of more than a hundred the oldest end first', async () => {
    const kept = store.stored('accounts');
    const [one, ids] = [await kept.bytes('ann'), [] as string[]];
    expect(one).to.be.greaterThan(0);
    for (let at = 1; at <= 100; at += 1) ids.push(await sessions.begin(ANN, start + at));
    expect(await isGood(start + 100)).to.equal(false);
    for (const by of [ids[0], ids[99]]) expect(await isGood(start + 100, by)).to.equal(true);
    expect(await kept.bytes('ann')).to.be.within(90 * one, 102 * one);
    expect(await kept.bytes('bob')).to.equal(0);
    await sessions.end(ids[99] ?? '', start + 100);
    expect(await kept.bytes('ann')).to.be.below(101 * one);
  });

  it('is refused with an explanation if an account may not store a document of its size', async () => {
    const small = { ...store, ...withStored(store, '1kb') };
    expect(await codeOf(open(small).begin(ANN, start))).to.equal('store_unavailable');
    const error = await open(small)
      .begin(ANN, start)
      .catch((thrown: unknown) => thrown);
    expect(String(error)).to.include('"keepPerAccount"');
  });
});
