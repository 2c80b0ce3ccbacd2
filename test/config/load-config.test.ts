// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are the texts that a configuration holds.
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import { composeSchema } from '../../config/compose-schema.ts';
import { listBuiltins } from '../../config/import-plugin.ts';
import { loadConfig, readSchema } from '../../config/load-config.ts';
import { makeFolder, removeFolders } from '../support/folders.ts';

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

  it('returns the configuration and the plugin of every instance, the store’s first', async () => {
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

  it('reports failed imports and every other problem at once, each at its place', async () => {
    const text =
      'billing: of\nproviders:\n  amce: {}\n  acme: { regoin: us }\n  mine: { plugin: ./nope.mjs }\nplugins: [tollgate-plugin-x]\n';
    const message = await load({ 'tollgate.config.yaml': text }).catch((error: Error) => error.message);
    expect(message).to.equal(
      [
        'tollgate.config.yaml:1:10 billing: must be off, track or enforce, not the text "of". Did you mean "off"?',
        'tollgate.config.yaml:3:3 providers.amce: the built-in provider plugin "amce" does not exist. Did you mean "acme"?',
        'tollgate.config.yaml:4:11 providers.acme.regoin: unknown key. Did you mean "region"?',
        'tollgate.config.yaml:5:3 providers.mine: the plugin file ./nope.mjs does not exist. Check the path. Relative paths start at the configuration file.',
        'tollgate.config.yaml:6:11 plugins[0]: the package "tollgate-plugin-x" is not installed. Run: npm install tollgate-plugin-x',
        '5 problems in the configuration',
      ].join('\n'),
    );
  });

  it('reports a store plugin that does not exist', async () => {
    const message = await load({
      'tollgate.config.yaml': 'store: { plugin: redis, url: redis://u:hunter2@db:6379 }\n',
    }).catch((error: Error) => error.message);
    expect(message).to.include('tollgate.config.yaml:1:1 store: the built-in store plugin "redis" does not exist.');
    expect(message).not.to.include('hunter2');
  });

  it('finds the built-in store that accepts an adapter', async () => {
    const adapting = plugin('store', 'adapting', '{ type: "object", properties: { adapter: { type: "string" } } }');
    const { config, plugins } = await load({
      'tollgate.config.yaml': 'store: { adapter: "@keyv/mongo" }\n',
      'builtin/stores/adapting.js': adapting,
      'builtin/stores/broken.js': 'throw new Error("boom")',
    });
    expect(config.store).to.deep.include({ plugin: 'adapting', config: { adapter: '@keyv/mongo' } });
    expect(plugins[0]).to.include({ kind: 'store', name: 'adapting' });
    expect(plugins).to.have.length(config.instances.length + 1);
  });
});

/** Plugin that rejects short words, in addition to the checks of its schema. */
const CHECKED = `export default {
  name: 'words', kind: 'policy', apiVersion: 1,
  configSchema: { type: 'object', properties: { words: { type: 'array', items: { type: 'string' } }, mode: { type: 'string' } } },
  async check({ words = [], mode }, { baseDir, settings }) {
    if (mode === 'throw') throw new Error('boom');
    if (mode === 'odd') return 'odd';
    if (mode === 'context') return [{ message: 'saw ' + (baseDir === settings.baseDir) + ' ' + settings.billing }];
    return words.flatMap((word, at) => word.length < 3 ? [{ path: '/words/' + at, message: 'is too short', hint: 'Use 3 letters.' }] : []);
  },
  setup() {},
};
`;

describe('the check of a plugin', () => {
  afterEach(removeFolders);

  const message = async (text: string): Promise<string> =>
    load({ 'tollgate.config.yaml': text, 'words.mjs': CHECKED }).then(
      () => 'no problem',
      (error: Error) => error.message,
    );

  it('reports all its problems at once, each at its place in the file', async () => {
    const text =
      'policies:\n  first: { plugin: ./words.mjs, words: [ab, abc, a] }\n  other: { plugin: ./words.mjs, words: [x] }\n';
    expect(await message(text)).to.equal(
      [
        'tollgate.config.yaml:2:41 policies.first.words[0]: is too short. Use 3 letters.',
        'tollgate.config.yaml:2:50 policies.first.words[2]: is too short. Use 3 letters.',
        'tollgate.config.yaml:3:41 policies.other.words[0]: is too short. Use 3 letters.',
        '3 problems in the configuration',
      ].join('\n'),
    );
  });

  it('runs only on a configuration that matches its schema', async () => {
    const reported = await message('policies:\n  first: { plugin: ./words.mjs, words: [ab], mode: 1 }\n');
    expect(reported).to.include('policies.first.mode: must be text').and.not.include('too short');
  });

  it('receives the folder of the configuration and the settings', async () => {
    const reported = await message('billing: enforce\npolicies: { w: { plugin: ./words.mjs, mode: context } }\n');
    expect(reported).to.include('tollgate.config.yaml:2:13 policies.w: saw true enforce.');
  });

  it('is reported when it throws or returns no list', async () => {
    expect(await message('policies: { w: { plugin: ./words.mjs, mode: throw } }\n')).to.include(
      'policies.w: has a plugin whose check failed: boom.',
    );
    expect(await message('policies: { w: { plugin: ./words.mjs, mode: odd } }\n')).to.include(
      'policies.w: has a plugin whose check does not return a list of problems.',
    );
  });
});

/** Built-in operation with options at the top level. */
const CACHING = `export default {
  name: 'caching', kind: 'operation', apiVersion: 1, section: 'soundCache',
  configSchema: { type: ['object', 'null'], properties: { size: { type: 'string', format: 'size', default: '1mb' }, secret: { type: 'string', secret: true } } },
  check: (config) => config?.size === '2mb' ? [{ path: '/size', message: 'is not liked' }] : [],
  setup() {},
};
`;

describe('a plugin with its own section', () => {
  afterEach(removeFolders);

  const loadCaching = (text: string, files = {}) =>
    load({ 'tollgate.config.yaml': text, 'builtin/operations/caching.js': CACHING, ...files });
  const configOf = async (text: string): Promise<unknown> =>
    (await loadCaching(text)).config.instances.find(({ name }) => name === 'caching')?.config;
  const message = (text: string, files = {}): Promise<string> =>
    loadCaching(text, files).then(
      () => 'no problem',
      (error: Error) => error.message,
    );

  it('receives its content, with defaults', async () => {
    expect(await configOf('soundCache: { size: 3mb }\n')).to.deep.equal({ size: '3mb' });
    expect(await configOf('soundCache: {}\n')).to.deep.equal({ size: '1mb' });
    expect(await configOf('soundCache: true\n')).to.deep.equal({ size: '1mb' });
  });

  it('receives null without it, if its schema allows that', async () => {
    expect(await configOf('billing: "off"\n')).to.equal(null);
    expect(await configOf('soundCache: false\n')).to.equal(null);
  });

  it('is enabled unless it is disabled in its group, where it has no options', async () => {
    expect(await configOf('operations: { caching: false }\n')).to.equal(undefined);
    expect(await configOf('operations: { caching: true }\nsoundCache: {}\n')).to.deep.equal({ size: '1mb' });
    expect(await message('operations:\n  caching: { size: 3mb }\n')).to.include(
      'tollgate.config.yaml:2:14 operations.caching.size: unknown key. The options of this plugin are under "soundCache".',
    );
  });

  it('has its problems reported at their places, from its schema and its check', async () => {
    expect(await message('soundCache:\n  sise: 1mb\n')).to.include(
      'tollgate.config.yaml:2:3 soundCache.sise: unknown key. Did you mean "size"?',
    );
    expect(await message('soundCache:\n  size: 2mb\n')).to.include(
      'tollgate.config.yaml:2:9 soundCache.size: is not liked.',
    );
  });

  it('defines the key, which is otherwise unknown', async () => {
    expect(await message('soundCach: {}\n')).to.include('soundCach: unknown key. Did you mean "soundCache"?');
    expect(await message('operations: { caching: false }\nsoundCache: {}\n')).to.include(
      '2:1 soundCache: unknown key.',
    );
  });

  it('is refused when the section is core’s or another plugin’s', async () => {
    const other = (section: string) => ({ 'other.mjs': CACHING.replace("'soundCache'", `'${section}'`) });
    const text = 'operations:\n  other: { plugin: ./other.mjs }\n';
    expect(await message(text, other('server'))).to.include(
      '2:3 operations.other: plugin_conflict: has its options under "server", which belongs to core.',
    );
    expect(await message(text, other('soundCache'))).to.include(
      'operations.other: plugin_conflict: has its options under "soundCache", which belongs to caching.',
    );
  });

  it('is shown by config print at the top level, without its secrets', async () => {
    const { config } = await loadCaching('soundCache: { secret: hunter2 }\n');
    expect(config.printable()).to.deep.include({
      soundCache: { secret: '****', size: '1mb' },
      operations: { caching: {} },
    });
  });

  it('has the section in the schema for editors', async () => {
    const { plugins } = await loadCaching('billing: "off"\n');
    const schema = composeSchema(plugins.map((one) => readSchema(one, one.name)));
    expect(schema).to.have.nested.property('properties.soundCache.properties.size.default', '1mb');
    const validate = new Ajv2020({ strict: false, validateFormats: false }).compile(schema);
    expect(validate({ soundCache: { size: '${SIZE}' }, operations: { caching: true } })).to.equal(true);
    expect(validate({ soundCache: { sise: '1mb' } })).to.equal(false);
    expect(validate({ operations: { caching: { size: '1mb' } } })).to.equal(false);
  });
});
