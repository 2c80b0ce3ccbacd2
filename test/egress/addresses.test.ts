import dns from 'node:dns';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import net from 'node:net';
import { expect } from 'chai';
import { createUpstream, type Upstream } from '../../egress/upstream.ts';
import { createSilentLog } from '../support/log.ts';

/** Starts a vendor on a loopback address. It responds with its name and keeps connections alive. */
async function startVendor(name: string, host: string, port = 0) {
  const server = http.createServer((request, response) => {
    request.resume();
    request.on('end', () => response.end(name));
  });
  let connections = 0;
  server.on('connection', () => {
    connections += 1;
  });
  await once(server.listen(port, host), 'listening');
  return {
    ...{ server, port: (server.address() as AddressInfo).port },
    get connections() {
      return connections;
    },
    async close() {
      server.closeAllConnections();
      await once(server.close(), 'close');
    },
  };
}

const hasIpv6 = await new Promise<boolean>((resolve) => {
  const probe = net.createServer();
  probe.once('error', () => resolve(false)).listen(0, '::1', () => probe.close(() => resolve(true)));
});

describe('the addresses of a vendor', () => {
  const { lookup } = dns;
  const closing: { close(): Promise<unknown> }[] = [];
  let upstream: Upstream;
  /** Addresses of the vendor's name, in the order of the name server. */
  let addresses: readonly string[] = [];
  let lookups = 0;

  const send = async (host: string, port: number): Promise<string> => {
    const endpoint = {
      baseUrl: `http://${host}:${port}`,
      error: () => ({ class: 'upstream_error', message: '' }) as const,
    };
    const response = await upstream.send(endpoint, { path: '/', body: {} }, { signal: new AbortController().signal });
    return String(await response.readAll());
  };
  const vendor = async (...given: Parameters<typeof startVendor>) => {
    const started = await startVendor(...given);
    closing.push(started);
    return started;
  };

  beforeEach(() => {
    upstream = createUpstream({ log: createSilentLog() });
    lookups = 0;
    dns.lookup = ((name: string, options: dns.LookupAllOptions, callback: (...result: unknown[]) => void) => {
      if (name !== 'vendor.invalid') return lookup(name, options, callback);
      lookups += 1;
      const found = addresses.map((address) => ({ address, family: net.isIP(address) }));
      process.nextTick(() =>
        options.all ? callback(null, found) : callback(null, found[0]?.address, found[0]?.family),
      );
    }) as typeof dns.lookup;
  });
  afterEach(async () => {
    dns.lookup = lookup;
    await upstream.close();
    for (const each of closing.splice(0)) await each.close();
  });

  it('E67: may be IPv6 addresses, as in a URL', async function () {
    if (!hasIpv6) this.skip();
    const { port } = await vendor('six', '::1');
    expect(await send('[::1]', port)).to.equal('six');
  });

  for (const [host, order] of [
    ['::1', ['127.0.0.1', '::1']],
    ['127.0.0.1', ['::1', '127.0.0.1']],
  ] as const)
    it(`E67: may be of both families, of which only ${host} responds and is listed last`, async function () {
      if (!hasIpv6) this.skip();
      addresses = order;
      const { port } = await vendor('either', host);
      expect(await send('vendor.invalid', port)).to.equal('either');
    });

  it('E67: are resolved again when the vendor has left the previous one', async () => {
    const first = await vendor('first', '127.0.0.1');
    await vendor('second', '127.0.0.2', first.port);
    addresses = ['127.0.0.1'];
    expect([await send('vendor.invalid', first.port), await send('vendor.invalid', first.port)]).to.deep.equal([
      'first',
      'first',
    ]);
    expect([first.connections, lookups]).to.deep.equal([1, 1]);
    addresses = ['127.0.0.2'];
    first.server.closeIdleConnections();
    expect(await send('vendor.invalid', first.port)).to.equal('second');
  });

  it('E67: are resolved again after a while, also if the previous one still responds and connections are never idle', async () => {
    const first = await vendor('first', '127.0.0.1');
    await vendor('second', '127.0.0.2', first.port);
    await upstream.close();
    upstream = createUpstream({ log: createSilentLog(), limits: { maxAgeMs: 0 } });
    addresses = ['127.0.0.1'];
    expect(await send('vendor.invalid', first.port)).to.equal('first');
    addresses = ['127.0.0.2'];
    expect(await send('vendor.invalid', first.port)).to.equal('second');
  });
});
