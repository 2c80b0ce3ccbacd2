import { expect } from 'chai';
import fc from 'fast-check';
import { CORE_SCHEMA } from '../../../core/config/core-schema.ts';
import { compilePlain } from '../../../core/config/plain-schema.ts';
import { sealPluginSchema } from '../../../core/config/seal-schema.ts';
import { createAjv } from '../../../core/config/validator.ts';
import type { Schema } from '../../../core/contract/json.ts';
import { readBuiltinSchemas } from '../../../core/plugins/load-config.ts';
import { arbitrarySchema } from '../../support/arbitrary-schema.ts';

/** What Ajv makes of a schema; undefined when it refuses it. */
function byAjv(schema: Schema): ((value: unknown) => boolean) | undefined {
  try {
    return createAjv().compile(schema);
  } catch {
    return undefined;
  }
}

/** Values that a schema's own words suggest: fitting ones, and ones that are off by a little. */
function valuesFor(schema: Schema): fc.Arbitrary<unknown> {
  const odd = fc.constantFrom<unknown[]>(
    null,
    true,
    false,
    '',
    'x',
    '30s',
    'https://a.example',
    '20mb',
    0,
    -1,
    1.5,
    10,
  );
  const properties = Object.entries((schema['properties'] ?? {}) as Record<string, Schema>);
  const branches = ((schema['anyOf'] ?? []) as Schema[]).map(valuesFor);
  const below = schema['items'] ?? schema['additionalProperties'];
  const inner = typeof below === 'object' ? valuesFor(below as Schema) : odd;
  const record = fc.record(Object.fromEntries(properties.map(([name, each]) => [name, valuesFor(each)])), {
    requiredKeys: [],
  });
  const more = fc.dictionary(fc.constantFrom('a', 'b-c', 'é', 'constructor', '__proto__'), inner, { maxKeys: 1 });
  return fc.oneof(
    {
      weight: 6,
      arbitrary: fc
        .tuple(record, fc.oneof({ weight: 3, arbitrary: fc.constant({}) }, more))
        .map((both) => Object.assign({}, ...both) as unknown),
    },
    ...branches,
    fc.array(inner, { maxLength: 3 }),
    fc.constantFrom<unknown[]>(...((schema['enum'] ?? [schema['default'] ?? 'x']) as unknown[])),
    odd,
    fc.string({ unit: 'grapheme', maxLength: 3 }),
  );
}

/** Both say the same, and where the value fits both leave the same. */
function expectSame(
  schema: Schema,
  fits: (value: unknown) => boolean,
  ajv: (value: unknown) => boolean,
  value: unknown,
) {
  const [own, theirs] = [structuredClone(value), structuredClone(value)];
  const isFitting = fits(own);
  expect(isFitting, `${JSON.stringify(value)} by ${JSON.stringify(schema)}`).to.equal(ajv(theirs));
  if (isFitting) expect(own).to.deep.equal(theirs);
  // What it filled in of a value that does not fit changes nothing of what Ajv says.
  else expect(ajv(own)).to.equal(false);
}

describe('plain schemas', () => {
  it('are those of core and of every built-in plugin, and fit and fill in what Ajv does', async () => {
    const schemas = (await readBuiltinSchemas()).map(({ schema }) => sealPluginSchema(schema));
    for (const schema of [CORE_SCHEMA, ...schemas]) {
      const [fits, ajv] = [compilePlain(schema), byAjv(schema)];
      if (!fits || !ajv) return expect.fail(`not plain: ${JSON.stringify(schema)}`);
      fc.assert(
        fc.property(valuesFor(schema), (value) => expectSame(schema, fits, ajv, value)),
        { numRuns: 200 },
      );
    }
    return undefined;
  });

  it('of any making fit what Ajv says', () => {
    const filling = fc
      .tuple(arbitrarySchema, fc.jsonValue())
      .map(
        ([member, value]): Schema => ({ type: 'object', properties: { a: { ...member, default: value }, b: member } }),
      );
    const property = fc.property(
      fc
        .oneof(arbitrarySchema, filling)
        .chain((schema) => fc.tuple(fc.constant(schema), fc.oneof(valuesFor(schema), fc.jsonValue()))),
      ([schema, value]) => {
        const fits = compilePlain(schema);
        if (!fits) return;
        const ajv = byAjv(schema);
        if (!ajv) return expect.fail(`Ajv refuses ${JSON.stringify(schema)}`);
        expectSame(schema, fits, ajv, value);
      },
    );
    fc.assert(property, { numRuns: 1000 });
  });

  const REFUSED: Readonly<Record<string, Schema>> = {
    'an unknown keyword': { type: 'object', propertees: {} },
    'an unknown keyword deep down': { type: 'object', properties: { a: { type: 'string', minLenght: 1 } } },
    'a keyword without its type': { properties: { a: { type: 'string' } } },
    'a bound of another type': { type: 'string', minimum: 1 },
    'a bound that is no number': { type: 'string', minLength: '1' },
    'an unknown type': { type: 'text' },
    'an unknown format': { type: 'string', format: 'colour' },
    'a pattern that is none': { type: 'string', pattern: '(' },
    'a default at the root': { type: 'object', default: {} },
    'a default in a branch': {
      type: 'object',
      properties: { a: { anyOf: [{ type: 'object', properties: { b: { type: 'string', default: 'x' } } }] } },
    },
    'types that no branch can have': { type: 'string', anyOf: [{ type: 'integer' }] },
    'an empty enum': { enum: [] },
    'a secret that is no yes or no': { type: 'string', secret: 'yes' },
  };
  for (const [what, schema] of Object.entries(REFUSED))
    it(`are none with ${what}: Ajv refuses that`, () => {
      expect(byAjv(schema)).to.equal(undefined);
      expect(compilePlain(schema)).to.equal(undefined);
    });

  const OTHERS: Readonly<Record<string, Schema>> = {
    'a reference': { type: 'object', properties: { a: { $ref: '#/$defs/a' } }, $defs: { a: { type: 'string' } } },
    'a condition': { type: 'object', if: { required: ['a'] }, then: { required: ['b'] } },
    'a property that every object has': { type: 'object', properties: { constructor: { type: 'string' } } },
    'a required name that every object has': { type: 'object', required: ['toString'] },
    'a default of list items': { type: 'array', items: { type: 'string', default: 'x' } },
    'a format that is not ours': { type: 'string', format: 'email' },
  };
  for (const [what, schema] of Object.entries(OTHERS))
    it(`are none with ${what}: Ajv decides`, () => {
      expect(byAjv(schema)).to.be.a('function');
      expect(compilePlain(schema)).to.equal(undefined);
    });
});
