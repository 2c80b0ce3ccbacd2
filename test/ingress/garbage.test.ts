import { expect } from 'chai';
import { type IngressRig, startIngressRig, WIRES } from '../support/gateways/ingress-rig.ts';
import { partOf } from '../support/generated-cases.ts';
import { sayAnywhere } from '../support/vendors/responses-wire.ts';
import { DOORS, postGarbage, readError } from './garbage-bodies.ts';

/** `garbage.slow.test.ts` uses more seeds. */
const SEED = 20_261_122;

describe('garbage of up to 65 kB on the routes of every dialect', () => {
  let rig: IngressRig;
  before(async () => {
    rig = await startIngressRig({}, { level: 'silent' });
    for (const wire of WIRES) sayAnywhere(rig, wire, { pieces: [{ text: 'Hi' }] });
  });
  after(() => rig.stop());

  for (const door of partOf(DOORS))
    it(`is served or refused in the format of ${door.path('{model}')}, with the place of the error, never 5xx`, async () => {
      const { served, refused, placed } = await postGarbage(rig, door, { seed: SEED, numRuns: 40 });
      expect(served).to.be.greaterThan(1);
      expect(refused).to.be.greaterThan(7);
      expect(placed).to.be.greaterThan(2);
    });

  for (const { dialect, path } of DOORS)
    it(`is never ignored: ${path('{model}')} reports the problem of a list, a text and invalid JSON`, async () => {
      for (const body of [
        '[]',
        '"x"',
        '',
        '{',
        `${'['.repeat(60_000)}`,
        '{"model":"a","model":"b"}',
        '{"__proto__":{}}',
      ]) {
        const response = await rig.gateway.post(path('echo/echo'), body);
        expect(response.status, body.slice(0, 20)).to.equal(400);
        readError(dialect, 400, await response.json());
      }
    });
});
