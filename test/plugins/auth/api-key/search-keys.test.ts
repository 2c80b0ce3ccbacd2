import { expect } from 'chai';
import type { StoredKey } from '../../../../plugins/auth/api-key/records.ts';
import { searchKeys } from '../../../../plugins/auth/api-key/search-keys.ts';

const keyOf = (n: number): StoredKey => ({
  record: {
    ...{ version: 1, id: `key${n}`, userId: 'ann', account: 'ann', hash: '', pepperId: 'p' },
    ...{ createdAt: n, name: `key ${n}` },
  },
  version: 0,
});

/** Uses this much CPU time of the process, however busy the machine is. */
function work(ms: number): void {
  const began = process.cpuUsage();
  for (let spent = 0; spent < ms * 1000; ) {
    const { user, system } = process.cpuUsage(began);
    spent = user + system;
  }
}

describe('a search for keys', () => {
  it('ends a page once it has used its share of CPU, and continues after it (E27)', async () => {
    let lists = 0;
    const list = async (
      _user: string | undefined,
      { limit, after }: { limit: number; after?: { createdAt: number } },
    ) => {
      lists += 1;
      work(30);
      const first = (after?.createdAt ?? -1) + 1;
      return { keys: Array.from({ length: limit }, (_, at) => keyOf(first + at)), hasMore: true };
    };
    const { keys, next } = await searchKeys({ list }, { name: 'needle' }, { limit: 10 });
    expect({ keys, next: next?.id, lists }).to.deep.equal({ keys: [], next: 'key99', lists: 1 });
    const found = await searchKeys({ list }, { name: 'key 9' }, { limit: 10 });
    expect(found.keys.map(({ record }) => record.id)).to.deep.equal([
      'key9',
      ...Array.from({ length: 9 }, (_, at) => `key9${at}`),
    ]);
  });
});
