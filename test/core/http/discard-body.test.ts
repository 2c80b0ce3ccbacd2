import { once } from 'node:events';
import http from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { expect } from 'chai';
import { discardBody } from '../../../core/http/error-answer.ts';
import { until } from '../../support/wait.ts';

describe('reading the rest of a request', () => {
  let server: http.Server;
  const results: boolean[] = [];
  before(async () => {
    server = http.createServer(async (req) => {
      results.push(await discardBody(req, { maxBytes: 1000, maxMs: 100 }));
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
  });
  beforeEach(() => void results.splice(0));
  after(() => void server.close().closeAllConnections());

  async function send(length: number, body: string): Promise<net.Socket> {
    const socket = net.connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.write(`POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${length}\r\n\r\n${body}`);
    await once(socket, 'connect');
    return socket;
  }

  const CASES: readonly (readonly [what: string, length: number, body: string, result: boolean])[] = [
    ['ends well at the end of a request', 1000, 'x'.repeat(1000), true],
    ['ends when there are too many bytes', 2000, 'x'.repeat(1500), false],
    ['ends when it takes too long', 1000, 'x', false],
  ];
  for (const [what, length, body, result] of CASES)
    it(what, async () => {
      const socket = await send(length, body);
      await until('it is over', () => results.length > 0);
      expect(results).to.deep.equal([result]);
      socket.destroy();
    });

  it('ends when the sender disconnects', async () => {
    (await send(1000, 'x')).destroy();
    await until('it is over', () => results.length > 0);
    expect(results).to.deep.equal([false]);
  });
});
