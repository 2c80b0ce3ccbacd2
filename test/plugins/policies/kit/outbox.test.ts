import { expect } from 'chai';
import { GatewayError } from '../../../../core/index.ts';
import { createOutbox, type Letter, type Outbox } from '../../../../plugins/policies/kit/outbox.ts';
import { createSilentLog } from '../../../support/silent-log.ts';
import { until } from '../../../support/until.ts';

const away = () => new GatewayError('store_unavailable', 'The store does not answer.');

describe('an outbox', () => {
  let log: ReturnType<typeof createSilentLog>;
  let outbox: Outbox;
  let isAway: boolean;
  let written: string[];

  const letter = (about: string, more: Partial<Letter> = {}): Letter => ({
    about,
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
    outbox = createOutbox({ log, otherwise: 'it is lost', firstPauseMs: 5, maxWaiting: 3 });
    isAway = false;
    written = [];
  });
  afterEach(() => outbox.close());

  it('delivers at once when the store answers', async () => {
    await outbox.send(letter('one'));
    expect(written).to.deep.equal(['one']);
    expect(outbox.size).to.equal(0);
  });

  it('does not make its caller wait for a store that is away, and delivers once when it is back', async () => {
    isAway = true;
    await outbox.send(letter('one'));
    await outbox.send(letter('two'));
    expect(outbox.size).to.equal(2);
    isAway = false;
    await until('the letters are delivered', () => outbox.size === 0);
    expect(written).to.deep.equal(['one', 'two']);
  });

  it('keeps no more than its bound, and says so once', async () => {
    isAway = true;
    for (const about of ['one', 'two', 'three', 'four', 'five']) await outbox.send(letter(about));
    expect(outbox.size).to.equal(3);
    expect(logged().match(/too many changes/g)).to.have.lengthOf(1);
  });

  it('gives up what is too late', async () => {
    isAway = true;
    await outbox.send(letter('late', { until: Date.now() - 1 }));
    await until('the letter is given up', () => outbox.size === 0);
    expect(written).to.deep.equal([]);
    expect(logged()).to.include('waited too long; it is lost');
  });

  it('does not repeat what the store refuses for good', async () => {
    let tries = 0;
    await outbox.send(
      letter('wrong', {
        async write() {
          tries += 1;
          throw new RangeError('not an amount');
        },
      }),
    );
    expect({ tries, waiting: outbox.size }).to.deep.equal({ tries: 1, waiting: 0 });
    expect(logged()).to.include('the store refused a change');
  });

  it('tries everything once more at the end, and tells what is left', async () => {
    isAway = true;
    await outbox.send(letter('one'));
    await outbox.close();
    expect(logged()).to.include('the store is away at the end; it is lost');
  });
});
