import { expect } from 'chai';
import { parseRawConfig, writeRawConfig } from '../../cli/cluster/messages.ts';
import { diffConfigs, formatChange } from '../../cli/config-diff.ts';
import { loadConfig } from '../../config/load-config.ts';
import { readRawConfig } from '../../config/read.ts';
import { makeFolder, removeFolders } from '../support/folders.ts';

describe('the difference of two configurations', () => {
  afterEach(removeFolders);

  const BASE = {
    store: 'sqlite:./data',
    providers: { echo: {}, one: { plugin: 'openai-compatible', baseUrl: 'http://h/v1', apiKey: 'sk-one' } },
    plans: { free: { rpm: 1 } },
  };
  const load = async (config: object) =>
    (await loadConfig({ cwd: makeFolder({ 'tollgate.config.json': JSON.stringify(config) }), env: {} })).config;
  const linesOf = async (more: object) =>
    diffConfigs(await load(BASE), await load({ ...BASE, ...more })).map(formatChange);

  it('is empty for the same one in another order', async () => {
    expect(await linesOf({ plans: { free: { rpm: 1 } } })).to.deep.equal([]);
  });

  it('has each place with its old and new value, defaults included, and marks those that need a restart', async () => {
    const lines = await linesOf({
      plans: { free: { rpm: 2 }, pro: { rpm: 9 } },
      models: { quick: 'echo/echo' },
      server: { port: 9000, drainTimeout: '9s' },
    });
    expect(lines).to.have.members([
      '~ plans.free.rpm: 1 → 2',
      '+ plans.pro.rpm: 9',
      '+ models.quick: "echo/echo"',
      '~ server.port: 8787 → 9000  (after a restart)',
      '~ server.drainTimeout: "25s" → "9s"',
    ]);
  });

  it('reports a changed secret without its values', async () => {
    const one = { ...BASE.providers.one, apiKey: 'sk-two' };
    expect(await linesOf({ providers: { echo: {}, one } })).to.deep.equal(['~ providers.one.apiKey: changed secret']);
  });

  it('names a removed provider', async () => {
    const lines = await linesOf({ providers: { echo: {} } });
    expect(lines).to.include('- providers.one.baseUrl: "http://h/v1"').and.include('- providers.one.apiKey: "****"');
  });
});

describe('a configuration as text', () => {
  afterEach(removeFolders);

  it('is identical in another process, with the secrets as originally read', async () => {
    const config = {
      providers: { one: { plugin: 'openai-compatible', baseUrl: 'http://h/v1', apiKey: '$' + '{file:./key}' } },
    };
    const cwd = makeFolder({ 'tollgate.config.json': JSON.stringify(config), key: 'sk-first', '.env': 'A=1' });
    const raw = await readRawConfig({ cwd, env: { B: '2' } });
    const first = await loadConfig({ raw });
    const copy = await loadConfig({ raw: parseRawConfig(writeRawConfig(raw)) });
    expect(copy.config.plain()).to.deep.equal(first.config.plain());
    expect(JSON.stringify(copy.config.plain())).to.include('sk-first');
    expect(copy.raw.env).to.include({ A: '1', B: '2' });
    expect(raw.files.map((file) => file.slice(cwd.length + 1))).to.deep.equal([
      'tollgate.config.json',
      '.env.local',
      '.env',
    ]);
  });
});
