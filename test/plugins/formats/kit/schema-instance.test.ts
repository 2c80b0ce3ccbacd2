import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import fc from 'fast-check';
import type { Schema } from '../../../../contract/index.ts';
import { minimalInstance } from '../../../../plugins/providers/kit/index.ts';
import { arbitrarySchema } from '../../../support/formats/arbitrary-schema.ts';
import { generatedCases } from '../../../support/generated-cases.ts';

const CASES: readonly { readonly title: string; readonly schema: Schema; readonly value: unknown }[] = [
  { title: 'a free string is the text', schema: { type: 'string' }, value: 'hello' },
  { title: 'a string is cut to its bound, by code points', schema: { type: 'string', maxLength: 2 }, value: 'he' },
  { title: 'a string is filled up to its bound', schema: { type: 'string', minLength: 8 }, value: 'hello...' },
  { title: 'a date is a date', schema: { type: 'string', format: 'date' }, value: '1970-01-01' },
  { title: 'an enum gives its first value', schema: { enum: ['a', 'b'] }, value: 'a' },
  { title: 'a constant is itself', schema: { const: 3 }, value: 3 },
  { title: 'a number is zero', schema: { type: 'number' }, value: 0 },
  { title: 'a number is its least', schema: { type: 'number', minimum: 2.5 }, value: 2.5 },
  {
    title: 'an integer is the least multiple above its bound',
    schema: { type: 'integer', exclusiveMinimum: 10, multipleOf: 5 },
    value: 15,
  },
  { title: 'a number under a negative bound is the bound', schema: { type: 'integer', maximum: -3 }, value: -3 },
  { title: 'a list is empty', schema: { type: 'array', items: { type: 'string' } }, value: [] },
  {
    title: 'a list has its fewest items, all different',
    schema: { type: 'array', items: { type: 'string' }, minItems: 2, uniqueItems: true },
    value: ['hello', 'hello 2'],
  },
  {
    title: 'an object has what it requires',
    schema: { type: 'object', properties: { a: { type: 'string' }, b: { type: 'string' } }, required: ['a'] },
    value: { a: 'hello' },
  },
  {
    title: 'an object that requires nothing has everything',
    schema: { type: 'object', properties: { a: { type: 'string' }, b: { type: 'boolean' } } },
    value: { a: 'hello', b: false },
  },
  { title: 'a nullable thing is not null', schema: { anyOf: [{ type: 'null' }, { type: 'integer' }] }, value: 0 },
  {
    title: 'a local reference is followed',
    schema: { $defs: { x: { type: 'boolean' } }, type: 'object', properties: { x: { $ref: '#/$defs/x' } } },
    value: { x: false },
  },
  {
    title: 'parts of allOf are joined',
    schema: {
      allOf: [
        { type: 'object', properties: { a: { const: 1 } }, required: ['a'] },
        { properties: { b: { const: 2 } }, required: ['b'] },
      ],
    },
    value: { a: 1, b: 2 },
  },
];

describe('core/schema-instance', () => {
  for (const { title, schema, value } of CASES) {
    it(title, () => {
      expect(minimalInstance(schema, 'hello')).to.deep.equal(value);
    });
  }

  it('fits every schema of the supported keywords', () => {
    fc.assert(
      fc.property(arbitrarySchema, fc.string(), (schema, text) => {
        const ajv = new Ajv2020({ strict: false, validateFormats: false, validateSchema: false, meta: false });
        const value = minimalInstance(schema, text);
        expect(ajv.validate(schema, value), JSON.stringify({ schema, value, errors: ajv.errors })).to.equal(true);
      }),
      { numRuns: generatedCases(200) },
    );
  });

  it('ends on a schema that holds itself', () => {
    const schema = { type: 'object', properties: { next: { $ref: '#' } }, required: ['next'] };
    expect(JSON.stringify(minimalInstance(schema, 'x')).length).to.be.lessThan(1000);
  });
});
