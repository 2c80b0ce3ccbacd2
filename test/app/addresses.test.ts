import dns from 'node:dns';
import http from 'node:http';
import { type AddressInfo, isIPv6 } from 'node:net';
import os from 'node:os';
import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { streamText, wholeBody } from '../support/vendors/vendor-wires.ts';

const NAME = 'vendor.invalid';
const hasIpv6 = Object.values(os.networkInterfaces()).some((all) => all?.some(({ address }) => address === '::1'));

/** Skipped on machines without an IPv6 loopback. */
const onIpv6 = hasIpv6 ? it : it.skip;
const onLinux = process.platform === 'linux' ? it : it.skip;

interface Vendor {
  readonly port: number;
  readonly calls: () => number;
  close(): Promise<void>;
}

/** Starts a vendor at one address; its responses contain that address. */
async function startVendor(host: string, port = 0): Promise<Vendor> {
  let calls = 0;
  const said = { pieces: [{ text: `at ${host}` }] };
  const server = http.createServer(async (request, response) => {
    calls += 1;
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const { stream } = JSON.parse(Buffer.concat(parts).toString()) as { readonly stream?: boolean };
    response.setHeader('content-type', stream ? 'text/event-stream' : 'application/json');
    response.end(stream ? streamText('openai', said) : JSON.stringify(wholeBody('openai', said)));
  });
  await new Promise<void>((resolve) => server.listen({ host, port, ipv6Only: true }, resolve));
  return {
    port: (server.address() as AddressInfo).port,
    calls: () => calls,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

describe('addresses of providers', () => {
  let gateway: TestGateway | undefined;
  const vendors: Vendor[] = [];
  const lookup = dns.lookup;
  let addresses: readonly string[] = [];

  before(() => {
    // A stand-in for the name server resolves NAME; the system resolves all other names.
    const own = (name: string, options: dns.LookupOptions, reply: (...said: unknown[]) => void): void => {
      const all = addresses.map((address) => ({ address, family: isIPv6(address) ? 6 : 4 }));
      const [first] = all;
      if (name !== NAME) lookup(name, options, reply as never);
      else if (!first) reply(Object.assign(new Error(`ENOTFOUND ${name}`), { code: 'ENOTFOUND' }));
      else if (options.all) reply(null, all);
      else reply(null, first.address, first.family);
    };
    dns.lookup = own as unknown as typeof dns.lookup;
  });
  after(() => {
    dns.lookup = lookup;
  });
  afterEach(async () => {
    await gateway?.stop();
    for (const vendor of vendors.splice(0)) await vendor.close();
  });

  const startAt = async (host: string, port?: number): Promise<Vendor> => {
    const vendor = await startVendor(host, port);
    vendors.push(vendor);
    return vendor;
  };
  const start = async (host: string, port: number): Promise<TestGateway> => {
    const vendor = { plugin: 'openai-compatible', baseUrl: `http://${host}:${port}/v1`, apiKey: 'k', models: ['m'] };
    gateway = await startGateway({ providers: { vendor } });
    return gateway;
  };
  const chat = async ({ post }: TestGateway, rest: object = {}): Promise<string> => {
    const body = { model: 'vendor/m', messages: [{ role: 'user', content: 'Where are you?' }], ...rest };
    return (await post('/v1/chat/completions', body)).text();
  };

  onIpv6('may be IPv6, whole and streamed', async () => {
    const { port } = await startAt('::1');
    const target = await start('[::1]', port);
    expect(await chat(target)).to.include('at ::1');
    expect(await chat(target, { stream: true })).to.include('[DONE]');
  });

  onIpv6('may be IPv4 and IPv6 for one name: an unreachable one is skipped', async () => {
    const { port } = await startAt('127.0.0.1');
    addresses = ['::1', '127.0.0.1'];
    expect(await chat(await start(NAME, port))).to.include('at 127.0.0.1');
    await gateway?.stop();
    const six = await startAt('::1');
    addresses = ['127.0.0.1', '::1'];
    expect(await chat(await start(NAME, six.port))).to.include('at ::1');
  });

  onLinux('are resolved for each connection: the next call reaches a moved vendor without an error', async () => {
    const before = await startAt('127.0.0.2');
    const after = await startAt('127.0.0.3', before.port);
    addresses = ['127.0.0.2'];
    const target = await start(NAME, before.port);
    expect(await chat(target)).to.include('at 127.0.0.2');
    addresses = ['127.0.0.3'];
    // The open connection is reused until the vendor closes it, as HTTP specifies.
    expect(await chat(target)).to.include('at 127.0.0.2');
    await before.close();
    expect(await chat(target)).to.include('at 127.0.0.3');
    expect([before.calls(), after.calls()]).to.deep.equal([2, 1]);
  });

  it('may be unknown temporarily: the call fails with 503, and the next one succeeds once the name resolves', async () => {
    const { port } = await startAt('127.0.0.1');
    addresses = [];
    const target = await start(NAME, port);
    expect(await chat(target)).to.include('"provider_unavailable"');
    addresses = ['127.0.0.1'];
    expect(await chat(target)).to.include('at 127.0.0.1');
  });
});

describe('a gateway that listens on IPv6', () => {
  onIpv6('accepts IPv4 and IPv6 callers on ::', async () => {
    const gateway = await startGateway({ server: { port: 0, host: '::' } });
    try {
      const { port } = new URL(gateway.url);
      for (const host of ['[::1]', '127.0.0.1'])
        expect((await fetch(`http://${host}:${port}/`)).status, host).to.equal(200);
    } finally {
      await gateway.stop();
    }
  });
});
