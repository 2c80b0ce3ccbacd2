import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { expect } from 'chai';
import { loadConfig } from '../../config/load-config.ts';
import { loadModelTable } from '../../models/model-table.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import {
  head,
  respondWith,
  type ScriptedUpstream,
  startScriptedUpstream,
  type Wire,
} from '../support/vendors/scripted-upstream.ts';
import { until } from '../support/wait.ts';

interface Reported {
  readonly differences: readonly {
    model: string;
    field: string;
    before: string | null;
    after: string | null;
    is_dearer: boolean;
  }[];
  readonly failed: readonly { source: string; reason: string }[];
  readonly taken: boolean;
}

const SHIPPED = loadModelTable();
/** Returns a table of the next edition with these rows of OpenAI's models. */
const tableOf = (rows: object, more: object = {}): object => ({
  ...{ version: (SHIPPED.version ?? 0) + 1, date: SHIPPED.date, vendors: { openai: rows } },
  ...more,
});
const ROW = { contextWindow: 1000, price: { input: 2, output: 10, cached_input: 0.1, fees: { requests: 0 } } };

describe('an update of the models', () => {
  let source: ScriptedUpstream;
  let gateway: TestGateway;
  /** Response at the table's address, and the vendors' model lists. */
  let table: Buffer | ((wire: Wire) => unknown);
  let lists: Readonly<Record<string, object>>;

  beforeEach(async () => {
    table = respondWith(200, tableOf({}));
    lists = {
      '/openai/models': { data: [{ id: 'gpt-6.1-sol', shutdown_date: null }] },
      '/relay/models': { data: [{ id: 'a/one' }] },
    };
    source = await startScriptedUpstream((wire: Wire) => {
      const list = lists[wire.request.path];
      if (list) return wire.send(respondWith(200, list));
      return typeof table === 'function' ? table(wire) : wire.send(table);
    });
    gateway = await startGateway(config());
  });
  afterEach(async () => {
    await gateway?.stop();
    await source?.close();
  });

  const config = (policy: object = {}, openai: object = {}) => ({
    providers: {
      openai: { apiKey: 'sk-test-of-updates', baseUrl: `${source.url}/openai`, ...openai },
      openrouter: { apiKey: 'sk-or-test-of-updates', baseUrl: `${source.url}/relay` },
    },
    policies: { 'model-refresh': { table: `${source.url}/models.json`, ...policy } },
  });
  const restart = async (policy: object, openai: object = {}) => {
    await gateway.stop();
    gateway = await startGateway(config(policy, openai));
  };
  const update = (...flags: readonly string[]) => gateway.command<Reported>('models', 'update', ...flags);
  const reload = async () => {
    const { folder } = gateway;
    const env = { PATH: process.env['PATH'], HOME: folder };
    await gateway.use(await loadConfig({ cwd: folder, env, configPath: path.join(folder, 'tollgate.config.json') }));
  };
  const priceOf = async (model: string) => {
    const { pricing } = (await (await gateway.get(`/v1/models/${model}`)).json()) as {
      pricing?: Record<string, string>;
    };
    return pricing?.['prompt'];
  };

  it('shows the differences with --check, exits with 4, and changes nothing (E16)', async () => {
    table = respondWith(200, tableOf({ 'gpt-7': ROW }));
    const reported = await update('--check');
    expect(reported.taken).to.equal(false);
    expect(reported.differences.find(({ model }) => model === 'openai/gpt-7')).to.deep.equal({
      ...{ model: 'openai/gpt-7', field: 'new', before: null, is_dearer: false },
      after: '2 in, 10 out USD/M tokens, 1000 tokens',
    });
    expect(gateway.exitCode()).to.equal(4);
    await reload();
    expect((await gateway.get('/v1/models/openai/gpt-7')).status).to.equal(404);
    table = respondWith(200, tableOf({}));
    lists = {};
    await update('--check', '--provider', 'openai').catch(() => undefined);
    expect(gateway.exitCode()).to.equal(69);
  });

  it('adopts new models and lower prices, which a running gateway uses after its next reload (E16)', async () => {
    const cheaper = { ...ROW, price: { input: 1, output: 5, cached_input: 0.01 } };
    table = respondWith(200, tableOf({ 'gpt-7': ROW, 'gpt-6.1-sol': cheaper }));
    const before = await priceOf('openai/gpt-6.1-sol');
    expect((await update()).taken).to.equal(true);
    expect(await priceOf('openai/gpt-6.1-sol')).to.equal(before);
    await reload();
    expect([await priceOf('openai/gpt-7'), await priceOf('openai/gpt-6.1-sol')]).to.deep.equal([
      '0.000002',
      '0.000001',
    ]);
    expect((await update('--check')).differences).to.deep.equal([]);
    expect(gateway.exitCode() ?? 0).to.equal(0);
    expect(JSON.stringify(await gateway.command('audit'))).to.include('models.update');
  });

  it('never adopts a higher price unless it is accepted, and reports it each time (E16)', async () => {
    const dearer = { ...ROW, contextWindow: 5000, price: { input: 3, output: 9 } };
    table = respondWith(200, tableOf({ 'gpt-6.1-sol': dearer }));
    const before = await priceOf('openai/gpt-6.1-sol');
    for (let time = 0; time < 2; time++) {
      const { differences } = await update();
      const price = differences.filter(
        ({ model, field }) => model === 'openai/gpt-6.1-sol' && field.startsWith('price'),
      );
      expect(price.map(({ is_dearer: isDearer }) => isDearer))
        .to.include(true)
        .and.not.include(false);
      await reload();
      expect(await priceOf('openai/gpt-6.1-sol')).to.equal(before);
    }
    const { context_length: context } = (await (await gateway.get('/v1/models/openai/gpt-6.1-sol')).json()) as never;
    expect(context).to.equal(5000);
    await update('--accept-dearer');
    await reload();
    expect(await priceOf('openai/gpt-6.1-sol')).to.equal('0.000003');
  });

  it('does not override the operator’s prices and model lists (E16)', async () => {
    await restart({}, { models: ['gpt-6.1-sol'], prices: { 'gpt-6': { input: 7, output: 7 } } });
    table = respondWith(200, tableOf({ 'gpt-7': ROW, 'gpt-6.1-sol': { ...ROW, contextWindow: 77 } }));
    lists = { ...lists, '/openai/models': { data: [{ id: 'gpt-6.1-sol' }, { id: 'gpt-8' }] } };
    await update('--accept-dearer');
    await reload();
    expect(await priceOf('openai/gpt-6.1-sol')).to.equal('0.000007');
    const sol = (await (await gateway.get('/v1/models/openai/gpt-6.1-sol')).json()) as Record<string, unknown>;
    expect(sol['context_length']).to.equal(77);
    for (const model of ['gpt-7', 'gpt-8'])
      expect((await gateway.get(`/v1/models/openai/${model}`)).status).to.equal(404);
  });

  it('reads from vendors’ lists ends, limits, modalities and prices, also by length of prompt and time of day (E16)', async () => {
    const pricing = { prompt: '0.00000125', completion: '0.00001', input_cache_read: '0.000000125', image: '0' };
    const overrides = [
      { min_prompt_tokens: 200_000, prompt: '0.0000025', completion: '0.00002' },
      { utc_start: 0, utc_end: 6, completion: '0.000011' },
    ];
    lists = {
      '/openai/models': { data: [{ id: 'gpt-6.1-sol', shutdown_date: '2999-01-01' }] },
      '/relay/models': {
        data: [
          {
            ...{
              id: 'a/one',
              context_length: 4096,
              top_provider: { max_completion_tokens: 512 },
              expiration_date: null,
            },
            architecture: { input_modalities: ['text', 'image'], output_modalities: ['text'] },
            pricing: { ...pricing, overrides, web_search: '0.01' },
          },
          { id: 'a/router', pricing: { prompt: '-1', completion: '-1' } },
        ],
      },
    };
    expect((await update()).failed).to.deep.equal([]);
    await reload();
    const sol = (await (await gateway.get('/v1/models/openai/gpt-6.1-sol')).json()) as Record<string, unknown>;
    expect(sol).to.include({ expiration_date: '2999-01-01' });
    const info = (await (await gateway.get('/v1/models/openrouter/a/one')).json()) as Record<string, unknown>;
    expect(info).to.deep.include({ context_length: 4096, max_completion_tokens: 512 });
    expect(info['pricing']).to.include({ prompt: '0.00000125', completion: '0.000011', web_search: '0.01' });
    expect(await priceOf('openrouter/a/router')).to.equal(undefined);
    expect((await gateway.get('/v1/models/openrouter/a/router')).status).to.equal(200);
  });

  it('warns operators: the metric and the list have the shutdown of an alias’s model (E16)', async () => {
    const day = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10);
    await gateway.stop();
    gateway = await startGateway({ ...config(), models: { smart: ['openai/gpt-6.1-sol'] } });
    const line = 'tollgate_model_shutdown_timestamp_seconds{provider="openai",model="gpt-6.1-sol"}';
    const scrape = async (): Promise<string> => (await fetch(`${gateway.url}/metrics`)).text();
    expect(await scrape()).not.to.include(line);
    lists = { ...lists, '/openai/models': { data: [{ id: 'gpt-6.1-sol', shutdown_date: day }] } };
    await update();
    await reload();
    expect(await scrape()).to.include(`${line} ${Date.parse(day) / 1000}`);
    const rows = await gateway.command<{ id: string; shutdown?: string | null }[]>('models', '--provider', 'openai');
    expect(rows.find(({ id }) => id === 'openai/gpt-6.1-sol')?.shutdown).to.equal(day);
  });

  const big = async (wire: Wire): Promise<void> => {
    await wire.send(head(200, { 'content-type': 'application/json', 'content-length': String(100 * 1024 * 1024) }));
    for (let sent = 0; sent < 100 && !wire.isGone; sent++) await wire.send(Buffer.alloc(1024 * 1024, 32));
  };
  const bad = (price: unknown): Buffer => respondWith(200, tableOf({ 'gpt-7': { price } }));
  const HOSTILE: readonly (readonly [
    title: string,
    table: () => Buffer | ((wire: Wire) => unknown),
    reason: RegExp,
  ])[] = [
    ['HTML', () => respondWith(200, '<!doctype html><p>Sign in</p>', { 'content-type': 'text/html' }), /not JSON/],
    ['a redirect', () => respondWith(302, '', { location: 'http://127.0.0.1:9/models.json' }), /302|not JSON/],
    ['an error', () => respondWith(500, 'no'), /it returned status 500/],
    ['100 MB', () => big, /more than 16 MiB/],
    ['another document', () => respondWith(200, { hello: 'world' }), /is invalid/],
    ['a negative price', () => bad({ input: -1, output: 1 }), /is invalid: vendors/],
    ['a price that is text', () => bad({ input: '1', output: 1 }), /is invalid: vendors/],
    ['a price without output', () => bad({ input: 1 }), /is invalid: vendors/],
    [
      'a gap in time',
      () =>
        bad([
          { input: 1, output: 1, until: '2027-01-01' },
          { input: 1, output: 1, from: '2027-02-01' },
        ]),
      /the price of openai\/gpt-7 leaves a gap: there is no price from 2027-01-01 to 2027-02-01/,
    ],
    [
      'an older edition',
      () => respondWith(200, tableOf({}, { version: 1 })),
      /has the version 1, older than \d+ in use/,
    ],
    ['a name that writes into a terminal', () => respondWith(200, tableOf({ 'gpt\u001b[2J': ROW })), /is invalid/],
  ];
  for (const [title, hostile, reason] of HOSTILE)
    it(`refuses a table that is ${title}, and changes nothing (E16)`, async () => {
      table = hostile();
      const before = await priceOf('openai/gpt-6.1-sol');
      const { failed } = await update('--accept-dearer');
      expect(failed.map((each) => each.source)).to.deep.equal(['the table of models']);
      expect(failed[0]?.reason).to.match(reason);
      expect(gateway.exitCode()).to.equal(69);
      await reload();
      expect(await priceOf('openai/gpt-6.1-sol')).to.equal(before);
      expect((await gateway.get('/v1/models/openai/gpt-7')).status).to.equal(404);
    });

  const LISTS: readonly (readonly [title: string, pricing: object, reason: RegExp])[] = [
    ['a price that is text', { pricing: { prompt: 'cheap', completion: '1' } }, /list of openrouter is invalid/],
    ['a negative price', { pricing: { prompt: '-0.5', completion: '1' } }, /list of openrouter is invalid/],
    ['an end that is no day', { expiration_date: 'soon' }, /list of openrouter is invalid/],
    ['a negative context', { context_length: -5 }, /list of openrouter is invalid/],
  ];
  for (const [title, facts, reason] of LISTS)
    it(`refuses a vendor’s list with ${title}, accepts the others, and continues (E16)`, async () => {
      lists = { ...lists, '/relay/models': { data: [{ id: 'a/one', ...facts }] } };
      const { failed } = await update();
      expect(failed).to.have.length(1);
      expect(failed[0]?.reason).to.match(reason);
      await reload();
      expect((await gateway.get('/v1/models/openrouter/a/one')).status).to.equal(404);
    });

  it('runs on a timer, and the log has the prices that would rise (E16)', async () => {
    table = respondWith(200, tableOf({ 'gpt-7': ROW, 'gpt-6.1-sol': { price: { input: 99, output: 99 } } }));
    await restart({ refresh: '24h' });
    await until('it is logged', () => gateway.logText().includes('higher prices were not applied'));
    expect(gateway.logText()).to.include('openai/gpt-6.1-sol');
    expect(await priceOf('openai/gpt-7')).to.equal('0.000002');
    expect(await priceOf('openai/gpt-6.1-sol')).to.not.equal('0.000099');
  });

  it('accepts no table from a URL without https, except on this machine (E16)', async () => {
    const refused = (policy: object) =>
      startGateway({ policies: { 'model-refresh': policy } }).then(
        (started) => started.stop().then(() => ''),
        (error: Error) => error.message,
      );
    expect(await refused({ table: 'http://prices.example/models.json' })).to.include('is not an https URL');
  });
});

describe('G53: without a configured table', () => {
  it('the published one is fetched, and offline the table in use stays', async () => {
    const requested: string[] = [];
    const proxy = createServer();
    proxy.on('connect', ({ url = '' }, socket) => {
      requested.push(url);
      socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    const { port } = proxy.address() as AddressInfo;
    const gateway = await startGateway({ policies: { 'model-refresh': { proxy: `http://127.0.0.1:${port}` } } });
    try {
      const { differences, failed } = await gateway.command<Reported>('models', 'update');
      expect(new Set(requested)).to.deep.equal(new Set(['cdn.jsdelivr.net:443']));
      expect(differences).to.deep.equal([]);
      expect(failed).to.deep.equal([]);
      expect(gateway.exitCode() ?? 0).to.equal(0);
      expect(gateway.models.tableDate()).to.equal(SHIPPED.date);
    } finally {
      await gateway.stop();
      proxy.close();
    }
  });
});
