import { expect } from 'chai';
import type { Schema } from '../../../contract/json.ts';
import type { Route } from '../../../contract/plugin.ts';
import { createRequestSchemas, createRouteCompiler } from '../../../core/plugins/registry.ts';

const ROUTE = { method: 'POST', path: '/x' } as Route;
const GOOD: Schema = { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } };

describe('the compiler of routes’ schemas', () => {
  const compile = (body: Schema) => createRouteCompiler(createRequestSchemas([]))('acme', { ...ROUTE, body }, 'body');

  it('returns the first error of a value, and nothing for a valid one', () => {
    const validate = compile(GOOD)!;
    const errorOf = (value: unknown) => (validate(value) ? undefined : validate.errors?.[0]);
    expect(errorOf({ n: 1 })).to.equal(undefined);
    expect(errorOf({ n: 'x' })).to.include({ keyword: 'type', instancePath: '/n' });
    expect(errorOf({})).to.include({ keyword: 'required' });
  });

  it('compiles nothing for a route without a schema', () => {
    expect(createRouteCompiler(createRequestSchemas([]))('acme', ROUTE, 'query')).to.equal(undefined);
  });

  it('refuses an invalid schema at compilation, with the plugin’s name', () => {
    expect(() => compile({ type: 'object', properties: { n: { tpye: 'integer' } } })).to.throw(
      /plugin "acme": the body schema of POST \/x does not compile: strict mode: unknown keyword: "tpye"/,
    );
    expect(() => compile({ type: 'text' })).to.throw(/plugin "acme": the body schema of POST \/x does not compile/);
    expect(() =>
      createRouteCompiler(createRequestSchemas([{ owner: 'acme', value: { $id: 'a', type: 'text' } }])),
    ).to.throw(/plugin "acme": the schema "a" does not compile: schema is invalid/);
  });
});
