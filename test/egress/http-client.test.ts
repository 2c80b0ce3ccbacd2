/** Responses that the client for lists, webhooks and collectors accepts. */
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { createHttpClient } from '../../egress/http-client.ts';

const MIB = 1024 * 1024;

describe('E28: a response to a control-plane request', () => {
  let server: Server;
  let url: string;
  let listener: RequestListener;
  let sent = 0;
  before(async () => {
    server = createServer((request, response) => listener(request, response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  const send = async (): Promise<unknown> => {
    const client = await createHttpClient(new Set([new URL(url).host]), '0.0.0');
    return client.get(url, { retry: { limit: 0 } }).json();
  };
  const errorOf = (work: Promise<unknown>): Promise<string> =>
    work.then(
      () => 'it was read',
      (error: Error) => error.name,
    );

  it('is cancelled after 16 MiB, announced or not', async () => {
    const piece = Buffer.alloc(64 * 1024, ' ');
    listener = (_request, response) => {
      sent = 0;
      const more = (): void => {
        while (!response.destroyed && response.write(piece)) sent += piece.length;
        sent += piece.length;
      };
      response.on('drain', more);
      more();
    };
    expect(await errorOf(send())).to.equal('CancelError');
    expect(sent).to.be.within(16 * MIB, 64 * MIB);
    listener = (_request, response) => void response.end(Buffer.alloc(17 * MIB, ' '));
    expect(await errorOf(send())).to.equal('CancelError');
  });

  it('is cancelled after 16 MiB of decompressed data', async () => {
    // A file of gzip may have several members: 256 MiB in all.
    const packed = Buffer.concat(Array<Buffer>(16).fill(gzipSync(Buffer.alloc(16 * MIB, ' '))));
    listener = (_request, response) => void response.setHeader('content-encoding', 'gzip').end(packed);
    const before = process.memoryUsage().rss;
    expect(await errorOf(send())).to.equal('CancelError');
    expect(process.memoryUsage().rss - before).to.be.below(128 * MIB);
  });

  it('has the limits on levels and values of every response', async () => {
    for (const text of ['['.repeat(1000) + ']'.repeat(1000), `[${'{},'.repeat(700_000)}{}]`]) {
      listener = (_request, response) => void response.end(text);
      expect(await errorOf(send())).to.equal('ParseError');
    }
  });

  it('has 30 seconds, and 15 to its first byte', async () => {
    const { defaults } = await createHttpClient(new Set(), '0.0.0');
    expect(defaults.options.timeout).to.include({ request: 30_000, response: 15_000, connect: 5000 });
    expect(defaults.options.followRedirect).to.equal(false);
  });
});
