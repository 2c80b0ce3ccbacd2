import { expect } from 'chai';
import { WebSocket } from 'ws';
import type { TestGateway } from '../support/gateways/gateway.ts';
import { readBlocks } from '../support/pages/read-blocks.ts';
import { pluginFile, startError, startProbe } from '../support/plugins/plugin-file.ts';
import { until } from '../support/wait.ts';

const WS = JSON.stringify(import.meta.resolve('ws'));
const HEAD = `import { WebSocketServer } from ${WS};\n`;

/** Websocket that reports who opened it and sends each message as a request to the same path. */
const ECHO = `
  const acceptor = new WebSocketServer({ noServer: true });
  api.route({
    method: 'POST', path: '/echo', summary: 'x', auth: ['key'], responses: { 200: 'x' }, body: { type: 'object' },
    handler(ctx) { ctx.body = { user: ctx.state.principal.userId, said: ctx.state.body }; },
  });
  api.upgrade('/echo', ({ request, stream, head, path, principal, memory, maxBytes, signal, recheck, post }) => {
    if (request.url.includes('full')) throw new GatewayError('rate_limited', 'It is full.');
    acceptor.handleUpgrade(request, stream, head, (socket) => {
      socket.send(JSON.stringify({ path, user: principal.userId, maxBytes, heap: memory.heapPerByte }));
      signal.addEventListener('abort', () => socket.close(1001));
      socket.on('message', async (text) => {
        if (String(text) === 'recheck')
          return socket.send(await recheck().then(() => 'still good', (error) => error.code));
        const response = await post(String(text), new AbortController().signal);
        socket.send(String((await response.toArray())[0]));
      });
    });
  });`;

const probe = { 'probe.mjs': HEAD + pluginFile({ setup: ECHO }) };

/** Opens a websocket; resolves with its messages so far, its close code, and the status of a refusal. */
function open(gateway: TestGateway, path = '/echo', key = gateway.key) {
  const seen: { messages: string[]; code?: number; status?: number } = { messages: [] };
  const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}${path}`, { headers: { 'x-api-key': key } });
  socket.on('message', (data) => seen.messages.push(String(data)));
  socket.on('close', (code) => {
    seen.code = code;
  });
  socket.on('unexpected-response', (_request, response) => {
    seen.status = response.statusCode ?? 0;
    response.destroy();
  });
  socket.on('error', () => {});
  return { socket, seen };
}

describe('api.upgrade', () => {
  let gateway: TestGateway;

  describe('passes the websockets of a path to a plugin', () => {
    before(async () => {
      gateway = await startProbe(ECHO, {}, { files: probe });
    });
    after(() => gateway.stop());

    it('with its caller; its requests are made as that caller', async () => {
      const { socket, seen } = open(gateway);
      await until('it was greeted', () => seen.messages.length === 1);
      expect(JSON.parse(seen.messages[0] ?? '')).to.deep.include({ path: '/echo', user: 'local', heap: 3 });
      socket.send('{"a":1}');
      await until('it was answered', () => seen.messages.length === 2);
      expect(JSON.parse(seen.messages[1] ?? '')).to.deep.equal({ user: 'local', said: { a: 1 } });
      socket.send('recheck');
      await until('it was checked', () => seen.messages.length === 3);
      expect(seen.messages[2]).to.equal('still good');
      socket.terminate();
    });

    it('after authentication by core, and refuses what the plugin refuses', async () => {
      for (const [path, key, status] of [
        ['/echo', 'tg_wrong', 401],
        ['/nowhere', gateway.key, 404],
        ['/echo?full', gateway.key, 429],
      ] as const) {
        const { seen } = open(gateway, path, key);
        await until(`${path} is refused`, () => seen.status !== undefined);
        expect(seen.status).to.equal(status);
      }
    });
  });

  it('notifies the plugin of a drain, and cuts open websockets', async () => {
    gateway = await startProbe(ECHO, {}, { files: probe });
    const { seen } = open(gateway);
    await until('it is open', () => seen.messages.length === 1);
    await gateway.stop();
    await until('it is closed', () => seen.code !== undefined);
    expect(seen.code).to.equal(1001);
  });

  it('refuses two plugins at one path, naming both, and an invalid handler', async () => {
    const setup = `api.upgrade('/twice', () => {});`;
    const error = await startError(
      startProbe(
        setup,
        { policies: { other: { plugin: './other.mjs' } } },
        { files: { 'other.mjs': pluginFile({ name: 'other', setup }) } },
      ),
    );
    expect(error).to.match(/plugin_conflict: websocket "\/twice" is already registered by plugin "(?:other|probe)"/);
    expect(await startError(startProbe(`api.upgrade('twice', () => {});`))).to.include('a path that begins with /');
    expect(await startError(startProbe(`api.upgrade('/twice');`))).to.include('and a function');
  });

  it('is as in docs/plugins.md @slow', async () => {
    const shown = readBlocks().find(({ page, text }) => page === 'docs/plugins.md' && text.includes('api.upgrade('));
    const text = shown?.text.replace("'ws'", WS).replace('(): void =>', '() =>') ?? '';
    gateway = await startProbe('', {}, { files: { 'probe.mjs': text } });
    const { seen } = open(gateway, '/clock');
    await until('it received the time', () => seen.messages.length > 0);
    expect(seen.messages[0]).to.match(/^local: 20/);
    await gateway.stop();
    await until('it is closed', () => seen.code !== undefined);
    expect(seen.code).to.equal(1001);
  });
});
