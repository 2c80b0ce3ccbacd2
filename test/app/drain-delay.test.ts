import { mock } from 'node:test';
import { expect } from 'chai';
import { startGateway } from '../support/gateways/gateway.ts';

describe('a gateway that stops, until the delay of its drain is over', () => {
  afterEach(() => mock.timers.reset());

  it('takes connections as one that is not ready, and keeps none of them (E57)', async () => {
    const gateway = await startGateway({
      server: { port: 0, drainDelay: '10s', drainTimeout: '1s' },
      store: 'memory:',
    });
    const look = async (path: string): Promise<readonly [status: number, connection: string | null]> => {
      const { status, headers } = await fetch(gateway.url + path);
      return [status, headers.get('connection')];
    };
    expect(await look('/readyz')).to.deep.equal([200, 'keep-alive']);
    mock.timers.enable({ apis: ['setTimeout'] });
    const stopped = gateway.stop();
    expect(await look('/readyz')).to.deep.equal([503, 'close']);
    // Each by a connection of its own.
    for (let at = 0; at < 20; at += 1) expect(await look('/livez')).to.deep.equal([200, 'close']);
    mock.timers.tick(10_000);
    mock.timers.reset();
    await stopped;
    expect(await look('/livez').catch(() => 'refused')).to.equal('refused');
  });
});
