import { X509Certificate } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import https from 'node:https';
import path from 'node:path';
import tls from 'node:tls';
import { expect } from 'chai';
import { loadConfig } from '../../config/load-config.ts';
import { portOf, requestTls, trusting } from '../support/clients/tls-client.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { type Certificate, createSelfSigned } from '../support/identity/self-signed.ts';
import { delta } from '../support/vendors/openai-vendor.ts';
import { heldSse, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';
import { until } from '../support/wait.ts';

const [first, second] = [createSelfSigned({ subject: 'first' }), createSelfSigned({ subject: 'second' })];
const [client, nextClient] = [createSelfSigned({ subject: 'client' }), createSelfSigned({ subject: 'next client' })];
const either = { ca: [first.cert, second.cert], servername: 'localhost' };

const serialOf = ({ cert }: Certificate): string => new X509Certificate(cert).serialNumber;

/** Session that a client may resume; the gateway sends it after the handshake. */
function sessionOf(url: string, options: tls.ConnectionOptions): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = tls.connect({ host: '127.0.0.1', port: portOf(url), ...either, ...options });
    socket.on('error', reject);
    socket.resume();
    socket.once('session', (session) => {
      resolve(session);
      socket.destroy();
    });
  });
}

describe('a gateway whose certificate is replaced', () => {
  let upstream: ScriptedUpstream;
  let gateway: TestGateway;
  const put = async (certificate: Partial<Certificate>): Promise<void> => {
    if (certificate.cert !== undefined) await writeFile(path.join(gateway.folder, 'tls.crt'), certificate.cert);
    if (certificate.key !== undefined) await writeFile(path.join(gateway.folder, 'tls.key'), certificate.key);
  };
  const reload = async (): Promise<void> => {
    const configPath = path.join(gateway.folder, 'tollgate.config.json');
    await gateway.use(await loadConfig({ cwd: gateway.folder, env: {}, configPath }));
  };
  const shown = async (more: tls.ConnectionOptions = {}): Promise<string> =>
    (await requestTls(gateway.url, '/livez', { ...either, ...more })).serial;

  beforeEach(async () => {
    upstream = await startScriptedUpstream();
    const slow = { plugin: 'openai-compatible', baseUrl: upstream.url, apiKey: 'k', models: ['*'] };
    const server = { port: 0, drainTimeout: '2s', keepAlive: '60s' };
    gateway = await startGateway(
      {
        server: {
          ...server,
          tls: { cert: 'tls.crt', key: 'tls.key', clientCa: 'clients.crt', clientAuth: 'optional' },
        },
        providers: { echo: {}, slow },
      },
      { files: { 'tls.crt': first.cert, 'tls.key': first.key, 'clients.crt': client.cert } },
    );
  });
  afterEach(async () => {
    await gateway.stop();
    await upstream.close();
  });

  it('shows the new one to the next client, while 50 open connections and a running stream continue', async () => {
    const agent = new https.Agent({ keepAlive: true, maxSockets: 50, ...either });
    const round = () =>
      Promise.all(Array.from({ length: 50 }, () => requestTls(gateway.url, '/readyz', { ...either, agent })));
    const before = await round();
    const ports = new Set(before.map(({ localPort }) => localPort));
    expect(ports.size).to.equal(50);
    const held = heldSse(delta('one'), delta('two', 'stop'), '[DONE]');
    upstream.script(held.script);
    const streaming = requestTls(gateway.url, '/v1/chat/completions', {
      ...trusting(first),
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'slow/m', stream: true, messages: [{ role: 'user', content: 'x' }] }),
    });
    await until('the stream has begun', () => upstream.requests.length === 1);

    await put(second);
    await reload();

    expect(await shown()).to.equal(serialOf(second));
    const after = await round();
    expect(after.every(({ status }) => status === 200)).to.equal(true);
    expect(new Set(after.map(({ localPort }) => localPort))).to.deep.equal(ports);
    expect(new Set(after.map(({ serial }) => serial))).to.deep.equal(new Set([serialOf(first)]));
    held.finish();
    const { status, body, serial } = await streaming;
    expect({ status, serial }).to.deep.equal({ status: 200, serial: serialOf(first) });
    expect(body).to.include('one').and.include('two').and.include('[DONE]');
    agent.destroy();
  });

  for (const [title, files, reported] of [
    [
      'a certificate without its key',
      { cert: second.cert },
      /tollgate\.config\.json:\d+:\d+ server\.tls\.key: does not belong/,
    ],
    ['a key without its certificate', { key: second.key }, /server\.tls\.key: does not belong/],
    ['half a certificate', { ...second, cert: second.cert.slice(0, 200) }, /server\.tls\.cert: is a file without a/],
  ] as const)
    it(`keeps the previous one if it is replaced by ${title}`, async () => {
      await put(files);
      const refused = await reload().catch((error: Error) => error.message);
      expect(refused).to.match(reported);
      expect(await shown()).to.equal(serialOf(first));
      await put(second);
      await reload();
      expect(await shown()).to.equal(serialOf(second));
    });

  it('accepts only clients of the new authority when that is replaced too, also a returning one', async () => {
    const status = (more: tls.ConnectionOptions) =>
      requestTls(gateway.url, '/livez', { ...either, ...more }).then(
        (response) => response.status,
        () => 0,
      );
    const known = { cert: client.cert, key: client.key };
    const session = await sessionOf(gateway.url, known);
    expect(await status(known)).to.equal(200);
    expect(await status({ ...known, session })).to.equal(200);
    await writeFile(path.join(gateway.folder, 'clients.crt'), nextClient.cert);
    await reload();
    expect(await status(known)).to.equal(0);
    expect(await status({ ...known, session })).to.equal(0);
    expect(await status({ cert: nextClient.cert, key: nextClient.key })).to.equal(200);
    expect(await status({})).to.equal(200);
  });

  it('continues unchanged when the file drops TLS or its client authority @slow', async () => {
    const configPath = path.join(gateway.folder, 'tollgate.config.json');
    const config = {
      ...JSON.parse(await readFile(configPath, 'utf8')),
      server: { port: 0, tls: { cert: 'tls.crt', key: 'tls.key' } },
    };
    await writeFile(configPath, JSON.stringify(config));
    await reload();
    const wrong = { cert: nextClient.cert, key: nextClient.key };
    expect(await shown(wrong).catch(() => 'refused')).to.equal('refused');
    expect(await shown({ cert: client.cert, key: client.key })).to.equal(serialOf(first));
    await writeFile(configPath, JSON.stringify({ ...config, server: { port: 0 } }));
    await reload();
    expect(await shown()).to.equal(serialOf(first));
  });
});
