import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { type FrameOptions, frameOf, OPCODE, RawWebSocket } from '../support/clients/raw-websocket.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { chatOf, pluginFile, readText } from '../support/plugins/plugin-file.ts';
import { until } from '../support/wait.ts';

const ENGINE = fileURLToPath(new URL('../../plugins/dialects/responses/websockets.ts', import.meta.url));

/** Client format over websockets, so that this suite needs no other dialect: `{ say, model? }` in. */
const TINY = `import { serveSocket } from ${JSON.stringify(ENGINE)};\n${pluginFile({
  name: 'tiny',
  kind: 'dialect',
  setup: `
    const frame = (value) => 'data: ' + JSON.stringify(value) + '\\n\\n';
    const definition = {
      name: 'tiny',
      request: { type: 'object', required: ['say'], properties: { say: { type: 'string' } } },
      response: { type: 'object' },
      routes: [{ path: '/tiny', summary: 'Tiny' }],
      keepAlive: ': tiny\\n\\n',
      read: ({ body }) => ({
        request: { model: body.model ?? 'echo/echo', messages: [{ role: 'user', content: body.say }], stream: true },
      }),
      write: () => ({}),
      stream: () => ({
        push: (chunk) => (chunk.choices[0]?.delta.content ? frame({ text: chunk.choices[0].delta.content }) : ''),
        end: () => frame({ done: true }),
        fail: (error) => frame({ failed: error.code }),
      }),
      error: (error) => ({ body: { tiny: error.code } }),
    };
    api.dialect(definition);
    serveSocket(api, definition, {
      path: '/tiny',
      connect: () => ({
        read: (message) => ({ body: message }),
        event: (event) => event,
        refuse: (status) => ({ refused: status, padding: 'x'.repeat(500) }),
      }),
    });`,
})}`;

const LIMIT = 64 * 1024;
const SAY = JSON.stringify({ say: 'hello there' });

/** Frames that close a connection, each with its close code. */
const BAD: readonly (readonly [what: string, payload: string | Buffer, options: FrameOptions, code: number])[] = [
  ['a frame that announces a terabyte', 'x', { announced: 1n << 40n }, 1009],
  ['a frame that announces more than any number', 'x', { announced: 0xffff_ffff_ffff_ffffn }, 1009],
  ['a message over the limit', 'x'.repeat(LIMIT + 1), {}, 1009],
  ['a frame without a mask', SAY, { isMasked: false }, 1002],
  ['a frame with reserved bits', SAY, { reserved: 4 }, 1002],
  ['a frame of no known kind', SAY, { opcode: 5 }, 1002],
  ['a continuation of nothing', SAY, { opcode: OPCODE.continuation }, 1002],
  ['a fragmented ping', 'x', { opcode: OPCODE.ping, isFinal: false }, 1002],
  ['a ping of 126 bytes', 'x'.repeat(126), { opcode: OPCODE.ping }, 1002],
  ['a close frame with a reserved code', Buffer.from([0x03, 0xed]), { opcode: OPCODE.close }, 1002],
  ['binary data', SAY, { opcode: OPCODE.binary }, 1003],
  ['text that is not UTF-8', Buffer.from([0x7b, 0xff, 0xfe, 0x7d]), {}, 1007],
  ['half a letter of UTF-8', Buffer.from([0xe4, 0xb8]), {}, 1007],
];

describe('a hostile peer on a websocket', () => {
  let gateway: TestGateway;
  let endless: http.Server;
  /** Bytes written by the endless vendor so far. */
  let sentBytes = 0;
  /** Number of its responses that are still being read. */
  let running = 0;

  before(async () => {
    endless = http.createServer((_request, response) => pour(response));
    await once(endless.listen(0, '127.0.0.1'), 'listening');
    gateway = await startGateway(
      {
        dialects: { tiny: { plugin: './tiny.mjs' } },
        server: { port: 0, bodyLimit: LIMIT, drainTimeout: '1s' },
        providers: {
          echo: {},
          endless: {
            ...{ plugin: 'openai-compatible', models: ['*'] },
            baseUrl: `http://127.0.0.1:${(endless.address() as AddressInfo).port}/v1`,
          },
        },
      },
      { files: { 'tiny.mjs': TINY } },
    );
  });
  after(async () => {
    await gateway.stop();
    endless.closeAllConnections();
    await new Promise((resolve) => endless.close(resolve));
  });

  /** Writes as long as the peer reads. */
  function pour(response: http.ServerResponse): void {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const choices = [{ index: 0, delta: { content: 'x'.repeat(16_000) }, finish_reason: null }];
    const chunk = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices };
    const frame = `data: ${JSON.stringify(chunk)}\n\n`;
    const write = (): void => {
      do sentBytes += frame.length;
      while (!response.destroyed && response.write(frame));
    };
    running += 1;
    response.on('drain', write);
    response.on('close', () => {
      running -= 1;
    });
    write();
  }

  const lines = (): number => gateway.logs.filter(({ route }) => route === 'POST /tiny').length;

  const open = (): Promise<RawWebSocket> => RawWebSocket.open(gateway.url, '/tiny', gateway.key);

  /** Checks that calls of other clients, by HTTP and by websocket, still succeed. */
  async function othersGoOn(): Promise<void> {
    expect(await readText(await gateway.post('/v1/chat/completions', chatOf('still here')))).to.equal('still here');
    const other = await open();
    other.send(SAY);
    await until('the other one is answered', () => other.texts().includes('{"done":true}'));
    other.socket.destroy();
  }

  for (const path of ['/tiny', '/v1/responses'])
    for (const [what, payload, options, code] of BAD)
      it(`is closed with ${code} at ${path} for ${what}`, async function () {
        const peer = await RawWebSocket.open(gateway.url, path, gateway.key).catch((refused: Error) => refused);
        if (peer instanceof Error) {
          // The format's websocket is disabled, so nothing can be sent to it.
          expect(peer.message).to.match(/^HTTP\/1\.1 426 /);
          this.skip();
        }
        peer.send(payload, options);
        expect(await peer.closeCode()).to.equal(code);
        await othersGoOn();
      });

  it('may send a message in fragments of one byte up to the limit, with pings between them', async () => {
    const peer = await open();
    const message = JSON.stringify({ say: 'x'.repeat(2000) });
    const frames = [...message].flatMap((letter, at) => [
      frameOf(letter, { opcode: at === 0 ? OPCODE.text : OPCODE.continuation, isFinal: at === message.length - 1 }),
      ...(at % 500 === 0 ? [frameOf('p', { opcode: OPCODE.ping })] : []),
    ]);
    peer.socket.write(Buffer.concat(frames));
    await until('it is answered', () => peer.texts().includes('{"done":true}'));
    peer.socket.destroy();
  });

  it('is closed with 1009 when its fragments exceed the limit', async () => {
    const peer = await open();
    const piece = 'x'.repeat(8192);
    peer.send(piece, { isFinal: false });
    for (let sent = piece.length; sent <= LIMIT; sent += piece.length)
      peer.send(piece, { opcode: OPCODE.continuation, isFinal: false });
    expect(await peer.closeCode()).to.equal(1009);
    await othersGoOn();
  });

  it('is closed when it floods with pings, and when it floods with empty fragments', async () => {
    const pings = await open();
    pings.socket.write(Buffer.concat(Array.from({ length: 2000 }, () => frameOf('', { opcode: OPCODE.ping }))));
    expect(await pings.closeCode()).to.be.oneOf([1006, 1008]);
    const empty = await open();
    empty.send('', { isFinal: false });
    const fragments = Array.from({ length: 20_000 }, () =>
      frameOf('', { opcode: OPCODE.continuation, isFinal: false }),
    );
    for (let round = 0; round < 30 && !empty.isClosed; round += 1) {
      empty.socket.write(Buffer.concat(fragments));
      await sleep(1);
    }
    expect(await empty.closeCode()).to.be.oneOf([1006, 1008, 1009]);
    await othersGoOn();
  });

  it('that stops in the middle of a frame delays no other client', async () => {
    const peers = await Promise.all(Array.from({ length: 8 }, open));
    for (const [at, peer] of peers.entries()) peer.socket.write(frameOf(SAY).subarray(0, 1 + at));
    await othersGoOn();
    for (const { socket } of peers) socket.destroy();
    await othersGoOn();
  });

  it('that vanishes in the middle of a response ends its call', async () => {
    const peer = await open();
    peer.send(JSON.stringify({ say: 'go', model: 'endless/m' }));
    await until('it gets something', () => peer.texts().length > 0);
    const before = lines();
    peer.socket.destroy();
    await until('the vendor is left, and the call is over', () => running === 0 && lines() > before);
    await othersGoOn();
  });

  it('that never reads receives at most a few mebibytes, and its vendor is paused', async () => {
    const peer = await open();
    const from = sentBytes;
    peer.socket.pause();
    peer.send(JSON.stringify({ say: 'go', model: 'endless/m' }));
    await until('the vendor sends', () => sentBytes > from);
    await vendorStops();
    expect(sentBytes - from).to.be.below(24 * 1024 * 1024);
    await othersGoOn();
    peer.socket.destroy();
  });

  it('E26: that never reads but keeps sending is paused, without affecting others', async () => {
    const peer = await open();
    peer.socket.pause();
    peer.send(JSON.stringify({ say: 'go', model: 'endless/m' }));
    const many = Buffer.concat(Array.from({ length: 1000 }, () => frameOf(SAY)));
    // Exceeds the system's buffer for an unread connection, plus a mebibyte of refusals.
    for (let round = 0; round < 600; round += 1) peer.socket.write(many);
    await vendorStops();
    expect(peer.socket.destroyed || peer.socket.writableLength > 0, 'what was sent waits, or was cut').to.equal(true);
    await othersGoOn();
    peer.socket.destroy();
  });

  /** Waits until the vendor has been blocked for a while. */
  async function vendorStops(): Promise<void> {
    let [last, since] = [sentBytes, performance.now()];
    await until(
      'the vendor is read no further',
      () => {
        if (sentBytes !== last) [last, since] = [sentBytes, performance.now()];
        return performance.now() - since > 300;
      },
      10_000,
    );
  }
});
