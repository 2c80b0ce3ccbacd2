import { expect } from 'chai';
import { useTempFolder } from '../support/folders.ts';
import { fine, type RoutingRig, refusal, startRoutingRig } from '../support/gateways/routing-rig.ts';
import { eventually } from '../support/wait.ts';

describe('two gateways on one store', () => {
  const folder = useTempFolder('shared-health');
  const rigs: RoutingRig[] = [];
  after(() => Promise.all(rigs.map((rig) => rig.stop())));

  it('skip a target that sent a retry-after to one of them @slow', async () => {
    const config = { store: `sqlite:${folder}/data` };
    const one = await startRoutingRig({ pair: ['a/m', 'b/m'] }, {}, config);
    rigs.push(one);
    // The second gateway uses the same vendors.
    const urls = Object.fromEntries(Object.entries(one.vendors).map(([name, { url }]) => [name, { baseUrl: url }]));
    const two = await startRoutingRig({ pair: ['a/m', 'b/m'] }, urls, config);
    rigs.push(two);
    const headers = { authorization: `Bearer ${one.gateway.key}` };
    expect(await two.send('pair', {}, headers)).to.include({ by: 'a' });
    // The vendor now sends one 429 and would then respond to any request.
    one.vendors['a']?.script(refusal(429, { 'retry-after': '60' }), fine);
    expect(await one.send('pair')).to.include({ by: 'b', attempts: '2' });
    await eventually(
      async () => expect(await two.send('pair', {}, headers)).to.include({ by: 'b', attempts: '1' }),
      10_000,
    );
  });
});
