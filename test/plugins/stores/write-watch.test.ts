import { expect } from 'chai';
import { GatewayError, type Store } from '../../../contract/index.ts';
import { storeUnavailable } from '../../../plugins/stores/kit/failure.ts';
import { watchWrites } from '../../../plugins/stores/kit/write-watch.ts';
import { openMemory } from '../../../plugins/stores/memory/index.ts';

/** Store whose documents can be made to reject writes; counts the attempts. */
async function open() {
  const memory = await openMemory();
  const state = { takesWrites: true, tried: 0 };
  const writes = watchWrites(undefined);
  const store: Store = writes.over({
    ...memory,
    keyv: ((namespace: string) => {
      const documents = memory.keyv(namespace);
      return {
        set: async (...given: Parameters<typeof documents.set>) => {
          state.tried += 1;
          if (!state.takesWrites) throw storeUnavailable('The disk is full.');
          return documents.set(...given);
        },
        delete: (key: string) => documents.delete(key),
      };
    }) as unknown as Store['keyv'],
  });
  return { state, store, fail: (error: unknown) => writes.onFailure('ledger.reserve', error) };
}

const messageOf = (work: Promise<void> | undefined): Promise<string> =>
  Promise.resolve(work).then(
    () => 'fine',
    (error: Error) => error.message,
  );

describe('the watch of a store’s writes (E55)', () => {
  it('reports no problem when calls are refused because of contention on one account, or because of a caller’s input', async () => {
    const { state, store, fail } = await open();
    await store.begin?.();
    for (let n = 0; n < 100; n += 1) fail(storeUnavailable('The store is busy: too many change the same accounts.'));
    expect(await messageOf(store.health())).to.equal('fine');
    expect(state.tried, 'trials are few').to.be.within(2, 3);
    fail(new GatewayError('invalid_request', 'Too much.'));
    await store.health();
    expect(state.tried).to.be.within(2, 3);
    await store.close();
  });

  it('reports a problem when its own write fails after one of a call, to all requests, without another write', async () => {
    const { state, store, fail } = await open();
    await store.begin?.();
    state.takesWrites = false;
    expect(await messageOf(store.health()), 'no write since').to.equal('fine');
    fail(storeUnavailable('The disk is full.'));
    const { tried } = state;
    const found = await Promise.all(Array.from({ length: 50 }, () => messageOf(store.health())));
    expect(new Set(found).size).to.equal(1);
    expect(found[0]).to.match(/disk is full/);
    expect(state.tried - tried).to.be.at.most(1);
    expect(await messageOf(store.health()), 'asked later').to.match(/disk is full/);
    await store.close();
  });

  it('refuses to start on a store that responds but rejects writes, and starts on an unavailable one @slow', async () => {
    const { state, store } = await open();
    state.takesWrites = false;
    expect(await messageOf(store.begin?.())).to.match(/disk is full/);
    await store.close();
    const closed = await open();
    closed.state.takesWrites = false;
    await closed.store.close();
    expect(await messageOf(closed.store.begin?.()), 'a closed memory is away').to.equal('fine');
  });
});
