// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are the texts that a configuration holds.
import path from 'node:path';
import { expect } from 'chai';
import { checkConfig } from '../../config/check.ts';
import { ConfigError } from '../../config/problems.ts';
import { readRawConfig } from '../../config/read.ts';
import { corpusJson } from '../support/corpus.ts';
import { makeFolder, removeFolders } from '../support/folders.ts';
import { checkText, PLUGINS, problemLines } from './config-plugins.ts';

describe('a configuration without problems', () => {
  afterEach(removeFolders);

  it('has every default of core, in milliseconds and bytes', async () => {
    const config = await checkText('providers: {}\n');
    expect(config.server).to.deep.equal({
      host: '127.0.0.1',
      port: 8787,
      basePath: '',
      bodyLimitBytes: 32 * 1024 * 1024,
      requestTimeoutMs: 60_000,
      drainTimeoutMs: 25_000,
      drainDelayMs: 2000,
      keepAliveMs: 65_000,
      sseKeepAliveMs: 15_000,
      maxConnections: 10_000,
      failedCredentials: 30,
      cors: { origins: [] },
      console: { write: false },
      workers: 1,
      trustProxy: 0,
      watch: false,
      idempotency: { keepForMs: 86_400_000, maxBytes: 1024 * 1024 },
    });
    expect(config.logging).to.deep.equal({ level: 'info', format: 'auto' });
    expect(config).to.include({ billing: 'track', defaultPlan: undefined, isDefault: false });
    expect(config).to.deep.include({ models: {}, plans: {} });
  });

  it('turns durations, sizes and proxies into numbers', async () => {
    const text =
      'server: { drainTimeout: 1.5m, keepAlive: 500ms, bodyLimit: 512kb, trustProxy: true, workers: auto }\n';
    const { server } = await checkText(text);
    expect(server).to.include({ drainTimeoutMs: 90_000, keepAliveMs: 500, bodyLimitBytes: 524_288, trustProxy: 1 });
    expect(server.workers).to.equal('auto');
  });

  it('converts every alias to an ordered list', async () => {
    const { models } = await checkText('providers: { acme: {} }\nmodels: { a: acme/x, b: [acme/y, acme/x/z] }\n');
    expect(models).to.deep.equal({ a: ['acme/x'], b: ['acme/y', 'acme/x/z'] });
  });

  it('is deeply frozen', async () => {
    const config = await checkText('providers: { acme: { models: [a] } }\n');
    const acme = config.instances.find(({ name }) => name === 'acme');
    for (const part of [config, config.server, config.server.cors.origins, config.instances, acme, acme?.config]) {
      expect(Object.isFrozen(part)).to.equal(true);
    }
    expect(Object.isFrozen(acme?.config['models'])).to.equal(true);
  });

  it('lists instances in the order of the file, unmentioned built-in policies first', async () => {
    const text = 'providers: { second: { plugin: acme }, acme: {} }\nauth: { api-key: }\npolicies: { meter: {} }\n';
    const { instances } = await checkText(text);
    expect(instances.map(({ group, name, plugin }) => `${group}/${name}=${plugin}`)).to.deep.equal([
      'policies/gate=gate',
      'providers/second=acme',
      'providers/acme=acme',
      'auth/api-key=api-key',
      'policies/meter=meter',
    ]);
  });

  it('omits disabled instances, built-in policies too, and treats true and an empty value as no options', async () => {
    const text = 'providers: { acme: false }\nauth: { api-key: true }\npolicies: { meter: false, gate: }\n';
    const { instances } = await checkText(text);
    expect(instances.map(({ name }) => name)).to.deep.equal(['api-key', 'gate']);
    expect(instances.map(({ config }) => config)).to.deep.equal([{ bootstrap: false }, { floor: '0' }]);
  });

  it('refuses to disable a misspelled built-in policy, which would stay enabled', async () => {
    const problem = await checkText('policies: { metre: false, other: false }\n').catch((error: Error) => error);
    expect(String(problem)).to.include('policies.metre: disables a policy that does not exist. Did you mean "meter"?');
    expect(String(problem)).to.include('1 problem');
  });

  it('enables the built-in operations and dialects by default, and reports misspelled names', async () => {
    const builtins = [
      ...PLUGINS.builtins,
      { kind: 'operation', name: 'embed' },
      { kind: 'dialect', name: 'messages' },
    ] as const;
    const list = async (text: string): Promise<readonly string[]> => {
      const raw = await readRawConfig({ cwd: makeFolder({ 'tollgate.config.yaml': text }), env: {} });
      const { instances } = checkConfig(raw, { ...PLUGINS, builtins });
      return instances.flatMap(({ group, name }) => (/operations|dialects/.test(group) ? [`${group}/${name}`] : []));
    };
    expect(await list('billing: "off"\n')).to.deep.equal(['operations/embed', 'dialects/messages']);
    expect(await list('operations: { embed: false }\ndialects: { messages: {} }\n')).to.deep.equal([
      'dialects/messages',
    ]);
    const problem = await list('operations: { embd: false }\n').catch(String);
    expect(problem).to.include('operations.embd: disables an operation that does not exist. Did you mean "embed"?');
  });

  it('passes a plugin its options without the plugin key, with defaults applied', async () => {
    const { instances } = await checkText(
      'auth: { mine: { plugin: api-key } }\npolicies: { gate: false, meter: false }\n',
    );
    expect(instances).to.deep.equal([
      {
        group: 'auth',
        kind: 'auth',
        name: 'mine',
        plugin: 'api-key',
        pointer: '/auth/mine',
        config: { bootstrap: false },
      },
    ]);
  });

  it('names the plugins that need no options', async () => {
    const text = "plugins: ['./guard.mjs', '${EXTRA}']\npolicies: { gate: false, meter: false }\n";
    const { instances } = await checkText(text, { env: { EXTRA: 'tollgate-plugin-x' } });
    const added = instances.filter(({ group }) => group === 'plugins').map(({ plugin, pointer }) => [plugin, pointer]);
    expect(added).to.deep.equal([
      ['./guard.mjs', '/plugins/0'],
      ['tollgate-plugin-x', '/plugins/1'],
    ]);
  });

  const stores: readonly [text: string, plugin: string, config: (cwd: string) => object][] = [
    ['sqlite:./keys', 'sqlite', (cwd) => ({ folder: path.join(cwd, 'keys') })],
    ['"memory:"', 'memory', () => ({})],
    ['${DATABASE}', 'redis', () => ({ url: 'redis://db:6379' })],
    [
      '{ url: "sqlite:./keys", durability: full }',
      'sqlite',
      (cwd) => ({ folder: path.join(cwd, 'keys'), durability: 'full' }),
    ],
    ['{ plugin: ./my-store.mjs, shards: 3 }', './my-store.mjs', () => ({ shards: 3 })],
  ];
  for (const [text, plugin, config] of stores) {
    it(`accepts the store ${text}`, async () => {
      const { store, baseDir } = await checkText(`store: ${text}\n`, { env: { DATABASE: 'redis://db:6379' } });
      expect(store).to.deep.include({
        group: 'store',
        kind: 'store',
        plugin,
        pointer: '/store',
        config: config(baseDir),
      });
    });
  }

  it('reports failed imports together with everything else, but not their options', async () => {
    const cwd = makeFolder({ 'tollgate.config.yaml': 'billing: of\nproviders:\n  nope: { x: "${UNSET}" }\n' });
    const raw = await readRawConfig({ cwd, env: {} });
    const problems = [{ pointer: '/providers/nope', atKey: true, message: 'cannot be imported' }];
    const error = await Promise.resolve()
      .then(() => checkConfig(raw, { ...PLUGINS, problems }))
      .catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(ConfigError);
    expect((error as ConfigError).problems.map(({ path: place }) => place)).to.deep.equal([
      'billing',
      'providers.nope',
    ]);
  });

  it('reports a plugin whose schema cannot be compiled', async () => {
    const cwd = makeFolder({ 'tollgate.config.yaml': 'providers: { odd: {} }\n' });
    const raw = await readRawConfig({ cwd, env: {} });
    const schemas = [
      ...PLUGINS.schemas,
      { kind: 'provider', name: 'odd', schema: { properties: { a: { tipe: 'string' } } } },
    ] as const;
    expect(() => checkConfig(raw, { ...PLUGINS, schemas })).to.throw(
      ConfigError,
      'tollgate.config.yaml:1:14 providers.odd: has the plugin "odd", whose configSchema is invalid: strict mode: unknown keyword: "tipe"',
    );
  });

  it('reports a listed plugin that needs options, and their place', async () => {
    expect(await problemLines('plugins: [strict]\n')).to.deep.equal([]);
    const cwd = makeFolder({ 'tollgate.config.yaml': 'plugins: [strict]\n' });
    const schemas = [
      {
        kind: 'policy',
        name: 'strict',
        schema: { type: 'object', required: ['word'], properties: { word: { type: 'string' } } },
      },
    ] as const;
    const raw = await readRawConfig({ cwd, env: {} });
    expect(() => checkConfig(raw, { ...PLUGINS, schemas })).to.throw(
      'plugins[0]: needs "word". Add it under "policies" with "plugin:" and its options.',
    );
  });
});

describe('hostile names and texts', () => {
  afterEach(removeFolders);
  for (const [file, read] of [
    ['gateway-cases/names.json', (corpus: unknown) => (corpus as { cases: string[] }).cases],
    ['blns/blns.json', (corpus: unknown) => corpus as string[]],
  ] as const) {
    it(`of ${file} are problems or values, never a crash, as names of instances, aliases and plans`, async () => {
      const names = [...new Set(read(corpusJson(file)))];
      const value = {
        providers: Object.fromEntries(names.map((name) => [name, { plugin: 'acme' }])),
        models: Object.fromEntries(names.map((name) => [name, name])),
        plans: Object.fromEntries(names.map((name) => [name, { rpm: 1 }])),
      };
      const lines = await problemLines(JSON.stringify(value), { name: 'tollgate.config.json' });
      const places = lines.filter((line) => /\d providers[.[]/.test(line));
      const isName = (name: string): boolean => /^(?!\d+$)[a-z0-9][a-z0-9._-]{0,62}$/.test(name);
      expect(places).to.have.length(names.filter((name) => !isName(name) || name === 'constructor').length);
    });
  }
});
