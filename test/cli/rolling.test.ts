import { expect } from 'chai';
import { useTempFolder } from '../support/folders.ts';
import { connectThroughKills, connectThroughStops, type RollingGateway, startRolling } from './rolling.ts';

describe('a new connection to a gateway of workers (E57)', function () {
  this.timeout(600_000);
  const folder = useTempFolder('rolling');
  let gateway: RollingGateway;
  before(async () => {
    gateway = await startRolling(folder);
  });
  after(async () => {
    gateway.running.child.kill('SIGKILL');
    await gateway.running.finished;
  });

  it('is served while no worker is left, once the next one has started', async () => {
    expect(await connectThroughKills(gateway, { rounds: 1, isAll: true, connections: 50 })).to.deep.equal([]);
  });

  it('is neither refused nor reset while a worker stops', async () => {
    const { failed } = await connectThroughStops(gateway, 1);
    expect(failed).to.deep.equal([]);
  });
});
