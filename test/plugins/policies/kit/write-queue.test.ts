import { mock } from 'node:test';
import { expect } from 'chai';
import { GatewayError } from '../../../../contract/index.ts';
import { createWriteQueue, type PendingWrite, type WriteQueue } from '../../../../plugins/policies/kit/write-queue.ts';
import { createSilentLog } from '../../../support/log.ts';
import { until } from '../../../support/wait.ts';

const away = () => new GatewayError('store_unavailable', 'The store does not answer.');

describe('the queue of writes', () => {
  let log: ReturnType<typeof createSilentLog>;
  let queue: WriteQueue;
  let isAway: boolean;
  let written: string[];

  const change = (about: string, more: Partial<PendingWrite> = {}): PendingWrite => ({
    id: about,
    until: Date.now() + 60_000,
    async write() {
      if (isAway) throw away();
      written.push(about);
    },
    ...more,
  });
  const logged = () => JSON.stringify(log.lines);

  beforeEach(() => {
    log = createSilentLog();
    queue = createWriteQueue({ log, otherwise: 'it is lost', firstPauseMs: 5, maxWaiting: 3 });
    isAway = false;
    written = [];
  });
  afterEach(() => queue.close());

  it('writes at once when the store answers', async () => {
    await queue.add(change('one'));
    expect(written).to.deep.equal(['one']);
    expect(queue.size).to.equal(0);
  });

  it('does not delay its caller for an unavailable store, and writes once when it is back', async () => {
    isAway = true;
    await queue.add(change('one'));
    await queue.add(change('two'));
    expect(queue.size).to.equal(2);
    isAway = false;
    await until('the changes are written', () => queue.size === 0);
    expect(written).to.deep.equal(['one', 'two']);
  });

  it('holds no more than its limit, and reports that once', async () => {
    isAway = true;
    for (const about of ['one', 'two', 'three', 'four', 'five']) await queue.add(change(about));
    expect(queue.size).to.equal(3);
    expect(logged().match(/too many changes/g)).to.have.lengthOf(1);
  });

  it('keeps valid entries when the clock is set forward by a day', async () => {
    isAway = true;
    await queue.add(change('one'));
    const now = Date.now.bind(Date);
    const jumped = mock.method(Date, 'now', () => now() + 86_400_000);
    try {
      await queue.add(change('two'));
      isAway = false;
      await until('the changes are written', () => queue.size === 0);
      expect(written).to.deep.equal(['one', 'two']);
    } finally {
      jumped.mock.restore();
    }
  });

  it('drops expired entries', async () => {
    isAway = true;
    await queue.add(change('late', { until: Date.now() - 1 }));
    await until('the change is given up', () => queue.size === 0);
    expect(written).to.deep.equal([]);
    expect(logged()).to.include('waited too long; it is lost');
  });

  it('does not repeat permanently refused entries', async () => {
    let tries = 0;
    await queue.add(
      change('wrong', {
        async write() {
          tries += 1;
          throw new RangeError('not an amount');
        },
      }),
    );
    expect({ tries, waiting: queue.size }).to.deep.equal({ tries: 1, waiting: 0 });
    expect(logged()).to.include('the store rejected a change');
  });

  it('tries everything once more at shutdown, and reports the rest', async () => {
    isAway = true;
    await queue.add(change('one'));
    await queue.close();
    expect(logged()).to.include('the store does not respond at shutdown; it is lost');
  });
});
