import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { type Operator, startOperator } from '../support/gateways/operator.ts';
import { openAiVendor, tokenPrices } from '../support/vendors/openai-vendor.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';

interface NodeRow {
  readonly node: string;
  readonly state?: string;
  readonly attempts?: number;
  readonly calls?: number;
}

describe('two gateways on one store', function () {
  this.timeout(120_000);
  let folder: string;
  let vendor: ScriptedUpstream;
  let operator: Operator;
  let other: TestGateway;

  before(async () => {
    folder = await mkdtemp(path.join(os.tmpdir(), 'tollgate-nodes-'));
    vendor = await startScriptedUpstream((wire) => wire.send(respondWith(500, { error: { message: 'on fire' } })));
    const config = {
      store: `sqlite:${folder}`,
      auth: { 'api-key': { bootstrap: true, pepper: randomBytes(32).toString('base64url') } },
      providers: { echo: {}, north: openAiVendor(vendor, { models: ['m'], prices: tokenPrices(3, 15) }) },
    };
    operator = await startOperator(config);
    other = await startGateway(config);
  });
  after(async () => {
    await other?.stop();
    await operator?.gateway.stop();
    await vendor?.close();
    await rm(folder, { recursive: true, force: true });
  });

  it('show operators of each the targets and hooks of both, with a line for each process (G43)', async () => {
    const { call } = operator;
    const send = async (gateway: TestGateway, model: string): Promise<number> => {
      const body = { model, messages: [{ role: 'user', content: 'Hi' }] };
      const response = await gateway.post('/v1/chat/completions', body, { authorization: `Bearer ${operator.key}` });
      await response.text();
      return response.status;
    };
    // The operator's own gateway has never called the target that fails at the other one.
    expect(await send(operator.gateway, 'echo/echo')).to.equal(200);
    expect([await send(other, 'north/m'), await send(other, 'echo/echo')]).to.deep.equal([503, 200]);
    const rowOf = async (target: string): Promise<{ attempts: number; nodes: readonly NodeRow[] }> => {
      const { body } = await call('GET', '/targets');
      return body.data.find((row: { target: string }) => row.target === target);
    };
    await eventually(async () => {
      expect((await rowOf('north/m')).attempts).to.be.at.least(1);
      expect((await rowOf('echo/echo')).attempts).to.equal(2);
      // Both reports are in the store: one call each.
      const { nodes } = await rowOf('echo/echo');
      expect(nodes.map(({ attempts }) => attempts)).to.deep.equal([1, 1]);
    });
    expect((await rowOf('north/m')).nodes).to.have.lengthOf(1);
    const { body } = await call('GET', '/plugins');
    const hooks = body.data.flatMap((row: { name: string; hook_counts: readonly object[] }) =>
      row.name === 'accounts' ? row.hook_counts : [],
    ) as readonly { hook: string; calls: number; nodes: readonly NodeRow[] }[];
    const reserve = hooks.find(({ hook }) => hook === 'reserve');
    expect(reserve?.calls).to.equal(3);
    expect(reserve?.nodes.map(({ calls }) => calls).toSorted()).to.deep.equal([1, 2]);
  });
});
