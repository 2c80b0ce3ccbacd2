// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are the texts that a configuration holds.
import { writeFile } from 'node:fs/promises';
import type net from 'node:net';
import path from 'node:path';
import tls from 'node:tls';
import { expect } from 'chai';
import { useTempFolder } from '../support/folders.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { createSelfSigned } from '../support/identity/self-signed.ts';
import { type RunningProxy, startProxy } from '../support/processes/proxy-process.ts';
import { describeWith, findProgram, freePort, send } from '../support/processes/server-process.ts';
import { completion, delta, openAiVendor } from '../support/vendors/openai-vendor.ts';
import {
  respondWith,
  type ScriptedUpstream,
  sse,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';
import { eventually, until } from '../support/wait.ts';

const tinyproxy = findProgram('tinyproxy', ['/usr/bin', '/usr/sbin']);
const [vendors, ours] = [createSelfSigned(), createSelfSigned({ subject: 'gateway' })];
const files = { 'vendor.crt': vendors.cert, 'own.crt': ours.cert, 'own.key': ours.key };
const PASSWORD = 'proxy-word';

describeWith(
  'a gateway behind tinyproxy, in front of a vendor that requires a client certificate',
  { tinyproxy },
  () => {
    const folder = useTempFolder('tinyproxy');
    let vendor: ScriptedUpstream;
    let proxy: RunningProxy;
    let port = 0;
    let gateway: TestGateway;

    const chat = (rest: object = {}) =>
      gateway.post('/v1/chat/completions', { model: 'vendor/m', messages: [{ role: 'user', content: 'hi' }], ...rest });
    const tunnels = (): number => proxy.output().match(/CONNECT localhost:/g)?.length ?? 0;

    before(async () => {
      vendor = await startScriptedUpstream(respondWith(200, completion()), {
        createServer: (onConnection) =>
          tls.createServer(
            { key: vendors.key, cert: vendors.cert, ca: ours.cert, requestCert: true, rejectUnauthorized: true },
            onConnection,
          ) as net.Server,
      });
      port = await freePort();
      const config = `Port ${port}\nListen 127.0.0.1\nTimeout 600\nLogLevel Connect\nMaxClients 50\nBasicAuth user ${PASSWORD}\n`;
      await writeFile(path.join(folder, 'proxy.conf'), config);
      proxy = startProxy(tinyproxy ?? '', ['-d', '-c', 'proxy.conf'], folder);
      await until('the proxy listens', async () => (await send(port, 'GET / HTTP/1.0\r\n\r\n')).startsWith('HTTP/'));
    });
    after(async () => {
      await proxy.stop();
      await vendor.close();
    });
    afterEach(() => gateway.stop());

    const start = async (changes: object, sections: object = {}): Promise<void> => {
      const own = {
        ...openAiVendor({ url: `https://localhost:${vendor.port}` }),
        proxy: `http://user:${PASSWORD}@127.0.0.1:${port}`,
        tls: { ca: 'vendor.crt', cert: 'own.crt', key: '${file:own.key}' },
      };
      gateway = await startGateway({ providers: { vendor: { ...own, ...changes } }, ...sections }, { files });
    };

    it('E67: reaches it with and without a stream, on one connection for all calls', async () => {
      await start({});
      const first = await chat();
      expect([first.status, ((await first.json()) as { model: string }).model]).to.deep.equal([200, 'm']);
      vendor.script(sse(delta('hello', 'stop'), '[DONE]'), respondWith(200, completion()));
      expect(await (await chat({ stream: true })).text()).to.include('hello');
      expect((await chat()).status).to.equal(200);
      expect(vendor.connections.total).to.equal(1);
      await eventually(() => Promise.resolve(expect(tunnels()).to.equal(1)));
      expect(gateway.logText()).not.to.include(PASSWORD);
    });

    it('E67: reports an unreachable provider to callers, and in the log that the proxy rejects the password', async () => {
      const { length } = vendor.requests;
      await start({ proxy: `http://user:not-${PASSWORD}@127.0.0.1:${port}` });
      const response = await chat();
      const text = await response.text();
      expect(response.status).to.be.within(500, 599);
      expect(text).not.to.include(PASSWORD);
      expect(gateway.logText()).to.include('the proxy did not connect').and.not.include(PASSWORD);
      expect(vendor.requests.length).to.equal(length);
    });

    for (const [title, certificates] of [
      ['shows no certificate', { ca: 'vendor.crt' }],
      ['does not know the vendor’s authority', { cert: 'own.crt', key: 'own.key' }],
      [
        'wants the vendor to have another name',
        { ca: 'vendor.crt', cert: 'own.crt', key: 'own.key', servername: 'x.example' },
      ],
    ] as const)
      it(`E67: sends nothing if it ${title}`, async () => {
        const { length } = vendor.requests;
        await start({ tls: certificates });
        expect((await chat()).status).to.be.within(500, 599);
        expect(vendor.requests.length).to.equal(length);
      });

    it('E67: reads the keys of tokens through a proxy too', async () => {
      const keys = await startScriptedUpstream(respondWith(200, { keys: [] }));
      try {
        const jwt = {
          ...{ issuer: 'https://idp.example', audience: 'tollgate', jwksUri: `http://localhost:${keys.port}/keys` },
          proxy: `http://user:${PASSWORD}@127.0.0.1:${port}`,
        };
        await start({}, { auth: { 'api-key': { bootstrap: true }, jwt } });
        expect((await keys.request(0)).path).to.equal('/keys');
        await until('the proxy says so', () => proxy.output().includes(`CONNECT localhost:${keys.port}`));
      } finally {
        await keys.close();
      }
    });
  },
);
