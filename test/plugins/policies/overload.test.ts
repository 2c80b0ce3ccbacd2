import { EventEmitter } from 'node:events';
import { mock } from 'node:test';
import { expect } from 'chai';
import { isGatewayError } from '../../../contract/index.ts';
import overload from '../../../plugins/policies/overload.ts';

type Middleware = (ctx: object, next: () => Promise<void>) => unknown;

describe('the policy overload', () => {
  let nowMs = 0;
  let cpuMs = 0;
  let middleware: Middleware;
  let close: () => void;
  beforeEach(async () => {
    [nowMs, cpuMs] = [0, 0];
    mock.timers.enable({ apis: ['setInterval'] });
    mock.method(performance, 'now', () => nowMs);
    mock.method(process, 'cpuUsage', () => ({ user: cpuMs * 900, system: cpuMs * 100 }));
    const ready: (() => void)[] = [];
    const api = {
      log: { warn() {}, info() {} },
      use: (each: Middleware) => {
        middleware = each;
      },
      onReady: (run: () => void) => ready.push(run),
      onClose: (run: () => void) => {
        close = run;
      },
    };
    await overload.setup(api as never, { maxLag: '500ms', maxHeap: 1 });
    for (const run of ready) run();
  });
  afterEach(() => {
    close();
    mock.timers.reset();
    mock.restoreAll();
  });

  /** Simulates event loop turns with this delay and this CPU time, enough for the moving average. */
  const run = (elapsedMs: number, ownMs: number): void => {
    for (let n = 0; n < 20; n++) {
      nowMs += elapsedMs;
      cpuMs += ownMs;
      mock.timers.tick(100);
    }
  };

  /** Starts a request that runs until it is ended; undefined if it is refused. */
  const begin = async (isProbe = false): Promise<{ end(): void } | undefined> => {
    const res = new EventEmitter();
    try {
      const onClosed = (listener: () => void): unknown => res.once('close', listener);
      await middleware({ res, state: { isProbe, onClosed } }, async () => {});
      return { end: () => res.emit('close') };
    } catch (error) {
      expect(isGatewayError(error) && error.code).to.equal('overloaded');
      return undefined;
    }
  };

  it('E31: refuses no call for lag that other processes make', async () => {
    await begin();
    run(3_000, 90);
    expect(await begin()).to.not.equal(undefined);
  });

  it('E31: refuses calls for lag caused by its own work, also with half of a core', async () => {
    for (const [elapsedMs, ownMs] of [
      [1_000, 1_000],
      [2_000, 1_000],
    ] as const) {
      const other = await begin();
      run(elapsedMs, ownMs);
      expect(await begin(), `${ownMs} of ${elapsedMs} ms`).to.equal(undefined);
      expect(await begin(true), 'a probe').to.not.equal(undefined);
      run(100, 10);
      const later = await begin();
      expect(later, 'when it is over').to.not.equal(undefined);
      other?.end();
      later?.end();
    }
  });

  it('E31: never refuses the only call in flight', async () => {
    const first = await begin();
    run(1_000, 1_000);
    expect(await begin(), 'a second one').to.equal(undefined);
    first?.end();
    const only = await begin();
    expect(only, 'the only one').to.not.equal(undefined);
    expect(await begin(), 'one more').to.equal(undefined);
  });
});
