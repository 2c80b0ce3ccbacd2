import { expect } from 'chai';
import type { Store } from '../../../../contract/index.ts';
import { createDocuments } from '../../../../plugins/auth/kit/documents.ts';
import { createSecrets, MOST, type Secrets } from '../../../../plugins/auth/kit/secrets.ts';
import { openMemory } from '../../../../plugins/stores/memory/index.ts';
import { codeOf } from '../../../support/errors.ts';
import { openShakyStore, type ShakyStore } from '../../../support/stores/shaky-store.ts';

const TTL_MS = 60_000;

/** Secrets of one node on a store. */
function open(store: Store, name = 'links'): Secrets<string> {
  return createSecrets<string>(name, TTL_MS, createDocuments(store.keyv(name)), store.counters);
}

describe('a short-lived secret', () => {
  let store: ShakyStore;
  let secrets: Secrets<string>;
  let now: number;
  beforeEach(async () => {
    store = openShakyStore(await openMemory());
    secrets = open(store);
    now = Date.now();
  });

  it('is found on every node, used once, and unknown to the store', async () => {
    const secret = await secrets.put('ann', 'facts', now);
    expect(secret).to.match(/^[\w-]{43}$/);
    expect(store.writes.join()).not.to.include(secret);
    const nodes = [secrets, open(store), open(store)];
    for (const node of nodes) expect(await node.find(secret, now)).to.equal('facts');
    const taken = await Promise.all([...nodes, ...nodes].map((node) => node.take(secret, now)));
    expect(taken.filter(Boolean)).to.deep.equal(['facts']);
    expect([await secrets.find(secret, now), await secrets.take(secret, now)]).to.deep.equal([undefined, undefined]);
  });

  it('expires, and is not one of another kind', async () => {
    const secret = await secrets.put('ann', 'facts', now);
    expect(await open(store, 'codes').take(secret, now)).to.equal(undefined);
    expect(await secrets.take(secret, now + TTL_MS)).to.equal(undefined);
    expect(await secrets.take(secret, now + TTL_MS - 1)).to.equal('facts');
  });

  it('is not used up by a use that fails', async () => {
    const secret = await secrets.put('ann', 'facts', now);
    const failed = secrets.take(secret, now, () => Promise.reject(new Error('down')));
    expect(await failed.catch((error: Error) => error.message)).to.equal('down');
    expect(await secrets.take(secret, now, async (facts) => ({ facts }))).to.deep.equal({ facts: 'facts' });
  });

  it('is one of a bounded number of its owner, and does not count after its use', async () => {
    const first = await secrets.put('ann', 'facts', now);
    for (let count = 1; count < MOST; count += 1) await secrets.put('ann', 'facts', now);
    expect(await codeOf(open(store).put('ann', 'facts', now))).to.equal('rate_limited');
    await open(store).put('bob', 'facts', now);
    await secrets.take(first, now);
    await secrets.put('ann', 'facts', now);
    expect(await codeOf(secrets.put('ann', 'facts', now + TTL_MS - 1))).to.equal('rate_limited');
    await secrets.put('ann', 'facts', now + TTL_MS);
  });

  it('is neither valid nor used up while the store does not answer', async () => {
    const secret = await secrets.put('ann', 'facts', now);
    store.fail();
    const tries = [secrets.put('ann', 'facts', now), secrets.find(secret, now), secrets.take(secret, now)];
    expect(await Promise.all(tries.map(codeOf))).to.deep.equal(tries.map(() => 'store_unavailable'));
    store.recover();
    expect(await secrets.take(secret, now)).to.equal('facts');
  });
});
