import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import { composeSchema } from '../../config/compose-schema.ts';
import type { PluginSchema } from '../../config/core-schema.ts';
import { FORMATS } from '../../contract/schema-formats.ts';
import { removeFolders } from '../support/folders.ts';
import { PLUGINS, problemLines } from './config-plugins.ts';

/** Validates as an editor does: strict JSON Schema 2020-12, which knows only the names of our keyword and formats. */
function compile(plugins: readonly PluginSchema[]): (value: unknown) => boolean {
  const ajv = new Ajv2020({ strict: true, allErrors: true, allowUnionTypes: true, keywords: ['secret'] });
  for (const format of Object.keys(FORMATS)) ajv.addFormat(format, true);
  return ajv.compile(composeSchema(plugins));
}

describe('the composed schema', () => {
  afterEach(removeFolders);

  const accepts: readonly [value: object, accepted: boolean][] = [
    [{}, true],
    [{ $schema: './x.json', server: { port: 1, workers: 'auto' } }, true],
    [{ server: { prot: 1 } }, false],
    [{ providerz: {} }, false],
    [{ providers: { acme: { apiKey: 'x' } } }, true],
    [{ providers: { acme: { api_key: 'x' } } }, false],
    [{ providers: { acme: false } }, true],
    [{ providers: { acme: null } }, true],
    [{ providers: { acme: 'sk-1' } }, false],
    [{ providers: { second: { plugin: 'acme', models: ['*'] } } }, true],
    [{ providers: { second: { plugin: 'acme', modles: [] } } }, false],
    [{ providers: { acme: { plugin: 'local', baseUrl: 'http://a' } } }, true],
    [{ providers: { acme: { plugin: 'local' } } }, false],
    [{ providers: { local: {} } }, false],
    [{ providers: { mine: { plugin: './mine.mjs', anything: 1 } } }, true],
    [{ providers: { 'Bad Name': { plugin: 'acme' } } }, false],
    [{ auth: { door: { issuer: 'https://a', claims: { uzer: 'x' } } } }, false],
    [{ models: { a: 'acme/x', b: ['acme/y'] } }, true],
    [{ models: { a: [] } }, false],
    [{ billing: 'of' }, false],
    [{ store: { url: 'sqlite:./data', durability: 'full' } }, true],
    [{ plugins: ['./a.mjs'] }, true],
  ];
  const validate = compile(PLUGINS.schemas);
  for (const [value, accepted] of accepts) {
    it(`${accepted ? 'takes' : 'refuses'} ${JSON.stringify(value)}`, () => {
      expect(validate(value)).to.equal(accepted);
    });
  }

  it('agrees with what a start checks', async () => {
    for (const [value, accepted] of accepts) {
      const providers = { acme: {}, ...(value as { providers?: object }).providers };
      const isAboutAcme = 'providers' in value && 'acme' in (value.providers as object);
      const whole = isAboutAcme ? value : { ...value, providers };
      const lines = await problemLines(JSON.stringify(whole), { name: 'tollgate.config.json' });
      expect(lines.length === 0, JSON.stringify(value)).to.equal(accepted);
    }
  });

  it('rebases the references of a plugin’s schema', () => {
    const schema = {
      type: 'object',
      properties: { tree: { $ref: '#/$defs/node' } },
      $defs: { node: { type: 'object', properties: { next: { $ref: '#/$defs/node' } } } },
    };
    const check = compile([{ kind: 'policy', name: 'tree', schema }]);
    expect(check({ policies: { tree: { tree: { next: { next: {} } } } } })).to.equal(true);
    expect(check({ policies: { tree: { tree: { next: { nxt: {} } } } } })).to.equal(false);
  });

  it('does not depend on the order of the plugins', () => {
    const reversed = composeSchema([...PLUGINS.schemas].reverse());
    expect(JSON.stringify(reversed)).to.equal(JSON.stringify(composeSchema(PLUGINS.schemas)));
  });
});
