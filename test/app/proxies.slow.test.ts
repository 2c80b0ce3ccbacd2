import { readdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import https from 'node:https';
import path from 'node:path';
import { expect } from 'chai';
import { WebSocket } from 'ws';
import { portOf, requestTls, trusting } from '../support/clients/tls-client.ts';
import { useTempFolder } from '../support/folders.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { createSelfSigned } from '../support/identity/self-signed.ts';
import { EXAMPLE_PROXIES } from '../support/processes/example-proxies.ts';
import { type RunningProxy, startProxy } from '../support/processes/proxy-process.ts';
import { freePort } from '../support/processes/server-process.ts';
import { delta } from '../support/vendors/openai-vendor.ts';
import { heldSse, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';
import { eventually, until } from '../support/wait.ts';

const certificate = createSelfSigned();
// CI installs both; other machines may lack them.
for (const [name, { program, args, config }] of Object.entries(EXAMPLE_PROXIES))
  (program === undefined ? describe.skip : describe)(
    `a gateway behind ${name} as deploy/ has it${program === undefined ? ' (not installed)' : ''}`,
    () => {
      const folder = useTempFolder('proxy');
      let upstream: ScriptedUpstream;
      let gateway: TestGateway;
      let proxy: RunningProxy;
      let url = '';

      before(async () => {
        upstream = await startScriptedUpstream();
        gateway = await startGateway({
          server: { port: 0, drainTimeout: '2s', trustProxy: 1, keepAlive: '65s' },
          providers: {
            echo: {},
            slow: { plugin: 'openai-compatible', baseUrl: upstream.url, apiKey: 'k', models: ['*'] },
          },
        });
        await writeFile(path.join(folder, 'tls.crt'), certificate.cert);
        await writeFile(path.join(folder, 'tls.key'), certificate.key);
        const own = await freePort();
        await writeFile(path.join(folder, 'proxy.conf'), config({ own, gateways: [portOf(gateway.url)] }, folder));
        url = `https://localhost:${own}`;
        proxy = startProxy(program ?? name, args, folder);
        await eventually(async () => {
          const { status } = await requestTls(url, '/livez', trusting(certificate));
          expect(status, proxy.output()).to.equal(200);
        });
      });
      after(async () => {
        await proxy.stop();
        await gateway.stop();
        await upstream.close();
      });

      const headers = () => ({
        host: `localhost:${portOf(url)}`,
        authorization: `Bearer ${gateway.key}`,
        'content-type': 'application/json',
      });

      it('sends each part of a stream at once', async () => {
        const held = heldSse(delta('one'), delta('two', 'stop'), '[DONE]');
        upstream.script(held.script);
        let text = '';
        const ended = new Promise<void>((resolve, reject) => {
          const request = https.request(
            {
              host: '127.0.0.1',
              port: portOf(url),
              path: '/v1/chat/completions',
              method: 'POST',
              headers: headers(),
              agent: false,
              ca: certificate.cert,
              servername: 'localhost',
            },
            (response) => {
              response.setEncoding('utf8');
              response.on('data', (part: string) => {
                text += part;
              });
              response.on('end', resolve);
            },
          );
          request.on('error', reject);
          request.end(JSON.stringify({ model: 'slow/m', stream: true, messages: [{ role: 'user', content: 'x' }] }));
        });
        await until('the first part is here', () => text.includes('one'));
        expect(text).to.not.include('two');
        held.finish();
        await ended;
        expect(text).to.include('two').and.include('[DONE]');
      });

      it('serves websockets', async () => {
        const socket = new WebSocket(`${url.replace('https', 'wss')}/v1/responses`, {
          headers: { authorization: `Bearer ${gateway.key}`, 'openai-beta': 'responses_websockets=2026-02-06' },
          ca: certificate.cert,
        });
        const events: string[] = [];
        socket.on('message', (data) => events.push(String(data)));
        socket.on('error', (error) => events.push(String(error)));
        await until('it is open', () => socket.readyState === WebSocket.OPEN || events.length > 0);
        socket.send(JSON.stringify({ type: 'response.create', model: 'echo/echo', input: 'hello there' }));
        await until('the response is over', () => events.some((event) => event.includes('"response.completed"')));
        socket.close();
      });

      it('receives a body of 30 MB, and none that it would refuse', async () => {
        const send = (megabytes: number) =>
          requestTls(url, '/v1/chat/completions', {
            ...trusting(certificate),
            headers: headers(),
            body: JSON.stringify({
              model: 'echo/echo',
              messages: [{ role: 'user', content: 'x'.repeat(megabytes * 1_000_000) }],
            }),
          });
        const { status, body } = await send(30);
        expect(status, body.slice(0, 500)).to.equal(200);
        const large = await send(40).then(
          ({ status }) => status,
          () => 'cut',
        );
        expect(large).to.be.oneOf([413, 'cut']);
      });

      it('sees the address of the client, whatever the client claims', async () => {
        await requestTls(url, '/v1/models', {
          ...trusting(certificate),
          headers: { ...headers(), 'x-forwarded-for': '9.9.9.9' },
        });
        await eventually(async () => expect(gateway.logText()).to.include('/v1/models'));
        expect(gateway.logText()).to.include('"ip":"127.0.0.1"').and.not.include('9.9.9.9');
      });

      it('hides /metrics from outside', async () => {
        expect((await requestTls(url, '/metrics', trusting(certificate))).status).to.equal(404);
        expect((await gateway.get('/metrics')).status).to.equal(200);
      });

      it('writes no key to its logs, wherever a client sends it, also for failed calls (E37)', async () => {
        const places = [
          { 'x-api-key': gateway.key },
          { 'x-goog-api-key': gateway.key },
          { authorization: gateway.key },
        ];
        const get = (at: string, more: Readonly<Record<string, string>>) =>
          requestTls(url, at, { ...trusting(certificate), headers: { host: `localhost:${portOf(url)}`, ...more } });
        for (const place of places) await get('/v1/models', place);
        await get(`/v1beta/models?key=${gateway.key}`, {});
        await gateway.stop();
        expect((await get(`/v1beta/models?pageSize=1&key=${gateway.key}`, {})).status).to.be.oneOf([502, 503]);
        const logs = () =>
          proxy.output() +
          readdirSync(folder)
            .filter((file) => file.endsWith('.log'))
            .map((file) => readFileSync(path.join(folder, file), 'utf8'))
            .join('');
        await until('the failure is in a log', () => /v1beta\/models.*\b50[23]\b/.test(logs()));
        expect(logs()).to.not.include(gateway.key);
      });
    },
  );
