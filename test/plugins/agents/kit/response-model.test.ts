import { expect } from 'chai';
import fc from 'fast-check';
import { isGatewayError, type Schema } from '../../../../contract/index.ts';
import { toProviderSchema } from '../../../../plugins/agents/kit/provider-schema.ts';
import { createSchemaReader } from '../../../../plugins/agents/kit/response-model.ts';
import { minimalInstance } from '../../../../plugins/providers/kit/index.ts';
import { arbitrarySchema } from '../../../support/formats/arbitrary-schema.ts';
import { generatedCases } from '../../../support/generated-cases.ts';

const shared = createSchemaReader();
const read = (value: object) => shared.readModel(value as Record<string, unknown>, 'response_model');
const nested = (depth: number): Schema =>
  depth === 0 ? { type: 'string' } : { type: 'object', properties: { a: nested(depth - 1) } };

describe('agents/kit/response-model', () => {
  const SHAPES: readonly { readonly shape: object; readonly fits: object; readonly not: object }[] = [
    { shape: { a: 'string' }, fits: { a: 'x' }, not: { a: 1 } },
    { shape: { a: 'int' }, fits: { a: 1 }, not: { a: 1.5 } },
    { shape: { a: 'int - how many' }, fits: { a: 1 }, not: { a: 'many' } },
    { shape: { a: 'string: the city' }, fits: { a: 'Bern' }, not: { a: 2 } },
    { shape: { a: 'boolean' }, fits: { a: true }, not: { a: 'yes' } },
    { shape: { a: 'string[]' }, fits: { a: ['x'] }, not: { a: 'x' } },
    { shape: { a: ['number'] }, fits: { a: [1, 2] }, not: { a: ['x'] } },
    { shape: { a: [{ b: 'string' }] }, fits: { a: [{ b: 'x' }] }, not: { a: [{ c: 'x' }] } },
    { shape: { a: 'red | green' }, fits: { a: 'red' }, not: { a: 'blue' } },
    { shape: { a: 'red | green - the light' }, fits: { a: 'green' }, not: { a: 'blue' } },
    { shape: { a: ['red', 'green'] }, fits: { a: 'green' }, not: { a: ['red'] } },
    { shape: { a: 'string | number' }, fits: { a: 2 }, not: { a: false } },
    { shape: { a: 'string?' }, fits: { a: null }, not: { a: 1 } },
    { shape: { 'a?': 'string', b: 'any' }, fits: { b: [] }, not: { a: 'x' } },
    { shape: { a: 'date' }, fits: { a: '2026-11-20' }, not: { a: 'today' } },
    { shape: { a: 'the user’s mood' }, fits: { a: 'calm' }, not: { a: 3 } },
    { shape: { a: { b: { c: 'number' } } }, fits: { a: { b: { c: 1 } } }, not: { a: { b: {} } } },
    { shape: { a: { type: 'integer', minimum: 3 } }, fits: { a: 3 }, not: { a: 2 } },
    { shape: { type: 'string' }, fits: { type: 'x' }, not: { a: 'x' } },
    { shape: { a: 5, b: true }, fits: { a: 1, b: false }, not: { a: 'x', b: false } },
  ];
  for (const { shape, fits, not } of SHAPES) {
    it(`reads the shape ${JSON.stringify(shape)}`, () => {
      expect(read(shape).check(fits).ok).to.equal(true);
      expect(read(shape).check(not).ok).to.equal(false);
    });
  }

  const SCHEMAS: readonly {
    readonly title: string;
    readonly schema: object;
    readonly fits: unknown;
    readonly not: unknown;
  }[] = [
    {
      title: 'an object',
      schema: { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] },
      fits: { a: 'x' },
      not: {},
    },
    { title: 'a list at the root', schema: { type: 'array', items: { type: 'integer' } }, fits: [1], not: ['x'] },
    {
      title: 'references with $defs, as pydantic writes',
      schema: {
        $defs: { P: { type: 'object', properties: { x: { type: 'integer' } }, required: ['x'] } },
        type: 'object',
        properties: { p: { $ref: '#/$defs/P' } },
        required: ['p'],
      },
      fits: { p: { x: 1 } },
      not: { p: {} },
    },
    {
      title: 'references with definitions and a draft-07 $schema',
      schema: {
        $schema: 'http://json-schema.org/draft-07/schema#',
        definitions: { s: { type: 'string' } },
        type: 'object',
        properties: { a: { $ref: '#/definitions/s' } },
        required: ['a'],
      },
      fits: { a: 'x' },
      not: { a: 1 },
    },
    {
      title: 'a tuple in the old spelling',
      schema: {
        type: 'object',
        properties: { a: { type: 'array', items: [{ type: 'string' }, { type: 'integer' }], additionalItems: false } },
      },
      fits: { a: ['x', 1] },
      not: { a: ['x', 1, 2] },
    },
    {
      title: 'nullable',
      schema: { type: 'object', properties: { a: { type: 'string', nullable: true } }, required: ['a'] },
      fits: { a: null },
      not: { a: 1 },
    },
    {
      title: 'OpenAI’s response_format around it',
      schema: {
        type: 'json_schema',
        json_schema: { name: 'x', schema: { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'] } },
      },
      fits: { a: 1 },
      not: { a: 'x' },
    },
    {
      title: 'a choice of objects',
      schema: {
        anyOf: [
          { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] },
          { type: 'object', properties: { b: { type: 'string' } }, required: ['b'] },
        ],
      },
      fits: { b: 'x' },
      not: { c: 'x' },
    },
  ];
  for (const { title, schema, fits, not } of SCHEMAS) {
    it(`reads JSON Schema with ${title}`, () => {
      expect(read(schema).check(fits).ok).to.equal(true);
      expect(read(schema).check(not).ok).to.equal(false);
    });
  }

  const UNUSABLE: readonly { readonly title: string; readonly model: object; readonly param: string }[] = [
    {
      title: 'an unknown type',
      model: { type: 'object', properties: { a: { type: 'strin' } } },
      param: 'response_model.properties.a.type',
    },
    {
      title: 'a pattern',
      model: { type: 'object', properties: { a: { pattern: '^(a+)+$' } } },
      param: 'response_model.properties.a.pattern',
    },
    {
      title: 'patternProperties',
      model: { type: 'object', properties: { a: { patternProperties: { '(a+)+$': {} } } } },
      param: 'response_model.properties.a.patternProperties',
    },
    {
      title: 'a remote reference',
      model: { type: 'object', properties: { a: { $ref: 'https://example.org/x.json' } } },
      param: 'response_model.properties.a.$ref',
    },
    {
      title: 'a reference to nothing',
      model: { type: 'object', properties: { a: { $ref: '#/$defs/none' } } },
      param: 'response_model.properties.a.$ref',
    },
    {
      title: 'a reference to itself',
      model: { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/a' } } },
      param: 'response_model.$ref',
    },
    {
      title: 'a recursive type',
      model: { $ref: '#/$defs/a', $defs: { a: { type: 'object', properties: { b: { $ref: '#/$defs/a' } } } } },
      param: 'response_model.properties.b.$ref',
    },
    { title: 'eleven levels', model: nested(11) as object, param: `response_model${'.properties.a'.repeat(10)}` },
    {
      title: '501 properties',
      model: { type: 'object', properties: Object.fromEntries(Array.from({ length: 501 }, (_, n) => [`p${n}`, {}])) },
      param: 'response_model',
    },
    {
      title: 'over 64 kB',
      model: { type: 'object', properties: { a: { description: 'x'.repeat(70_000) } } },
      param: 'response_model',
    },
    {
      title: 'references that double at each level',
      model: {
        $ref: '#/$defs/d0',
        $defs: Object.fromEntries(
          Array.from({ length: 30 }, (_, n) => [
            `d${n}`,
            n === 29 ? {} : { anyOf: [{ $ref: `#/$defs/d${n + 1}` }, { $ref: `#/$defs/d${n + 1}` }] },
          ]),
        ),
      },
      param: 'response_model',
    },
    { title: 'a list of two things', model: { a: [{ b: 'string' }, 'string'] }, param: 'response_model.a' },
    {
      title: 'a reserved name',
      model: { type: 'object', properties: JSON.parse('{"__proto__": {}}') },
      param: 'response_model.properties',
    },
  ];
  for (const { title, model, param } of UNUSABLE) {
    it(`refuses ${title} with its path`, () => {
      let thrown: unknown;
      try {
        read(model);
      } catch (error) {
        thrown = error;
      }
      expect(isGatewayError(thrown) && thrown.code).to.equal('invalid_request');
      expect(isGatewayError(thrown) && thrown.param).to.equal(param);
    });
  }

  it('removes only nulls and properties that strict mode added', () => {
    const model = read({
      type: 'object',
      properties: {
        a: { type: 'string' },
        b: { type: ['string', 'null'] },
        c: { type: 'object', properties: { d: { type: 'integer' } }, additionalProperties: false },
      },
      required: ['b'],
      additionalProperties: false,
    });
    const checked = model.check({ a: null, b: null, c: { d: null, e: 1 }, f: 2 });
    expect(checked).to.deep.equal({ ok: true, value: { b: null, c: {} } });
  });

  it('describes for the model where a response does not match', () => {
    const checked = read({ a: [{ kind: 'x | y' }] }).check({ a: [{ kind: 'x' }, { kind: 'z' }] });
    expect(checked.ok).to.equal(false);
    expect(!checked.ok && checked.error)
      .to.include('a[1].kind')
      .and.include('["x","y"]');
  });

  it('does not take a list with thousands of elements', () => {
    expect(read({ a: ['any'] }).check({ a: new Array(5001).fill(0) }).ok).to.equal(false);
  });

  it('compiles a schema once', () => {
    const reader = createSchemaReader();
    expect(reader.readModel({ a: 'string' }, 'response_model')).to.equal(
      reader.readModel({ a: 'string' }, 'response_model'),
    );
  });

  it('requests from providers only values that the caller’s schema accepts', () => {
    // If the provider has no keyword for it, the prompt describes it, and a minimal instance may not satisfy it.
    const shownInWords = /"(?:minLength|uri|something-else)"/;
    fc.assert(
      fc.property(arbitrarySchema, fc.string(), (schema, text) => {
        fc.pre(!shownInWords.test(JSON.stringify(schema)));
        const model = read(schema);
        const request = toProviderSchema(model.schema);
        const checked = model.check(minimalInstance(request.schema, text));
        expect(checked.ok, JSON.stringify({ schema, request, checked })).to.equal(true);
      }),
      { numRuns: generatedCases(150) },
    );
  });
});
