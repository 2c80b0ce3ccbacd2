import http from 'node:http';
import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { pluginFile } from '../support/plugins/plugin-file.ts';

const PAGE = `api.route({ method: 'GET', path: '/Page', summary: 'x', auth: 'none', responses: { 200: 'x' }, handler(ctx) { ctx.body = {}; } });
  api.route({ method: 'GET', path: '/v1/open', summary: 'x', auth: 'none', responses: { 200: 'x' }, handler(ctx) { ctx.body = {}; } });`;

interface Reply {
  readonly status: number;
  /** A number in Google’s format. */
  readonly code: string | number;
  readonly message: string;
}

describe('the path of a request to a gateway', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway(
      {
        policies: { metrics: { auth: 'none' }, page: { plugin: './page.mjs' } },
        agents: { medical: { model: 'echo/echo', country: 'AU' } },
      },
      { files: { 'page.mjs': pluginFile({ name: 'page', setup: PAGE }) } },
    );
  });
  after(() => gateway?.stop());

  /** Sends the path unchanged, which `fetch` does not. */
  function send(method: string, path: string, headers: http.OutgoingHttpHeaders = {}): Promise<Reply> {
    const { hostname, port } = new URL(gateway.url);
    const all = { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json', ...headers };
    return new Promise((resolve, reject) => {
      const request = http.request({ hostname, port, method, path, headers: all }, async (response) => {
        let text = '';
        for await (const part of response.setEncoding('utf8')) text += part;
        const isJson = response.headers['content-type']?.startsWith('application/json') === true;
        const { error } = (isJson ? JSON.parse(text) : {}) as { error?: { code?: string | number; message: string } };
        resolve({ status: response.statusCode ?? 0, code: error?.code ?? '', message: error?.message ?? '' });
      });
      request.on('error', reject).end();
    });
  }

  for (const [path, right] of [
    ['/METRICS', '/metrics'],
    ['/metrics/', '/metrics'],
    ['//metrics', '/metrics'],
    ['//METRICS//', '/metrics'],
    ['/page', '/Page'],
    ['/livez/', '/livez'],
    ['/Docs', '/docs'],
    ['/api/core/Agent/medical/', '/api/core/agent/medical'],
    ['//v1/open', '/v1/open'],
    ['/V1/models', '/v1/models'],
    ['/v1/Models/gpt-5', '/v1/models/{id}'],
    ['/API/core/echo/models', '/api/core/{provider}/models'],
  ] as const)
    it(`E36: ${path} reaches no route, and the correct path is suggested`, async () => {
      const { status, code, message } = await send('GET', path);
      expect([status, code]).to.deep.equal([404, 'unknown_url']);
      expect(message).to.include(`Did you mean ${right}?`);
    });

  for (const path of [
    ...['/API/core/admin/keys', '/api/core/admin/keys/', '//api/core/admin/keys', '/api//core/admin/targets'],
    ...['/api/core/Admin/targets', '/api/core/%61dmin/keys', '/api/core/admin%2Fkeys', '/%6detrics', '/metrics%3a'],
    ...['/./metrics', '/api/core/admin/Console', '/x/api/core/admin/keys', '/v1/api/core/admin/targets'],
  ])
    it(`E36: ${path} reaches no route, and suggests no route of operators`, async () => {
      for (const method of ['GET', 'POST', 'PUT']) {
        const { status, message } = await send(method, path);
        expect(status, method).to.equal(404);
        expect(message, method).to.include('Unknown request URL').and.not.include('Did you mean');
      }
    });

  for (const path of ['/metrics#', '/metrics#x', '/metrics#?x', '/api\\core\\admin\\targets#', '/api\\core', '/x\\y?z'])
    it(`E36: ${path}, which proxies and URL parsers read differently, is 400`, async () => {
      const { status, code } = await send('GET', path);
      expect([status, code]).to.deep.equal([400, 'invalid_request']);
    });

  it('E36: models are found with the slashes and colons of SDKs', async () => {
    for (const path of [
      '//v1/models',
      '/v1/models/',
      '//api/core/echo//v1/models/',
      '/v1/models/echo/echo/',
      '/v1/models?a=#\\',
    ])
      expect((await send('GET', path)).status, path).to.equal(200);
    for (const path of ['//v1//chat/completions/', '/v1beta//models/echo%2Fecho%3AcountTokens', '/v1/embeddings/'])
      expect((await send('POST', path)).status, path).to.equal(400);
  });

  it('E36: a request to a monitor’s route spelled another way is in the log', async () => {
    await send('GET', '//metrics', { 'x-request-id': 'path-test-0001' });
    await send('GET', '/metrics', { 'x-request-id': 'path-test-0002' });
    const paths = gateway.logs.filter(({ msg }) => msg === 'request').map(({ path }) => path);
    expect(paths).to.include('//metrics').and.not.include('/metrics');
  });

  it('E36: a misspelled path of the medical agent returns the emergency number', async () => {
    expect((await send('POST', '/API/core/agent/Medical/')).message).to.include('000');
  });

  it('E36: a websocket is found by the same spellings as its route', async () => {
    const upgrade = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' };
    expect((await send('GET', '/V1/responses', upgrade)).status).to.equal(404);
    expect((await send('GET', '//v1/responses/', { ...upgrade, authorization: 'Bearer x' })).status).to.not.equal(404);
  });

  const V1 = "The client's base URL is {gateway}/v1, or {gateway} where the client adds /v1 itself.";
  const V1BETA = V1.replaceAll('/v1', '/v1beta');
  const OF_PROVIDER = "The client's base URL is {gateway}/api/core/{provider}.";
  for (const [method, path, right, base] of [
    ['POST', '/chat/completions', '/v1/chat/completions', V1],
    ['GET', '/chat/completions', '/v1/chat/completions', V1],
    ['POST', '/v1/v1/chat/completions', '/v1/chat/completions', V1],
    ['POST', '//v1//v1/chat/completions/', '/v1/chat/completions', V1],
    ['POST', '/v1/v1/messages', '/v1/messages', V1],
    ['POST', '/messages', '/v1/messages', V1],
    ['POST', '/messages/count_tokens', '/v1/messages/count_tokens', V1],
    ['POST', '/responses', '/v1/responses', V1],
    ['POST', '/embeddings', '/v1/embeddings', V1],
    ['GET', '/models', '/v1/models', V1],
    ['GET', '/api/v1/models/echo/echo', '/v1/models/{id}', V1],
    ['POST', '/v1/chat/completions/chat/completions', '/v1/chat/completions', V1],
    ['POST', '/v1/chat/completions/v1/messages', '/v1/messages', V1],
    ['POST', '/api/v1/chat/completions', '/v1/chat/completions', V1],
    ['POST', '/OpenAI/V1/Chat/Completions', '/v1/chat/completions', V1],
    ['POST', '/api/core/chat/completions', '/api/core/{provider}/chat/completions', OF_PROVIDER],
    ['POST', '/v1beta/v1beta/models/echo:generateContent', '/v1beta/models/{model}:generateContent', V1BETA],
    ['POST', '/api/core/echo/api/core/echo/chat/completions', '/api/core/{provider}/chat/completions', OF_PROVIDER],
    ['POST', '/api/core/echo/v1/v1/chat/completions', '/api/core/{provider}/chat/completions', OF_PROVIDER],
  ] as const)
    it(`E53: ${method} ${path} returns the base URL`, async () => {
      const { status, code, message } = await send(method, path);
      expect([status, code]).to.deep.equal([404, path.startsWith('/v1beta/') ? 404 : 'unknown_url']);
      expect(message)
        .to.match(/^Unknown request URL: /)
        .and.to.match(/\. Did you mean /);
      expect(message.split('. Did you mean ')[1]).to.equal(`${right}? ${base}`);
    });

  it('E53: a base URL that ends at the models returns it with the methods of that path', async () => {
    const { status, code, message } = await send('POST', '/v1/models/v1/chat/completions');
    expect([status, code]).to.deep.equal([405, 'method_not_allowed']);
    expect(message).to.include('Use GET, HEAD.').and.to.include(`Did you mean /v1/chat/completions? ${V1}`);
    expect((await send('DELETE', '/v1/chat/completions')).message).to.not.include('Did you mean');
  });

  it('E53: a path unlike any route, or too long to be a mistake, gets no suggestion', async () => {
    for (const path of ['/v1/unknown', '/nothing', '/v1', '/sk-proj-1234567890abcdef', `${'/v1'.repeat(30)}/models`])
      expect((await send('POST', path)).message, path)
        .to.include('Unknown request URL')
        .and.not.include('Did you mean');
  });
});
