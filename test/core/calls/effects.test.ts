import { expect } from 'chai';
import { effectsOf } from '../../../core/calls/gates.ts';

const TARGET = { provider: 'a', model: 'm' };
const STORES = { store: [{ does: 'stores', values: /^true$/ }] } as const;

const send = (body: object) => effectsOf(STORES, TARGET, { path: '/chat', body });

describe('the effects of a final request', () => {
  it('E11: are refused if the vendor would store the request, whoever set the field', () => {
    expect(() => send({ store: true }))
      .to.throw('lets the provider "a" store or use data')
      .that.includes({ code: 'invalid_request', param: 'store' });
    for (const body of [{}, { store: false }, { store: null }]) expect(send(body)).to.deep.equal([]);
  });
});
