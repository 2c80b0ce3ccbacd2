import path from 'node:path';
import { expect } from 'chai';
import { ConfigError } from '../../config/problems.ts';
import { type ConfigInput, type RawConfig, readRawConfig } from '../../config/read.ts';
import { makeFolder, removeFolders } from '../support/folders.ts';

const read = (cwd: string, rest: Partial<ConfigInput> = {}): Promise<RawConfig> =>
  readRawConfig({ cwd, env: {}, ...rest });

const readProblem = (cwd: string, rest: Partial<ConfigInput> = {}): Promise<string> =>
  read(cwd, rest).then(
    () => 'no problem',
    (error: unknown) => {
      if (error instanceof ConfigError) return error.message;
      throw error;
    },
  );

const YAML = 'server: { port: 9001 }\n';
const JSON_TEXT = '{ "server": { "port": 9001 } }';
const ESM = 'export default { server: { port: 9001 } };\n';
const TS = 'const port: number = 9001;\nexport default { server: { port } } satisfies object;\n';

describe('reading the configuration', () => {
  afterEach(removeFolders);

  const places: readonly [file: string, text: string][] = [
    ['tollgate.config.yaml', YAML],
    ['tollgate.config.yml', YAML],
    ['tollgate.config.json', JSON_TEXT],
    ['tollgate.config.ts', TS],
    ['tollgate.config.mts', TS],
    ['tollgate.config.mjs', ESM],
    ['tollgate.config.js', 'module.exports = { server: { port: 9001 } };\n'],
    ['tollgate.config.cjs', 'module.exports = { server: { port: 9001 } };\n'],
    ['.config/tollgate.yaml', YAML],
    ['.config/tollgate.yml', YAML],
    ['.config/tollgate.json', JSON_TEXT],
    ['.config/tollgate.ts', TS],
    ['.config/tollgate.mjs', ESM],
    ['.config/tollgate.js', 'module.exports = { server: { port: 9001 } };\n'],
    ['package.json', `{ "name": "x", "tollgate": ${JSON_TEXT} }`],
  ];
  for (const [file, text] of places) {
    it(`finds ${file}`, async () => {
      const cwd = makeFolder({ [file]: text });
      const raw = await read(cwd);
      expect(raw).to.include({ file, isDefault: false, baseDir: path.dirname(path.join(cwd, file)) });
      expect(raw.value['server']).to.deep.equal({ port: 9001 });
    });
  }

  it('reads tollgate.config.js as a module where package.json says so', async () => {
    const cwd = makeFolder({ 'tollgate.config.js': ESM, 'package.json': '{ "type": "module" }' });
    expect((await read(cwd)).value['server']).to.deep.equal({ port: 9001 });
  });

  it('calls a configuration that is a function with the environment', async () => {
    const text = 'export default async ({ env }) => ({ server: { port: Number(env.MY_PORT) } });\n';
    const cwd = makeFolder({ 'tollgate.config.mjs': text, '.env': 'MY_PORT=9002\n' });
    expect((await read(cwd)).value['server']).to.deep.equal({ port: 9002 });
  });

  it('runs on the built-in configuration, relative to the working directory, without a file', async () => {
    const cwd = makeFolder();
    const raw = await read(cwd);
    expect(raw).to.include({ isDefault: true, baseDir: cwd, file: 'config/default.yaml' });
    expect(raw.value).to.include.keys('store', 'providers', 'auth', 'tts', 'agents');
  });

  it('does not search above the working directory', async () => {
    const cwd = makeFolder({ 'tollgate.config.yaml': YAML, 'below/x.txt': '' });
    expect((await read(path.join(cwd, 'below'))).isDefault).to.equal(true);
  });

  it('ignores a package.json without a tollgate key, also a broken one', async () => {
    expect((await read(makeFolder({ 'package.json': '{ "name": "tollgate" }' }))).isDefault).to.equal(true);
    expect((await read(makeFolder({ 'package.json': '{ "name": ' }))).isDefault).to.equal(true);
  });

  it('reports the place of an error in a package.json with a tollgate key', async () => {
    expect(await readProblem(makeFolder({ 'package.json': '{\n  "tollgate": { "billing" "off" }\n}' }))).to.equal(
      'package.json:2:27 is not valid JSON: expected ":", found "\\"".\n1 problem in the configuration',
    );
  });

  it('refuses two candidates and names both', async () => {
    const files = { 'tollgate.config.yaml': YAML, '.config/tollgate.json': JSON_TEXT };
    expect(await readProblem(makeFolder(files))).to.equal(
      'tollgate.config.yaml is not the only configuration in this folder: tollgate.config.yaml, .config/tollgate.json. ' +
        'Keep one of them, or select one with --config.\n1 problem in the configuration',
    );
  });

  for (const name of [
    'tollgate.yaml',
    'tollgate.toml',
    'tollgate.config.toml',
    '.tollgaterc',
    '.config/tollgate.json5',
  ]) {
    it(`refuses to run the built-in configuration next to a file called ${name}`, async () => {
      const problem = await readProblem(makeFolder({ [name]: YAML }));
      expect(problem).to.include(`${name} is not a recognized file name. `);
      expect(problem).to.include('tollgate.config.yaml').and.include('--config');
    });
  }

  it('refuses to ignore an unreadable configuration', async () => {
    const cwd = makeFolder({ 'tollgate.config.yaml/x.txt': '' });
    expect(await readProblem(cwd)).to.include('tollgate.config.yaml cannot be read or is not a file.');
  });

  it('ignores such a file next to a configuration, and files of other kinds', async () => {
    const others = { 'tollgate.yaml': 'kind: Deployment\n', 'tollgate.ts': '', 'tollgate.db': '' };
    expect((await read(makeFolder({ ...others, 'tollgate.config.yaml': YAML }))).file).to.equal('tollgate.config.yaml');
    expect((await read(makeFolder({ 'tollgate.ts': '', 'tollgate.db': '', 'tollgate.log': '' }))).isDefault).to.equal(
      true,
    );
  });

  it('prefers --config over TOLLGATE_CONFIG over files in the folder', async () => {
    const cwd = makeFolder({
      'tollgate.config.yaml': 'billing: "off"\n',
      'sub/by-env.json': '{ "billing": "track" }',
      'sub/by-flag.yml': 'billing: enforce\n',
    });
    const env = { TOLLGATE_CONFIG: 'sub/by-env.json' };
    expect((await read(cwd, { env, configPath: 'sub/by-flag.yml' })).value['billing']).to.equal('enforce');
    expect(await read(cwd, { env })).to.include({ file: 'sub/by-env.json', baseDir: path.join(cwd, 'sub') });
    expect((await read(cwd)).value['billing']).to.equal('off');
  });

  it('finds TOLLGATE_CONFIG in .env as well', async () => {
    const cwd = makeFolder({ '.env': 'TOLLGATE_CONFIG=my.yaml\n', 'my.yaml': 'billing: enforce\n' });
    expect((await read(cwd)).file).to.equal('my.yaml');
  });

  const badPaths: readonly [title: string, path: string, problem: string][] = [
    ['does not exist', 'nope.yaml', 'nope.yaml does not exist or is not a file (set by --config)'],
    ['is a folder', 'sub', 'sub does not exist or is not a file (set by --config)'],
    ['has an unknown ending', 'notes.txt', 'notes.txt has an unknown format (set by --config)'],
  ];
  for (const [title, configPath, problem] of badPaths) {
    it(`refuses a --config that ${title}`, async () => {
      const cwd = makeFolder({ 'notes.txt': '', 'sub/a.yaml': YAML });
      expect(await readProblem(cwd, { configPath })).to.include(problem);
    });
  }

  it('names TOLLGATE_CONFIG if it is wrong', async () => {
    expect(await readProblem(makeFolder(), { env: { TOLLGATE_CONFIG: '/nope.yaml' } })).to.include(
      'set by TOLLGATE_CONFIG',
    );
  });

  it('shows an absolute path for a file outside the working directory', async () => {
    const elsewhere = makeFolder({ 'my.yaml': 'billing: "off"\n' });
    const raw = await read(makeFolder(), { configPath: path.join(elsewhere, 'my.yaml') });
    expect(raw.file).to.equal(path.join(elsewhere, 'my.yaml'));
  });

  it('completes a file without store and auth from the built-in configuration, without a first key', async () => {
    const { value } = await read(makeFolder({ 'tollgate.config.yaml': 'providers:\nserver: {}\n' }));
    expect(value).to.deep.equal({ store: 'sqlite:./data', auth: { 'api-key': {} }, server: {} });
  });

  it('keeps the store and auth of a file', async () => {
    const { value } = await read(makeFolder({ 'tollgate.config.yaml': 'store: "memory:"\nauth: { door: {} }\n' }));
    expect(value).to.deep.equal({ store: 'memory:', auth: { door: {} } });
  });

  const broken: readonly [title: string, file: string, text: string, problem: string][] = [
    ['a module that throws', 'tollgate.config.mjs', 'throw new Error("boom")', 'cannot be loaded: boom'],
    ['a module without a default export', 'tollgate.config.mjs', 'export const a = 1;', 'is empty'],
    [
      'TypeScript that does not parse',
      'tollgate.config.ts',
      'export default {',
      'tollgate.config.ts cannot be loaded: ',
    ],
    [
      'JSON with a comma too many',
      'tollgate.config.json',
      '{\n  "billing": "off",\n}',
      'tollgate.config.json:3:1 is not valid JSON: expected a name in double quotes, found "}"',
    ],
    [
      'JSON that ends early',
      'tollgate.config.json',
      '{ "billing": ',
      'tollgate.config.json:1:14 is not valid JSON: expected a value, the file ends',
    ],
    [
      'JSON with a name twice',
      'tollgate.config.json',
      '{ "a": 1, "a": 2 }',
      'tollgate.config.json:1:11 is not valid JSON: the name "a" is a duplicate',
    ],
    ['JSON nested without end', 'tollgate.config.json', `{ "a": ${'['.repeat(5000)}`, 'it is nested too deeply'],
    ['two YAML documents', 'tollgate.config.yaml', 'a: 1\n---\nb: 2\n', 'is not valid YAML'],
    ['a YAML key that is a list', 'tollgate.config.yaml', '? [a]\n: 1\n', 'is not valid YAML'],
  ];
  for (const [title, file, text, problem] of broken) {
    it(`reports ${title}`, async () => {
      expect(await readProblem(makeFolder({ [file]: text }))).to.include(problem);
    });
  }

  it('follows YAML anchors and merges', async () => {
    const text = 'plans:\n  free: &limits { rpm: 5 }\n  pro: { <<: *limits, tpm: 9 }\n';
    const { value } = await read(makeFolder({ 'tollgate.config.yaml': text }));
    expect(value['plans']).to.deep.equal({ free: { rpm: 5 }, pro: { rpm: 5, tpm: 9 } });
  });
});
