import { mock } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import { createRequestSchemas } from '../../../core/plugins/registry.ts';

const named = (type: string) => ({ type: 'object', required: ['name'], properties: { name: { type } } });
const shared = (type: string) => [{ owner: 'acme', value: { $id: 'thing', ...named(type) } }];

describe('the schemas of requests, from one configuration to the next', () => {
  let compiled: ReturnType<typeof mock.method>;
  beforeEach(() => {
    compiled = mock.method(Ajv2020.prototype, 'compile');
  });
  afterEach(() => compiled.mock.restore());

  it('are compiled once, so that a reload does not block calls', () => {
    const schema = { ...named('string'), description: 'compiled once' };
    for (let generation = 0; generation < 3; generation += 1) {
      const validate = createRequestSchemas([]).compile('acme', schema, 'a body');
      expect(validate({ name: 'x' })).to.equal(true);
      expect(validate({ name: 1 })).to.equal(false);
      expect(validate.errors?.[0]).to.include({ keyword: 'type', instancePath: '/name' });
    }
    expect(compiled.mock.callCount()).to.equal(1);
  });

  it('are compiled again if they or a referenced one changed', () => {
    const refers = { $ref: 'thing' };
    const judge = (type: string, value: object) =>
      createRequestSchemas(shared(type)).compile('acme', refers, 'a body')(value);
    expect(judge('string', { name: 'x' })).to.equal(true);
    expect(judge('number', { name: 'x' })).to.equal(false);
    expect(judge('string', { name: 'x' })).to.equal(true);
    const other = createRequestSchemas(shared('number')).compile('acme', named('boolean'), 'a body');
    expect(other({ name: true })).to.equal(true);
  });

  it('may not have one name with two meanings, also if one of them is cached', () => {
    const meaning = (type: string) => ({ $id: 'twice', ...named(type) });
    createRequestSchemas([]).compile('acme', meaning('string'), 'a body');
    const schemas = createRequestSchemas([]);
    schemas.compile('acme', meaning('string'), 'a body');
    expect(() => schemas.compile('other', meaning('number'), 'a query')).to.throw(/"other".*a query does not compile/);
    expect(() => schemas.compile('other', meaning('string'), 'a query')).not.to.throw();
  });

  it('are evicted after a thousand others', () => {
    const schemas = createRequestSchemas([]);
    const compile = (description: string) => schemas.compile('acme', { type: 'object', description }, 'a body');
    compile('the first');
    for (let at = 0; at < 1000; at += 1) compile(`another, ${at}`);
    compile('the first');
    expect(compiled.mock.callCount()).to.equal(1002);
  });

  it('name the plugin with an invalid schema, also after a valid one', () => {
    createRequestSchemas(shared('string')).compile('acme', named('string'), 'a body');
    expect(() => createRequestSchemas(shared('string')).compile('acme', named('text'), 'a body')).to.throw(
      /a body does not compile/,
    );
    expect(() => createRequestSchemas(shared('text'))).to.throw(
      /"acme".*the schema "thing" does not compile: (?!.*does not)/,
    );
  });
});
