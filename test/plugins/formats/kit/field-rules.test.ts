import { expect } from 'chai';
import type { FieldTable } from '../../../../contract/index.ts';
import { applyFieldRules } from '../../../../plugins/providers/kit/index.ts';

const TABLE: FieldTable = {
  unknown: 'dropped',
  fields: {
    kept: { rule: 'passed' },
    hint: { rule: 'dropped', neutral: [0, {}] },
    wish: { rule: 'refused', note: 'it cannot.', neutral: [1] },
  },
};

describe('field rules', () => {
  it('report dropped fields, including unknown ones', () => {
    expect(applyFieldRules({ kept: 1, hint: 2, other: 3 }, TABLE, 'Acme')).to.deep.equal(['hint', 'other']);
  });

  it('silently drop values without effect', () => {
    expect(applyFieldRules({ hint: {}, wish: 1, other: null, more: undefined }, TABLE, 'Acme')).to.deep.equal([]);
  });

  it('refuse by name, with the reason', () => {
    expect(() => applyFieldRules({ wish: 2 }, TABLE, 'Acme'))
      .to.throw('Acme does not support `wish`: it cannot.')
      .with.property('param', 'wish');
  });

  it('pass unknown fields if the table allows it', () => {
    expect(applyFieldRules({ other: 3 }, { ...TABLE, unknown: 'passed' }, 'Acme')).to.deep.equal([]);
  });

  it('take no field for a rule that is only a name of every object', () => {
    expect(applyFieldRules({ constructor: 1, toString: 2 }, TABLE, 'Acme')).to.deep.equal(['constructor', 'toString']);
  });

  it('report only names that are valid in a header, at most 32', () => {
    const many = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`f${index}`, 1]));
    expect(applyFieldRules({ 'a\r\nset-cookie: x': 1, ...many }, TABLE, 'Acme'))
      .to.have.length(32)
      .and.not.include('a\r\nset-cookie: x');
  });
});
