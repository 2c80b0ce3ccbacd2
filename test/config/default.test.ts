// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are the texts that a configuration holds.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import { parse } from 'yaml';
import { renderConfigPage } from '../../cli/generate/config-page.ts';
import { composeSchema } from '../../config/compose-schema.ts';
import type { GatewayConfig } from '../../config/core-schema.ts';
import { loadConfig, readBuiltinSchemas } from '../../config/load-config.ts';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { compileSettings } from '../../config/validate.ts';
import type { Schema } from '../../contract/json.ts';
import { FORMATS } from '../../contract/schema-formats.ts';
import { makeFolder, removeFolders } from '../support/folders.ts';
import { runCli } from '../support/processes/cli.ts';

const read = (file: string): string => readFileSync(path.join(PACKAGE_ROOT, file), 'utf8');

const compile = (schema: Schema) => {
  const ajv = new Ajv2020({ strict: true, strictRequired: false, allowUnionTypes: true, keywords: ['secret'] });
  for (const format of Object.keys(FORMATS)) ajv.addFormat(format, true);
  return ajv.compile(schema);
};

describe('the built-in configuration', () => {
  afterEach(removeFolders);

  const load = async (env: Readonly<Record<string, string>>): Promise<GatewayConfig> =>
    (await loadConfig({ cwd: makeFolder(), env })).config;

  it('is valid in an empty environment', async () => {
    const config = await load({});
    expect(config.isDefault).to.equal(true);
    expect(config.instances.map(({ name }) => name)).to.include.members([
      'echo',
      'openai',
      'gemini',
      'api-key',
      'access-log',
    ]);
  });

  it('passes a provider its key if the variable is set', async () => {
    const keyOf = (config: GatewayConfig): unknown =>
      config.instances.find(({ name }) => name === 'openai')?.config['apiKey'];
    expect(keyOf(await load({}))).to.equal(undefined);
    expect(keyOf(await load({ OPENAI_API_KEY: 'sk-1' }))).to.equal('sk-1');
  });

  it('has its store in the working directory', async () => {
    const cwd = makeFolder();
    const { config } = await loadConfig({ cwd, env: {} });
    expect(config.store.config).to.deep.equal({ folder: path.join(cwd, 'data'), keepPerAccount: '32mb' });
  });
});

describe('the published schema', () => {
  afterEach(removeFolders);

  const published = read('config/tollgate.schema.json');
  const validate = compile(JSON.parse(published) as Schema);

  it('is strict JSON Schema 2020-12 and accepts the built-in configuration', () => {
    validate(parse(read('config/default.yaml')));
    expect(validate.errors).to.equal(null);
  });

  it('accepts the file that init writes', async () => {
    const folder = makeFolder();
    await runCli(['init'], folder);
    validate(parse(readFileSync(path.join(folder, 'tollgate.config.yaml'), 'utf8')));
    expect(validate.errors).to.equal(null);
  });

  const values: readonly [value: object, isTaken: boolean][] = [
    [{ $import: './shared.yaml' }, true],
    [{ $import: ['./a.yaml', './b.json'] }, true],
    [{ $import: 1 }, false],
    [{ server: { port: '${PORT}', workers: '${N:-auto}', trustProxy: '${TRUST}' } }, true],
    [{ server: { port: '8787' } }, false],
    [{ logging: { level: '${LEVEL:-info}' }, billing: '${BILLING}' }, true],
    [{ logging: { level: 'loud' } }, false],
    [{ auth: { 'api-key': { bootstrap: '${FIRST:-false}' } } }, true],
    [{ auth: { 'api-key': { bootstrap: 'yes' } } }, false],
    [{ plans: { free: { rpm: '${RPM}' } } }, true],
  ];
  for (const [value, isTaken] of values) {
    it(`${isTaken ? 'takes' : 'refuses'} ${JSON.stringify(value)}`, () => {
      expect(validate(value)).to.equal(isTaken);
    });
  }

  it('composes from the built-in plugins, each of which compiles separately as at a start', async () => {
    const schemas = await readBuiltinSchemas();
    expect(JSON.stringify(composeSchema(schemas)) === JSON.stringify(JSON.parse(published))).to.equal(true);
    for (const { name, schema } of schemas) expect(() => compileSettings(schema), name).not.to.throw();
  });
});

describe('the page of the configuration’s keys', () => {
  it('has every top-level key, and a table for every built-in plugin with its own options', async () => {
    const plugins = await readBuiltinSchemas();
    const page = renderConfigPage(plugins);
    const keys = [...page.matchAll(/<tr><td><code>([^<]+)/g)].map(([, key]) => key);
    const { properties } = composeSchema(plugins) as { readonly properties: object };
    const groups = ['providers', 'auth', 'agents', 'tts', 'operations', 'dialects', 'policies', 'secrets'];
    expect(keys).to.include.members(Object.keys(properties).filter((key) => !groups.includes(key)));
    const titles = [...page.matchAll(/<h2 id="([^"]+)/g)].map(([, title]) => title);
    expect(titles).to.include.members([
      'server',
      'providers',
      'providers.openai',
      'auth.jwt',
      'responseCache',
      'store.redis',
    ]);
    expect(page)
      .to.include('<code>${NAME}</code>')
      .and.not.match(/<td>[^<]*`/);
  });
});

describe('docs/config.md', () => {
  afterEach(removeFolders);

  const blocks = [...read('docs/config.md').matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, text = '']) => text);
  for (const [index, text] of blocks.entries()) {
    it(`shows a valid configuration in example ${index + 1}`, async () => {
      const { config } = await loadConfig({ cwd: makeFolder({ 'tollgate.config.yaml': text }), env: {} });
      expect(config.isDefault).to.equal(false);
    });
  }
});
