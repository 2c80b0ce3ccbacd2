import fc from 'fast-check';
import type { Schema } from '../../../contract/index.ts';

/** Integer bounds, so that a value between them always exists. */
const bounds = fc.tuple(fc.integer({ min: -50, max: 50 }), fc.integer({ min: 0, max: 50 }));

const scalar: fc.Arbitrary<Schema> = fc.oneof(
  fc.constant({ type: 'boolean' }),
  fc.constant({ type: 'null' }),
  fc.constant({ type: 'string', description: 'free text' }),
  fc
    .constantFrom('date', 'date-time', 'email', 'uri', 'uuid', 'something-else')
    .map((format) => ({ type: 'string', format })),
  fc.tuple(fc.nat(20), fc.nat(20)).map(([min, more]) => ({ type: 'string', minLength: min, maxLength: min + more })),
  bounds.map(([minimum, more]) => ({ type: 'integer', minimum, maximum: minimum + more })),
  bounds.map(([minimum, more]) => ({ type: 'number', minimum, exclusiveMaximum: minimum + more + 1 })),
  bounds.map(([above]) => ({ type: 'integer', exclusiveMinimum: above })),
  bounds.map(([maximum]) => ({ type: 'number', maximum })),
  fc.integer({ min: 1, max: 9 }).map((multipleOf) => ({ type: 'integer', multipleOf, minimum: 1 })),
  fc.uniqueArray(fc.string({ maxLength: 8 }), { minLength: 1, maxLength: 4 }).map((values) => ({ enum: values })),
  fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null)).map((only) => ({ const: only })),
  fc.constant({ type: ['string', 'null'] }),
  fc.constant({ type: ['null', 'integer'] }),
);

const name = fc.stringMatching(/^[a-z][a-z_]{0,6}$/);

/** JSON Schemas of the subset that callers may send; each has at least one valid value. */
export const arbitrarySchema: fc.Arbitrary<Schema> = fc.letrec<{ schema: Schema; object: Schema }>((tie) => ({
  schema: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    scalar,
    tie('object'),
    fc.tuple(tie('schema'), fc.nat(3)).map(([items, minItems]) => ({ type: 'array', items, minItems })),
    fc.array(tie('schema'), { minLength: 1, maxLength: 3 }).map((anyOf) => ({ anyOf })),
    tie('schema').map((only) => ({ allOf: [only] })),
    tie('schema').map((one) => ({ anyOf: [one, { type: 'null' }] })),
  ),
  object: fc
    .tuple(
      fc.uniqueArray(fc.tuple(name, tie('schema'), fc.boolean()), {
        selector: ([key]) => key,
        minLength: 1,
        maxLength: 4,
      }),
      fc.constantFrom(undefined, true, false),
    )
    .map(([fields, additionalProperties]) => ({
      type: 'object',
      properties: Object.fromEntries(fields.map(([key, schema]) => [key, schema])),
      required: fields.filter(([, , required]) => required).map(([key]) => key),
      ...(additionalProperties !== undefined && { additionalProperties }),
    })),
})).object;
