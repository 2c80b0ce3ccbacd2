import { expect } from 'chai';
import fc from 'fast-check';
import type { Schema } from '../../../../contract/index.ts';
import { toProviderSchema } from '../../../../plugins/agents/kit/provider-schema.ts';
import { arbitrarySchema } from '../../../support/formats/arbitrary-schema.ts';
import { generatedCases } from '../../../support/generated-cases.ts';

/** Asserts that every object of a strict schema is closed and requires all its properties. */
function assertStrict(node: unknown): void {
  if (Array.isArray(node)) for (const one of node) assertStrict(one);
  if (typeof node !== 'object' || node === null || Array.isArray(node)) return;
  const schema = node as Schema;
  if (schema['properties'] && schema['type'] === 'object') {
    expect(schema['additionalProperties']).to.equal(false);
    expect(schema['required']).to.deep.equal(Object.keys(schema['properties'] as object));
  }
  for (const word of ['oneOf', 'allOf', 'minLength', 'maxLength', 'uniqueItems'])
    expect(schema).to.not.have.property(word);
  for (const inner of Object.values(schema)) assertStrict(inner);
}

describe('agents/kit/provider-schema', () => {
  it('requires everything, and makes optional members nullable', () => {
    const { schema, strict } = toProviderSchema({
      type: 'object',
      properties: { a: { type: 'string' }, b: { type: 'integer' } },
      required: ['a'],
    });
    expect(strict).to.equal(true);
    expect(schema).to.deep.equal({
      type: 'object',
      properties: { a: { type: 'string' }, b: { anyOf: [{ type: 'integer' }, { type: 'null' }] } },
      required: ['a', 'b'],
      additionalProperties: false,
    });
  });

  it('describes limits that strict mode does not support', () => {
    const { schema } = toProviderSchema({
      type: 'object',
      properties: { a: { type: 'string', maxLength: 10, description: 'A name' } },
      required: ['a'],
    });
    expect(schema).to.have.nested.property('properties.a.description', 'A name (at most 10 characters)');
  });

  const LOOSE: readonly { readonly title: string; readonly field: Schema }[] = [
    { title: 'an object of any fields', field: { type: 'object' } },
    { title: 'a map', field: { type: 'object', additionalProperties: { type: 'string' } } },
    { title: 'anything', field: {} },
    { title: 'a tuple', field: { type: 'array', prefixItems: [{ type: 'string' }] } },
    { title: 'two things at once', field: { allOf: [{ type: 'object' }, { type: 'object' }] } },
  ];
  for (const { title, field } of LOOSE) {
    it(`sends ${title} unchanged, not strict`, () => {
      const schema = { type: 'object', properties: { a: field }, required: ['a'] };
      expect(toProviderSchema(schema)).to.deep.equal({ schema, strict: false });
    });
  }

  it('calls a schema strict only when it is', () => {
    fc.assert(
      fc.property(arbitrarySchema, (schema) => {
        const request = toProviderSchema(schema);
        if (request.strict) assertStrict(request.schema);
      }),
      { numRuns: generatedCases(200) },
    );
  });
});
