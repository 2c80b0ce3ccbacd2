import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect } from 'chai';
import WebSocket from 'ws';
import { loadConfig } from '../../config/load-config.ts';
import { openBrowser } from '../support/clients/browser.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { CLIENT_SECRET, startOpenIdPeople } from '../support/identity/openid-people.ts';
import { freePort } from '../support/processes/server-process.ts';

const CHAT = { model: 'echo/echo', messages: [{ role: 'user', content: 'Hello there' }] };
const ADMIN = '/api/core/admin';

describe('a gateway below a base path', () => {
  let gateway: TestGateway;
  let origin: string;
  before(async () => {
    gateway = await startGateway({ server: { port: 0, basePath: '/ai/llm', drainTimeout: '2s' } });
    ({ origin } = new URL(gateway.url));
  });
  after(() => gateway?.stop());

  const json = async (response: Response) => (await response.json()) as Readonly<Record<string, unknown>>;

  it('E67: uses it in all its own URLs, and has every route there', async () => {
    expect(gateway.url).to.equal(`${origin}/ai/llm`);
    for (const path of ['/livez', '/readyz', '/metrics', '/openapi.json', '/docs', '/docs/try.js', '/v1/models', '/'])
      expect((await gateway.get(path)).status, path).to.equal(200);
    expect(await json(await gateway.get('/'))).to.include({ docs: '/ai/llm/docs' });
    // Also without a trailing slash, and with a query.
    expect((await fetch(`${origin}/ai/llm`)).status).to.equal(200);
    expect((await fetch(`${origin}/ai/llm?x=1`)).status).to.equal(200);
  });

  it('E67: accepts calls in every format there, with and without a stream', async () => {
    const whole = await gateway.post('/v1/chat/completions', CHAT);
    expect(await whole.text()).to.include('Hello there');
    const streamed = await gateway.post('/v1/chat/completions', { ...CHAT, stream: true });
    expect(await streamed.text()).to.match(/data: \[DONE\]\n\n$/);
    const { choices } = await gateway
      .openai()
      .chat.completions.create({ ...CHAT, messages: [{ role: 'user', content: 'Hi' }] });
    expect(choices[0]?.message.content).to.include('Hi');
    expect((await gateway.post('/v1/messages', { ...CHAT, max_tokens: 9 })).status).to.equal(200);
    // The gateway's internal request for idempotency also uses the base path.
    for (const round of [1, 2]) {
      const kept = await gateway.post('/v1/chat/completions', CHAT, { 'idempotency-key': 'below-a-base-path' });
      expect([kept.status, await kept.text()], String(round)).to.satisfy(([status]: [number]) => status === 200);
    }
  });

  it('E67: accepts websockets only there', async () => {
    const open = async (base: string): Promise<unknown> => {
      const socket = new WebSocket(`${base.replace('http', 'ws')}/v1/responses`, {
        headers: { authorization: `Bearer ${gateway.key}` },
      });
      const result = await new Promise<string>((resolve) => {
        socket.once('error', ({ message }) => resolve(message));
        socket.once('open', () =>
          socket.send(JSON.stringify({ type: 'response.create', model: 'echo/echo', input: 'Hello there' })),
        );
        socket.on('message', (data) => {
          const { type } = JSON.parse(String(data)) as { type: string };
          if (type === 'response.completed' || type === 'error') resolve(type);
        });
      });
      socket.terminate();
      return result;
    };
    expect(await open(gateway.url)).to.equal('response.completed');
    expect(await open(origin)).to.include('404');
  });

  it('E67: has no routes elsewhere, and returns its path', async () => {
    for (const path of ['/v1/models', '/livez', '/ai/llmx/v1/models', '/ai', '/AI/LLM/livez', '/ai/llm/../../etc']) {
      const response = await fetch(origin + path, { headers: { authorization: `Bearer ${gateway.key}` } });
      expect(response.status, path).to.equal(404);
      const { error } = (await json(response)) as { error: { code: string; message: string; request_id: string } };
      expect([error.code, response.headers.get('x-request-id')]).to.deep.equal(['unknown_url', error.request_id]);
      expect(error.message).to.include('begin with /ai/llm').and.include('base URL is {gateway}/ai/llm/v1');
    }
    const { error } = (await json(await gateway.post('/chat/completions', CHAT))) as { error: { message: string } };
    expect(error.message).to.equal(
      "Unknown request URL: POST /ai/llm/chat/completions. Did you mean /ai/llm/v1/chat/completions? The client's base URL is {gateway}/ai/llm/v1, or {gateway}/ai/llm where the client adds /v1 itself.",
    );
  });

  it('E67: contains it in its documentation: servers, samples, the pages of the docs', async () => {
    const document = await json(await gateway.get('/openapi.json'));
    expect(document['servers']).to.deep.equal([{ url: '/ai/llm' }]);
    expect(JSON.stringify(document['paths'])).to.include(`curl ${gateway.url}/v1/models`);
    const page = await (await gateway.get('/docs')).text();
    // The page loads its assets by relative URLs.
    expect([...page.matchAll(/(?:src|href|spec-url)="([^"]*)"/g)].map(([, link]) => link)).to.satisfy(
      (links: readonly string[]) => links.every((link) => !link.startsWith('/')),
    );
  });

  it('E67: signs in at the console, whose cookie is limited to its routes', async () => {
    const { url } = await gateway.command<{ url: string }>('console', '--url', gateway.url);
    const [place, token] = url.split('#sign-in=');
    expect(place).to.equal(`${gateway.url}/console`);
    const headers = { origin, 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' };
    const signedIn = await fetch(`${gateway.url}${ADMIN}/console/link`, {
      ...{ method: 'POST', headers, body: JSON.stringify({ token }) },
    });
    const [set = ''] = signedIn.headers.getSetCookie();
    expect([signedIn.status, set]).to.satisfy(
      ([status, text]: [number, string]) => status === 204 && text.includes(`; Path=/ai/llm${ADMIN};`),
    );
    const cookie = set.split(';')[0] ?? '';
    const tried = await fetch(`${gateway.url}${ADMIN}/console/try/v1/chat/completions`, {
      ...{ method: 'POST', headers: { ...headers, cookie }, body: JSON.stringify(CHAT) },
    });
    expect(tried.status).to.equal(200);
  });

  it('E67: redirects people to their OpenID provider and back, with a separate cookie', async () => {
    const port = await freePort();
    const base = `http://127.0.0.1:${port}/ai/llm`;
    const redirectUris = [`${base}${ADMIN}/callback`];
    const people = await startOpenIdPeople({ people: { ann: { roles: ['operator'] } }, redirectUris });
    const openid = {
      issuer: people.issuer,
      clientId: 'gateway',
      clientSecret: CLIENT_SECRET,
      adminRoles: ['operator'],
    };
    const company = await startGateway({
      server: { port, basePath: '/ai/llm', drainTimeout: '2s' },
      auth: { 'api-key': { bootstrap: true }, openid: { ...openid, publicUrl: `http://127.0.0.1:${port}` } },
    });
    try {
      people.person = 'ann';
      const browser = openBrowser();
      const { status, url } = await browser.visit(`${base}${ADMIN}/login?return_to=/livez`);
      expect([status, url.href]).to.deep.equal([200, `${base}/livez`]);
      expect(await json(await browser.send(`${base}${ADMIN}/session`))).to.include({
        user_id: 'ann',
        credential: 'session',
      });
      expect(browser.set.at(-1)).to.include(`Path=/ai/llm${ADMIN};`);
      const refused = await browser.send(`${base}${ADMIN}/login?return_to=//evil.example`, {
        headers: { accept: 'text/html' },
      });
      expect(await refused.text()).to.include(`href="/ai/llm${ADMIN}/login"`);
    } finally {
      await company.stop();
      await people.stop();
    }
  });

  it('E67: ignores a changed base path until a restart', async () => {
    const file = path.join(gateway.folder, 'next.config.json');
    await writeFile(
      file,
      JSON.stringify({ store: 'sqlite:./data', server: { port: 0, basePath: '/new' }, providers: { echo: {} } }),
    );
    const next = await loadConfig({ cwd: gateway.folder, env: {}, configPath: file });
    await gateway.use(next);
    expect(await json(await gateway.get('/'))).to.include({ docs: '/ai/llm/docs' });
    expect((await fetch(`${origin}/new/livez`)).status).to.equal(404);
  });

  for (const [basePath, what] of [
    ['llm', 'no slash'],
    ['/llm/', 'a slash at the end'],
    ['/a//b', 'two slashes'],
    ['/a/../b', 'dots'],
    ['https://gateway.example/llm', 'a URL'],
    ['/a b', 'a blank'],
    ['/%6c', 'an escape'],
    ['', 'nothing'],
  ] as const)
    it(`E67: does not start with ${what}`, async () => {
      const failure = await startGateway({ server: { port: 0, basePath } }).then(
        async (started) => {
          await started.stop();
          return undefined;
        },
        (error: unknown) => String(error),
      );
      expect(failure)
        .to.include('server.basePath')
        .and.match(/must be a base path[\s\S]*Use \/ for none, or \/llm/);
    });
});
