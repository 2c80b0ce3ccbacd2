import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { until } from '../support/wait.ts';

const chat = (content: string, rest: object = {}) => ({
  model: 'echo/echo',
  messages: [{ role: 'user', content }],
  ...rest,
});

describe('the operators’ view', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway();
  });
  after(() => gateway.stop());

  const lineOf = async (id: string) => {
    await until('the line is there', () => gateway.logs.some((line) => line['request_id'] === id));
    return gateway.logs.filter((line) => line['request_id'] === id);
  };

  it('has one access-log line per request, with its outcome and no text of it', async () => {
    const response = await gateway.post('/v1/chat/completions', chat('a very private prompt'), {
      'x-request-id': 'log-test-0001',
    });
    await response.text();
    const lines = await lineOf('log-test-0001');
    expect(lines).to.have.length(1);
    expect(lines[0]).to.include({
      method: 'POST',
      route: 'POST /v1/chat/completions',
      status: 200,
      user: 'local',
      operation: 'chat',
      provider: 'echo',
      model: 'echo',
      outcome: 'ok',
      attempts: 1,
      stream: false,
      tokens_in: 4,
      tokens_out: 4,
      cost_usd: '0.00',
    });
    expect(lines[0]).to.have.property('dur_ms').that.is.a('number');
    expect(gateway.logText()).not.to.include('private').and.not.to.include(gateway.key);
  });

  it('has a line for a stream too, after its last byte', async () => {
    await (
      await gateway.post('/v1/chat/completions', chat('one two three', { stream: true }), {
        'x-request-id': 'log-test-0002',
      })
    ).text();
    expect((await lineOf('log-test-0002'))[0]).to.include({ status: 200, stream: true, outcome: 'ok', tokens_out: 3 });
  });

  it('has a line for a refusal, with its code', async () => {
    await gateway.post('/v1/chat/completions', chat('x'), {
      authorization: 'Bearer tg_wrong',
      'x-request-id': 'log-test-0003',
    });
    expect((await lineOf('log-test-0003'))[0]).to.include({ status: 401, error: 'invalid_api_key' });
  });

  it('has no line for health checks', async () => {
    await gateway.get('/livez', { 'x-request-id': 'log-test-0004' });
    await (await gateway.post('/v1/chat/completions', chat('x'), { 'x-request-id': 'log-test-0005' })).text();
    await lineOf('log-test-0005');
    expect(gateway.logs.some((line) => line['request_id'] === 'log-test-0004')).to.equal(false);
  });

  it('D47 has no line for metrics at a custom path, nor for a plugin’s route for monitors', async () => {
    const probe = `api.route({ method: 'GET', path: '/alive', summary: 'x', auth: 'none', isProbe: true, responses: { 200: 'x' }, handler(ctx) { ctx.body = {}; } })`;
    const file = `export default { name: 'probe', kind: 'policy', apiVersion: 1, setup(api) { ${probe}; } };`;
    const config = { policies: { metrics: { path: '/internal/numbers', auth: 'none' } }, plugins: ['./probe.mjs'] };
    const own = await startGateway(config, { files: { 'probe.mjs': file } });
    try {
      for (const path of ['/internal/numbers', '/alive', '/metrics', '/livez']) await (await own.get(path)).text();
      await until('the line is there', () => own.logs.some(({ path }) => path === '/metrics'));
      const requests = own.logs.filter(({ msg }) => msg === 'request').map(({ route }) => route);
      expect(requests).to.deep.equal(['none']);
    } finally {
      await own.stop();
    }
  });

  it('has metrics with bounded labels and no user in them', async () => {
    const text = await (await fetch(`${gateway.url}/metrics`)).text();
    expect(text).to.match(
      /tollgate_calls_total\{operation="chat",provider="echo",model="echo",status="ok",error="none",stream="false"\} \d+/,
    );
    expect(text).to.match(/tollgate_tokens_total\{provider="echo",model="echo",type="input"\} \d+/);
    expect(text).to.match(/tollgate_http_requests_total\{route="POST \/v1\/chat\/completions",status="401"\} 1/);
    expect(text).to.include('tollgate_build_info{version="');
    expect(text).not.to.include('local"');
  });

  it('has no metric that grows with made-up paths', async () => {
    await Promise.all(Array.from({ length: 20 }, (_, at) => gateway.get(`/made/up/${at}`)));
    const text = await (await fetch(`${gateway.url}/metrics`)).text();
    expect(text.match(/tollgate_http_requests_total\{route="none",status="404"\}/g)).to.have.length(1);
  });

  it('includes liveness and readiness, without a credential', async () => {
    expect(await (await fetch(`${gateway.url}/livez`)).json()).to.deep.equal({ status: 'alive' });
    for (const path of ['/readyz', '/healthz'])
      expect(await (await fetch(gateway.url + path)).json()).to.deep.equal({
        status: 'ready',
        checks: { store: 'ok' },
      });
  });

  it('includes the API as a document of every route, and as a page without external resources', async () => {
    const document = (await (await fetch(`${gateway.url}/openapi.json`)).json()) as {
      openapi: string;
      paths: Record<string, object>;
    };
    expect(document.openapi).to.equal('3.1.0');
    const paths = [
      '/v1/chat/completions',
      '/v1/embeddings',
      '/v1/models',
      '/api/core/{provider}/chat/completions',
      '/api/core/{provider}/models/{id}',
      '/api/core/api_keys',
      '/api/core/balance',
      '/livez',
      '/metrics',
    ];
    expect(Object.keys(document.paths)).to.include.members(paths);
    // The bound port, not the 0 of the configuration.
    expect(JSON.stringify(document.paths)).to.include(`curl ${gateway.url}/v1/models`).and.not.include('127.0.0.1:0');
    const page = await fetch(`${gateway.url}/docs`);
    expect(page.headers.get('content-security-policy')).to.include("default-src 'none'");
    expect(await page.text()).not.to.match(/https?:\/\//);
    const script = await fetch(`${gateway.url}/docs/viewer.js`);
    expect(script.headers.get('content-type')).to.equal('text/javascript; charset=utf-8');
    expect((await script.arrayBuffer()).byteLength).to.be.greaterThan(100_000);
  });
});

describe('a store that responds while this process is busy (E55)', () => {
  /** Blocks the event loop until after the deadline, while the store's response waits to be read. */
  const LATE = `
import { randomBytes } from 'node:crypto';
import { openMemory } from '${new URL('../../plugins/stores/memory/index.ts', import.meta.url).href}';
const pause = new Int32Array(new SharedArrayBuffer(4));
export default { name: 'late', kind: 'store', apiVersion: 1, setup(api) {
  api.store(async () => ({ ...(await openMemory()), health: () => {
    const done = new Promise((resolve) => randomBytes(8, () => resolve()));
    process.nextTick(() => Atomics.wait(pause, 0, 0, 1200));
    return done;
  } }));
} };
`;

  it('does not make the gateway unready @slow', async () => {
    const gateway = await startGateway({ store: { plugin: './late.mjs' } }, { files: { 'late.mjs': LATE } });
    try {
      const response = await fetch(`${gateway.url}/readyz`);
      expect(await response.json()).to.deep.equal({ status: 'ready', checks: { store: 'ok' } });
    } finally {
      await gateway.stop();
    }
  });
});
