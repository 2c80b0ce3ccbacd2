import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import { listBuiltins } from '../../config/import-plugin.ts';
import { API_VERSION, type Plugin, type Schema } from '../../contract/index.ts';
import { FORMATS } from '../../contract/schema-formats.ts';

/** Every built-in plugin in its folder is tested automatically. */
describe('every built-in plugin', () => {
  const builtins = listBuiltins();
  const ajv = new Ajv2020({ strict: true, strictRequired: false, allowUnionTypes: true, keywords: ['secret'] });
  for (const format of Object.keys(FORMATS)) ajv.addFormat(format, true);

  it('is found in its folder', () => {
    const kinds = new Set(builtins.map(({ kind }) => kind));
    expect([...kinds]).to.have.members([
      'provider',
      'auth',
      'agent',
      'policy',
      'store',
      'tts',
      'operation',
      'dialect',
      'secrets',
    ]);
  });

  for (const { kind, name, url } of builtins) {
    describe(`${kind} ${name}`, () => {
      let plugin: Plugin;

      before(async () => {
        plugin = ((await import(url)) as { readonly default: Plugin }).default;
      });

      it('has the name of its file, the kind of its folder, this API version and a setup function', () => {
        expect(plugin).to.include({ name, kind, apiVersion: API_VERSION });
        expect(plugin.setup).to.be.a('function');
      });

      it('has only members of a plugin', () => {
        const known = [
          'name',
          'kind',
          'apiVersion',
          'configSchema',
          'section',
          'hosts',
          'provides',
          'requires',
          'processes',
        ];
        expect([
          ...known,
          'permissions',
          'credentials',
          'isCredential',
          'commands',
          'check',
          'setup',
          'secrets',
        ]).to.include.members(Object.keys(plugin));
      });

      it('describes its options in a strict schema that refuses unknown keys', () => {
        const { configSchema } = plugin;
        if (!configSchema) throw new Error('it has no configSchema, so that any option would be taken');
        const validate = ajv.compile({ ...configSchema });
        expect([(configSchema as Schema)['type']].flat()).to.include('object');
        if (kind !== 'store') expect(validate({ 'no such option': 1 }), 'an unknown key is a problem').to.equal(false);
      });

      it('explains every option in a sentence', () => {
        const { properties = {} } = (plugin.configSchema ?? {}) as {
          properties?: Record<string, { description?: string }>;
        };
        const silent = Object.entries(properties).filter(([, { description }]) => !description?.endsWith('.'));
        expect(silent.map(([option]) => option)).to.deep.equal([]);
      });
    });
  }
});
