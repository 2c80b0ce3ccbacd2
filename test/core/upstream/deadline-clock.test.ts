import { expect } from 'chai';
import { createDeadlineClock, type DeadlineClock, type Watched } from '../../../core/upstream/deadline-clock.ts';
import { until } from '../../support/until.ts';

describe('deadline clock', () => {
  let clock: DeadlineClock;
  let expired: string[];

  beforeEach(() => {
    clock = createDeadlineClock();
    expired = [];
  });

  afterEach(() => clock.close());

  function item(name: string, inMs: number): Watched & { at: number } {
    const watched = {
      at: performance.now() + inMs,
      dueAt: () => watched.at,
      expire: () => {
        clock.unwatch(watched);
        expired.push(name);
      },
      cut: () => void expired.push(`${name} cut`),
    };
    return watched;
  }

  it('expires what is due, nearest first, whatever the order it was told in', async () => {
    clock.watch(item('second', 60));
    clock.watch(item('first', 10));
    await until('both are expired', () => expired.length === 2);
    expect(expired).to.deep.equal(['first', 'second']);
  });

  it('never expires early', async () => {
    const watched = item('a', 30);
    clock.watch(watched);
    await until('it is expired', () => expired.length === 1);
    expect(performance.now()).to.be.at.least(watched.at);
  });

  it('lets a deadline move away without being told', async () => {
    const moving = item('moving', 10);
    clock.watch(moving);
    moving.at += 100;
    clock.watch(item('fixed', 40));
    await until('both are expired', () => expired.length === 2);
    expect(expired).to.deep.equal(['fixed', 'moving']);
  });

  it('is told when a deadline comes nearer', async () => {
    const nearing = item('nearing', 60_000);
    clock.watch(nearing);
    nearing.at = performance.now() + 5;
    clock.watch(nearing);
    await until('it is expired', () => expired.length === 1);
  });

  it('forgets what is not watched any more', async () => {
    const gone = item('gone', 5);
    clock.watch(gone);
    clock.unwatch(gone);
    clock.watch(item('kept', 20));
    await until('the other is expired', () => expired.length > 0);
    expect(expired).to.deep.equal(['kept']);
  });

  it('cuts what is left when it closes', () => {
    clock.watch(item('a', 60_000));
    clock.close();
    expect(expired).to.deep.equal(['a cut']);
  });
});
