import { expect } from 'chai';
import { Registry } from 'prom-client';
import { watchStore } from '../../../core/plugins/store-watch.ts';
import { measureStore } from '../../../plugins/policies/metrics/figures.ts';
import { openMemory } from '../../../plugins/stores/memory/index.ts';

describe('a store that is watched', () => {
  it('gives what it gave before, and tells each operation with what it took', async () => {
    const seen: string[] = [];
    const store = watchStore(await openMemory(), {
      watchers: [(operation, ms, isOk) => seen.push(`${operation} ${isOk} ${ms >= 0}`)],
    });
    expect(await store.sets.add('set', 'member')).to.equal('added');
    expect(await store.counters.next('n')).to.equal(1);
    expect(await store.keyv('things').set('a', { b: 1 })).to.equal(true);
    expect(await store.keyv('things').get('a')).to.deep.equal({ b: 1 });
    expect((await store.ledger.balance('nobody')).balance).to.equal(0);
    expect(store.keyv('things'), 'the same name, the same object').to.equal(store.keyv('things'));
    expect([store.kind, store.endsWithProcess]).to.deep.equal(['memory', true]);
    expect(seen).to.deep.equal(
      ['sets.add', 'counters.next', 'documents.set', 'documents.get', 'ledger.balance'].map(
        (each) => `${each} true true`,
      ),
    );
  });

  it('is as it was for those who read more of its documents', async () => {
    const store = watchStore(await openMemory(), { watchers: [() => {}] });
    const documents = store.keyv('things');
    await documents.set('a', 1);
    expect(await documents.getMany(['a', 'b'])).to.deep.equal([1, undefined]);
    expect(await documents.has('a')).to.equal(true);
    await documents.delete('a');
    expect(await documents.get('a')).to.equal(undefined);
  });

  it('throws what it threw, and that is counted as a failure', async () => {
    const registry = new Registry();
    const store = watchStore(await openMemory(), { watchers: [measureStore(registry)] });
    await store.close();
    const error = await store.ledger.balance('nobody').catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(Error);
    const text = await registry.metrics();
    expect(text).to.include('tollgate_store_failures_total{operation="ledger.balance"} 1');
    expect(text).to.include('tollgate_store_duration_seconds_count{operation="ledger.balance"} 1');
  });
});
