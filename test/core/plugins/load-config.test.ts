import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { listBuiltins } from '../../../core/plugins/builtins.ts';
import { loadConfig } from '../../../core/plugins/load-config.ts';
import { makeFolder, removeFolders } from '../../support/config-folder.ts';

const plugin = (kind: string, name: string, schema = '{ type: "object" }'): string =>
  `export default { name: '${name}', kind: '${kind}', apiVersion: 1, configSchema: ${schema}, setup() {} };\n`;

const BUILTINS = {
  'builtin/providers/acme.mjs.js': '',
  'builtin/providers/acme.js': plugin(
    'provider',
    'acme',
    '{ type: "object", properties: { region: { type: "string", default: "eu" } } }',
  ),
  'builtin/auth/api-key.js': plugin('auth', 'api-key'),
  'builtin/stores/sqlite.js': plugin(
    'store',
    'sqlite',
    '{ type: "object", properties: { folder: { type: "string" } } }',
  ),
  'builtin/policies/gate.js': plugin('policy', 'gate'),
  'builtin/package.json': '{ "type": "module" }',
};

const load = (files: Readonly<Record<string, string>>, env = {}) => {
  const cwd = makeFolder({ ...BUILTINS, ...files });
  return loadConfig({ cwd, env }, listBuiltins(pathToFileURL(`${path.join(cwd, 'builtin')}/`)));
};

describe('loading a configuration', () => {
  afterEach(removeFolders);

  it('answers the configuration and the plugin of every instance, the store’s first', async () => {
    const { config, plugins } = await load({
      'tollgate.config.yaml': 'providers: { acme: {}, other: { plugin: ./mine.mjs } }\nplugins: [./guard.mjs]\n',
      'mine.mjs': plugin('provider', 'mine'),
      'guard.mjs': plugin('policy', 'guard'),
    });
    expect(plugins.map(({ name }) => name)).to.deep.equal(['sqlite', 'gate', 'api-key', 'acme', 'mine', 'guard']);
    expect(config.instances.map(({ plugin: name }) => name)).to.deep.equal([
      'gate',
      'api-key',
      'acme',
      './mine.mjs',
      './guard.mjs',
    ]);
    expect(config.instances[2]?.config).to.deep.equal({ region: 'eu' });
  });

  it('tells plugins that cannot be imported and every other fault at once, each at its place', async () => {
    const text =
      'billing: of\nproviders:\n  amce: {}\n  acme: { regoin: us }\n  mine: { plugin: ./nope.mjs }\nplugins: [tollgate-plugin-x]\n';
    const message = await load({ 'tollgate.config.yaml': text }).catch((error: Error) => error.message);
    expect(message).to.equal(
      [
        'tollgate.config.yaml:1:10 billing: must be off, track or enforce, not the text "of". Did you mean "off"?',
        'tollgate.config.yaml:3:3 providers.amce: there is no built-in provider plugin "amce". Did you mean "acme"?',
        'tollgate.config.yaml:4:11 providers.acme.regoin: unknown key. Did you mean "region"?',
        'tollgate.config.yaml:5:3 providers.mine: the plugin file ./nope.mjs does not exist. Check the path; a relative one is relative to the configuration file.',
        'tollgate.config.yaml:6:11 plugins[0]: the package "tollgate-plugin-x" is not installed. Run: npm install tollgate-plugin-x',
        '5 faults in the configuration',
      ].join('\n'),
    );
  });

  it('tells a store plugin that does not exist', async () => {
    const message = await load({
      'tollgate.config.yaml': 'store: { plugin: redis, url: redis://u:hunter2@db:6379 }\n',
    }).catch((error: Error) => error.message);
    expect(message).to.include('tollgate.config.yaml:1:1 store: there is no built-in store plugin "redis".');
    expect(message).not.to.include('hunter2');
  });
});
