import { writeFile } from 'node:fs/promises';
import http from 'node:http';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { WebSocket } from 'ws';
import { loadConfig } from '../../config/load-config.ts';
import { frameOf, RawWebSocket } from '../support/clients/raw-websocket.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { pluginFile } from '../support/plugins/plugin-file.ts';
import { until } from '../support/wait.ts';

const ENGINE = fileURLToPath(new URL('../../plugins/dialects/responses/websockets.ts', import.meta.url));

/** Client format that also supports websockets: `{ say }` in, `{ text }` and `{ done }` out. */
const dialect = (socket: string): string =>
  `import { serveSocket } from ${JSON.stringify(ENGINE)};\n${pluginFile({
    name: 'tiny',
    kind: 'dialect',
    setup: `
      const frame = (value) => 'data: ' + JSON.stringify(value) + '\\n\\n';
      const definition = {
        name: 'tiny',
        request: { type: 'object', required: ['say'], properties: { say: { type: 'string' }, n: { type: 'integer' } } },
        response: { type: 'object' },
        routes: [{ path: '/tiny', summary: 'Tiny' }],
        keepAlive: ': tiny\\n\\n',
        read: ({ body }) => ({
          request: { model: 'echo/echo', messages: [{ role: 'user', content: body.say }], stream: true },
        }),
        write: () => ({}),
        stream: () => ({
          push: (chunk) => (chunk.choices[0]?.delta.content ? frame({ text: chunk.choices[0].delta.content }) : ''),
          end: () => frame({ done: true }),
          fail: (error) => frame({ failed: error.code }),
        }),
        error: (error) => ({ body: { tiny: error.code, at: error.param ?? null } }),
      };
      api.dialect(definition);
      ${socket}`,
  })}`;

const SOCKET = `serveSocket(api, definition, {
  path: '/tiny',
  connect() {
    let count = 0;
    return {
      read(message) {
        if (message.ignore) return undefined;
        if (message.local) return { events: [{ local: (count += 1) }] };
        if (!('say' in message)) throw new GatewayError('invalid_request', 'say something', { param: 'say' });
        return { body: message };
      },
      event: (event) => event,
      refuse: (status, body, headers) => ({ refused: status, ...body, after: headers['retry-after'] ?? null }),
    };
  },
});`;

function start(socket = SOCKET, config: Record<string, unknown> = {}): Promise<TestGateway> {
  return startGateway(
    { dialects: { tiny: { plugin: './tiny.mjs' } }, ...config },
    { files: { 'tiny.mjs': dialect(socket) } },
  );
}

/** Client, and all events it received. */
class Client {
  readonly events: Record<string, unknown>[] = [];
  readonly socket: WebSocket;
  code: number | undefined;

  constructor(
    gateway: TestGateway,
    headers: Record<string, string> = { authorization: `Bearer ${gateway.key}` },
    path = '/tiny',
  ) {
    this.socket = new WebSocket(`${gateway.url.replace('http', 'ws')}${path}`, { headers });
    this.socket.on('message', (data) => this.events.push(JSON.parse(String(data)) as Record<string, unknown>));
    this.socket.on('close', (code) => {
      this.code = code;
    });
    this.socket.on('error', () => {});
  }

  static async open(gateway: TestGateway, headers?: Record<string, string>): Promise<Client> {
    const client = new Client(gateway, headers);
    await until('the websocket is open', () => client.socket.readyState === WebSocket.OPEN);
    return client;
  }

  async send(
    message: object | string,
    isOver = (event: Record<string, unknown>) => 'done' in event,
  ): Promise<readonly Record<string, unknown>[]> {
    const from = this.events.length;
    this.socket.send(typeof message === 'string' ? message : JSON.stringify(message));
    await until('the response is over', () => this.events.slice(from).some(isOver));
    return this.events.slice(from);
  }

  closed(): Promise<number | undefined> {
    return until('the websocket is closed', () => this.code !== undefined).then(() => this.code);
  }
}

/** HTTP response to a rejected upgrade. */
function refusal(
  gateway: TestGateway,
  headers: Record<string, string>,
  path = '/tiny',
): Promise<{ status: number; body: unknown; headers: http.IncomingHttpHeaders }> {
  return new Promise((resolve, reject) => {
    const upgrade = {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
    };
    const request = http.get(`${gateway.url}${path}`, { headers: { ...upgrade, ...headers } }, async (response) => {
      let text = '';
      for await (const bytes of response) text += String(bytes);
      resolve({ status: response.statusCode ?? 0, body: JSON.parse(text), headers: response.headers });
    });
    request.on('upgrade', (_response, socket) => {
      socket.destroy();
      reject(new Error('it was accepted'));
    });
    request.on('error', reject);
  });
}

describe('a websocket of a dialect', () => {
  let gateway: TestGateway;
  afterEach(() => gateway.stop());

  it('handles requests like posted ones, in order, with a log line each', async () => {
    gateway = await start();
    const client = await Client.open(gateway);
    const events = await client.send({ say: 'one two' });
    expect(events.map(({ text }) => text ?? '').join('')).to.equal('one two');
    expect(events.at(-1)).to.deep.equal({ done: true });
    client.socket.send(JSON.stringify({ say: 'first' }));
    const second = await client.send({ say: 'second' }, () => client.events.filter(({ done }) => done).length === 3);
    expect(second.map(({ text }) => text ?? '|').join('')).to.match(/^first\|second\|$/);
    await until('all three are logged', () => gateway.logs.filter(({ route }) => route === 'POST /tiny').length === 3);
    const lines = gateway.logs.filter(({ route }) => route === 'POST /tiny');
    expect(new Set(lines.map((line) => line['request_id'])).size).to.equal(3);
    expect(lines[0]).to.include({ user: 'local', status: 200 });
    expect(gateway.logText()).not.to.include(gateway.key);
    client.socket.close();
  });

  it('sends a dialect’s own events, ignores what the dialect ignores, and reports errors as events', async () => {
    gateway = await start();
    const client = await Client.open(gateway);
    client.socket.send(JSON.stringify({ ignore: true }));
    expect(await client.send({ local: true }, () => true)).to.deep.equal([{ local: 1 }]);
    expect(await client.send({ nothing: 1 }, () => true)).to.deep.equal([
      { refused: 400, tiny: 'invalid_request', at: 'say', after: null },
    ]);
    expect(await client.send({ say: 'x', n: 'no number' }, () => true)).to.deep.equal([
      { refused: 400, tiny: 'invalid_request', at: 'n', after: null },
    ]);
    expect((await client.send('{"a":1e999}', () => true))[0]).to.include({ refused: 400, tiny: 'invalid_json' });
    expect((await client.send({ say: 'still here' })).at(-1)).to.deep.equal({ done: true });
    client.socket.close();
  });

  it('is refused with an HTTP response in the dialect’s format when the path, switch, origin or key is wrong', async () => {
    gateway = await start();
    const key = { authorization: `Bearer ${gateway.key}` };
    const none = await refusal(gateway, {});
    expect([none.status, none.body]).to.deep.equal([401, { tiny: 'missing_api_key', at: null }]);
    expect(none.headers['x-request-id']).to.be.a('string');
    expect((await refusal(gateway, { authorization: 'Bearer tg_wrong' })).status).to.equal(401);
    expect(await refusal(gateway, key, `/tiny?key=${gateway.key}&x=1`).catch((error: Error) => error.message)).to.equal(
      'it was accepted',
    );
    expect((await refusal(gateway, {}, `/tiny?key=${gateway.key}`)).status).to.equal(401);
    expect((await refusal(gateway, { ...key, origin: 'https://evil.example' })).status).to.equal(403);
    expect((await refusal(gateway, key, '/nowhere')).status).to.equal(404);
    const off = await refusal(gateway, key, '/v1/chat/completions');
    expect([off.status, off.headers.upgrade]).to.deep.equal([426, 'websocket']);
    expect(gateway.logText()).not.to.include(gateway.key);
  });

  it('is refused with 426 if the dialect disables it', async () => {
    gateway = await start('');
    const { status, body } = await refusal(gateway, { authorization: `Bearer ${gateway.key}` });
    expect([status, body]).to.deep.equal([426, { tiny: 'upgrade_required', at: null }]);
  });

  it('is closed with the right code for binary frames, overlong messages and invalid requests', async () => {
    gateway = await start(SOCKET, { server: { port: 0, bodyLimit: '20kb' } });
    const binary = await Client.open(gateway);
    binary.socket.send(Buffer.from('{"say":"x"}'));
    expect(await binary.closed()).to.equal(1003);
    const long = await Client.open(gateway);
    long.socket.send(JSON.stringify({ say: 'x'.repeat(30_000) }));
    expect(await long.closed()).to.equal(1009);
    const bad = await Client.open(gateway);
    for (let count = 0; count < 5; count += 1) bad.socket.send('no json');
    expect(await bad.closed()).to.equal(1008);
    const flood = await Client.open(gateway);
    for (let count = 0; count < 300; count += 1) flood.socket.ping();
    // The library disconnects a peer that floods faster than its pongs are sent, before the gateway closes.
    expect(await flood.closed()).to.be.oneOf([1006, 1008]);
  });

  it('E26: queues one request and refuses further ones; later data is read when there is room', async () => {
    gateway = await start();
    const peer = await RawWebSocket.open(gateway.url, '/tiny', gateway.key);
    const say = (count: number): Buffer => frameOf(JSON.stringify({ say: `number ${count}` }));
    peer.socket.write(Buffer.concat([1, 2, 3].map(say)));
    await until('the third is refused', () => peer.texts().some((text) => text.includes('refused')));
    peer.socket.write(say(4));
    await until('three are answered', () => peer.texts().filter((text) => text === '{"done":true}').length === 3);
    expect(peer.texts().filter((text) => text.includes('refused'))).to.deep.equal([
      '{"refused":429,"tiny":"rate_limited","at":null,"after":"1"}',
    ]);
    expect(peer.texts().join('')).to.include('4').and.not.to.include('3');
    peer.socket.destroy();
  });

  it('may be opened sixteen times by one key', async () => {
    gateway = await start();
    const clients = await Promise.all(Array.from({ length: 16 }, () => Client.open(gateway)));
    const refused = await refusal(gateway, { authorization: `Bearer ${gateway.key}` });
    expect([refused.status, refused.headers['retry-after']]).to.deep.equal([429, '5']);
    for (const { socket } of clients) socket.close();
  });

  it('is closed within seconds when its key is revoked @slow', async () => {
    gateway = await start();
    const { api_key, api_key_info } = await gateway.command<{ api_key: string; api_key_info: { id: string } }>(
      'keys',
      'create',
      '--user',
      'u',
    );
    const client = await Client.open(gateway, { authorization: `Bearer ${api_key}` });
    expect((await client.send({ say: 'x' })).at(-1)).to.deep.equal({ done: true });
    await gateway.command('keys', 'revoke', api_key_info.id);
    expect(await client.closed()).to.equal(1008);
  });

  it('survives a reload of the configuration, and is closed when the reload disables it @slow', async () => {
    gateway = await start();
    const client = await Client.open(gateway);
    const use = async (name: string, socket: string): Promise<void> => {
      const configPath = path.join(gateway.folder, `${name}.json`);
      await writeFile(path.join(gateway.folder, `${name}.mjs`), dialect(socket));
      const dialects = { tiny: { plugin: `./${name}.mjs` } };
      const base = { providers: { echo: {} }, server: { port: 0 }, store: 'sqlite:./data', auth: { 'api-key': {} } };
      await writeFile(configPath, JSON.stringify({ ...base, dialects }));
      await gateway.use(await loadConfig({ cwd: gateway.folder, env: {}, configPath }));
    };
    await use('same', SOCKET);
    expect((await client.send({ say: 'still here' })).at(-1)).to.deep.equal({ done: true });
    await use('off', '');
    expect(await client.closed()).to.equal(1012);
  });

  it('is closed as going away when the gateway drains, without delaying it', async () => {
    gateway = await start(SOCKET, { server: { port: 0, drainTimeout: '10m' } });
    const client = await Client.open(gateway);
    await gateway.close();
    expect(await client.closed()).to.equal(1001);
  });
});
