import { expect } from 'chai';
import type { GatewayView } from '../../../../contract/index.ts';
import { createKeyIndex } from '../../../../plugins/auth/api-key/key-index.ts';
import { watchEnds } from '../../../../plugins/auth/api-key/key-rights.ts';
import type { KeyRecord, StoredKey } from '../../../../plugins/auth/api-key/records.ts';
import { type OperatorNotice, onNotice } from '../../../../plugins/policies/kit/notices.ts';
import { openMemory } from '../../../../plugins/stores/memory/index.ts';
import { createSilentLog } from '../../../support/log.ts';

const DAY_MS = 86_400_000;

describe('keys that end', () => {
  /** Checks these keys once, as a gateway does when it starts, with or without a receiver of notices. */
  const rig = async (keys: readonly StoredKey[]) => {
    const store = await openMemory();
    const index = createKeyIndex(store.sets);
    for (const { record } of keys) await index.add(record, 100);
    const reads: string[] = [];
    const find = async (id: string) => {
      reads.push(id);
      return keys.find(({ record }) => record.id === id);
    };
    const look = async (hasReceiver = true): Promise<readonly OperatorNotice[]> => {
      const reported: OperatorNotice[] = [];
      const readies: (() => void | Promise<void>)[] = [];
      const closers: (() => void | Promise<void>)[] = [];
      const api = {
        operators: { gauge: () => undefined, gateway: {} as GatewayView },
        log: createSilentLog(),
        onReady: (ready: () => void | Promise<void>) => void readies.push(ready),
        onClose: (close: () => void | Promise<void>) => void closers.push(close),
      };
      if (hasReceiver) onNotice(api, (notice) => void reported.push(notice));
      watchEnds(api, index, { find });
      for (const each of [...readies, ...closers]) await each();
      for (const each of closers) await each();
      return reported;
    };
    return { look, index, reads };
  };

  const now = Date.now();
  const key = (id: string, madeDaysAgo: number, endsInDays: number, more: Partial<StoredKey> = {}): StoredKey => {
    const expiresAt = now + endsInDays * DAY_MS;
    const made = { version: 1, id, userId: 'lena', account: 'lena', name: '', createdAt: now - madeDaysAgo * DAY_MS };
    return { record: { ...made, expiresAt } as unknown as KeyRecord, version: 0, expiresAt, ...more };
  };

  it('are announced once, a week before, by key and user', async () => {
    const { look } = await rig([key('soon', 27, 3), key('later', 1, 20)]);
    const [notice, ...others] = await look();
    expect(notice).to.deep.include({
      type: 'key.expires',
      facts: { key: 'tg_soon', user: 'lena', expires_at: new Date(now + 3 * DAY_MS).toISOString() },
    });
    expect([others, await look()]).to.deep.equal([[], []]);
  });

  it('are not announced for keys of a week’s lifetime, with a successor, revoked or expired', async () => {
    const keys = [
      key('short', 1, 5),
      key('rotated', 30, 2, { retiredAt: now + DAY_MS }),
      key('revoked', 30, 2, { revokedAt: now }),
      key('over', 30, -1),
    ];
    const { look, reads, index } = await rig(keys);
    expect(await look()).to.deep.equal([]);
    expect(await index.listEnding(10)).to.deep.equal([]);
    // An expired key is not even read.
    expect(reads).to.not.include('over');
  });

  it('are announced by their current expiry', async () => {
    const moved = key('moved', 30, 40);
    const { look, index } = await rig([moved, key('sooner', 30, 6)]);
    await index.addEnd('moved', now + 2 * DAY_MS);
    expect((await look()).map(({ facts }) => facts['key'])).to.deep.equal(['tg_sooner']);
    expect((await index.listEnding(10)).map(({ id, endsAt }) => [id, endsAt])).to.deep.equal([
      ['moved', now + 40 * DAY_MS],
    ]);
  });

  it('wait for a receiver of notices', async () => {
    const { look, reads } = await rig([key('soon', 27, 3)]);
    expect([await look(false), reads]).to.deep.equal([[], []]);
    expect(await look()).to.have.lengthOf(1);
  });
});
