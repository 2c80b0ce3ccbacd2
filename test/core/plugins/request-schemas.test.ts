import { mock } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import { SchemaCompiler } from '../../../core/plugins/request-schemas.ts';

const named = (type: string) => ({ type: 'object', required: ['name'], properties: { name: { type } } });
const shared = (type: string) => [{ owner: 'acme', value: { $id: 'thing', ...named(type) } }];

describe('the schemas of requests, from one configuration to the next', () => {
  let compiled: ReturnType<typeof mock.method>;
  beforeEach(() => {
    compiled = mock.method(Ajv2020.prototype, 'compile');
  });
  afterEach(() => compiled.mock.restore());

  it('are compiled once, so that a reload does not keep a process from its calls', () => {
    const compiler = new SchemaCompiler();
    for (let generation = 0; generation < 3; generation += 1) {
      const validate = compiler.begin(shared('string')).compile('acme', named('string'), 'a body');
      expect(validate({ name: 'x' })).to.equal(undefined);
      expect(validate({ name: 1 })).to.include({ keyword: 'type', instancePath: '/name' });
    }
    expect(compiled.mock.callCount()).to.equal(1);
  });

  it('are compiled anew where they changed, or where one that they refer to did', () => {
    const compiler = new SchemaCompiler();
    const refers = { $ref: 'thing' };
    expect(compiler.begin(shared('string')).compile('acme', refers, 'a body')({ name: 'x' })).to.equal(undefined);
    expect(compiler.begin(shared('number')).compile('acme', refers, 'a body')({ name: 'x' })).to.include({
      keyword: 'type',
    });
    const other = compiler.begin(shared('number')).compile('acme', named('boolean'), 'a body');
    expect(other({ name: true })).to.equal(undefined);
  });

  it('are not remembered for longer than the next configuration', () => {
    const compiler = new SchemaCompiler();
    for (const type of ['string', 'number', 'string']) compiler.begin([]).compile('acme', named(type), 'a body');
    expect(compiled.mock.callCount()).to.equal(3);
  });

  it('name the plugin whose schema is wrong, also after one that was right', () => {
    const compiler = new SchemaCompiler();
    compiler.begin(shared('string')).compile('acme', named('string'), 'a body');
    expect(() => compiler.begin(shared('string')).compile('acme', named('text'), 'a body')).to.throw(
      /a body does not compile/,
    );
    expect(() => compiler.begin(shared('text'))).to.throw(/"thing" does not compile/);
  });
});
