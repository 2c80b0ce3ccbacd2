import { stat } from 'node:fs/promises';
import { expect } from 'chai';
import { createGuard, type Guard } from '../../../../plugins/stores/kit/guard.ts';
import { rejectsUnavailable } from '../../../conformance/store.ts';
import { createSilentLog } from '../../../support/log.ts';
import { eventually } from '../../../support/wait.ts';

const never = () => new Promise<never>(() => undefined);

describe('the guard before a server', () => {
  let isUp: boolean;
  let probes: number;
  let guard: Guard;
  const log = createSilentLog();
  beforeEach(() => {
    isUp = true;
    probes = 0;
    const probe = async () => {
      probes += 1;
      if (!isUp) throw new Error('down');
    };
    guard = createGuard({
      kind: 'test',
      timeoutMs: 30,
      probe,
      isOutage: (error) => String(error).includes('socket'),
      log,
    });
  });
  afterEach(() => guard.close());

  it('refuses everything before the first probe succeeded', async () => {
    isUp = false;
    expect(String(await guard.start())).to.match(/down/);
    await rejectsUnavailable(guard.run(async () => 1));
    isUp = true;
    await eventually(async () => expect(await guard.run(async () => 1)).to.equal(1));
  });

  it('accepts a response that arrived in time while this process was busy', async () => {
    await guard.start();
    const response = guard.run(() => stat('.'));
    // Blocks as long as the build of a configuration does on a busy machine; the response arrives meanwhile.
    const until = performance.now() + 80;
    while (performance.now() < until);
    expect((await response).isDirectory()).to.equal(true);
  });

  it('fails a slow operation, then all immediately, until a probe succeeds', async () => {
    await guard.start();
    isUp = false;
    await rejectsUnavailable(guard.run(never));
    let ran = false;
    await rejectsUnavailable(
      guard.run(async () => {
        ran = true;
      }),
    );
    expect(ran).to.equal(false);
    isUp = true;
    await eventually(() => guard.run(async () => 1));
  });

  it('stays open to others when one operation is refused', async () => {
    await guard.start();
    await rejectsUnavailable(guard.run(() => Promise.reject(new Error('ERR wrong kind of value'))));
    expect(await guard.run(async () => 1)).to.equal(1);
    expect(probes).to.equal(1);
  });

  it('opens when an operation shows that the server is unavailable', async () => {
    await guard.start();
    isUp = false;
    await rejectsUnavailable(guard.run(() => Promise.reject(new Error('socket closed'))));
    await rejectsUnavailable(guard.run(async () => 1));
  });

  it('repeats repeatable work when its connection breaks, and other work waits for the next connection', async () => {
    await guard.start();
    let runs = 0;
    const breaksOnce = async (): Promise<number> => {
      runs += 1;
      if (runs === 1) throw new Error('socket closed');
      return runs;
    };
    const repeated = guard.run(breaksOnce, true);
    await Promise.resolve();
    expect(await Promise.all([repeated, guard.run(async () => 'another')])).to.deep.equal([2, 'another']);
    runs = 0;
    const error = await guard.run(breaksOnce).catch((reason) => reason);
    expect([error.code, runs]).to.deep.equal(['store_unavailable', 1]);
    expect(await guard.reconnected(error)).to.equal(true);
    expect(await guard.reconnected(new Error('of another kind'))).to.equal(false);
  });

  it('ignores the failure of a connection that was already replaced', async () => {
    await guard.start();
    let fail: (error: Error) => void = () => undefined;
    const old = guard.run(
      () =>
        new Promise((_, reject) => {
          fail = reject;
        }),
    );
    guard.trip(new Error('gone'));
    await guard.run(async () => 1);
    const before = probes;
    fail(new Error('socket closed'));
    await rejectsUnavailable(old);
    expect(await guard.run(async () => 1)).to.equal(1);
    expect(probes).to.equal(before);
  });

  it('ignores failures after its deadline', async () => {
    await guard.start();
    let fail: (error: Error) => void = () => undefined;
    const late = guard.run(
      () =>
        new Promise((_, reject) => {
          fail = reject;
        }),
    );
    await rejectsUnavailable(late);
    await eventually(() => guard.run(async () => 1));
    const before = probes;
    fail(new Error('socket closed'));
    expect(await guard.run(async () => 1)).to.equal(1);
    expect(probes).to.equal(before);
  });

  it('reports when the server becomes unavailable and available', async () => {
    await guard.start();
    guard.trip(new Error('gone'));
    await eventually(() => guard.run(async () => 1));
    const said = log.lines.slice(-2).map(({ level, message }) => `${level}: ${message}`);
    expect(said[0]).to.match(/^error: the store does not respond/);
    expect(said[1]).to.equal('info: the store responds again');
  });

  it('refuses everything once it is closed', async () => {
    await guard.start();
    guard.close();
    await rejectsUnavailable(guard.run(async () => 1));
  });
});
