import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import type { GatewayError } from '../../../../contract/index.ts';
import { createKey } from '../../../../plugins/auth/api-key/format.ts';
import type { Peppers } from '../../../../plugins/auth/api-key/peppers.ts';
import type { KeyRecord, StoredKey } from '../../../../plugins/auth/api-key/records.ts';
import { createVerifier } from '../../../../plugins/auth/api-key/verify-key.ts';

const HASH = Buffer.alloc(32, 7);
const OTHER = Buffer.alloc(32, 8);

/** Verifier on a store with one key; counts the lookups. */
function startVerifier() {
  const idBytes = randomBytes(16);
  /** Creates keys with the same id and different secrets. */
  const withId = () => createKey((size) => (size === idBytes.length ? idBytes : randomBytes(size)));
  const right = withId();
  const pepper = { id: 'p', hash: (text: string) => (text === right.text ? HASH : OTHER) };
  const peppers: Peppers = { current: pepper, all: [pepper], find: () => pepper };
  const record: KeyRecord = {
    version: 1,
    ...{ id: right.id, userId: 'ann', account: 'ann', name: '', hash: HASH.toString('hex') },
    ...{ pepperId: 'p', createdAt: 0 },
  };
  const requests: string[] = [];
  const find = async (id: string): Promise<StoredKey | undefined> => {
    requests.push(id);
    return id === right.id ? { record, version: 0 } : undefined;
  };
  const verifier = createVerifier(
    { find },
    async () => peppers,
    () => undefined,
  );
  let isOver = false;
  const exceed = (): void => {
    isOver = true;
  };
  const verify = async (credential: string, now: number): Promise<string> => {
    const beforeLookup = (): void => {
      if (isOver) throw new Error('too many');
    };
    try {
      return (await verifier.verify({ credential, now, address: '127.0.0.1', beforeLookup })).userId;
    } catch (error) {
      return (error as GatewayError).code ?? (error as Error).message;
    }
  };
  return { right, withId, requests, verify, exceed };
}

describe('look-ups of API keys from an address that sends wrong ones (E34)', () => {
  it('E34: are not made for a key that was never right here', async () => {
    const { requests, verify, exceed } = startVerifier();
    exceed();
    expect(await verify(createKey(randomBytes).text, 0)).to.equal('too many');
    expect(await verify('tg_none', 0)).to.equal('invalid_api_key');
    expect(requests).to.deep.equal([]);
  });

  it('E34: are made for a key that was right here, however long ago, also after others tried its id', async () => {
    const { right, withId, requests, verify, exceed } = startVerifier();
    expect(await verify(right.text, 0)).to.equal('ann');
    exceed();
    expect(await verify(right.text, 1000)).to.equal('ann');
    expect(requests).to.have.lengthOf(1);
    expect(await verify(right.text, 3_600_000)).to.equal('ann');
    expect(requests).to.have.lengthOf(2);
    // A wrong secret causes another read of the entry; the right one still works.
    expect(await verify(withId().text, 7_200_000)).to.equal('too many');
    expect(await verify(right.text, 7_200_000)).to.equal('ann');
  });
});
