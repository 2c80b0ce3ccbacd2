import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { type Builtin, importPlugin } from '../../config/import-plugin.ts';
import { PluginImportError } from '../../config/plugin-definition.ts';
import type { PluginKind } from '../../contract/plugin.ts';
import { makeFolder, removeFolders } from '../support/folders.ts';

const plugin = (fields = ''): string =>
  `export default { name: 'x', kind: 'provider', apiVersion: 1, setup() {}, ${fields} };\n`;

const find = (baseDir: string, spec: string, kind: PluginKind = 'provider', builtins: readonly Builtin[] = []) =>
  importPlugin(spec, { kind, builtins, baseDir });

const reason = async (...args: Parameters<typeof find>): Promise<string> => {
  try {
    await find(...args);
    return 'imported';
  } catch (error) {
    if (!(error instanceof PluginImportError)) throw error;
    return `${error.message}. ${error.hint ?? ''}`.trim();
  }
};

describe('importing a plugin', () => {
  afterEach(removeFolders);

  const specs: readonly [spec: string, file: string, text: string][] = [
    ['./mine.mjs', 'mine.mjs', plugin()],
    ['./mine.ts', 'mine.ts', plugin("section: 'x' as string")],
    ['./mine.cjs', 'mine.cjs', plugin().replace('export default', 'module.exports =')],
    ['tollgate-plugin-acme', 'node_modules/tollgate-plugin-acme/index.mjs', plugin()],
    ['@acme/gate', 'node_modules/@acme/gate/index.mjs', plugin()],
    ['acme/plugins/x.mjs', 'node_modules/acme/plugins/x.mjs', plugin()],
  ];
  for (const [spec, file, text] of specs) {
    it(`accepts ${spec}`, async () => {
      const manifest = '{ "type": "module", "exports": { "import": "./index.mjs" } }';
      const folder = path.dirname(file);
      const isPackage = file.endsWith('index.mjs');
      const cwd = makeFolder({ [file]: text, ...(isPackage && { [`${folder}/package.json`]: manifest }) });
      expect(await find(cwd, spec)).to.include({ name: 'x', kind: 'provider' });
    });
  }

  it('accepts an absolute path and a file URL', async () => {
    const file = path.join(makeFolder({ 'mine.mjs': plugin() }), 'mine.mjs');
    expect((await find('/', file)).name).to.equal('x');
    expect((await find('/', pathToFileURL(file).href)).name).to.equal('x');
  });

  it('uses the built-in of the requested kind', async () => {
    const cwd = makeFolder({ 'a.mjs': plugin(), 'b.mjs': plugin().replace("'provider'", "'tts'") });
    const url = (file: string): string => pathToFileURL(path.join(cwd, file)).href;
    const builtins: readonly Builtin[] = [
      { kind: 'provider', name: 'acme', url: url('a.mjs') },
      { kind: 'tts', name: 'acme', url: url('b.mjs') },
    ];
    expect((await find(cwd, 'acme', 'tts', builtins)).kind).to.equal('tts');
  });

  const builtins: readonly Builtin[] = [{ kind: 'provider', name: 'openrouter', url: 'file:///nope.js' }];
  const missing: readonly [spec: string, expected: string][] = [
    ['opnrouter', 'the built-in provider plugin "opnrouter" does not exist. Did you mean "openrouter"?'],
    [
      'koa',
      'the built-in provider plugin "koa" does not exist. Built-in plugins: openrouter. For others, set "plugin:" to a package tollgate-plugin-… (with its scope) or a path.',
    ],
    [
      'tollgate-plugin-nope',
      'the package "tollgate-plugin-nope" is not installed. Run: npm install tollgate-plugin-nope',
    ],
    ['@acme/nope/sub', 'the package "@acme/nope" is not installed. Run: npm install @acme/nope'],
    [
      './nope.mjs',
      'the plugin file ./nope.mjs does not exist. Check the path. Relative paths start at the configuration file.',
    ],
  ];
  for (const [spec, expected] of missing) {
    it(`explains what to do about the missing ${spec}`, async () => {
      expect(await reason(makeFolder(), spec, 'provider', builtins)).to.equal(expected);
    });
  }

  const invalid: readonly [title: string, text: string, expected: string][] = [
    [
      'without a default export',
      'export const a = 1;',
      'is not a plugin: its default export is missing or not an object. Export default definePlugin({ … }).',
    ],
    [
      'of an older API',
      plugin().replace('apiVersion: 1', 'apiVersion: 0'),
      'uses plugin API 0, but this gateway supports 1.',
    ],
    [
      'with a member that no plugin has (G60)',
      plugin('level: 1'),
      'has the unknown member "level". Members are: name, kind, apiVersion,',
    ],
    [
      'without an API version',
      plugin().replace('apiVersion: 1,', ''),
      'has no "apiVersion". Write apiVersion: 1, a number.',
    ],
    ['without a name', plugin().replace("name: 'x',", ''), 'is not a plugin: it has no "name".'],
    [
      'of an unknown kind',
      plugin().replace("'provider'", "'porvider'"),
      'is of the unknown kind "porvider". Did you mean "provider"? Kinds are provider, auth, agent, tts, operation, dialect, store, policy, secrets.',
    ],
    [
      'of another kind',
      plugin().replace("'provider'", "'tts'"),
      'is a tts plugin, not a provider plugin. Add it under "tts".',
    ],
    ['without setup', plugin().replace('setup() {},', ''), 'is not a plugin: it has no "setup" function.'],
    [
      'with an invalid schema',
      plugin("configSchema: 'x'"),
      'has an invalid "configSchema" "x", which must be a JSON schema of an object.',
    ],
    [
      'with a schema of a list',
      plugin("configSchema: { type: 'array' }"),
      'has an invalid "configSchema", which must be a JSON schema of an object.',
    ],
    [
      'with hosts that are no list',
      plugin("hosts: 'api.acme.com'"),
      'has an invalid "hosts" "api.acme.com", which must be a list of hosts without scheme and path.',
    ],
    [
      'that throws',
      'throw new Error("boom\\nsecond line");',
      'the plugin "./mine.mjs" cannot be loaded: boom (mine.mjs:1:7).',
    ],
  ];
  for (const [title, text, expected] of invalid) {
    it(`refuses a module ${title}`, async () => {
      expect(await reason(makeFolder({ 'mine.mjs': text }), './mine.mjs')).to.include(expected);
    });
  }
});
