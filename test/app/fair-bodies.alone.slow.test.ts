import { expect } from 'chai';
import { attack, type FairRig, SENT, SMALL_CALL, startFairRig } from './fair-bodies.ts';
import { nowMs } from './fair-client.ts';

const CALLS = 60;
/** Small bodies of one account served while a small call waits; measured 6 to 13, and all lanes without the gateway's order. */
const SMALL_BODIES_BETWEEN = 25;

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
      expect(median, passed.join(' ')).to.be.at.most(sent.isLarge ? 1 : SMALL_BODIES_BETWEEN);
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
