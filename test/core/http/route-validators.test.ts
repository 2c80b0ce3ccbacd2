import { expect } from 'chai';
import type { Schema } from '../../../core/contract/json.ts';
import type { Route } from '../../../core/contract/plugin.ts';
import { createRouteValidators } from '../../../core/http/route-validators.ts';

const ROUTE = { method: 'POST', path: '/x' } as Route;
const GOOD: Schema = { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } };
const BAD: Schema = { type: 'object', properties: { n: { tpye: 'integer' } } };
const FAULT = /plugin "acme": the body schema of POST \/x does not compile: strict mode: unknown keyword: "tpye"/;

describe('what checks the requests of routes', () => {
  for (const areKnownGood of [false, true])
    it(`tells the first fault of a value, of schemas that are${areKnownGood ? '' : ' not'} known to be good`, async () => {
      const validators = createRouteValidators({ schemas: [], areKnownGood });
      const early = validators.create(GOOD, 'acme', ROUTE, 'body');
      const late = validators.create({ ...GOOD }, 'acme', ROUTE, 'body');
      expect(early({ n: 1 })).to.equal(undefined);
      expect(early({ n: 'x' })).to.include({ keyword: 'type', instancePath: '/n' });
      await validators.compileRest();
      expect(late({})).to.include({ keyword: 'required' });
      expect(late({ n: 1 })).to.equal(undefined);
    });

  it('compiles at once what is not known to be good', () => {
    const validators = createRouteValidators({ schemas: [] });
    expect(() => validators.create(BAD, 'acme', ROUTE, 'body')).to.throw(FAULT);
    expect(() => createRouteValidators({ schemas: [{ $id: 'a', type: 'text' }] })).to.throw(/schema is invalid/);
  });

  it('compiles what is known to be good after the start, or at the first request', async () => {
    const validators = createRouteValidators({ schemas: [], areKnownGood: true });
    const check = validators.create(BAD, 'acme', ROUTE, 'body');
    expect(() => check({})).to.throw(FAULT);
    const fault = await validators.compileRest().catch((error: Error) => error.message);
    expect(fault).to.match(FAULT);
  });
});
