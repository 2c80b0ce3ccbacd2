import { once } from 'node:events';
import net from 'node:net';
import { expect } from 'chai';
import type { Endpoint, HttpRequest, Timeouts } from '../../core/provider.ts';
import { createUpstream, type Upstream, UpstreamError, type UpstreamPhase } from '../../core/upstream.ts';
import {
  answer,
  chunk,
  head,
  LAST_CHUNK,
  type Script,
  type ScriptedUpstream,
  SSE_HEAD,
  startScriptedUpstream,
} from '../support/scripted-upstream.ts';
import { createSilentLog } from '../support/silent-log.ts';
import { until } from '../support/until.ts';

const SHORT: Timeouts = { connectMs: 300, firstByteMs: 300, idleMs: 300, totalMs: 5_000 };
const ERROR = () => ({ class: 'upstream_error' as const, message: '' });

describe('upstream', () => {
  let vendor: ScriptedUpstream;
  let upstream: Upstream;

  beforeEach(async () => {
    vendor = await startScriptedUpstream();
    upstream = createUpstream({ log: createSilentLog(), defaults: SHORT, limits: { maxResponseBytes: 256 * 1024 } });
  });

  afterEach(async () => {
    await upstream.close();
    await vendor.close();
  });

  const endpoint = (more: Partial<Endpoint> = {}): Endpoint => ({
    baseUrl: `${vendor.url}/v1`,
    credential: { header: 'authorization', prefix: 'Bearer ', value: 'sk-canary', required: true },
    error: ERROR,
    ...more,
  });
  const send = (
    request: Partial<HttpRequest> = {},
    options: { signal?: AbortSignal; deadlines?: Partial<Timeouts>; endpoint?: Partial<Endpoint> } = {},
  ) =>
    upstream.send(
      endpoint(options.endpoint),
      { path: '/chat', body: { hello: 'wörld' }, ...request },
      {
        signal: options.signal ?? new AbortController().signal,
        ...(options.deadlines && { deadlines: options.deadlines }),
      },
    );

  describe('a request', () => {
    it('goes out with the key, as JSON, asking for no encoding', async () => {
      vendor.script(answer(200, { ok: true }));
      const response = await send(
        { headers: { 'X-Extra': '1' } },
        { endpoint: { headers: { 'x-extra': '0', 'x-own': 'y' } } },
      );
      expect(response.status).to.equal(200);
      expect(JSON.parse((await response.readAll()).toString())).to.deep.equal({ ok: true });
      const [request] = vendor.requests;
      expect(request).to.deep.include({ method: 'POST', path: '/v1/chat' });
      expect(request!.headers).to.include({
        authorization: 'Bearer sk-canary',
        'content-type': 'application/json',
        'accept-encoding': 'identity',
        'x-extra': '1',
        'x-own': 'y',
      });
      expect(request!.json()).to.deep.equal({ hello: 'wörld' });
    });

    it('sends bytes untouched and no body with GET', async () => {
      vendor.script(answer(200));
      await (await send({ body: Buffer.from('{"a" : 1}') })).readAll();
      await (
        await upstream.send(endpoint(), { path: '/models?limit=1' }, { signal: new AbortController().signal })
      ).readAll();
      expect(vendor.requests[0]!.body.toString()).to.equal('{"a" : 1}');
      expect(vendor.requests[1]).to.deep.include({ method: 'GET', path: '/v1/models?limit=1' });
      expect(vendor.requests[1]!.headers).to.not.have.any.keys('content-length', 'content-type', 'transfer-encoding');
    });

    it('gives header names in lower case and joins repeated ones', async () => {
      vendor.script('HTTP/1.1 200 OK\r\nX-RateLimit-Limit-Requests: 5\r\nA: 1\r\na: 2\r\nContent-Length: 0\r\n\r\n');
      const { headers } = await send();
      expect(headers).to.deep.equal({ 'x-ratelimit-limit-requests': '5', a: '1, 2', 'content-length': '0' });
    });

    it('reuses a connection for the next request once an answer is read', async () => {
      vendor.script(answer(200, 'ok'));
      for (let n = 0; n < 5; n++) await (await send()).readAll();
      expect(vendor.connections.total).to.equal(1);
    });

    for (const name of ['Host', 'content-length', 'transfer-encoding', 'connection', 'Accept-Encoding']) {
      it(`refuses a header of its own: ${name}`, async () => {
        const error = await fails(send({ headers: { [name]: 'x' } }));
        expect(error).to.be.instanceOf(TypeError);
        expect(vendor.requests).to.have.length(0);
      });
    }

    it('refuses a header value that would split the request, without showing it', async () => {
      const error = await fails(send({ headers: { 'x-a': 'secret\r\nx-b: 1' } }));
      expect(error).to.be.instanceOf(TypeError);
      expect(error.message).to.not.include('secret');
      expect(vendor.requests).to.have.length(0);
    });
  });

  describe('an answer that is none', () => {
    const cases: readonly (readonly [string, Script | string | Buffer, UpstreamPhase, boolean?])[] = [
      ['reset before a byte of it', (wire) => wire.reset(), 'firstByte'],
      ['closed before a byte of it', (wire) => wire.end(), 'firstByte'],
      ['101', head(101, { upgrade: 'websocket', connection: 'upgrade' }), 'body'],
      // Undici takes a 100 that it did not ask for as a broken answer; no provider is known to send one.
      ['100', Buffer.concat([Buffer.from('HTTP/1.1 100 Continue\r\n\r\n'), answer(200, 'ok')]), 'body'],
      ['204', head(204), 'body'],
      ['204 with a body', `${head(204)}surprise`, 'body'],
      ['205 without a length', head(205), 'body'],
      ['301', head(301, { location: 'http://127.0.0.1:9/' }), 'body'],
      ['304', head(304), 'body'],
      ['gzip', answer(200, 'x', { 'content-encoding': 'gzip' }), 'body'],
      ['deflate', answer(200, 'x', { 'content-encoding': 'deflate' }), 'body'],
      ['br', answer(200, 'x', { 'content-encoding': 'br' }), 'body'],
      ['zstd', answer(200, 'x', { 'Content-Encoding': 'ZSTD' }), 'body'],
      ['stacked encodings', answer(200, 'x', { 'content-encoding': Array(1000).fill('gzip').join(', ') }), 'body'],
      ['a head that is too large', head(200, { 'x-large': 'x'.repeat(100_000), 'content-length': '0' }), 'body'],
      ['a head without end', (wire) => wire.send('HTTP/1.1 200 OK\r\nx: y\r\n'), 'firstByte'],
      ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nabc', 'body'],
      ['bytes that are not HTTP', 'SSH-2.0-OpenSSH_9.6\r\n\r\n', 'body'],
      ['an invalid header', 'HTTP/1.1 200 OK\r\nx\0y: z\r\ncontent-length: 0\r\n\r\n', 'body'],
      ['a declared length over the limit', head(200, { 'content-length': String(1 << 30) }), 'body'],
    ];
    for (const [what, script, phase] of cases) {
      it(`fails in phase ${phase}: ${what}`, async () => {
        vendor.script(script);
        const error = await failsUpstream(send());
        expect(error).to.include({ phase, sent: true });
        expect(error.failure).to.equal(what === 'a head without end' ? 'timeout' : 'upstream_error');
        expect(error.message).to.not.match(/127\.0\.0\.1|localhost|sk-canary|\/v1/);
        await until('the connection is closed', () => vendor.connections.open === 0);
      });
    }

    it('ignores early hints', async () => {
      vendor.script(Buffer.concat([Buffer.from(head(103, { link: '</x>' })), answer(200, 'ok')]));
      expect((await (await send()).readAll()).toString()).to.equal('ok');
    });

    for (const status of [301, 302, 303, 307, 308]) {
      it(`does not follow a ${status}: the other origin sees nothing`, async () => {
        const other = await startScriptedUpstream(answer(200, 'got you'));
        try {
          vendor.script(answer(status, '', { location: `${other.url}/steal` }));
          expect(await failsUpstream(send())).to.include({ failure: 'upstream_error', phase: 'body' });
          vendor.script(answer(status, '', { location: `${vendor.url}/v1/again` }));
          expect(await failsUpstream(send())).to.include({ failure: 'upstream_error', phase: 'body' });
          expect(other.connections.total).to.equal(0);
          expect(vendor.requests).to.have.length(2);
        } finally {
          await other.close();
        }
      });
    }

    it('keeps the status of an error page that came encoded, without its text', async () => {
      vendor.script(answer(429, 'gibberish', { 'content-encoding': 'gzip', 'retry-after': '2' }));
      const response = await send();
      expect(response).to.deep.include({ status: 429 });
      expect(response.headers).to.include({ 'retry-after': '2' });
      expect((await response.readAll()).length).to.equal(0);
    });
  });

  describe('a connection', () => {
    it('that is refused fails at once, with nothing sent', async () => {
      const { port } = vendor;
      await vendor.close();
      const error = await failsUpstream(send({}, { endpoint: { baseUrl: `http://127.0.0.1:${port}` } }));
      expect(error).to.include({ failure: 'upstream_error', phase: 'connect', sent: false });
      vendor = await startScriptedUpstream();
    });

    it('to a name that does not resolve fails without naming it', async () => {
      const error = await failsUpstream(
        send({}, { endpoint: { baseUrl: 'http://inner-host.invalid/v1' }, deadlines: { connectMs: 4_000 } }),
      );
      expect(error).to.include({ phase: 'connect', sent: false });
      expect(error.message).to.not.include('inner-host');
    });

    it('that hangs fails at the connect deadline, not at a later one', async () => {
      const hole = await startBlackHole();
      try {
        const error = await failsUpstream(send({}, { endpoint: { baseUrl: hole.baseUrl } }));
        expect(error).to.include({ failure: 'timeout', phase: 'connect', sent: false });
      } finally {
        hole.close();
      }
    });

    it('closed by the vendor while it was kept is replaced, and the caller never knows', async () => {
      let silent = 0;
      // Answers the first request of each connection, and resets it under the second.
      vendor.script((wire) => {
        if (wire.request.nth === 0) return wire.send(answer(200, 'ok'));
        silent += 1;
        return wire.reset();
      });
      await (await send()).readAll();
      expect((await (await send()).readAll()).toString()).to.equal('ok');
      expect(silent).to.equal(1);
      expect(vendor.connections.total).to.equal(2);
    });

    it('closed in a race is replaced as often as it happens', async () => {
      vendor.script(async (wire) => {
        await wire.send(answer(200, String(wire.request.nth)));
        wire.end();
      });
      for (let n = 0; n < 50; n++) expect((await (await send()).readAll()).toString()).to.equal('0');
    });

    it('sends again only once: a fresh socket that is reset too is a failure', async () => {
      vendor.script(answer(200, 'ok'), (wire) => wire.reset());
      await (await send()).readAll();
      expect(await failsUpstream(send())).to.include({ failure: 'upstream_error', phase: 'firstByte', sent: true });
      expect(vendor.requests).to.have.length(3);
    });

    it('does not send again when a byte of the answer has come', async () => {
      vendor.script(answer(200, 'ok'), async (wire) => {
        await wire.send('HTTP');
        wire.reset();
      });
      await (await send()).readAll();
      expect(await failsUpstream(send())).to.include({ phase: 'body' });
      expect(vendor.requests).to.have.length(2);
    });

    for (const delayMs of [0, 5, 20]) {
      it(`on which a second answer comes unasked (after ${delayMs} ms) is not used again`, async () => {
        vendor.script(async (wire) => {
          const asked = answer(200, `for ${wire.request.json()}`);
          const unasked = answer(200, 'somebody else’s');
          if (delayMs === 0) return wire.send(Buffer.concat([asked, unasked]));
          await wire.send(asked);
          await wire.pause(delayMs);
          return wire.send(unasked);
        });
        for (let n = 0; n < 10; n++) {
          const body = await (await send({ body: Buffer.from(JSON.stringify(n)) })).readAll();
          expect(body.toString()).to.equal(`for ${n}`);
          // An answer that crosses the next request on its way can't be told from that one's own; HTTP/1.1 has no ids.
          if (delayMs > 0) await until('the connection is closed', () => vendor.connections.open === 0);
        }
      });
    }

    it('is refused as overloaded when as many as allowed are in use', async () => {
      const narrow = createUpstream({ log: createSilentLog(), limits: { maxConnections: 2 } });
      try {
        vendor.script((wire) => wire.hang());
        const stop = new AbortController();
        const options = { signal: stop.signal };
        const held = [1, 2].map(() => narrow.send(endpoint(), { path: '/chat', body: {} }, options).catch(() => {}));
        const error = await failsUpstream(narrow.send(endpoint(), { path: '/chat', body: {} }, options));
        expect(error).to.include({ failure: 'overloaded', phase: 'connect', sent: false });
        stop.abort();
        await Promise.all(held);
        vendor.script(answer(200, 'ok'));
        const after = await narrow.send(
          endpoint(),
          { path: '/chat', body: {} },
          { signal: new AbortController().signal },
        );
        expect((await after.readAll()).toString()).to.equal('ok');
      } finally {
        await narrow.close();
      }
    });
  });

  describe('a body', () => {
    it('comes in order, and what one read brought comes together', async () => {
      const pieces = Array.from({ length: 100 }, (_, n) => `${n};`);
      vendor.script(Buffer.concat([Buffer.from(SSE_HEAD), ...pieces.map(chunk), Buffer.from(LAST_CHUNK)]));
      const parts: string[] = [];
      for await (const part of (await send()).body) parts.push(part.toString());
      expect(parts.join('')).to.equal(pieces.join(''));
      expect(parts.length).to.be.lessThan(20);
    });

    const broken: readonly (readonly [
      string,
      Script | string,
      'upstream_error' | 'timeout',
      UpstreamPhase,
      Partial<Timeouts>?,
    ])[] = [
      [
        'reset before its declared length',
        cut(head(200, { 'content-length': '100' }), 'reset'),
        'upstream_error',
        'body',
      ],
      [
        'closed before its declared length',
        cut(head(200, { 'content-length': '100' }), 'end'),
        'upstream_error',
        'body',
      ],
      ['reset within chunks', cut(SSE_HEAD, 'reset'), 'upstream_error', 'body'],
      ['closed without the last chunk', cut(SSE_HEAD, 'end'), 'upstream_error', 'body'],
      ['silent after the head', SSE_HEAD, 'timeout', 'idle'],
      ['silent after a part', SSE_HEAD + chunk('data: 1\n\n').toString(), 'timeout', 'idle'],
      ['dripping for ever', drip(': ping\n\n'), 'timeout', 'total', { totalMs: 700 }],
      ['dripping byte by byte', drip('d'), 'timeout', 'total', { totalMs: 700 }],
    ];
    for (const [what, script, failure, phase, deadlines] of broken) {
      it(`${what} fails with ${failure} in phase ${phase}, after what came before`, async () => {
        vendor.script(script);
        const response = await send({}, deadlines ? { deadlines } : {});
        const parts: Buffer[] = [];
        const error = await failsUpstream(
          (async () => {
            for await (const part of response.body) parts.push(part);
          })(),
        );
        expect(error).to.include({ failure, phase, sent: true });
        if (what.includes('part') || what.includes('drip')) expect(Buffer.concat(parts).length).to.be.greaterThan(0);
        await until('the connection is closed', () => vendor.connections.open === 0);
      });
    }

    it('ended by the end of the connection is whole', async () => {
      vendor.script(async (wire) => {
        await wire.send(`${head(200, { connection: 'close' })}until the end`);
        wire.end();
      });
      expect((await (await send()).readAll()).toString()).to.equal('until the end');
    });

    it('longer than the limit is given up, and not kept', async () => {
      vendor.script(flood());
      const response = await send();
      expect(await failsUpstream(response.readAll())).to.include({ failure: 'upstream_error', phase: 'body' });
      await until('the connection is closed', () => vendor.connections.open === 0);
    });

    it('longer than a reader wants is given up', async () => {
      vendor.script(answer(200, 'x'.repeat(1000)));
      expect(await failsUpstream((await send()).readAll(999))).to.include({ phase: 'body' });
    });

    it('that nobody reads stops the vendor, and is not idle meanwhile', async () => {
      const big = createUpstream({ log: createSilentLog(), defaults: SHORT });
      try {
        let sent = 0;
        let isBlocked = false;
        vendor.script(async (wire) => {
          await wire.send(SSE_HEAD);
          const piece = chunk(Buffer.alloc(64 * 1024, 120));
          for (let n = 0; n < 256; n++) {
            const timer = setTimeout(() => {
              isBlocked = true;
            }, 200);
            await wire.send(piece);
            clearTimeout(timer);
            sent += 64 * 1024;
          }
          await wire.send(LAST_CHUNK);
        });
        const response = await big.send(
          endpoint(),
          { path: '/chat', body: {} },
          { signal: new AbortController().signal },
        );
        await until('the vendor can’t send more', () => isBlocked);
        expect(sent).to.be.lessThan(16 * 1024 * 1024);
        // Longer than the idle deadline: the reader is slow, the provider is not.
        await new Promise((resolve) => setTimeout(resolve, SHORT.idleMs * 2));
        expect((await response.readAll()).length).to.equal(256 * 64 * 1024);
      } finally {
        await big.close();
      }
    });

    it('that a reader leaves hangs up', async () => {
      vendor.script(drip('data: 1\n\n'));
      for await (const _ of (await send()).body) break;
      await until('the connection is closed', () => vendor.connections.open === 0);
    });

    it('that is destroyed hangs up', async () => {
      vendor.script(drip('data: 1\n\n'));
      const response = await send();
      response.destroy();
      response.destroy();
      expect((await response.readAll()).length).to.equal(0);
      await until('the connection is closed', () => vendor.connections.open === 0);
    });
  });

  describe('an abort', () => {
    it('before the request sends nothing', async () => {
      const error = await failsUpstream(send({}, { signal: AbortSignal.abort() }));
      expect(error).to.include({ phase: 'aborted', sent: false });
      expect(vendor.connections.total).to.equal(0);
    });

    it('while connecting rejects at once', async () => {
      const hole = await startBlackHole();
      try {
        const stop = new AbortController();
        const sending = send(
          {},
          { signal: stop.signal, endpoint: { baseUrl: hole.baseUrl }, deadlines: { connectMs: 60_000 } },
        );
        await until('the socket is open', () => hole.open === 1);
        stop.abort();
        expect(await failsUpstream(sending)).to.include({ phase: 'aborted', sent: false });
        await until('no socket is left', () => hole.taken > 0 && hole.open === 0);
      } finally {
        hole.close();
      }
    });

    it('before the first byte hangs up on the vendor', async () => {
      vendor.script((wire) => wire.hang());
      const stop = new AbortController();
      const sending = send({}, { signal: stop.signal });
      const request = await vendor.request(0);
      stop.abort();
      expect(await failsUpstream(sending)).to.include({ phase: 'aborted', sent: true });
      await request.closed;
    });

    it('in the middle of a stream hangs up on the vendor', async () => {
      vendor.script(drip('data: 1\n\n'));
      const stop = new AbortController();
      const response = await send({}, { signal: stop.signal });
      const error = await failsUpstream(
        (async () => {
          for await (const _ of response.body) stop.abort(new Error('the caller left'));
        })(),
      );
      expect(error).to.include({ phase: 'aborted', sent: true });
      expect(error.cause).to.have.property('message', 'the caller left');
      await vendor.requests[0]!.closed;
    });

    it('after the last byte changes nothing', async () => {
      vendor.script(answer(200, 'ok'));
      const stop = new AbortController();
      const response = await send({}, { signal: stop.signal });
      const body = await response.readAll();
      stop.abort();
      expect(body.toString()).to.equal('ok');
      await (await send()).readAll();
      expect(vendor.connections.total).to.equal(1);
    });

    it('storms leave no connection open and mix up no answers', async () => {
      vendor.script(async (wire) => {
        await wire.pause(Number(wire.request.headers['x-delay']));
        await wire.send(answer(200, wire.request.body.toString()));
      });
      const outcomes = await Promise.all(
        Array.from({ length: 300 }, async (_, n) => {
          const stop = new AbortController();
          if (n % 3 > 0) setTimeout(() => stop.abort(), n % 7);
          try {
            const body = Buffer.from(`"nonce ${n}"`);
            const response = await send({ body, headers: { 'x-delay': String(n % 5) } }, { signal: stop.signal });
            return (await response.readAll()).equals(body);
          } catch (error) {
            return (error as UpstreamError).phase === 'aborted';
          }
        }),
      );
      expect(outcomes.every(Boolean)).to.equal(true);
      await upstream.close();
      await until('no connection is open', () => vendor.connections.open === 0);
    });
  });

  describe('a transport', () => {
    const transport = (chunks: AsyncIterable<Uint8Array>): Partial<Endpoint> => ({
      transport: async () => ({ status: 200, headers: { 'content-type': 'text/plain' }, body: chunks }),
    });

    it('answers in place of the network, and sees no key', async () => {
      let seen: HttpRequest | undefined;
      const response = await send(
        {},
        {
          endpoint: {
            transport: async (request) => {
              seen = request;
              return { status: 200, headers: {}, body: bytes('a', 'b') };
            },
          },
        },
      );
      expect((await response.readAll()).toString()).to.equal('ab');
      expect(JSON.stringify(seen)).to.not.include('sk-canary');
      expect(vendor.connections.total).to.equal(0);
    });

    it('that throws is a failure of the provider', async () => {
      const error = await failsUpstream(
        send({}, { endpoint: { transport: () => Promise.reject(new Error('secret')) } }),
      );
      expect(error).to.include({ failure: 'upstream_error', phase: 'firstByte' });
      expect(error.message).to.not.include('secret');
    });

    it('that does not answer meets the first-byte deadline, and is told to stop', async () => {
      let signal: AbortSignal | undefined;
      const stuck: Partial<Endpoint> = {
        transport: (_, given) => {
          signal = given;
          return new Promise(() => {});
        },
      };
      expect(await failsUpstream(send({}, { endpoint: stuck }))).to.include({ failure: 'timeout', phase: 'firstByte' });
      expect(signal?.aborted).to.equal(true);
    });

    it('that stops in the middle meets the idle deadline', async () => {
      async function* half() {
        yield Buffer.from('a');
        await new Promise(() => {});
      }
      const response = await send({}, { endpoint: transport(half()) });
      expect(await failsUpstream(response.readAll())).to.include({ failure: 'timeout', phase: 'idle' });
    });

    it('is paused while nobody reads', async () => {
      let made = 0;
      async function* many() {
        for (; made < 1000; made++) yield Buffer.alloc(1024);
      }
      const response = await send({}, { endpoint: transport(many()) });
      await until('it has been paused', () => made > 60);
      await new Promise((resolve) => setTimeout(resolve, 20));
      expect(made).to.be.lessThan(100);
      expect(await failsUpstream(response.readAll())).to.include({ phase: 'body' });
    });
  });

  it('cuts what is open when it closes, and sends nothing afterwards', async () => {
    vendor.script((wire) => wire.hang());
    const sending = failsUpstream(send());
    await vendor.request(0);
    await upstream.close();
    expect(await sending).to.include({ phase: 'aborted', sent: true });
    expect(await failsUpstream(send())).to.include({ phase: 'aborted', sent: false });
    await until('no connection is open', () => vendor.connections.open === 0);
  });
});

async function* bytes(...texts: string[]) {
  for (const text of texts) yield Buffer.from(text);
}

function cut(start: string, how: 'reset' | 'end'): Script {
  return async (wire) => {
    await wire.send(start);
    await wire.send(start.includes('chunked') ? chunk('{"id":1') : '{"id":1');
    await wire.pause(20);
    wire[how]();
  };
}

function drip(text: string): Script {
  return async (wire) => {
    await wire.send(SSE_HEAD);
    while (!wire.isGone) {
      await wire.send(chunk(text));
      await wire.pause(20);
    }
  };
}

function flood(): Script {
  return async (wire) => {
    await wire.send(SSE_HEAD);
    while (!wire.isGone) await wire.send(chunk(Buffer.alloc(64 * 1024)));
  };
}

/** Takes connections and says nothing, so that a TLS handshake with it hangs: connecting is not done until that is. */
async function startBlackHole() {
  const sockets = new Set<net.Socket>();
  let taken = 0;
  const server = net.createServer((socket) => {
    taken += 1;
    sockets.add(
      socket
        .on('error', () => {})
        .on('close', () => sockets.delete(socket))
        .resume(),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as net.AddressInfo;
  return {
    baseUrl: `https://127.0.0.1:${port}`,
    get taken() {
      return taken;
    },
    get open() {
      return sockets.size;
    },
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

async function fails(promise: Promise<unknown>): Promise<Error> {
  try {
    await promise;
  } catch (error) {
    return error as Error;
  }
  throw new Error('it should have failed');
}

async function failsUpstream(promise: Promise<unknown>): Promise<UpstreamError> {
  const error = await fails(promise);
  if (!(error instanceof UpstreamError)) throw error;
  return error;
}
