import { expect } from 'chai';
import { createGateway } from '../../core/app.ts';
import { type Operator, startOperator } from '../support/gateways/operator.ts';
import { createSilentLog } from '../support/log.ts';

describe('the nodes of a store', () => {
  let operator: Operator;
  before(async () => {
    operator = await startOperator({ store: 'sqlite:./data' });
  });
  after(() => operator.gateway.stop());

  it('are all processes that run on it, each with version, time and targets, until they stop', async () => {
    const { call, chat, key, gateway } = operator;
    expect((await chat(key)).status).to.equal(200);
    const read = async () => (await call('GET', '/nodes')).body.data as Record<string, unknown>[];
    const [own] = await read();
    expect(own).to.include({ pid: process.pid, generation: 1 });
    expect(own?.['version']).to.match(/^\d+\.\d+\.\d+/);
    const configPath = `${gateway.folder}/tollgate.config.json`;
    const other = await createGateway({ cwd: gateway.folder, env: {}, configPath, log: createSilentLog() });
    expect(await read()).to.have.lengthOf(2);
    await other.close();
    expect((await read()).map(({ id }) => id)).to.deep.equal([own?.['id']]);
  });
});
