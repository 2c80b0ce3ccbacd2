import { expect } from 'chai';
import type { Store } from '../../../../contract/index.ts';
import { openMemory } from '../../../../plugins/stores/memory/index.ts';
import { startKeys } from '../../../support/identity/keys.ts';

const KEYS = '/api/core/api_keys';
const bearer = 'token:ann';

interface Load {
  /** Number of document reads. */
  reads: number;
  /** Maximum number of concurrent reads. */
  most: number;
}

/** Store that counts reads of its documents; each read takes one turn of the event loop. */
async function openCounted(): Promise<{ readonly store: Store; readonly load: Load }> {
  const inner = await openMemory();
  const load = { reads: 0, most: 0 };
  let running = 0;
  const keyv: Store['keyv'] = (namespace) => {
    const documents = inner.keyv(namespace);
    const get = documents.get.bind(documents);
    documents.get = (async (key: string) => {
      load.reads += 1;
      running += 1;
      load.most = Math.max(load.most, running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
      return get(key);
    }) as typeof documents.get;
    return documents as never;
  };
  const opened = new Map<string, ReturnType<Store['keyv']>>();
  const once: Store['keyv'] = (namespace) => {
    const known = opened.get(namespace) ?? keyv(namespace);
    opened.set(namespace, known);
    return known as never;
  };
  return { store: { ...inner, keyv: once }, load };
}

describe('API keys of a user who has many', () => {
  it('are read a few at a time for a page of a hundred', async () => {
    const { store, load } = await openCounted();
    const gateway = await startKeys(store);
    for (let n = 0; n < 60; n += 1) await gateway.request('POST', `${KEYS}/create`, { bearer });
    load.most = 0;
    const { data } = (await gateway.request('GET', KEYS, { bearer, query: { limit: '100' } })).body;
    expect(data).to.have.lengthOf(60);
    expect(load.most).to.be.within(1, 40);
  });

  it('are read once for all who are refused another at the same time', async () => {
    const { store, load } = await openCounted();
    const gateway = await startKeys(store, { maxKeysPerUser: 5 });
    for (let n = 0; n < 5; n += 1) await gateway.request('POST', `${KEYS}/create`, { bearer });
    load.reads = 0;
    await gateway.request('POST', `${KEYS}/create`, { bearer });
    const ofOne = load.reads;
    load.reads = 0;
    const responses = await Promise.all(
      Array.from({ length: 50 }, () => gateway.request('POST', `${KEYS}/create`, { bearer })),
    );
    expect(responses.map(({ status }) => status)).to.deep.equal(responses.map(() => 409));
    expect(load.reads).to.be.at.most(3 * ofOne);
    expect((await gateway.request('GET', KEYS, { bearer })).body.data).to.have.lengthOf(5);
  });

  it('are deleted, and the same number may be created of ten concurrent requests', async () => {
    const { store } = await openCounted();
    const gateway = await startKeys(store, { maxKeysPerUser: 5 });
    const made = [];
    for (let n = 0; n < 5; n += 1) made.push((await gateway.request('POST', `${KEYS}/create`, { bearer })).body);
    for (const { api_key_info } of made.slice(0, 2)) {
      const body = { id: api_key_info.id };
      await gateway.request('DELETE', KEYS, { bearer, body });
    }
    const responses = await Promise.all(
      Array.from({ length: 10 }, () => gateway.request('POST', `${KEYS}/create`, { bearer })),
    );
    expect(responses.filter(({ status }) => status === 200)).to.have.lengthOf(2);
    expect(responses.filter(({ status }) => status === 409)).to.have.lengthOf(8);
  });
});
