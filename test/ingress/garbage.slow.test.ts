import { type IngressRig, startIngressRig, WIRES } from '../support/gateways/ingress-rig.ts';
import { sayAnywhere } from '../support/vendors/responses-wire.ts';
import { DOORS, postGarbage } from './garbage-bodies.ts';

/** Bodies for each route. */
const CASES = Number(process.env['TOLLGATE_PROPERTY_CASES'] ?? 300);

describe('much garbage on the routes of every dialect', function () {
  this.timeout(900_000);
  let rig: IngressRig;
  before(async () => {
    rig = await startIngressRig({}, { level: 'silent' });
    for (const wire of WIRES) sayAnywhere(rig, wire, { pieces: [{ text: 'Hi' }] });
  });
  after(() => rig.stop());

  for (const door of DOORS)
    it(`${door.path('{model}')} refuses it in its format with the place of the error, or serves it, never 5xx`, async () => {
      await postGarbage(rig, door, { numRuns: CASES });
    });
});
