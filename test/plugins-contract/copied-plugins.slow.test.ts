import { expect } from 'chai';
import { useTempFolder } from '../support/folders.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { COPIED, copyPlugins, entryOf } from '../support/plugins/plugin-copies.ts';
import { chatOf, readText } from '../support/plugins/plugin-file.ts';
import { eventually } from '../support/wait.ts';

describe('copies of built-in plugins outside the repository', () => {
  const folder = useTempFolder('copies');
  let gateway: TestGateway;
  let left: readonly string[];

  before(async () => {
    left = copyPlugins(
      COPIED.map(({ file }) => file),
      folder,
    );
    const config: Record<string, Record<string, unknown>> = {
      auth: {},
      policies: { overload: false },
      dialects: {},
      operations: {},
    };
    for (const { section, name, file } of COPIED) {
      const plugin = entryOf(folder, file);
      // The built-in plugin is disabled, so the copy responds.
      const isOn = section !== 'auth';
      Object.assign(config[section] ?? {}, { ...(isOn && { [name]: false }), [`my-${name}`]: { plugin } });
    }
    Object.assign(config['auth']?.['my-api-key'] as object, { bootstrap: true });
    Object.assign(config['policies']?.['my-metrics'] as object, { auth: 'none' });
    gateway = await startGateway({ ...config, plans: { tight: { rpm: 1000 } }, defaultPlan: 'tight' });
  });
  after(() => gateway.stop());

  it('import only public entries of the repository', () => {
    expect(left).to.deep.equal([]);
  });

  it('create a first key, and further keys by their command', async () => {
    expect(gateway.key).to.match(/^tg_/);
    const made = await gateway.command<{ api_key: string }>('keys', 'create', '--user', 'ann', '--name', 'hers');
    const response = await gateway.post('/v1/chat/completions', chatOf('by ann'), {
      authorization: `Bearer ${made.api_key}`,
    });
    expect(await readText(response)).to.equal('by ann');
    expect(
      (await gateway.post('/v1/chat/completions', chatOf('x'), { authorization: 'Bearer tg_no' })).status,
    ).to.equal(401);
  });

  for (const stream of [false, true])
    it(`respond to a chat ${stream ? 'with' : 'without'} a stream, on both routes`, async () => {
      expect(await readText(await gateway.post('/v1/chat/completions', chatOf('Hello there', { stream })))).to.equal(
        'Hello there',
      );
      const byPath = chatOf('Hello there', { stream, model: 'echo' });
      expect(await readText(await gateway.post('/api/core/echo/chat/completions', byPath))).to.equal('Hello there');
    });

  it('return an error in their format', async () => {
    const response = await gateway.post('/v1/chat/completions', chatOf('x', { temperature: 'hot' }));
    expect(response.status).to.equal(400);
    expect(await response.json()).to.have.nested.property('error.param', 'temperature');
  });

  it('respond to embeddings', async () => {
    const response = await gateway.post('/v1/embeddings', { model: 'echo/echo', input: 'x' });
    expect(await response.json()).to.have.nested.property('data[0].embedding');
  });

  it('count calls in /metrics', async () => {
    await eventually(async () => {
      const text = await (await gateway.get('/metrics')).text();
      expect(text).to.match(/tollgate_calls_total\{operation="chat",provider="echo".*\} [1-9]/);
      expect(text).to.match(/tollgate_http_requests_total\{route="POST \/v1\/chat\/completions",status="200"\} [1-9]/);
    });
  });

  it('charge calls', async () => {
    await gateway.command('accounts', 'credit', 'local', '5');
    const balance = (await (await gateway.get('/api/core/balance')).json()) as object;
    expect(balance).to.include({ user_id: 'local', balance: '5.00', plan: 'tight' });
  });

  it('generate speech', async function () {
    if (!COPIED.some(({ name }) => name === 'speech')) this.skip();
    const { paths } = (await (await gateway.get('/openapi.json')).json()) as { readonly paths: object };
    expect(Object.keys(paths)).to.include('/v1/audio/speech');
  });
});
