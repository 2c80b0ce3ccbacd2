import { expect } from 'chai';
import { attack, type FairRig, SENT, SMALL_CALL, startFairRig } from './fair-bodies.ts';
import { nowMs } from './fair-client.ts';

const CALLS = 60;
/**
 * Share of an account's lanes that may be served while a small call of another one waits: all of them are without the gateway's
 * order. With it the number grows with the speed of the machine, because a call waits up to 2 ms for a commit: 7 to 42 measured.
 */
const LANES_BETWEEN = 1 / 2;

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
      const passed = await servedMeanwhile(sent);
      const median = passed.toSorted((a, b) => a - b)[CALLS / 2];
      expect(median, passed.join(' ')).to.be.at.most(sent.isLarge ? 1 : sent.lanes * LANES_BETWEEN);
    });

  /** Returns the number of bodies that were served while each small call waited. */
  async function servedMeanwhile(sent: (typeof SENT)[string]): Promise<readonly number[]> {
    const { end } = await attack(rig, sent);
    const waits: { readonly fromMs: number; readonly toMs: number }[] = [];
    for (let at = 0; at < CALLS; at += 1) {
      const fromMs = nowMs();
      expect(await rig.post(rig.other, SMALL_CALL)).to.equal(200);
      waits.push({ fromMs, toMs: nowMs() });
    }
    const times = await end();
    return waits.map(({ fromMs, toMs }) => times.filter((timeMs) => timeMs > fromMs && timeMs < toMs).length);
  }
});
