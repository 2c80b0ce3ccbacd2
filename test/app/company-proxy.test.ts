import type net from 'node:net';
import tls from 'node:tls';
import { expect } from 'chai';
import { openBrowser } from '../support/clients/browser.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { CLIENT_SECRET, startOpenIdPeople } from '../support/identity/openid-people.ts';
import { createSelfSigned } from '../support/identity/self-signed.ts';
import { freePort } from '../support/processes/server-process.ts';
import { startTunnelProxy, type TunnelProxy } from '../support/processes/tunnel-proxy.ts';
import { completion, delta, events, openAiVendor, tokenPrices } from '../support/vendors/openai-vendor.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';

const CHAT = { model: 'vendor/m', messages: [{ role: 'user', content: 'hi' }] };
/** Names that do not resolve: every request to them went through the proxy. */
const VENDOR = 'http://vendor.invalid:8080';
const DIRECTORY = 'http://directory.invalid:8081';

describe('a gateway behind the proxy of a company', () => {
  let vendor: ScriptedUpstream;
  let proxy: TunnelProxy;
  let gateway: TestGateway | undefined;

  beforeEach(async () => {
    vendor = await startScriptedUpstream(respondWith(200, completion()));
    proxy = await startTunnelProxy(vendor.port);
  });
  afterEach(async () => {
    await gateway?.stop();
    gateway = undefined;
    await proxy.close();
    await vendor.close();
  });

  const chat = (rest: object = {}): Promise<Response> =>
    (gateway ?? expect.fail()).post('/v1/chat/completions', { ...CHAT, ...rest });
  const addresses = (): readonly string[] => proxy.requests.map(({ address }) => address);

  it('E67: uses the one in the environment, which is not in the configuration', async () => {
    gateway = await startGateway(
      { providers: { vendor: openAiVendor({ url: VENDOR }) } },
      { env: { HTTP_PROXY: proxy.url, NO_PROXY: 'localhost,.corp.invalid' } },
    );
    expect((await chat()).status).to.equal(200);
    expect(addresses()).to.deep.equal(['vendor.invalid:8080']);
  });

  it('E67: has a provider with its own proxy, and one without, in addition to that of the environment', async () => {
    const other = await startTunnelProxy(vendor.port);
    const direct = openAiVendor({ url: vendor.url });
    gateway = await startGateway(
      {
        providers: {
          vendor: { ...openAiVendor({ url: VENDOR }), proxy: other.url },
          direct: { ...direct, proxy: false },
        },
      },
      { env: { HTTP_PROXY: proxy.url } },
    );
    expect([(await chat()).status, (await chat({ model: 'direct/m' })).status]).to.deep.equal([200, 200]);
    expect([addresses(), other.requests.map(({ address }) => address)]).to.deep.equal([[], ['vendor.invalid:8080']]);
    await other.close();
  });

  it('E67: fetches the credential of a provider through it, like its calls', async () => {
    const token = respondWith(200, { access_token: 'token-1', expires_in: 3600, token_type: 'Bearer' });
    vendor.script((wire) =>
      wire.send(wire.request.path.endsWith('/oauth2/v2.0/token') ? token : respondWith(200, completion())),
    );
    const entra = { tenant: 'acme', clientId: 'app', clientSecret: 'secret-0123456789', authority: DIRECTORY };
    const azure = { plugin: 'azure', baseUrl: `${VENDOR}/openai/v1`, entra, proxy: proxy.url };
    gateway = await startGateway({ providers: { vendor: azure } });
    expect((await chat()).status).to.equal(200);
    expect([...addresses()].sort()).to.deep.equal(['directory.invalid:8081', 'vendor.invalid:8080']);
    expect(vendor.requests.at(-1)?.headers['authorization']).to.equal('Bearer token-1');
  });

  it('E67: reaches an OpenID provider through it, from discovery to sign-in', async () => {
    const port = await freePort();
    const base = `http://127.0.0.1:${port}`;
    const redirectUris = [`${base}/api/core/admin/callback`];
    const people = await startOpenIdPeople({ people: { ann: { roles: ['operator'] } }, redirectUris });
    const way = await startTunnelProxy(Number(new URL(people.issuer).port));
    const openid = {
      ...{ issuer: people.issuer, clientId: 'gateway', clientSecret: CLIENT_SECRET, adminRoles: ['operator'] },
      ...{ publicUrl: base, proxy: way.url },
    };
    gateway = await startGateway({
      server: { port, drainTimeout: '2s' },
      auth: { 'api-key': { bootstrap: true }, openid },
    });
    try {
      people.person = 'ann';
      const { status } = await openBrowser().visit(`${base}/api/core/admin/login?return_to=/livez`);
      expect(status).to.equal(200);
      expect(way.requests.length).to.be.above(0);
      expect(new Set(way.requests.map(({ address }) => address))).to.deep.equal(new Set([new URL(people.issuer).host]));
    } finally {
      await gateway.stop();
      gateway = undefined;
      await way.close();
      await people.stop();
    }
  });

  it('E67: ends a stream with an error if the proxy cuts it, charges the received part, and releases its reservation', async () => {
    vendor.script(events([delta('Hello')], (wire) => wire.hang()));
    const priced = { ...openAiVendor({ url: VENDOR }), prices: tokenPrices(1000, 1000), proxy: proxy.url };
    gateway = await startGateway({ providers: { vendor: priced } });
    const response = await chat({ stream: true, max_tokens: 1000 });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader() ?? expect.fail('no body');
    let text = '';
    while (!text.includes('Hello')) text += (await reader.read()).value ?? expect.fail(`it ended: ${text}`);
    await proxy.close();
    for (let read = await reader.read(); !read.done; read = await reader.read()) text += read.value;
    expect(text).to.include('"error"').and.not.include('[DONE]');
    await eventually(async () => {
      const balance = (await (await gateway?.get('/api/core/balance'))?.json()) as Readonly<Record<string, string>>;
      expect(balance['held']).to.equal('0.00');
      // One delta arrived, of a reservation for a thousand tokens.
      expect(Number(balance['spent'])).to.be.above(0).and.below(0.1);
    });
    expect(gateway.logText()).not.to.include(proxy.url);
  });

  it('E67: accepts a vendor by the name in its certificate if the address differs', async () => {
    const { key, cert } = createSelfSigned();
    const secure = await startScriptedUpstream(respondWith(200, completion()), {
      createServer: (onConnection) => tls.createServer({ key, cert }, onConnection) as net.Server,
    });
    try {
      const at = openAiVendor({ url: `https://127.0.0.1:${secure.port}` });
      const named = { ...at, tls: { ca: 'vendor.crt', servername: 'localhost' } };
      const providers = { vendor: named, unnamed: { ...at, tls: { ca: 'vendor.crt' } } };
      gateway = await startGateway({ providers }, { files: { 'vendor.crt': cert } });
      expect((await chat()).status).to.equal(200);
      expect((await chat({ model: 'unnamed/m' })).status).to.be.within(500, 599);
      expect(secure.requests).to.have.length(1);
    } finally {
      await secure.close();
    }
  });
});
