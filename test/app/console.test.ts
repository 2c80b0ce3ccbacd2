import http from 'node:http';
import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { fixture } from '../support/speech/sound.ts';
import { completion, openAiVendor, tokenPrices, usageOf } from '../support/vendors/openai-vendor.ts';
import { respondWith, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';

const ADMIN = '/api/core/admin';
const CHAT = { model: 'echo/echo', messages: [{ role: 'user', content: 'Hello there' }] };

interface Shown {
  readonly data: readonly Readonly<Record<string, unknown>>[];
  readonly configuration: Readonly<Record<string, unknown>>;
}

describe('the console', () => {
  let gateway: TestGateway;
  let adminKey: string;

  before(async () => {
    gateway = await startGateway({});
    ({ api_key: adminKey } = await gateway.command<{ api_key: string }>('keys', 'create', '--admin', '--user', 'ann'));
  });
  after(() => gateway.stop());

  const own = (): Record<string, string> => ({ origin: gateway.url, 'sec-fetch-site': 'same-origin' });

  const sendRequest = (
    method: string,
    path: string,
    headers: Record<string, string> = {},
    body?: unknown,
  ): Promise<Response> =>
    fetch(gateway.url + path, {
      method,
      headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });

  const makeToken = async (): Promise<string> => {
    const { url } = await gateway.command<{ url: string }>('console', '--user', 'zoe');
    return /^http:\/\/127\.0\.0\.1:\d+\/console#sign-in=([\w-]{43})$/.exec(url)?.[1] ?? '';
  };

  const cookieOf = (response: Response): string => response.headers.getSetCookie()[0]?.split(';')[0] ?? '';

  const byLink = async (): Promise<string> =>
    cookieOf(await sendRequest('POST', `${ADMIN}/console/link`, own(), { token: await makeToken() }));
  const byKey = async (key = adminKey): Promise<string> =>
    cookieOf(await sendRequest('POST', `${ADMIN}/console/session`, { ...own(), authorization: `Bearer ${key}` }));

  const codeOf = async (response: Response): Promise<unknown> =>
    ((await response.json()) as { error: { code: string } }).error.code;

  it('accepts a link once, and returns the identity', async () => {
    const token = await makeToken();
    const first = await sendRequest('POST', `${ADMIN}/console/link`, own(), { token });
    expect(first.status).to.equal(204);
    const state = await (await sendRequest('GET', `${ADMIN}/console`, { cookie: cookieOf(first) })).json();
    expect(state).to.include({ user_id: 'zoe', key_id: null });
    const second = await sendRequest('POST', `${ADMIN}/console/link`, own(), { token });
    expect([second.status, await codeOf(second)]).to.deep.equal([401, 'invalid_token']);
    expect(second.headers.getSetCookie()).to.deep.equal([]);
  });

  it('accepts a link only once if it is used twice concurrently', async () => {
    const token = await makeToken();
    const both = await Promise.all([1, 2, 3].map(() => sendRequest('POST', `${ADMIN}/console/link`, own(), { token })));
    expect(both.map(({ status }) => status).sort()).to.deep.equal([204, 401, 401]);
  });

  it('accepts no link through a proxy, under another host name, or from another page', async () => {
    for (const headers of [
      { ...own(), 'x-forwarded-for': '203.0.113.7' },
      { ...own(), forwarded: 'for=203.0.113.7' },
      { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' },
      { origin: 'https://evil.example' },
      { origin: 'null' },
      {},
    ]) {
      const response = await sendRequest('POST', `${ADMIN}/console/link`, headers, { token: await makeToken() });
      expect([JSON.stringify(headers), response.status]).to.deep.equal([JSON.stringify(headers), 403]);
    }
    expect(await statusUnder('evil.example', await makeToken())).to.equal(403);
    expect(await statusUnder(new URL(gateway.url).host, await makeToken())).to.equal(204);
  });

  /** `fetch` cannot set another Host header. */
  const statusUnder = (host: string, token: string): Promise<number> =>
    new Promise((resolve, reject) => {
      const headers = { host, origin: `http://${host}`, 'content-type': 'application/json' };
      http
        .request(`${gateway.url}${ADMIN}/console/link`, { method: 'POST', headers }, (response) => {
          response.resume();
          resolve(response.statusCode ?? 0);
        })
        .on('error', reject)
        .end(JSON.stringify({ token }));
    });

  it('accepts an admin key, and no other', async () => {
    const state = await (await sendRequest('GET', `${ADMIN}/console`, { cookie: await byKey() })).json();
    expect(state).to.include({ user_id: 'ann' });
    for (const key of [gateway.key, 'tg_nothing']) {
      const refused = await sendRequest('POST', `${ADMIN}/console/session`, {
        ...own(),
        authorization: `Bearer ${key}`,
      });
      expect(refused.status).to.be.oneOf([401, 403]);
      expect(refused.headers.getSetCookie()).to.deep.equal([]);
    }
    const foreign = { origin: 'https://evil.example', authorization: `Bearer ${adminKey}` };
    expect((await sendRequest('POST', `${ADMIN}/console/session`, foreign)).status).to.equal(403);
  });

  it('sets a cookie that scripts cannot read, other sites cannot send, and other paths do not receive', async () => {
    const response = await sendRequest('POST', `${ADMIN}/console/link`, own(), { token: await makeToken() });
    const [cookie = '', ...others] = response.headers.getSetCookie();
    expect(others).to.deep.equal([]);
    expect(cookie).to.match(
      /^tollgate-console=[\w-]{43}; Path=\/api\/core\/admin; HttpOnly; SameSite=Strict; Max-Age=28800$/,
    );
  });

  it('opens the routes of operators and nothing else', async () => {
    const cookie = await byLink();
    expect((await sendRequest('GET', `${ADMIN}/targets`, { cookie })).status).to.equal(200);
    expect((await sendRequest('GET', `${ADMIN}/calls?limit=1`, { cookie })).status).to.equal(200);
    expect((await sendRequest('POST', '/v1/chat/completions', { cookie, ...own() }, CHAT)).status).to.equal(401);
    expect((await sendRequest('GET', '/v1/models', { cookie })).status).to.equal(401);
    expect((await sendRequest('GET', '/api/core/api_keys', { cookie })).status).to.not.equal(200);
  });

  it('accepts changes only from a page of the gateway', async () => {
    const cookie = await byLink();
    const block = (headers: Record<string, string>) =>
      sendRequest('POST', `${ADMIN}/users/missing/block`, { cookie, ...headers });
    expect((await block({})).status).to.equal(403);
    expect((await block({ origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' })).status).to.equal(403);
    expect((await block({ origin: gateway.url, 'sec-fetch-site': 'same-site' })).status).to.equal(403);
    expect((await block(own())).status).to.equal(200);
    const audit = (await (await sendRequest('GET', `${ADMIN}/audit?subject=missing`, { cookie })).json()) as {
      data: readonly { actor: object }[];
    };
    expect(audit.data.map(({ actor }) => actor)).to.deep.equal([
      { via: 'console', user_id: 'zoe', key_id: null, address: '127.0.0.1' },
    ]);
  });

  it('ends the session at sign-out, at a block of the person, and at the end of its key @slow', async () => {
    const out = await byLink();
    expect((await sendRequest('POST', `${ADMIN}/console/sign-out`, { cookie: out, ...own() })).status).to.equal(204);
    expect(await codeOf(await sendRequest('GET', `${ADMIN}/targets`, { cookie: out }))).to.equal('invalid_token');

    const made = await gateway.command<{ api_key: string }>('keys', 'create', '--admin', '--user', 'eve');
    const revoked = await byKey(made.api_key);
    await gateway.command('keys', 'revoke', made.api_key);
    await eventually(async () =>
      expect(await codeOf(await sendRequest('GET', `${ADMIN}/targets`, { cookie: revoked }))).to.equal('invalid_token'),
    );

    const blocked = await byLink();
    const operator = { authorization: `Bearer ${adminKey}` };
    await sendRequest('POST', `${ADMIN}/users/zoe/block`, operator);
    try {
      const response = await sendRequest('GET', `${ADMIN}/targets`, { cookie: blocked });
      expect(response.status).to.equal(403);
    } finally {
      await sendRequest('POST', `${ADMIN}/users/zoe/unblock`, operator);
    }
  });

  it('charges a chat in the playground as a call of the person', async () => {
    const cookie = await byLink();
    const whole = await sendRequest('POST', `${ADMIN}/console/chat`, { cookie, ...own() }, CHAT);
    expect(whole.status).to.equal(200);
    const streamed = await sendRequest(
      'POST',
      `${ADMIN}/console/chat`,
      { cookie, ...own() },
      { ...CHAT, stream: true },
    );
    const events = await streamed.text();
    expect(events)
      .to.include('there')
      .and.match(/event: done\ndata: \{.*"cost_usd":"0\.00"/);
    const { data } = (await (
      await sendRequest('GET', `${ADMIN}/calls?user=zoe&session=console`, { cookie })
    ).json()) as {
      data: readonly { user_id: string; account: string; key: string; outcome: string }[];
    };
    expect(data.map(({ user_id, account, key, outcome }) => [user_id, account, key, outcome])).to.deep.equal([
      ['zoe', 'zoe', '-', 'ok'],
      ['zoe', 'zoe', '-', 'ok'],
    ]);
    // The log line and the record are found by the same trace id.
    const traced = { cookie, ...own(), traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' };
    const id = (await sendRequest('POST', `${ADMIN}/console/chat`, traced, CHAT)).headers.get('x-request-id');
    const record = (await (await sendRequest('GET', `${ADMIN}/calls?request=${id}`, { cookie })).json()) as Shown;
    expect(record.data.map(({ trace_id }) => trace_id)).to.deep.equal(['4bf92f3577b34da6a3ce929d0e0e4736']);
  });

  it('sends requests of /docs as the person, in every format, with the rights of a key of that person', async () => {
    const cookie = await byLink();
    const send = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
      sendRequest(method, `${ADMIN}/console/try${path}`, { cookie, ...own(), ...headers }, body);
    const whole = await send('POST', '/v1/chat/completions', CHAT);
    expect([whole.status, whole.headers.get('x-tollgate-provider')]).to.deep.equal([200, 'echo']);
    expect(await whole.text()).to.include('Hello there');
    const streamed = await send('POST', '/v1/chat/completions', { ...CHAT, stream: true });
    expect(streamed.headers.get('content-type')).to.match(/^text\/event-stream/);
    expect(await streamed.text()).to.match(/data: \[DONE\]\n\n$/);
    const messages = { model: 'echo/echo', max_tokens: 9, messages: CHAT.messages };
    expect(await (await send('POST', '/v1/messages', messages)).text()).to.include('"type":"message"');
    const listed = (await (await send('GET', '/v1/models?x=1')).json()) as Shown;
    expect(listed.data.map(({ id }) => id)).to.include('echo/echo');
    const { data } = (await (await sendRequest('GET', `${ADMIN}/calls?user=zoe&limit=3`, { cookie })).json()) as Shown;
    expect(data.map(({ user_id, key, outcome }) => [user_id, key, outcome])).to.deep.equal(
      Array.from({ length: 3 }, () => ['zoe', '-', 'ok']),
    );

    // Errors are those of the proxied route; its limits and formats apply.
    const wrong = await send('POST', '/v1/messages', { model: 'echo/echo' });
    expect([wrong.status, ((await wrong.json()) as { type: string }).type]).to.deep.equal([400, 'error']);
    expect((await send('GET', '/nowhere')).status).to.equal(404);
    for (const path of [`${ADMIN}/keys`, `${ADMIN}/console/try/v1/models`, '/%2e%2e/x'])
      expect((await send('GET', path)).status, path).to.be.oneOf([400, 404]);
    // Rejects another site's page, an anonymous caller, and a role that may not call models.
    expect((await send('POST', '/v1/chat/completions', CHAT, { origin: 'https://evil.example' })).status).to.equal(403);
    expect((await sendRequest('POST', `${ADMIN}/console/try/v1/chat/completions`, own(), CHAT)).status).to.equal(401);
    const { api_key: viewer } = await gateway.command<{ api_key: string }>(
      ...['keys', 'create', '--user', 'vera', '--role', 'viewer'],
    );
    const refused = await send('POST', '/v1/chat/completions', CHAT, { cookie: await byKey(viewer) });
    expect([refused.status, await codeOf(refused)]).to.deep.equal([403, 'permission_denied']);
  });

  it('cancels a proxied request when the person stops waiting for it @slow', async () => {
    const vendor = await startScriptedUpstream((wire) => wire.hang());
    const other = await startGateway({ providers: { north: openAiVendor(vendor, { models: ['m'] }) } });
    try {
      const { api_key: key } = await other.command<{ api_key: string }>('keys', 'create', '--admin', '--user', 'ann');
      const origin = { origin: other.url, 'sec-fetch-site': 'same-origin' };
      const session = await fetch(`${other.url}${ADMIN}/console/session`, {
        ...{ method: 'POST', headers: { ...origin, authorization: `Bearer ${key}` } },
      });
      const headers = { ...origin, cookie: cookieOf(session) };
      const left = new AbortController();
      const waiting = fetch(`${other.url}${ADMIN}/console/try/v1/chat/completions`, {
        ...{ method: 'POST', signal: left.signal },
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify({ ...CHAT, model: 'north/m' }),
      }).catch(() => undefined);
      const sent = await vendor.request(0);
      left.abort();
      await waiting;
      await sent.closed;
    } finally {
      await other.stop();
      await vendor.close();
    }
  });

  it('generates speech and calls a team as the person, who is charged and has only the rights of the session', async () => {
    const vendor = await startScriptedUpstream((wire) => {
      if (wire.request.path.endsWith('/audio/speech'))
        return wire.send(respondWith(200, fixture('hi.mp3'), { 'content-type': 'audio/mpeg' }));
      const isRouter = wire.request.body.toString().includes('"name":"assignments"');
      const said = JSON.stringify(isRouter ? { agents: [] } : { answer: 'Left.' });
      return wire.send(respondWith(200, completion(said, { usage: usageOf(200, 50) })));
    });
    const own = await startGateway({
      providers: { north: openAiVendor(vendor, { models: ['m'], prices: tokenPrices(3, 15) }) },
      tts: { openai: { apiKey: 'k', baseUrl: vendor.url, models: ['tts-1'], prices: { '*': { characters: 1000 } } } },
      agents: { team: { model: 'north/m' } },
    });
    try {
      const signIn = async (role: string): Promise<Record<string, string>> => {
        const words = ['keys', 'create', '--user', role, '--role', role];
        const { api_key: key } = await own.command<{ api_key: string }>(...words);
        const origin = { origin: own.url, 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' };
        const response = await fetch(`${own.url}${ADMIN}/console/session`, {
          method: 'POST',
          headers: { ...origin, authorization: `Bearer ${key}` },
        });
        return { ...origin, cookie: cookieOf(response) };
      };
      const send = (headers: Record<string, string>, path: string, body: object): Promise<Response> =>
        fetch(own.url + ADMIN + path, { method: 'POST', headers, body: JSON.stringify(body) });
      const [operator, viewer] = [await signIn('operator'), await signIn('viewer')];
      const sound = await send(operator, '/speech/openai', { text: 'Hi.' });
      expect([sound.status, sound.headers.get('content-type')]).to.deep.equal([200, 'audio/mpeg']);
      expect(sound.headers.get('x-tollgate-cost-usd')).to.equal('0.003');
      expect((await sound.arrayBuffer()).byteLength).to.equal(fixture('hi.mp3').length);
      const reply = await send(operator, '/agent', { message: 'Where to?', session: null });
      expect([reply.status, ((await reply.json()) as { content: unknown }).content]).to.deep.equal([
        200,
        { answer: 'Left.' },
      ]);
      for (const path of ['/speech', '/speech/openai/voices', '/agent'])
        expect((await fetch(own.url + ADMIN + path, { headers: operator })).status, path).to.equal(200);

      const { api_key: admin } = await own.command<{ api_key: string }>('keys', 'create', '--admin', '--user', 'ann');
      const found = await fetch(`${own.url}${ADMIN}/calls?session=console`, {
        headers: { authorization: `Bearer ${admin}` },
      });
      const { data } = (await found.json()) as Shown;
      expect(data.map(({ operation, user_id, outcome }) => [operation, user_id, outcome])).to.have.deep.members([
        ['speech', 'operator', 'ok'],
        ['chat', 'operator', 'ok'],
        ['chat', 'operator', 'ok'],
      ]);

      // A role without the scope, and another site's page with the cookie.
      for (const headers of [viewer, { ...operator, origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }]) {
        expect((await send(headers, '/speech/openai', { text: 'Hi.' })).status).to.equal(403);
        expect((await send(headers, '/agent', { message: 'Hi.' })).status).to.equal(403);
      }
    } finally {
      await own.stop();
      await vendor.close();
    }
  });

  it('writes no token and no cookie to the log', async () => {
    const token = await makeToken();
    const cookie = cookieOf(await sendRequest('POST', `${ADMIN}/console/link`, own(), { token }));
    await sendRequest('GET', `${ADMIN}/targets`, { cookie });
    expect(gateway.logText()).not.to.include(token);
    expect(gateway.logText()).not.to.include(cookie.split('=')[1]);
  });

  it('has routes for all data on its pages', async () => {
    const operator = { authorization: `Bearer ${adminKey}` };
    const read = async (path: string) => (await (await sendRequest('GET', ADMIN + path, operator)).json()) as Shown;
    const { data: models } = await read('/catalog?limit=1');
    expect(models).to.deep.equal([
      {
        ...{ id: 'echo/echo', provider: 'echo', is_callable: true, targets: null },
        ...{ context_window: models[0]?.['context_window'], max_output: models[0]?.['max_output'] },
        ...{
          price: { input: 0, output: 0 },
          input_modalities: null,
          output_modalities: null,
          problem: null,
          shutdown: null,
        },
      },
    ]);
    const { data: plugins } = await read('/plugins');
    const own = plugins.find(({ name }) => name === 'console');
    expect(own).to.deep.include({
      plugin: 'console',
      kind: 'policy',
      is_builtin: true,
      hooks: ['authenticate (post)'],
    });
    expect(own?.['routes']).to.include('GET /console');
    expect(own?.['commands']).to.deep.equal(['console']);
    expect((await read('/configuration')).configuration['providers']).to.deep.include({ echo: {} });
  });

  it('sends no secret of the configuration to the page', async () => {
    const secret = 'sk-test-0123456789-never-shown';
    const other = await startGateway({
      providers: {
        vendor: {
          plugin: 'openai-compatible',
          baseUrl: 'http://127.0.0.1:9',
          apiKey: secret,
          models: ['m'],
        },
      },
    });
    try {
      const { api_key: key } = await other.command<{ api_key: string }>('keys', 'create', '--admin', '--user', 'ann');
      for (const path of ['configuration', 'plugins', 'catalog', 'keys']) {
        const response = await fetch(`${other.url}${ADMIN}/${path}`, { headers: { authorization: `Bearer ${key}` } });
        expect([path, response.status]).to.deep.equal([path, 200]);
        expect(await response.text()).not.to.include(secret);
      }
    } finally {
      await other.stop();
    }
  });

  it('is off if the configuration disables the console', async () => {
    const without = await startGateway({ policies: { console: false } });
    try {
      expect((await fetch(`${without.url}/console`)).status).to.equal(404);
      expect((await fetch(`${without.url}${ADMIN}/console`)).status).to.equal(404);
    } finally {
      await without.stop();
    }
  });
});
