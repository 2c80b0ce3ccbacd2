import { expect } from 'chai';
import { type FailureRig, startFailureRig, USAGE_COST } from '../support/gateways/failure-rig.ts';
import { completion } from '../support/vendors/openai-vendor.ts';
import { respondWith } from '../support/vendors/scripted-upstream.ts';

describe('an Idempotency-Key', () => {
  let rig: FailureRig;
  before(async () => {
    rig = await startFailureRig();
  });
  after(() => rig?.stop());

  it('C09: makes two requests one call and one charge, and is not sent to the vendor', async () => {
    const mark = await rig.mark();
    const seen = rig.vendor.requests.length;
    rig.vendor.script(respondWith(200, completion()));
    const headers = { 'idempotency-key': 'the-same-one' };
    const first = await rig.send({}, headers);
    const second = await rig.send({}, headers);
    expect([first.status, second.status]).to.deep.equal([200, 200]);
    expect(second.text).to.equal(first.text);
    const sent = rig.vendor.requests.slice(seen);
    expect(sent).to.have.lengthOf(1);
    expect(sent[0]?.headers['idempotency-key']).to.equal(undefined);
    await rig.expectOrder(mark, 2, USAGE_COST);
  });
});
