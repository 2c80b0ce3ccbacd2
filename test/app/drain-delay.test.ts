import { mock } from 'node:test';
import { expect } from 'chai';
import { startGateway } from '../support/gateways/gateway.ts';

describe('a gateway during the delay of its drain', () => {
  afterEach(() => mock.timers.reset());

  it('accepts connections, reports that it is not ready, and closes each connection after its response (E57)', async () => {
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
    // Each request uses a separate connection.
    for (let at = 0; at < 20; at += 1) expect(await look('/livez')).to.deep.equal([200, 'close']);
    mock.timers.tick(10_000);
    mock.timers.reset();
    await stopped;
    expect(await look('/livez').catch(() => 'refused')).to.equal('refused');
  });
});
