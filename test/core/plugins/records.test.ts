import { expect } from 'chai';
import type { Store } from '../../../contract/index.ts';
import { createRecords } from '../../../core/plugins/instance-store.ts';
import { openMemory } from '../../../plugins/stores/memory/index.ts';
import { openSqlite } from '../../../plugins/stores/sqlite/index.ts';
import { codeOf } from '../../support/errors.ts';
import { useTempFolder } from '../../support/folders.ts';

interface Counted {
  readonly added: readonly number[];
}

describe('records', () => {
  const folder = useTempFolder('records');
  const STORES: readonly (readonly [string, () => Promise<Store>])[] = [
    ['memory', openMemory],
    ['sqlite', () => openSqlite({ folder })],
  ];

  for (const [name, open] of STORES)
    it(`on ${name} apply each of twenty concurrent changes, and number them`, async () => {
      const store = await open();
      const nodes = [createRecords<Counted>(store, 'things'), createRecords<Counted>(store, 'things')] as const;
      const changes = await Promise.all(
        Array.from({ length: 20 }, (_, n) =>
          (nodes[n % 2] ?? nodes[0]).change('a/b c', (value) => ({ added: [...(value?.added ?? []), n] })),
        ),
      );
      const { version, value } = await nodes[0].find('a/b c');
      expect(version).to.equal(20);
      expect(value?.added.toSorted((a, b) => a - b)).to.deep.equal(Array.from({ length: 20 }, (_, n) => n));
      expect(changes.map((change) => change.version).sort((a, b) => a - b)).to.deep.equal(
        Array.from({ length: 20 }, (_, n) => n + 1),
      );
      // `before` of a change is the value of the previous change.
      for (const change of changes) expect(change.before?.added ?? []).to.deep.equal(change.value.added.slice(0, -1));
      expect((await nodes[1].find('another')).version).to.equal(0);
      await store.close();
    });

  it('accept one of many changes of a version, and reject the others', async () => {
    const records = createRecords<Counted>(await openMemory(), 'things');
    await records.change('a', () => ({ added: [1] }));
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        records
          .change('a', () => ({ added: [n] }), 1)
          .then(
            () => 'changed',
            (error: { code: string }) => error.code,
          ),
      ),
    );
    expect(outcomes.filter((outcome) => outcome === 'changed')).to.have.lengthOf(1);
    expect(outcomes.filter((outcome) => outcome === 'precondition_failed')).to.have.lengthOf(19);
    expect((await records.find('a')).version).to.equal(2);
  });

  it('change nothing when the change is refused', async () => {
    const records = createRecords<Counted>(await openMemory(), 'things');
    const refuse = (): never => {
      throw new Error('no');
    };
    const refused = await records.change('a', refuse).catch((error: Error) => error.message);
    expect(refused).to.equal('no');
    expect((await records.find('a')).version).to.equal(0);
  });

  it('return the newest version to a reader that writers overtake repeatedly', async () => {
    const store = await openMemory();
    const writer = createRecords<Counted>(store, 'things');
    await writer.change('a', () => ({ added: [0] }));
    let overtaken = 0;
    const documents = store.keyv<{ value: Counted }>('things');
    const slow = {
      sets: store.sets,
      keyv: () => ({
        ...documents,
        // Replaces the version between the read of its number and of its document.
        async get(key: string) {
          overtaken += 1;
          if (overtaken <= 30) await writer.change('a', () => ({ added: [overtaken] }));
          return documents.get(key);
        },
      }),
    } as unknown as Store;
    const { version, value } = await createRecords<Counted>(slow, 'things').find('a');
    expect(version).to.equal(31);
    expect(value).to.deep.equal({ added: [30] });
  });

  it('refuse a record whose document is lost, and distinguish it from a new one', async () => {
    const store = await openMemory();
    const records = createRecords<Counted>(store, 'things');
    await records.change('a', () => ({ added: [1] }));
    await store.keyv('things').clear();
    expect(await codeOf(records.find('a'))).to.equal('store_unavailable');
  });

  it('notify this process of a changed record', async () => {
    const records = createRecords<Counted>(await openMemory(), 'things');
    const reported: string[] = [];
    records.onChange((id) => reported.push(id));
    await records.change('a', () => ({ added: [] }));
    expect(reported).to.deep.equal(['a']);
  });

  it('fail while the store is down, instead of returning nothing', async () => {
    const store = await openMemory();
    const sets = { ...store.sets, size: () => Promise.reject(new Error('down')) };
    const records = createRecords<Counted>({ keyv: (name: string) => store.keyv(name), sets }, 'things');
    expect(await codeOf(records.find('a'))).to.equal('store_unavailable');
    expect(await codeOf(records.change('a', () => ({ added: [] })))).to.equal('store_unavailable');
  });
});
