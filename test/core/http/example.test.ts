import { expect } from 'chai';
import type { Schema } from '../../../contract/json.ts';
import { exampleOf } from '../../../openapi/document.ts';

const REFERENCED: Readonly<Record<string, Schema>> = { 'acme:Part': { type: 'string', minLength: 6 } };

describe('the example of a schema', () => {
  const CASES: readonly (readonly [what: string, schema: Schema, example: unknown])[] = [
    ['its own first one', { type: 'object', required: ['a'], examples: [{ a: 1 }, { a: 2 }] }, { a: 1 }],
    ['its default', { type: 'boolean', default: true }, true],
    ['its only value', { const: 'x' }, 'x'],
    ['the first of its choices', { type: 'string', enum: ['b', 'a'] }, 'b'],
    ['that of what it refers to', { $ref: 'acme:Part' }, 'text..'],
    ['that of its first branch', { anyOf: [{ type: 'integer', minimum: 3 }, { type: 'string' }] }, 3],
    [
      'the required fields of an object, and no others',
      { type: 'object', required: ['a'], properties: { a: { type: 'string', format: 'uuid' }, b: { type: 'string' } } },
      { a: '123e4567-e89b-12d3-a456-426614174000' },
    ],
    ['as few items as are allowed', { type: 'array', minItems: 2, items: { type: 'number' } }, [0, 0]],
    ['an empty list', { type: 'array', items: { type: 'number' } }, []],
    ['the first of several types', { type: ['null', 'string'] }, null],
  ];
  for (const [what, schema, example] of CASES)
    it(`is ${what}`, () => expect(exampleOf(schema, (id) => REFERENCED[id])).to.deep.equal(example));
});
