import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { connectTo } from '../support/clients/raw-socket.ts';
import { frameOf, OPCODE, RawWebSocket } from '../support/clients/raw-websocket.ts';
import { type GatewayProcess, type Installation, installGateway } from '../support/gateways/gateway-process.ts';
import { until } from '../support/wait.ts';

const MB = 1_000_000;
const CALL = JSON.stringify({ model: 'echo/echo', messages: [{ role: 'user', content: 'hi' }] });

describe('one user against a gateway of 256 MB', function () {
  this.timeout(900_000);
  let installation: Installation;
  let other: string;
  /** Vendor that never responds. */
  let silent: http.Server;
  before(async () => {
    silent = http.createServer(() => undefined);
    await once(silent.listen(0, '127.0.0.1'), 'listening');
    const baseUrl = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/v1`;
    const providers = { echo: {}, silent: { plugin: 'openai-compatible', models: ['*'], baseUrl } };
    installation = await installGateway({ store: 'sqlite:./data', providers });
    other = (await installation.command('keys', 'create', '--user', 'other')).api_key;
  });
  after(async () => {
    await installation.remove();
    silent.closeAllConnections();
    await new Promise((resolve) => silent.close(resolve));
  });

  async function callsOfOthers(gateway: GatewayProcess, count = 60): Promise<void> {
    for (let at = 0; at < count; at += 1) {
      // A keep-alive connection may be closed while this process is busy, at the moment it is reused.
      const headers = { authorization: `Bearer ${other}`, 'content-type': 'application/json', connection: 'close' };
      const response = await fetch(`${gateway.url}/v1/chat/completions`, { method: 'POST', headers, body: CALL });
      await response.text();
      expect(response.status).to.equal(200);
    }
  }

  const start = () => installation.start({ NODE_OPTIONS: '--max-old-space-size=256' });

  it('E25: blocks no other user with nine slow bodies of 10 MB, and each of them ends with 408', async () => {
    const gateway = await start();
    const texts = await Promise.all(
      Array.from({ length: 9 }, async () => {
        const socket = await connectTo(gateway.url);
        const seen = { text: '' };
        socket.on('data', (chunk) => {
          seen.text += String(chunk);
        });
        socket.write(
          `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-api-key: ${installation.key}\r\n` +
            `content-type: application/json\r\ncontent-length: ${10 * MB}\r\n\r\n${'{"a":"'.padEnd(600, 'x')}`,
        );
        return seen;
      }),
    );
    await callsOfOthers(gateway);
    await until('all are refused', () => texts.every(({ text }) => /^HTTP\/1\.1 408 /.test(text)), 60_000);
    await gateway.stop();
  });

  const attacks: Readonly<Record<string, (peer: RawWebSocket) => void>> = {
    'fragments of messages that never end'(peer) {
      peer.send('"', { isFinal: false });
      const piece = frameOf('x'.repeat(MB), { opcode: OPCODE.continuation, isFinal: false });
      for (let count = 0; count < 20; count += 1) peer.socket.write(piece);
    },
    'messages that wait behind others'(peer) {
      const messageOf = (bytes: number): Buffer =>
        frameOf(JSON.stringify({ type: 'response.create', model: 'silent/m', input: 'x'.repeat(bytes) }));
      peer.socket.write(messageOf(10));
      const large = messageOf(4 * MB);
      for (let count = 0; count < 6; count += 1) peer.socket.write(large);
    },
    'messages in frames of one byte that never end'(peer) {
      const frame = frameOf('x', { opcode: OPCODE.continuation, isFinal: false });
      peer.send('"', { isFinal: false });
      peer.socket.write(Buffer.concat(Array.from({ length: 4000 }, () => frame)));
    },
  };
  for (const [what, attack] of Object.entries(attacks))
    it(`E26: blocks no other user with sixteen websockets full of ${what}`, async () => {
      const gateway = await start();
      let hasEnded = false;
      void gateway.ended.then(() => {
        hasEnded = true;
      });
      const peers = await Promise.all(
        Array.from({ length: 16 }, () => RawWebSocket.open(gateway.url, '/v1/responses', installation.key)),
      );
      for (const peer of peers) {
        attack(peer);
        await callsOfOthers(gateway, 3);
      }
      await callsOfOthers(gateway);
      expect(hasEnded, 'the process has ended').to.equal(false);
      for (const { socket } of peers) socket.destroy();
      await callsOfOthers(gateway, 10);
      await gateway.stop();
    });
});
