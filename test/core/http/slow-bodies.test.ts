import type { Server } from 'node:http';
import type net from 'node:net';
import { expect } from 'chai';
import type { Principal } from '../../../contract/call.ts';
import type { Route } from '../../../contract/plugin.ts';
import { createKoa, createRouter } from '../../../core/http/koa.ts';
import { Lifecycle } from '../../../core/http/lifecycle.ts';
import { createMemory, type MemoryLimits } from '../../../core/http/memory.ts';
import { createHttpServer, listen } from '../../../core/http/server.ts';
import { createRequestSchemas } from '../../../core/plugins/registry.ts';
import { connectTo } from '../../support/clients/raw-socket.ts';
import { createSilentLog } from '../../support/log.ts';
import { until } from '../../support/wait.ts';

const MB = 1_000_000;
const KEYS: Readonly<Record<string, Principal>> = Object.fromEntries(
  ['a1', 'a2', 'b1'].map((key) => [
    key,
    { credential: 'key', userId: `user ${key}`, account: key.slice(0, 1), keyId: key } satisfies Principal,
  ]),
);
const OPEN: Route = {
  ...{ method: 'POST', path: '/open', summary: 'x', auth: 'none', body: { type: 'object' }, responses: { 200: 'x' } },
  handler(ctx) {
    ctx.body = { ok: true };
  },
};
const WITH_KEY: Route = { ...OPEN, path: '/x', auth: ['key'] };
const FORM: Route = { ...WITH_KEY, path: '/form', form: { maxFileBytes: 20 * MB } };
const WHOLE: Route = { ...FORM, path: '/whole', form: { maxFileBytes: 20 * MB, readsWhole: true } };

describe('callers that send large or slow bodies', () => {
  let url: string;
  let server: Server;
  const sockets: net.Socket[] = [];

  async function start(limits: Partial<MemoryLimits>): Promise<void> {
    const router = createRouter({
      routes: [OPEN, WITH_KEY, FORM, WHOLE].map((value) => ({ owner: 'test', value })),
      requests: createRequestSchemas([]),
      authenticate: async ({ credential }) => KEYS[credential],
      lifecycle: new Lifecycle(),
      maxBodyBytes: 20 * MB,
      memory: createMemory(limits),
    });
    const koa = createKoa([router], { lifecycle: new Lifecycle(), log: createSilentLog() });
    const options = { host: '127.0.0.1', port: 0, requestTimeoutMs: 60_000, keepAliveMs: 1000 };
    server = createHttpServer(koa.callback(), options);
    url = `http://127.0.0.1:${await listen(server, '127.0.0.1', 0)}`;
  }
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
    server.close().closeAllConnections();
  });

  /** Sends a request that announces 4 MB and writes `bytes` of them; `text` collects the response. */
  async function begin(key: string, bytes: number, path = '/x', type = 'application/json'): Promise<{ text: string }> {
    const socket = await connectTo(url);
    sockets.push(socket);
    const seen = { text: '' };
    socket.on('data', (chunk) => {
      seen.text += String(chunk);
    });
    socket.write(
      `POST ${path} HTTP/1.1\r\nhost: x\r\nx-api-key: ${key}\r\ncontent-type: ${type}\r\ncontent-length: ${4 * MB}\r\n\r\n`,
    );
    if (bytes > 0) socket.write(`{"x":"${'x'.repeat(bytes - 6)}`);
    return seen;
  }

  async function post(
    key: string,
    bytes: number,
    path = '/x',
  ): Promise<{ status: number; code?: string; message?: string }> {
    const response = await fetch(url + path, {
      method: 'POST',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      body: JSON.stringify({ x: 'x'.repeat(bytes) }),
    });
    const { error } = (await response.json()) as { error?: { code: string; message: string } };
    return { status: response.status, ...error };
  }

  it('E25: do not reserve the memory of others by their announced length, and are ended with 408', async () => {
    await start({ bytes: 24 * MB, leastRate: { bytes: 5000, everyMs: 500 } });
    const slow = await Promise.all(Array.from({ length: 9 }, () => begin('a1', 600)));
    for (let count = 0; count < 60; count += 1) expect(await post('b1', 1000)).to.deep.equal({ status: 200 });
    expect(await post('a2', 1000), 'also of the same account').to.deep.equal({ status: 200 });
    await until('all slow ones are refused', () => slow.every(({ text }) => text.includes('request_timeout')), 60_000);
    for (const { text } of slow) expect(text).to.match(/^HTTP\/1\.1 408 /);
  });

  it('E25: share the memory of received bytes per account; others keep theirs, also for large bodies', async () => {
    // 21 MB for all but small bodies, of which one account may hold 14: 4.6 MB of bodies.
    await start({ bytes: 24 * MB });
    await Promise.all([begin('a1', MB), begin('a1', MB), begin('a2', MB), begin('a2', MB)]);
    await until('its share is used up', async () => (await post('a2', MB)).status === 429);
    const refused = await post('a2', MB);
    expect(refused).to.include({ status: 429, code: 'rate_limited' });
    expect(refused.message).to.include('of this account');
    expect(await post('b1', MB), 'a large one of another').to.deep.equal({ status: 200 });
    expect(await post('a1', 1000), 'a small one of the same account').to.deep.equal({ status: 200 });
    expect(await post('a1', 1000, '/open'), 'one without a key').to.deep.equal({ status: 200 });
    expect(await post('b1', 6 * MB), 'one that is too large for any').to.include({ status: 413 });
    for (const socket of sockets.splice(0)) socket.destroy();
    await until('its memory is back', async () => (await post('a2', MB)).status === 200);
  });

  it('have their files booked if a route reads them into memory, otherwise only data in transit', async () => {
    await start({ bytes: 24 * MB });
    const send = async (path: string): Promise<number> => {
      const form = new FormData();
      form.set('file', new Blob([new Uint8Array(8 * MB)]), 'sound.wav');
      return (await fetch(url + path, { method: 'POST', headers: { 'x-api-key': 'a1' }, body: form })).status;
    };
    expect(await send('/form')).to.equal(200);
    expect(await send('/whole'), 'twice 8 MB are over the 14 MB of one account').to.equal(413);
  });

  it('E25: have the files of forms booked while they arrive, before they fill the disk', async () => {
    await start({ bytes: 24 * MB });
    const form = 'multipart/form-data; boundary=b';
    const part = '--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\ncontent-type: audio/wav\r\n\r\n';
    const send = async (key: string): Promise<{ text: string }> => {
      const seen = await begin(key, 0, '/whole', form);
      sockets.at(-1)?.write(part + 'x'.repeat(3.9 * MB));
      return seen;
    };
    const first = await send('a1');
    const second = await send('a2');
    await until('one of an account is refused', () => /HTTP\/1\.1 429/.test(first.text + second.text));
    const other = await begin('b1', 0, '/whole', form);
    sockets.at(-1)?.end(`${part}x\r\n--b--\r\n${' '.repeat(4 * MB)}`);
    await until('that of another is taken', () => other.text.startsWith('HTTP/1.1 200'));
  });

  it('E25: are refused as 503 only when those of others have all the memory', async () => {
    await start({ bytes: 24 * MB });
    await Promise.all([begin('a1', MB), begin('a1', MB), begin('a2', MB), begin('a2', MB)]);
    await until('one account has its share', async () => (await post('a2', MB)).status === 429);
    expect(await post('b1', 3 * MB)).to.include({ status: 503, code: 'overloaded' });
    expect(await post('b1', 1000)).to.deep.equal({ status: 200 });
  });

  it('E25: are ended with 408 on a route with a form too', async () => {
    await start({ leastRate: { bytes: 5000, everyMs: 100 } });
    const slow = await begin('a1', 600, '/form', 'multipart/form-data; boundary=x');
    await until('it is refused', () => slow.text.includes('request_timeout'), 60_000);
    expect(slow.text).to.match(/^HTTP\/1\.1 408 /);
  });

  it('E25: may send a body in chunks of one byte, which are combined on arrival', async () => {
    await start({});
    const socket = await connectTo(url);
    sockets.push(socket);
    let text = '';
    socket.on('data', (chunk) => {
      text += String(chunk);
    });
    const body = JSON.stringify({ x: 'é'.repeat(20_000) });
    const chunks = [...Buffer.from(body)].map((byte) =>
      Buffer.concat([Buffer.from('1\r\n'), Buffer.from([byte, 13, 10])]),
    );
    socket.write(
      'POST /x HTTP/1.1\r\nhost: x\r\nx-api-key: a1\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n',
    );
    socket.write(Buffer.concat([...chunks, Buffer.from('0\r\n\r\n')]));
    await until('it is answered', () => text.includes('{"ok":true}'));
  });
});
