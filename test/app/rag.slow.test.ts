import { mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect } from 'chai';
import { type ModelServer, startModelServer } from '../support/agents/model-server.ts';
import { makeFormerIndex } from '../support/agents/rag-index.ts';
import { useTempFolder } from '../support/folders.ts';
import { startGateway, type TestGateway, type TestGatewayOptions } from '../support/gateways/gateway.ts';
import { until } from '../support/wait.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers of every shape
type Loose = any;

const REFUNDS = '# Refunds\n\nMoney is returned within 14 days.\n\n## Abroad\n\nCustoms duty is not returned.\n';
const PARKING = '# Parking\n\nVisitors park behind the bakery, for two hours.\n';

describe('the knowledge base over HTTP', () => {
  const folder = useTempFolder('rag');
  let gateway: TestGateway | undefined;
  let vendor: ModelServer | undefined;
  let nth = 0;

  /** Creates a new folder of documents. */
  const write = async (files: Readonly<Record<string, string>>): Promise<string> => {
    nth += 1;
    const documents = path.join(folder, `documents-${nth}`);
    await mkdir(documents, { recursive: true });
    for (const [name, text] of Object.entries(files)) await writeFile(path.join(documents, name), text);
    return documents;
  };
  const start = async (
    rag: Record<string, unknown>,
    more: Record<string, unknown> = {},
    options?: TestGatewayOptions,
  ) => {
    gateway = await startGateway({ agents: { rag: { watch: '50ms', ...rag } }, ...more }, options);
    return gateway;
  };
  const look = async (query: string, at: TestGateway | undefined = gateway) => {
    const response = (await at?.get(`/api/core/rag${query}`)) as Response;
    return { status: response.status, body: (await response.json()) as Loose };
  };
  /** Repeats the search until its result satisfies the condition. */
  const lookUntil = async (query: string, what: string, satisfies: (body: Loose) => boolean, at?: TestGateway) => {
    let body: Loose;
    await until(what, async () => {
      ({ body } = await look(query, at));
      return satisfies(body);
    }).catch((error: Error) => {
      throw new Error(`${error.message}; the log:\n${(at ?? gateway)?.logText()}`);
    });
    return body;
  };
  const found = (body: Loose): boolean => body.data.length > 0;

  afterEach(async () => {
    await gateway?.stop();
    await vendor?.close();
    [gateway, vendor] = [undefined, undefined];
  });

  it('returns passages with all data for citations', async () => {
    await start({ folder: await write({ 'refunds.md': REFUNDS, 'parking.md': PARKING }) });
    // A score depends on all indexed files, so the other file must be indexed too.
    await lookUntil('?q=parking', 'one file is indexed', found);
    const body = await lookUntil('?q=customs+duty', 'both are', found);
    expect(body).to.include({ object: 'list', query: 'customs duty', mode: 'words' });
    expect(body.took_ms).to.be.a('number');
    expect(body.data[0]).to.deep.equal({
      id: 'refunds.md#1',
      score: 1,
      text: 'Customs duty is not returned.',
      source: 'refunds.md',
      title: 'Refunds',
      location: { headings: ['Refunds', 'Abroad'], line: 7 },
    });
  });

  it('requires an API key', async () => {
    const { url } = await start({ folder: await write({}) });
    const response = await fetch(`${url}/api/core/rag?q=x`);
    expect(response.status).to.equal(401);
    expect(((await response.json()) as Loose).error.code).to.equal('missing_api_key');
  });

  const BAD: readonly (readonly [query: string, param: string])[] = [
    ['', 'q'],
    ['?q=', 'q'],
    ['?q=%20%20', 'q'],
    [`?q=${'x'.repeat(2001)}`, 'q'],
    ['?q=a&q=', 'q'],
    ['?q=x&k=5&k=1000', 'k'],
    ['?q=x&k=0', 'k'],
    ['?q=x&k=51', 'k'],
    ['?q=x&k=-1', 'k'],
    ['?q=x&k=five', 'k'],
    ['?q=x&top_k=5', 'top_k'],
  ];
  it('returns 400 with the problem of the query', async () => {
    await start({ folder: await write({}) });
    for (const [query, param] of BAD) {
      const { status, body } = await look(query);
      expect([status, body.error?.code, body.error?.param], query).to.deep.equal([400, 'invalid_request', param]);
    }
  });

  it('returns k passages', async () => {
    const files = Object.fromEntries(Array.from({ length: 8 }, (_, at) => [`${at}.md`, `apples ${at}`]));
    await start({ folder: await write(files) });
    await lookUntil('?q=apples&k=50', 'all are indexed', (body) => body.data.length === 8);
    expect((await look('?q=apples')).body.data).to.have.length(5);
    expect((await look('?q=apples&k=2')).body.data).to.have.length(2);
    expect((await look('?q=apples&k=1000&k=2')).body.data, 'the value that was checked').to.have.length(2);
  });

  it('indexes changed, added and removed files while it runs', async () => {
    const documents = await write({ 'refunds.md': REFUNDS, 'parking.md': PARKING });
    await start({ folder: documents });
    await lookUntil('?q=bakery', 'the folder is indexed', found);
    await writeFile(path.join(documents, 'parking.md'), 'Visitors park next to the station.');
    await lookUntil('?q=station', 'the change is indexed', found);
    expect((await look('?q=bakery')).body.data).to.deep.equal([]);
    await rm(path.join(documents, 'parking.md'));
    await lookUntil('?q=station', 'the file is forgotten', (body) => !found(body));
  });

  it('logs a skipped file once, and serves the others', async () => {
    await start({ folder: await write({ 'broken.pdf': 'no', 'parking.md': PARKING }) });
    await lookUntil('?q=bakery', 'the folder is indexed', found);
    const warnings = () => gateway?.logs.filter((line) => line['source'] === 'broken.pdf') ?? [];
    await until('the file is named', () => warnings().length > 0);
    expect(warnings()).to.have.length(1);
    expect(warnings()[0]?.['reason']).to.match(/not a readable PDF/);
  });

  it('persists after a restart, without being rebuilt', async () => {
    const store = `sqlite:${path.join(folder, 'restart')}`;
    const documents = await write({ 'parking.md': PARKING });
    await start({ folder: documents }, { store });
    await lookUntil('?q=bakery', 'the folder is indexed', found);
    await gateway?.stop();
    const again = await startGateway({
      store,
      agents: { rag: { folder: documents, watch: '0s' } },
      auth: { 'api-key': { bootstrap: true } },
    });
    gateway = again;
    const { api_key } = await again.command<{ api_key: string }>('keys', 'create', '--user', 'u');
    const response = await again.get('/api/core/rag?q=bakery', { authorization: `Bearer ${api_key}` });
    expect(((await response.json()) as Loose).data).to.have.length(1);
    expect(again.logText()).not.to.include('knowledge base indexed');
  });

  it('is rebuilt, with a log entry, when another version created the index', async () => {
    const data = path.join(folder, 'older');
    await makeFormerIndex(data, 2);
    await start({ folder: await write({ 'parking.md': PARKING }) }, { store: `sqlite:${data}` });
    await lookUntil('?q=bakery', 'the folder is indexed', found);
    expect((await look('?q=indexed')).body.data).to.deep.equal([]);
    const lines = gateway?.logs.filter(({ msg }) => String(msg).includes('another version')) ?? [];
    expect(lines.map(({ index_version }) => index_version)).to.deep.equal([2]);
  });

  it('is shared by two gateways, of which one indexes', async () => {
    const store = `sqlite:${path.join(folder, 'shared')}`;
    const documents = await write({ 'refunds.md': REFUNDS });
    const first = await start({ folder: documents }, { store });
    await lookUntil('?q=customs', 'the first one answers', found, first);
    const second = await startGateway({ store, agents: { rag: { folder: documents, watch: '50ms' } } });
    try {
      const get = second.get;
      const parallel = { ...second, get: (where: string) => get(where, { authorization: `Bearer ${first.key}` }) };
      await writeFile(path.join(documents, 'parking.md'), PARKING);
      await lookUntil('?q=bakery', 'the first one has the new file', found, first);
      await lookUntil('?q=bakery', 'the second one has the new file', found, parallel);
      const changes = [first, second]
        .flatMap(({ logs }) => logs)
        .filter(({ msg }) => msg === 'knowledge base indexed')
        .map(({ changed }) => Number(changed));
      expect(changes.reduce((sum, changed) => sum + changed, 0)).to.be.at.most(2);
    } finally {
      await second.stop();
    }
  });

  it('searches by meaning too with a model of embeddings, on the account of the caller', async () => {
    await start({
      folder: await write({ 'refunds.md': REFUNDS, 'parking.md': PARKING }),
      embeddings: 'echo/echo-embedding',
    });
    const body = await lookUntil('?q=visitors+park', 'the passages are embedded', ({ mode }) => mode === 'hybrid');
    expect(body.data[0]).to.include({ source: 'parking.md', score: 1 });
    await lookUntil('?q=visitors', 'it is embedded', ({ mode }) => mode === 'hybrid');
    const usage = (await (await gateway?.get('/api/core/usage?group_by=model'))?.json()) as Loose;
    expect(JSON.stringify(usage.data)).to.include('echo-embedding');
    expect((await gateway?.command<Loose>('accounts', 'show', 'rag'))?.id).to.equal('rag');
  });

  it('searches by words alone when the embedding model is unavailable', async () => {
    const down = { plugin: 'openai-compatible', baseUrl: 'http://127.0.0.1:9/v1', apiKey: 'k', models: ['*'] };
    await start({ folder: await write({ 'parking.md': PARKING }), embeddings: 'down/m' }, { providers: { down } });
    const body = await lookUntil('?q=bakery', 'the words are indexed', found);
    expect(body.mode).to.equal('words');
  });

  it('offers passages to a team, as the tool rag', async () => {
    vendor = await startModelServer([
      { schema: 'assignments', reply: { agents: [{ agent: 'clerk', instruction: 'find the rule on customs duty' }] } },
      { schema: 'report', reply: { summary: 'Duty stays with the buyer [refunds.md#1].', confidence: 1 } },
      { schema: 'result', user: '[refunds.md#1]', reply: { answer: 'No [refunds.md#1].' } },
    ]);
    const scripted = { plugin: 'openai-compatible', baseUrl: vendor.url, apiKey: 'k', models: ['*'] };
    const clerk = { when: 'rules of the shop', instructions: 'Answer from the handbook.', tools: ['rag'] };
    const documents = await write({ 'refunds.md': REFUNDS });
    gateway = await startGateway({
      providers: { scripted, echo: {} },
      agents: {
        rag: { folder: documents, embeddings: 'echo/echo-embedding', watch: '50ms' },
        team: { model: 'scripted/m', agents: { clerk } },
      },
    });
    await lookUntil('?q=duty', 'the folder is embedded', ({ mode }) => mode === 'hybrid');
    const response = await gateway.post('/api/core/agent', { message: 'Is duty returned?' });
    const body = (await response.json()) as Loose;
    expect(response.status, JSON.stringify(body)).to.equal(200);
    expect(body.content).to.deep.equal({ answer: 'No [refunds.md#1].' });
    const shown = vendor.model.calls.map(({ request }) => JSON.stringify(request.messages)).join('\n');
    expect(shown).to.include('refunds.md#1').and.include('Customs duty is not returned.');
    expect(body.trace.map(({ agent }: Loose) => agent)).to.include('rag');
    expect(gateway.logText()).not.to.include('could not be embedded');
  });

  it('provides sources to the medical team', async () => {
    const draft = {
      urgency: 'routine',
      summary: 'It passes.',
      considerations: [],
      recommended_next_steps: ['Rest.'],
      questions: [],
      red_flags: [],
      source_numbers: [1],
      disclaimer: '',
    };
    vendor = await startModelServer([
      {
        schema: 'triage',
        reply: { urgency: 'routine', complexity: 'simple', specialties: ['general'], language: 'en', red_flags: [] },
      },
      { schema: 'opinion', reply: { opinion: 'A cold.', considerations: [] } },
      { schema: 'answer', reply: draft },
      { schema: 'verdict', reply: { verdict: 'pass', reasons: [] } },
    ]);
    const scripted = { plugin: 'openai-compatible', baseUrl: vendor.url, apiKey: 'k', models: ['*'] };
    const documents = await write({ 'colds.md': '# Colds\n\nA runny nose passes within ten days.' });
    gateway = await startGateway({
      providers: { scripted },
      agents: { rag: { folder: documents, watch: '50ms' }, medical: { model: 'scripted/m' } },
    });
    await lookUntil('?q=nose', 'the folder is indexed', found);
    const response = await gateway.post('/api/core/agent/medical', { message: 'I have a runny nose.' });
    await response.text();
    const shown = vendor.model.calls.map(({ request }) => JSON.stringify(request.messages)).join('\n');
    expect(shown).to.include('[1] Colds: A runny nose passes within ten days.');
  });

  it('is 503 feature_disabled when it is not configured, with instructions', async () => {
    gateway = await startGateway();
    const { status, body } = await look('?q=x');
    expect([status, body.error.code]).to.deep.equal([503, 'feature_disabled']);
    expect(body.error.message).to.include('agents: { rag: { folder');
  });

  it('can be replaced by another plugin with its route and name', async () => {
    const other = `export default { name: 'other', kind: 'agent', apiVersion: 1, setup(api) {
      const data = [{ id: 'x#0', score: 1, text: 'theirs', source: 'x', title: 'X', location: {} }];
      api.route({ method: 'GET', path: '/api/core/rag', summary: 'Theirs', auth: ['key'],
        query: { type: 'object', required: ['q'], properties: { q: { type: 'string' } } }, responses: { 200: 'Theirs' },
        handler(ctx) { ctx.body = { object: 'list', query: 'q', data, took_ms: 1 }; } });
      api.agent({ name: 'rag', when: '', async run() { return { summary: 'theirs', data }; } });
    } };`;
    vendor = await startModelServer([
      { schema: 'assignments', reply: { agents: [{ agent: 'clerk', instruction: 'look' }] } },
      { schema: 'report', user: 'theirs', reply: { summary: 'seen', confidence: 1 } },
      { schema: 'result', user: 'seen', reply: { answer: 'ok' } },
    ]);
    const scripted = { plugin: 'openai-compatible', baseUrl: vendor.url, apiKey: 'k', models: ['*'] };
    gateway = await startGateway(
      {
        providers: { scripted },
        agents: {
          rag: { plugin: './other.mjs' },
          team: { model: 'scripted/m', agents: { clerk: { when: 'all', instructions: 'x', tools: ['rag'] } } },
        },
      },
      { files: { 'other.mjs': other } },
    );
    expect((await look('?q=x')).body.data[0].text).to.equal('theirs');
    const response = await gateway.post('/api/core/agent', { message: 'look' });
    expect(((await response.json()) as Loose).content).to.deep.equal({ answer: 'ok' });
  });

  const REFUSED: readonly (readonly [folder: string, why: RegExp])[] = [
    ['./nothing-here', /is not a folder/],
    ['./tollgate.config.json', /is not a folder/],
    ['.', /to a separate folder/],
    ['..', /to a separate folder/],
    ['./data', /to a separate folder/],
  ];
  for (const [given, why] of REFUSED) {
    it(`cannot be built from the folder ${given}, and the gateway does not start`, async () => {
      const failure = await start({ folder: given }).catch((error: Error) => error);
      expect(String(failure)).to.match(why);
    });
  }
});
