import { expect } from 'chai';
import { completion, type FaultRig, startFaultRig, USAGE_COST } from '../support/fault-rig.ts';
import { answer } from '../support/scripted-upstream.ts';

describe('an Idempotency-Key', () => {
  let rig: FaultRig;
  before(async () => {
    rig = await startFaultRig();
  });
  after(() => rig?.stop());

  it('C09: is ignored: two requests with one are two calls, each charged, and it does not reach the vendor', async () => {
    const mark = await rig.mark();
    const seen = rig.vendor.requests.length;
    rig.vendor.script(answer(200, completion()));
    const headers = { 'idempotency-key': 'the-same-one' };
    const both = await Promise.all([rig.ask({}, headers), rig.ask({}, headers)]);
    expect(both.map(({ status }) => status)).to.deep.equal([200, 200]);
    const sent = rig.vendor.requests.slice(seen);
    expect(sent).to.have.lengthOf(2);
    for (const request of sent) expect(request.headers['idempotency-key']).to.equal(undefined);
    await rig.expectOrder(mark, 2, 2 * USAGE_COST);
  });
});
