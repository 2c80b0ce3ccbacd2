import { expect } from 'chai';
import { until } from '../support/wait.ts';
import { attack, type FairRig, SENT, SMALL_CALL, startFairRig } from './fair-bodies.ts';

const CALLS = 60;

/** Order is judged here, by counts of answers; times are measured by `bench/fair-bodies.ts`. */
describe('bodies of one account', function () {
  this.timeout(900_000);
  let rig: FairRig;
  before(async () => {
    rig = await startFairRig();
  });
  after(() => rig.close());

  for (const [what, sent] of Object.entries(SENT))
    it(`let the small calls of others pass: ${sent.lanes} at once of ${what} (E30)`, async () => {
      const { answered, end } = attack(rig, sent);
      await until('the first body is answered', () => answered() > 0);
      /** How many bodies were answered while a small call waited. */
      const passed: number[] = [];
      for (let at = 0; at < CALLS; at += 1) {
        const began = answered();
        expect(await rig.post(rig.other, SMALL_CALL)).to.equal(200);
        passed.push(answered() - began);
      }
      await end();
      const median = passed.sort((a, b) => a - b)[CALLS / 2];
      // Without turns and rests a small call waits for every lane of small bodies, and for two large ones or more.
      expect(median, passed.join(' ')).to.be.at.most(sent.isLarge ? 1 : 0.75 * sent.lanes);
    });
});
