import type { Duplex } from 'node:stream';
import { expect } from 'chai';
import { readEgress, readEnvironment } from '../../config/egress.ts';
import { createHttpClient } from '../../egress/http-client.ts';
import { createUpstream, UpstreamError } from '../../egress/upstream.ts';
import { createProxyRoute, fetchBy } from '../../egress/way.ts';
import { createSilentLog } from '../support/log.ts';
import { startTunnelProxy, type TunnelProxy } from '../support/processes/tunnel-proxy.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';

const NO_FILES = { env: () => undefined, file: () => '' };
const wayBy = (proxy: string) => createProxyRoute(readEgress({ proxy }, undefined, NO_FILES));
const wayOf = (env: Readonly<Record<string, string>>) =>
  createProxyRoute(
    readEgress(
      {},
      readEnvironment((name) => env[name]),
      NO_FILES,
    ),
  );

describe('a call through a proxy', () => {
  let vendor: ScriptedUpstream;
  let proxy: TunnelProxy;
  const log = createSilentLog();
  const upstream = createUpstream({ log });
  const error = () => ({ class: 'upstream_error', message: '' }) as const;

  const open = async (refuse?: (socket: Duplex) => boolean): Promise<void> => {
    vendor = await startScriptedUpstream(respondWith(200, 'ok'));
    proxy = await startTunnelProxy(vendor.port, refuse);
  };
  const send = (way: ReturnType<typeof createProxyRoute>, baseUrl = 'http://vendor.invalid:8080', connectMs = 5000) =>
    upstream.send(
      { baseUrl, error, ...(way && { proxyRoute: way }), timeouts: { connectMs } },
      { path: '/', body: {} },
      { signal: new AbortController().signal },
    );
  const failureOf = (sending: Promise<unknown>): Promise<UpstreamError> =>
    sending.then(
      () => expect.fail('it was answered'),
      (thrown: unknown) => thrown as UpstreamError,
    );

  afterEach(async () => {
    await proxy.close();
    await vendor.close();
  });
  after(() => upstream.close());

  it('E67: requests only the address of the vendor, authenticates, and reuses the connection for the next call', async () => {
    await open();
    const way = wayBy(`http://us%40er:pass%3Aword@127.0.0.1:${proxy.port}`);
    for (const _ of [1, 2]) expect(String(await (await send(way)).readAll())).to.equal('ok');
    const authorization = `Basic ${Buffer.from('us@er:pass:word').toString('base64')}`;
    expect(proxy.requests).to.deep.equal([{ address: 'vendor.invalid:8080', authorization }]);
    expect(vendor.connections.total).to.equal(1);
    expect(vendor.requests.map(({ headers }) => headers['proxy-authorization'])).to.deep.equal([undefined, undefined]);
  });

  for (const [status, why] of [
    [407, 'it rejected the user and password'],
    [403, 'its rules block the address'],
    [502, 'it cannot reach the address'],
    [418, 'it rejected the request'],
  ] as const)
    it(`E67: with a ${status} fails before anything was sent, with the reason`, async () => {
      await open((socket) => socket.write(`HTTP/1.1 ${status} No\r\ncontent-length: 0\r\n\r\n`));
      const failure = await failureOf(send(wayBy(`http://user:secret-word@127.0.0.1:${proxy.port}`)));
      expect(failure).to.be.instanceOf(UpstreamError);
      expect(failure).to.include({ failure: 'upstream_error', phase: 'connect', sent: false });
      expect((failure.cause as Error).message).to.equal(`the proxy did not connect: ${why} (status ${status})`);
      expect(`${failure.stack} ${(failure.cause as Error).stack} ${JSON.stringify(log.lines)}`).not.to.include(
        'secret-word',
      );
      expect(vendor.connections.total).to.equal(0);
    });

  it('E67: that cuts the connection, or is unreachable, fails before anything was sent', async () => {
    await open((socket) => Boolean(socket.destroy()));
    const way = wayBy(proxy.url);
    const cut = await failureOf(send(way));
    await proxy.close();
    const absent = await failureOf(send(way));
    for (const [failure, code] of [
      [cut, 'ECONNRESET'],
      [absent, 'ECONNREFUSED'],
    ] as const) {
      expect(failure).to.include({ phase: 'connect', sent: false });
      expect((failure.cause as Error).message).to.equal(`the proxy cannot be reached (${code})`);
    }
  });

  it('E67: that does not respond ends at the connect deadline, like the handshake after it', async () => {
    await open(() => true);
    expect(await failureOf(send(wayBy(proxy.url), undefined, 200))).to.include({
      failure: 'timeout',
      phase: 'connect',
    });
    await proxy.close();
    vendor.script(() => undefined);
    proxy = await startTunnelProxy(vendor.port);
    const silent = send(wayBy(proxy.url), 'https://vendor.invalid', 200);
    expect(await failureOf(silent)).to.include({ failure: 'timeout', phase: 'connect', sent: false });
    expect(proxy.requests).to.have.length(1);
  });

  it('E67: distinguishes a vendor that closes without a response from an unreachable one', async () => {
    await open();
    vendor.script((wire) => wire.end());
    expect(await failureOf(send(wayBy(proxy.url)))).to.include({ phase: 'firstByte', sent: true });
  });

  it('E67: shares no connection with calls through another proxy', async () => {
    await open();
    const other = await startTunnelProxy(vendor.port);
    for (const url of [proxy.url, other.url, proxy.url]) await (await send(wayBy(url))).readAll();
    expect([proxy.requests.length, other.requests.length]).to.deep.equal([1, 1]);
    await other.close();
  });

  it('E67: shares the proxy with requests for model lists and identity providers’ keys, limited to their hosts', async () => {
    await open();
    const way = wayBy(proxy.url);
    const client = await createHttpClient(new Set(['vendor.invalid:81']), '0', way);
    vendor.script(respondWith(200, { data: [] }));
    expect(await client.get('http://vendor.invalid:81/models').json()).to.deep.equal({ data: [] });
    expect(await client.get('http://other.invalid:81/').then(String, String)).to.include('calls go to');
    const response = await fetchBy(way)('http://idp.invalid:82/keys', { redirect: 'manual' });
    expect(await response.json()).to.deep.equal({ data: [] });
    expect(proxy.requests.map(({ address }) => address)).to.deep.equal(['vendor.invalid:81', 'idp.invalid:82']);
  });

  /**
   * Returns true if a request goes to the proxy. A direct request fails: the tests' guard stops it, or the host does
   * not exist.
   */
  const isProxied = async (env: Readonly<Record<string, string>>, target: string): Promise<boolean> => {
    const { length } = proxy.requests;
    const own = Object.fromEntries(Object.entries(env).map(([name, text]) => [name, text.replace('PROXY', proxy.url)]));
    await send(wayOf(own), target).catch(() => undefined);
    return proxy.requests.length > length;
  };

  it('E67: uses the environment’s proxy for the scheme, but never for this machine', async () => {
    await open((socket) => Boolean(socket.destroy()));
    expect(await isProxied({ HTTPS_PROXY: 'PROXY' }, 'https://a.invalid')).to.equal(true);
    expect(await isProxied({ https_proxy: 'PROXY', HTTPS_PROXY: 'http://127.0.0.1:9' }, 'https://a.invalid')).to.equal(
      true,
    );
    expect(await isProxied({ HTTPS_PROXY: 'PROXY' }, 'http://a.invalid')).to.equal(false);
    expect(await isProxied({ HTTP_PROXY: 'PROXY' }, 'http://a.invalid')).to.equal(true);
    for (const own of [
      'http://127.0.0.1:9',
      'http://127.8.8.8:9',
      'http://localhost:9',
      'http://[::1]:9',
      'http://169.254.169.254',
    ])
      expect(await isProxied({ HTTP_PROXY: 'PROXY' }, own)).to.equal(false);
  });

  for (const [rules, direct, through] of [
    ['*', ['http://a.invalid', 'http://10.1.2.3'], []],
    ['corp.invalid', ['http://corp.invalid', 'http://API.corp.invalid'], ['http://notcorp.invalid']],
    ['.corp.invalid', ['http://api.corp.invalid'], ['http://xcorp.invalid']],
    ['a.invalid:8080, b.invalid', ['http://a.invalid:8080', 'http://b.invalid:99'], ['http://a.invalid']],
    ['10.0.0.0/8 fd00::/8', ['http://10.200.1.1', 'http://[fd00::5]'], ['http://11.0.0.1', 'http://[fe00::1]']],
    ['10.0.0.1,[2001:db8::1]:80', ['http://10.0.0.1', 'http://[2001:db8:0:0::1]'], ['http://10.0.0.10']],
    ['10.0.0.0/99, ,/8,:', [], ['http://10.0.0.1', 'http://a.invalid']],
  ] as const)
    it(`E67: goes directly to hosts in NO_PROXY="${rules}"`, async () => {
      await open((socket) => Boolean(socket.destroy()));
      const env = { HTTP_PROXY: 'PROXY', NO_PROXY: rules };
      for (const target of direct) expect(await isProxied(env, target), target).to.equal(false);
      for (const target of through) expect(await isProxied(env, target), target).to.equal(true);
    });
});
