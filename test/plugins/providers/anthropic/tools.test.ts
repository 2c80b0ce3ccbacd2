import { expect } from 'chai';

import { fitsStrictly, strictSchema } from '../../../../plugins/formats/anthropic/write-contents.ts';

const SCHEMA = {
  type: 'object',
  properties: { answer: { type: 'string' } },
  required: ['answer'],
  additionalProperties: false,
};
/** Map of texts with arbitrary names. */
const MAP = { type: 'object', additionalProperties: { type: 'string' } };

describe('anthropic schemas', () => {
  it('describe for the model constraints that cannot be enforced', () => {
    const schema = {
      type: 'object',
      properties: { n: { type: 'integer', minimum: 1, description: 'A count.' }, s: { type: 'string', format: 'hex' } },
    };
    expect(strictSchema(schema)).to.deep.equal({
      type: 'object',
      properties: {
        n: { type: 'integer', description: 'A count.\n\n{minimum: 1}' },
        s: { type: 'string', description: '{format: "hex"}' },
      },
      additionalProperties: false,
    });
  });

  it('use anyOf for oneOf and keep supported keywords', () => {
    const schema = {
      oneOf: [
        { const: 1 },
        { type: 'string', format: 'date' },
        { type: 'array', items: { type: 'null' }, minItems: 1 },
      ],
    };
    expect(strictSchema(schema)).to.deep.equal({ anyOf: schema.oneOf });
  });

  it('are refused when they are nested too deep', () => {
    let schema: Record<string, unknown> = {};
    for (let depth = 0; depth < 100; depth += 1) schema = { items: schema };
    expect(() => strictSchema(schema))
      .to.throw('nested')
      .with.property('code', 'invalid_request');
  });

  const optional = (count: number): object => ({
    type: 'object',
    properties: Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, { type: 'string' }])),
  });
  const doubling = Object.fromEntries(
    Array.from({ length: 40 }, (_, index) => [
      `d${index}`,
      { anyOf: [{ $ref: `#/$defs/d${index + 1}` }, { $ref: `#/$defs/d${index + 1}` }] },
    ]),
  );
  for (const [title, schema, fits] of [
    ['an ordinary object', SCHEMA, true],
    ['a reference', { type: 'object', properties: { a: { $ref: '#/$defs/A' } }, $defs: { A: SCHEMA } }, true],
    [
      'a recursion',
      { $defs: { A: { type: 'object', properties: { a: { $ref: '#/$defs/A' } } } }, $ref: '#/$defs/A' },
      false,
    ],
    ['a map', MAP, false],
    ['a free object', { type: 'object' }, false],
    ['few optional fields', optional(24), true],
    ['many optional fields', optional(25), false],
    ['references that double forty times', { $ref: '#/$defs/d0', $defs: doubling }, false],
  ] as const) {
    it(`${fits ? 'fit' : 'do not fit'} the vendor’s decoder: ${title}`, () => {
      expect(fitsStrictly(schema as Record<string, unknown>)).to.equal(fits);
    });
  }
});
