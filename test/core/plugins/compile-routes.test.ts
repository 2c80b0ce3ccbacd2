import { expect } from 'chai';
import type { Schema } from '../../../core/contract/json.ts';
import type { Route } from '../../../core/contract/plugin.ts';
import { createRequestSchemas, createRouteCompiler } from '../../../core/plugins/registry.ts';

const ROUTE = { method: 'POST', path: '/x' } as Route;
const GOOD: Schema = { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } };

describe('the compiler of routes’ schemas', () => {
  const compile = (body: Schema) => createRouteCompiler(createRequestSchemas([]))('acme', { ...ROUTE, body }, 'body');

  it('tells the first error of a value, and nothing for one that fits', () => {
    const validate = compile(GOOD)!;
    expect(validate({ n: 1 })).to.equal(undefined);
    expect(validate({ n: 'x' })).to.include({ keyword: 'type', instancePath: '/n' });
    expect(validate({})).to.include({ keyword: 'required' });
  });

  it('makes nothing for a route without a schema', () => {
    expect(createRouteCompiler(createRequestSchemas([]))('acme', ROUTE, 'query')).to.equal(undefined);
  });

  it('refuses a schema that is wrong when it is made, by the plugin’s name', () => {
    expect(() => compile({ type: 'object', properties: { n: { tpye: 'integer' } } })).to.throw(
      /plugin "acme": the body schema of POST \/x does not compile: strict mode: unknown keyword: "tpye"/,
    );
    expect(() => compile({ type: 'text' })).to.throw(/plugin "acme": the body schema of POST \/x does not compile/);
    expect(() =>
      createRouteCompiler(createRequestSchemas([{ owner: 'acme', value: { $id: 'a', type: 'text' } }])),
    ).to.throw(/plugin "acme": the schema "a" does not compile: schema is invalid/);
  });

  it('refuses a format that it does not know', () => {
    expect(() => compile({ type: 'string', format: 'dur' })).to.throw(/plugin "acme".*unknown format "dur"/);
  });

  const FORMATS: readonly (readonly [format: string, fits: readonly string[], others: readonly string[]])[] = [
    ['date', ['2024-02-29'], ['2023-02-29', '2024-2-9', 'today', '2024-13-01', '']],
    [
      'date-time',
      ['2024-02-29T23:59:59Z', '2024-01-01T00:00:00.123+02:00'],
      ['2023-02-29T00:00:00Z', '2024-01-01', '2024-01-01T25:00:00Z', '2024-01-01 00:00:00Z'],
    ],
    ['email', ['a@b.example'], ['a', 'a@', '@b', 'a b@c']],
    ['uri', ['https://a.example/b?c=d', 'mailto:a@b.example'], ['a.example', '/b', 'https://', '1:x']],
    ['uuid', ['123e4567-e89b-12d3-a456-426614174000'], ['123e4567', '123e4567-e89b-12d3-a456-42661417400g']],
    ['duration', ['500ms', '30d'], ['30', 'x']],
    ['money', ['0.50', '25'], ['0.0000001', 'x']],
    ['size', ['20mb', '512kb'], ['-1', 'x']],
    ['url', ['https://a.example'], ['ftp://a.example', 'a.example']],
  ];
  for (const [format, fits, others] of FORMATS)
    it(`checks the format ${format}`, () => {
      const validate = compile({ type: 'string', format })!;
      for (const text of fits) expect(validate(text), text).to.equal(undefined);
      for (const text of others) expect(validate(text), text).to.include({ keyword: 'format' });
    });
});
