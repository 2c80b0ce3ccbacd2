import { expect } from 'chai';
import { type GatewayError, isGatewayError } from '../../../contract/errors.ts';
import { createMemory, type Hold } from '../../../core/http/memory.ts';
import { until } from '../../support/wait.ts';

/** Result of a change: `fits`, or the code of its error. */
function codeOf(change: () => unknown): string {
  try {
    change();
    return 'fits';
  } catch (error) {
    return isGatewayError(error) ? error.code : String(error);
  }
}

const grow = (hold: Hold, bytes: number): string => codeOf(() => hold.grow(bytes));

describe('the memory in flight', () => {
  /** 90 bytes in total, without a reserve for small holds. */
  const plain = () => createMemory({ bytes: 90, floorBytes: 0 });

  it('E25: of one owner is at most two thirds, also by many small holds, and less while others need it', () => {
    const memory = plain();
    const holds = Array.from({ length: 6 }, () => memory.book('one', 10));
    expect(
      codeOf(() => memory.book('one', 1)),
      'its own bound',
    ).to.equal('rate_limited');
    expect(codeOf(() => memory.book('two', 20))).to.equal('fits');
    holds[0]!.release();
    expect(codeOf(() => memory.book('two', 10))).to.equal('rate_limited');
    expect(codeOf(() => memory.book('three', 10))).to.equal('fits');
  });

  it('E25: has room for one more owner when five have reached their limits', () => {
    const memory = createMemory({ bytes: 1e6, floorBytes: 0 });
    for (let at = 0; at < 5; at += 1) while (codeOf(() => memory.book(`owner ${at}`, 100)) === 'fits');
    expect(codeOf(() => memory.book('last', 1000))).to.equal('fits');
  });

  it('is refused as overloaded only to an owner whose own holds are not the reason', () => {
    const memory = plain();
    memory.book('one', 60);
    expect(codeOf(() => memory.book('two', 25))).to.equal('overloaded');
    expect(codeOf(() => memory.book('two', 20))).to.equal('fits');
  });

  it('is permanently refused to a hold that would not fit alone', () => {
    const hold = plain().book('one', 60);
    expect(grow(hold, 1)).to.equal('request_too_large');
    expect(hold.bytes).to.equal(60);
  });

  it('E25: reserves an eighth for holds of up to 256 KiB by default', () => {
    const memory = createMemory({ bytes: 8_000_000 });
    for (let at = 0; at < 10; at += 1) while (codeOf(() => memory.book(`owner ${at}`, 262_200)) === 'fits');
    expect(codeOf(() => memory.book('last', 262_200))).to.equal('overloaded');
    expect(codeOf(() => memory.book('last', 262_100))).to.equal('fits');
  });

  it('E25: has a part for small holds that large ones cannot use', () => {
    const memory = createMemory({ bytes: 200, floorBytes: 100, smallBytes: 5 });
    for (const owner of ['one', 'two', 'three', 'four']) while (codeOf(() => memory.book(owner, 6)) === 'fits');
    expect(codeOf(() => memory.book('five', 6))).to.equal('overloaded');
    const small = memory.book('five', 5);
    expect(
      codeOf(() => memory.book('one', 5)),
      'also of an owner that has its share',
    ).to.equal('fits');
    expect(grow(small, 1), 'grown beyond small').to.equal('overloaded');
    expect(small.bytes).to.equal(5);
  });

  it('is freed by a release and by a smaller size, and is not booked after a release', () => {
    const memory = plain();
    const hold = memory.book('one', 60);
    hold.resize(10);
    expect(hold.bytes).to.equal(10);
    const other = memory.book('one', 50);
    other.release();
    other.grow(1000);
    expect(other.bytes).to.equal(0);
    expect(codeOf(() => memory.book('one', 50))).to.equal('fits');
  });

  it('moves to the identified owner, if that one has room', () => {
    const memory = plain();
    const hold = memory.book('somebody', 20);
    memory.book('one', 45);
    expect(codeOf(() => hold.assign('one'))).to.equal('rate_limited');
    void hold.assign('two');
    expect(codeOf(() => memory.book('somebody', 15))).to.equal('fits');
  });

  it('allows one large body per turn of the event loop, and small ones immediately', async () => {
    const memory = createMemory();
    expect(memory.turn(1000)).to.equal(undefined);
    const order: string[] = [];
    const large = ['first', 'second'].map(async (name) => {
      await memory.turn(1_000_000);
      order.push(name);
    });
    setImmediate(() => order.push('others'));
    await Promise.all(large);
    expect(order.indexOf('others')).to.be.oneOf([0, 1]);
  });

  it('alternates between owners of large bodies, and delays those of one while others have requests (E30)', async () => {
    const memory = createMemory();
    memory.book('small', 10);
    const order: string[] = [];
    const at: number[] = [];
    const parse = async (name: string, owner: string) => {
      await memory.turn(1_000_000, { owner });
      order.push(name);
      at.push(performance.now());
      for (const began = performance.now(); performance.now() - began < 20; );
    };
    await Promise.all([parse('one', 'greedy'), parse('two', 'greedy'), parse('three', 'greedy'), parse('other', 'b')]);
    expect(order).to.deep.equal(['one', 'other', 'two', 'three']);
    expect((at[3] ?? 0) - (at[2] ?? 0)).to.be.above(60);
  });

  it('delays the bodies of an owner by their bytes if another owner has requests, and refuses a wait of seconds (E30)', async () => {
    const memory = createMemory();
    const owner = 'greedy';
    const first = memory.turn(2_000_000, { owner });
    memory.book('small', 10).release();
    await first;
    const began = performance.now();
    await memory.turn(100_000, { owner });
    expect(performance.now() - began).to.be.above(450);
    memory.book('small', 10);
    void memory.turn(25_000_000, { owner });
    const refused = await Promise.resolve(memory.turn(100_000, { owner })).then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(refused).to.include({ code: 'rate_limited' }).and.to.have.property('retryAfterMs').above(5000);
    await memory.turn(100_000, { owner: 'another' });
  });

  it('allows a few requests of an owner per turn of the event loop if others have requests, and all otherwise (E30)', async () => {
    const memory = createMemory();
    const arrive = (owner: string): Promise<void> | undefined => memory.book('address').assign(owner);
    for (let at = 0; at < 100; at += 1) expect(arrive('greedy'), 'alone').to.equal(undefined);
    memory.book('small', 10);
    const order: string[] = [];
    const come = async (owner: string): Promise<void> => {
      await arrive(owner);
      order.push(owner);
    };
    const all = Array.from({ length: 100 }, () => come('greedy'));
    setImmediate(() => all.push(come('small')));
    setImmediate(() => setImmediate(() => order.push('two turns later')));
    await Promise.all(all);
    await all.at(-1);
    expect(order).to.have.length(102);
    expect(order.indexOf('small'), 'waits for none of them').to.be.below(10);
    expect(order.indexOf('two turns later')).to.be.below(20);
  });

  it('queues websocket messages with their owner’s requests (G62)', async () => {
    const memory = createMemory();
    memory.book('small', 10);
    const order: string[] = [];
    const come = async (name: string, wait: Promise<void> | undefined): Promise<void> => {
      await wait;
      order.push(name);
    };
    // Sixteen sockets with small events, as many requests, and one event of another owner.
    const all = Array.from({ length: 16 }, () => come('event', memory.join('greedy')));
    all.push(...Array.from({ length: 16 }, () => come('request', memory.book('address').assign('greedy'))));
    all.push(come('small', memory.join('small')));
    await Promise.all(all);
    expect(order.indexOf('small'), 'waits for none of them').to.be.below(4);
    expect(order.lastIndexOf('event'), 'in their order').to.be.below(order.indexOf('request') + 3);
    expect(order).to.have.length(33);
  });

  it('does not delay a single owner', async () => {
    const memory = createMemory();
    memory.book('greedy', 10);
    const began = performance.now();
    for (let at = 0; at < 10; at += 1) await memory.turn(20_000_000, { owner: 'greedy' });
    expect(performance.now() - began).to.be.below(2000);
  });
});

describe('the minimum rate', () => {
  it('E25: ends a slower body with request_timeout, and reports the minimum', async () => {
    let error: GatewayError | undefined;
    const watch = createMemory({ leastRate: { bytes: 10, everyMs: 5 } }).watchRate((slow) => {
      error = slow;
    });
    watch.add(9);
    await until('it is refused', () => error !== undefined);
    expect(error).to.include({
      code: 'request_timeout',
      message: 'The body came too slowly: fewer than 10 bytes in 0.005 seconds.',
    });
  });

  it('ignores times in which the process read nothing', async () => {
    let isSlow = false;
    const watch = createMemory({ leastRate: { bytes: 1, everyMs: 20 } }).watchRate(() => {
      isSlow = true;
    });
    // Runs after the watch's own timer, as data from the network does.
    const read = new Promise<void>((resolve) => {
      setTimeout(() => {
        watch.add(1);
        setImmediate(() => {
          watch.stop();
          resolve();
        });
      }, 30);
    });
    const end = performance.now() + 60;
    while (performance.now() < end);
    await read;
    expect(isSlow).to.equal(false);
  });
});
