import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import net from 'node:net';
import tls from 'node:tls';
import { expect } from 'chai';
import OpenAI from 'openai';
import { Agent, fetch as undiciFetch } from 'undici';
import { WebSocket } from 'ws';
import { portOf, requestPlain, requestTls, sendTlsBytes, trusting } from '../support/clients/tls-client.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { createSelfSigned } from '../support/identity/self-signed.ts';
import { until } from '../support/wait.ts';

const own = createSelfSigned();
const client = createSelfSigned();
const stranger = createSelfSigned();
const files = { 'tls.crt': own.cert, 'tls.key': own.key, 'clients.crt': client.cert };
const HELLO = JSON.stringify({ model: 'echo/echo', messages: [{ role: 'user', content: 'hello there' }] });

const start = (more: object = {}, config: Record<string, unknown> = {}): Promise<TestGateway> =>
  startGateway(
    {
      ...config,
      server: { port: 0, drainTimeout: '2s', bodyLimit: '100kb', tls: { cert: 'tls.crt', key: 'tls.key', ...more } },
    },
    { files, level: 'debug' },
  );

describe('a gateway with server.tls', () => {
  let gateway: TestGateway;
  const posting = () => ({
    ...trusting(own),
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
  });
  afterEach(() => gateway.stop());

  it('serves the official client over HTTPS, with and without a stream', async () => {
    gateway = await start();
    expect(gateway.url).to.match(/^https:\/\/127\.0\.0\.1:\d+$/);
    const dispatcher = new Agent({ connect: { ca: own.cert, servername: 'localhost' } });
    const openai = new OpenAI({
      apiKey: gateway.key,
      baseURL: `https://localhost:${portOf(gateway.url)}/v1`,
      maxRetries: 0,
      fetch: ((url: string, init: object) => undiciFetch(url, { ...init, dispatcher })) as never,
    });
    const messages = [{ role: 'user' as const, content: 'hello there' }];
    const whole = await openai.chat.completions.create({ model: 'echo/echo', messages });
    expect(whole.choices[0]?.message.content).to.include('hello there');
    let text = '';
    for await (const { choices } of await openai.chat.completions.create({
      model: 'echo/echo',
      messages,
      stream: true,
    }))
      text += choices[0]?.delta.content ?? '';
    expect(text).to.include('hello there');
    await dispatcher.close();
  });

  it('has the expiry of its certificate in its metrics, and without TLS no such metric', async () => {
    gateway = await start();
    const { body } = await requestTls(gateway.url, '/metrics', trusting(own));
    const [, end] = /^tollgate_tls_certificate_end_timestamp_seconds (\S+)$/m.exec(String(body)) ?? [];
    expect(Number(end)).to.equal(Date.parse(new X509Certificate(own.cert).validTo) / 1000);
    await gateway.stop();
    gateway = await startGateway();
    expect(await (await gateway.get('/metrics')).text()).not.to.match(/^tollgate_tls_certificate\w+ /m);
  });

  it('accepts websockets, whose requests go through the gateway’s own server', async () => {
    gateway = await start();
    const headers = { authorization: `Bearer ${gateway.key}`, 'openai-beta': 'responses_websockets=2026-02-06' };
    const socket = new WebSocket(`wss://localhost:${portOf(gateway.url)}/v1/responses`, { headers, ca: own.cert });
    const events: string[] = [];
    socket.on('message', (data) => events.push(String(data)));
    await once(socket, 'open');
    socket.send(JSON.stringify({ type: 'response.create', model: 'echo/echo', input: 'hello there' }));
    await until('the response is over', () => events.some((event) => event.includes('"response.completed"')));
    expect(events.join()).to.include('hello there');
    socket.close();
    await once(socket, 'close');
  });

  it('repeats the response to an idempotency key', async () => {
    gateway = await start();
    const { headers, ...rest } = posting();
    const send = () =>
      requestTls(gateway.url, '/v1/chat/completions', {
        ...rest,
        headers: { ...headers, 'idempotency-key': 'one' },
        body: HELLO,
      });
    const [first, second] = [await send(), await send()];
    expect(first.status, first.body).to.equal(200);
    expect(second.body).to.equal(first.body);
  });

  it('ignores an upgrade to another protocol than websocket', async () => {
    gateway = await start();
    const head =
      'GET /livez HTTP/1.1\r\nhost: x\r\nconnection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n';
    const socket = tls.connect({ host: '127.0.0.1', port: portOf(gateway.url), ...trusting(own) }, () =>
      socket.write(head),
    );
    const [response] = (await once(socket, 'data')) as [Buffer];
    expect(String(response)).to.match(/^HTTP\/1\.1 200 /);
    socket.destroy();
  });

  it('refuses the same requests as without TLS, in the same format', async () => {
    gateway = await start();
    const bytes = (text: string) => sendTlsBytes(gateway.url, text, trusting(own));
    expect(await bytes('this is no HTTP\r\n\r\n')).to.match(/^HTTP\/1\.1 400 [\s\S]+"code":"invalid_request"/);
    expect(await bytes(`GET / HTTP/1.1\r\nhost: x\r\nx-long: ${'a'.repeat(20_000)}\r\n\r\n`)).to.match(
      /^HTTP\/1\.1 431 [\s\S]+"code":"headers_too_large"/,
    );
    const large = await requestTls(gateway.url, '/v1/chat/completions', {
      ...posting(),
      body: `"${'a'.repeat(200_000)}"`,
    });
    expect(large.status).to.equal(413);
    expect(large.body).to.include('request_too_large');
    expect((await requestTls(gateway.url, '/v1/unknown', posting())).status).to.equal(404);
  });

  it('rejects plain HTTP and other bytes, and continues', async () => {
    gateway = await start();
    expect(await requestPlain(gateway.url)).to.be.oneOf(['ECONNRESET', 'EPIPE', 'HPE_INVALID_CONSTANT']);
    const socket = net.connect(portOf(gateway.url), '127.0.0.1', () => socket.write(Buffer.alloc(400, 0xff)));
    socket.on('error', () => {});
    socket.resume();
    await once(socket, 'close');
    expect((await requestTls(gateway.url, '/livez', trusting(own))).status).to.equal(200);
    expect(gateway.logText()).to.include('a TLS handshake failed');
  });

  it('uses no older version than configured', async () => {
    gateway = await start({ minVersion: 'TLSv1.3' });
    const refused = await requestTls(gateway.url, '/livez', { ...trusting(own), maxVersion: 'TLSv1.2' }).catch(
      (error) => error.code,
    );
    expect(refused).to.equal('EPROTO');
    expect((await requestTls(gateway.url, '/livez', trusting(own))).status).to.equal(200);
  });

  it('accepts only clients with a certificate of its authority, if one is required', async () => {
    gateway = await start({ clientCa: 'clients.crt' });
    const get = (more: object) =>
      requestTls(gateway.url, '/livez', { ...trusting(own), ...more }).then(
        ({ status }) => status,
        () => 'refused',
      );
    expect(await get({})).to.equal('refused');
    expect(await get({ cert: stranger.cert, key: stranger.key })).to.equal('refused');
    expect(await get({ cert: client.cert, key: client.key })).to.equal(200);
  });

  it('accepts clients without a certificate if it is optional, and none with a wrong one', async () => {
    gateway = await start({ clientCa: 'clients.crt', clientAuth: 'optional' });
    const get = (more: object) =>
      requestTls(gateway.url, '/livez', { ...trusting(own), ...more }).then(
        ({ status }) => status,
        () => 'refused',
      );
    expect(await get({})).to.equal(200);
    expect(await get({ cert: client.cert, key: client.key })).to.equal(200);
    expect(await get({ cert: stranger.cert, key: stranger.key })).to.equal('refused');
    expect(gateway.logText()).to.include('client certificate rejected');
  });

  it('drains immediately despite a client that stalls in its handshake', async () => {
    // Shorter than the handshake timeout.
    gateway = await start();
    const silent = net.connect(portOf(gateway.url), '127.0.0.1');
    silent.on('error', () => {});
    await once(silent, 'connect');
    // A response to a later request proves that the server has accepted the silent connection too.
    await requestTls(gateway.url, '/livez', trusting(own));
    const closed = once(silent, 'close');
    silent.resume();
    await gateway.close();
    await closed;
  });
});
