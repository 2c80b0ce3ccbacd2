import { expect } from 'chai';
import OpenAI, { AzureOpenAI } from 'openai';
import { WebSocket } from 'ws';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { pluginFile } from '../support/plugins/plugin-file.ts';

const MESSAGES = [{ role: 'user' as const, content: 'one two three' }];
const CHAT = { model: 'echo/echo', messages: MESSAGES };
const OWN = `api.route({ method: 'POST', path: '/openai/own/chat', summary: 'x', auth: ['key'], responses: { 200: 'x' }, handler(ctx) { ctx.body = { own: true }; } });
  api.route({ method: 'GET', path: '/v1/own-page', summary: 'x', auth: 'none', responses: { 200: 'x' }, handler(ctx) { ctx.body = { page: true }; } });`;

describe('aliases of paths', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway(
      { models: { fast: 'echo/echo', other: 'echo/echo' }, policies: { own: { plugin: './own.mjs' } } },
      { files: { 'own.mjs': pluginFile({ name: 'own', setup: OWN }) } },
    );
  });
  after(() => gateway?.stop());

  /** Sends a request whose only credential is in this header. */
  const send = (path: string, body: unknown, header = 'authorization', more: Record<string, string> = {}) =>
    fetch(gateway.url + path, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        [header]: header === 'authorization' ? `Bearer ${gateway.key}` : gateway.key,
        ...more,
      },
      body: JSON.stringify(body),
    });

  const azure = (deployment?: string) =>
    new AzureOpenAI({
      ...{ endpoint: gateway.url, apiKey: gateway.key, apiVersion: '2025-04-01-preview', maxRetries: 0 },
      ...(deployment !== undefined && { deployment }),
    });

  for (const base of ['/openai/v1', '/v1beta/openai'])
    it(`E73: ${base} is /v1 for an SDK, with and without a stream and for lists`, async () => {
      const client = new OpenAI({ baseURL: gateway.url + base, apiKey: gateway.key, maxRetries: 0 });
      const { choices } = await client.chat.completions.create(CHAT);
      expect(choices[0]?.message.content).to.equal('one two three');
      let said = '';
      for await (const chunk of await client.chat.completions.create({ ...CHAT, stream: true }))
        said += chunk.choices[0]?.delta.content ?? '';
      expect(said).to.equal('one two three');
      expect((await client.responses.create({ model: 'fast', input: 'hello' })).output_text).to.equal('hello');
      expect((await client.models.list()).data.map(({ id }) => id)).to.include('fast');
      expect((await client.models.retrieve('echo/echo')).id).to.equal('echo/echo');
    });

  it('E73: Azure’s SDK calls a deployment, which is the model, with its `api-key`', async () => {
    const client = azure('fast');
    const { model, choices } = await client.chat.completions.create({ ...CHAT, model: 'what the body says' });
    expect([model, choices[0]?.message.content]).to.deep.equal(['echo', 'one two three']);
    let said = '';
    for await (const chunk of await client.chat.completions.create({ ...CHAT, stream: true }))
      said += chunk.choices[0]?.delta.content ?? '';
    expect(said).to.equal('one two three');
    expect((await client.completions.create({ model: '', prompt: 'say it' })).choices[0]?.text).to.equal('say it');
    const { data } = await azure('echo/echo-embedding').embeddings.create({ model: '', input: ['a', 'b'] });
    expect(data).to.have.length(2);
  });

  it('E73: without a deployment Azure’s SDK names the model in the path, with its slash', async () => {
    const client = azure();
    expect((await client.chat.completions.create(CHAT)).choices[0]?.message.content).to.equal('one two three');
    expect((await client.responses.create({ model: 'echo/echo', input: 'hello' })).output_text).to.equal('hello');
    const encoded = await send('/openai/deployments/echo%2Fecho/chat/completions?api-version=x', {
      messages: MESSAGES,
    });
    expect(encoded.status).to.equal(200);
  });

  it('E73: `api-key` is a credential only below these paths, and is compared with others', async () => {
    expect((await send('/openai/v1/chat/completions', CHAT, 'api-key')).status).to.equal(200);
    expect((await send('/v1/chat/completions', CHAT, 'api-key')).status).to.equal(401);
    const two = await send('/openai/v1/chat/completions', CHAT, 'api-key', {
      authorization: `Bearer tg_${'x'.repeat(40)}`,
    });
    expect(two.status).to.equal(200);
    expect((await send('/openai/deployments/fast/chat/completions', { messages: [] }, 'api-key')).status).to.equal(400);
  });

  it('E73: websockets below Azure’s path are opened by `api-key` too, and those elsewhere are not', async () => {
    const open = async (path: string, header = 'api-key') => {
      const socket = new WebSocket(gateway.url.replace('http', 'ws') + path, { headers: { [header]: gateway.key } });
      const text = await new Promise<string>((resolve) => {
        socket.on('error', ({ message }) => resolve(message));
        socket.on('open', () =>
          socket.send(JSON.stringify({ type: 'response.create', model: 'fast', input: 'hello' })),
        );
        socket.on('message', (bytes) => {
          const { type, response, error } = JSON.parse(String(bytes)) as Record<string, { readonly output: unknown }>;
          if (error) resolve(JSON.stringify(error));
          if (String(type) === 'response.completed') resolve(JSON.stringify(response?.output));
        });
      });
      socket.terminate();
      return text;
    };
    expect(await open('/openai/v1/responses')).to.include('"hello"');
    expect(await open('/openai/responses?api-version=2025-04-01-preview')).to.include('"hello"');
    expect(await open('/v1/responses')).to.include('401');
    expect(await open('/v1/responses', 'x-api-key')).to.include('"hello"');
  });

  it('E73: an unknown deployment is an unknown model', async () => {
    const response = await send('/openai/deployments/gone/chat/completions', { messages: MESSAGES });
    const { error } = (await response.json()) as { error: { code: string; message: string } };
    expect([response.status, error.code]).to.deep.equal([404, 'unsupported_model']);
    expect(error.message).to.include('gone');
  });

  it('E73: two deployments with one idempotency key are two requests, and each is answered once', async () => {
    const key = { 'idempotency-key': 'ways-in-1' };
    const idOf = async (deployment: string): Promise<string> => {
      const path = `/openai/deployments/${deployment}/chat/completions`;
      const response = await send(path, { messages: MESSAGES }, 'api-key', key);
      expect(response.status).to.equal(200);
      return ((await response.json()) as { id: string }).id;
    };
    const first = await idOf('fast');
    expect(await idOf('fast')).to.equal(first);
    expect(await idOf('other')).to.not.equal(first);
  });

  it('E72: Google’s names without `models/` are found, with and without a stream, and for counts', async () => {
    const body = { contents: [{ role: 'user', parts: [{ text: 'one two' }] }] };
    for (const version of ['v1beta', 'v1'])
      for (const model of ['echo/echo', 'fast', 'echo%2Fecho']) {
        const whole = await send(`/${version}/${model}:generateContent`, body, 'x-goog-api-key');
        const { candidates } = (await whole.json()) as { candidates: { content: { parts: { text: string }[] } }[] };
        expect(candidates[0]?.content.parts[0]?.text, model).to.equal('one two');
      }
    const stream = await send('/v1beta/echo/echo:streamGenerateContent?alt=sse', body, 'x-goog-api-key');
    expect(await stream.text()).to.include('"text":"one');
    const byUrl = await fetch(`${gateway.url}/v1beta/echo/echo:countTokens?key=${gateway.key}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    expect(await byUrl.json()).to.have.property('totalTokens');
    const wrong = await send('/v1beta/echo/echo:generateContent', { contents: 7 }, 'x-goog-api-key');
    expect(await wrong.json()).to.have.nested.property('error.status', 'INVALID_ARGUMENT');
  });

  it('a plugin’s own route keeps its path, and a path of no model route is not found', async () => {
    expect(await (await send('/openai/own/chat', {})).json()).to.deep.equal({ own: true });
    expect((await fetch(`${gateway.url}/openai/v1/own-page`)).status).to.equal(404);
    for (const path of ['/openai/v1/nothing', '/openai/deployments/fast/nothing', '/v1beta/openai/nothing'])
      expect((await send(path, {})).status, path).to.equal(404);
    expect((await send('/openai/api/core/admin/keys', {})).status).to.equal(404);
  });

  it('the log names the route, and no credential', async () => {
    await send('/openai/deployments/fast/chat/completions', { messages: MESSAGES }, 'api-key', {
      'x-request-id': 'ways-in-log-1',
    });
    const line = gateway.logs.find(({ request_id, msg }) => request_id === 'ways-in-log-1' && msg === 'request');
    expect(line).to.include({ route: 'POST /v1/chat/completions', status: 200 });
    expect(gateway.logText()).to.not.include(gateway.key);
  });
});
