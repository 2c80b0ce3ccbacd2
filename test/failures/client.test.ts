import { once } from 'node:events';
import http from 'node:http';
import zlib from 'node:zlib';
import { expect } from 'chai';
import { settledBooks } from '../support/clients/books.ts';
import { connectTo, readToEnd } from '../support/clients/raw-socket.ts';
import { type FailureRig, PROMPT_COST, startFailureRig, USAGE_COST } from '../support/gateways/failure-rig.ts';
import { generatedCases } from '../support/generated-cases.ts';
import { completion, delta, events } from '../support/vendors/openai-vendor.ts';
import { chunk, respondWith, SSE_HEAD } from '../support/vendors/scripted-upstream.ts';
import { eventually, until } from '../support/wait.ts';

const BODY = { model: 'one/m', max_tokens: 100, messages: [{ role: 'user', content: 'a'.repeat(400) }] };

describe('errors of callers', () => {
  let rig: FailureRig;
  before(async () => {
    rig = await startFailureRig({ server: { port: 0, drainTimeout: '2s', requestTimeout: '1s', bodyLimit: '256kb' } });
  });
  after(() => rig?.stop());
  beforeEach(() => rig.vendor.script(respondWith(200, completion())));

  const request = (
    body: object,
    more = '',
    framing = (text: string) => `content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
  ) =>
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${rig.gateway.key}\r\ncontent-type: application/json\r\n${more}${framing(JSON.stringify(body))}`;
  const connect = () => connectTo(rig.gateway.url);

  for (const stream of [false, true]) {
    it(`C01: a caller who disconnects before the first byte${stream ? ' of a stream' : ''} cancels the vendor’s call and is charged for the prompt`, async () => {
      const mark = await rig.mark();
      rig.vendor.script((wire) => wire.hang());
      const socket = await connect();
      const seen = rig.vendor.requests.length;
      socket.write(request({ ...BODY, stream }));
      const upstream = await rig.vendor.request(seen);
      socket.destroy();
      await upstream.closed;
      await eventually(async () => {
        const line = rig.gateway.logs.findLast(({ msg }) => msg === 'request');
        expect(line).to.include({ outcome: 'aborted', aborted: true });
        expect(line?.['status']).to.equal(499);
      });
      await rig.expectOrder(mark, 1, PROMPT_COST);
    });
  }

  it('C02: a caller who disconnects in the middle of a stream cancels the vendor’s call and is charged for the received part', async () => {
    const mark = await rig.mark();
    rig.vendor.script(
      events(
        ['a', 'b', 'c'].map((letter) => delta(letter.repeat(20))),
        (wire) => wire.hang(),
      ),
    );
    const socket = await connect();
    const seen = rig.vendor.requests.length;
    socket.write(request({ ...BODY, stream: true }));
    let text = '';
    socket.on('data', (bytes) => {
      text += String(bytes);
    });
    await until('three events came', () => text.includes('c'.repeat(20)));
    socket.destroy();
    await rig.vendor.requests[seen]?.closed;
    await rig.expectOrder(mark, 1, PROMPT_COST + 30);
  });

  it('C03: a caller who half-closes after the request counts as disconnected, because the two cannot be distinguished in time', async () => {
    const mark = await rig.mark();
    rig.vendor.script((wire) => wire.hang());
    const seen = rig.vendor.requests.length;
    const socket = await connect();
    socket.write(request(BODY));
    const upstream = await rig.vendor.request(seen);
    socket.end();
    await upstream.closed;
    expect(await readToEnd(socket)).to.equal('');
    await rig.expectOrder(mark, 1, PROMPT_COST);
  });

  it('C04: a caller who reads nothing makes the gateway pause the vendor, with limited memory', async () => {
    const mark = await rig.mark();
    let sent = 0;
    const piece = chunk(`data: ${delta('x'.repeat(32 * 1024))}\n\n`);
    rig.vendor.script(async (wire) => {
      await wire.send(SSE_HEAD);
      while (!wire.isGone) {
        await wire.send(piece);
        sent += piece.length;
      }
    });
    const socket = await connect();
    socket.pause();
    socket.write(request({ ...BODY, stream: true }));
    let before = -1;
    await eventually(async () => {
      await new Promise((resolve) => setTimeout(resolve, 200));
      const grown = sent - before;
      before = sent;
      expect(grown, 'the vendor is paused').to.equal(0);
      expect(sent, 'it has begun').to.be.above(0);
    });
    expect(sent).to.be.at.most(32 << 20);
    socket.destroy();
    const { spent } = await settledBooks(rig.gateway.url, rig.gateway.key);
    await rig.expectOrder(mark, 1, spent - mark.books.spent);
    expect(spent - mark.books.spent).to.be.greaterThan(PROMPT_COST);
  });

  for (const [title, part] of [
    ['headers', (text: string) => text.slice(0, 40)],
    ['a body', (text: string) => text.slice(0, -20)],
  ] as const) {
    it(`C05: a caller who sends ${title} too slowly gets 408, and the connection is closed @slow`, async () => {
      const mark = await rig.mark();
      const socket = await connect();
      socket.write(part(request(BODY)));
      const text = await readToEnd(socket);
      expect(text)
        .to.match(/^HTTP\/1\.1 408 /)
        .and.include('"code":"request_timeout"');
      await rig.expectOrder(mark, 0, 0);
    });
  }

  for (const [title, framing] of [
    ['with its length', (text: string) => `content-length: ${text.length}\r\n\r\n${text}`],
    [
      'in chunks',
      (text: string) => `transfer-encoding: chunked\r\n\r\n${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`,
    ],
  ] as const) {
    it(`C06: a caller who sends a body over the limit ${title} gets 413, and the connection continues with the next request`, async () => {
      const mark = await rig.mark();
      const socket = await connect();
      socket.write(request({ ...BODY, messages: [{ role: 'user', content: 'a'.repeat(300_000) }] }, '', framing));
      socket.write('GET /nowhere HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
      expect(await readToEnd(socket)).to.match(/^HTTP\/1\.1 413 .*request_too_large.*^HTTP\/1\.1 404 /ms);
      await rig.expectOrder(mark, 0, 0);
    });
  }

  it('C07: a caller who sends a compressed bomb gets 413, rubbish under that name 400, an unknown compression 415', async () => {
    const mark = await rig.mark();
    const bomb = zlib.gzipSync(Buffer.alloc(20 << 20));
    for (const [encoding, bytes, status, code] of [
      ['gzip', bomb, 413, 'request_too_large'],
      ['br', Buffer.from('rubbish'), 400, 'invalid_request'],
      ['gzip', Buffer.from('rubbish'), 400, 'invalid_request'],
      ['rot13', Buffer.from('{}'), 415, 'unsupported_media_type'],
    ] as const) {
      const response = await rig.gateway.post('/v1/chat/completions', bytes, { 'content-encoding': encoding });
      expect(response.status, encoding).to.equal(status);
      expect(await response.text()).to.include(code);
    }
    await rig.expectOrder(mark, 0, 0);
  });

  it('C08: pipelined requests get their responses in order', async () => {
    const mark = await rig.mark();
    rig.vendor.script(
      async (wire) => {
        await wire.pause(100);
        await wire.send(respondWith(200, completion('first')));
      },
      respondWith(200, completion('second')),
      respondWith(200, completion('third')),
    );
    const socket = await connect();
    socket.write(request(BODY) + request(BODY) + request(BODY, 'connection: close\r\n'));
    const text = await readToEnd(socket);
    const words = [...text.matchAll(/"content":"(\w+)"/g)].map(([, word]) => word);
    expect(words).to.deep.equal(['first', 'second', 'third']);
    expect([...text.matchAll(/HTTP\/1\.1 200/g)]).to.have.lengthOf(3);
    await rig.expectOrder(mark, 3, 3 * USAGE_COST);
  });

  it('C08: a caller who waits for 100-continue gets one', async () => {
    const mark = await rig.mark();
    const text = JSON.stringify(BODY);
    const pending = http.request(`${rig.gateway.url}/v1/chat/completions`, {
      method: 'POST',
      agent: false,
      headers: {
        authorization: `Bearer ${rig.gateway.key}`,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(text),
        expect: '100-continue',
      },
    });
    pending.flushHeaders();
    await once(pending, 'continue');
    pending.end(text);
    const [response] = (await once(pending, 'response')) as [http.IncomingMessage];
    expect(response.resume().statusCode).to.equal(200);
    await rig.expectOrder(mark, 1, USAGE_COST);
  });

  for (const protocol of ['h2c', 'websocket']) {
    it(`C08: a caller who asks for an upgrade to ${protocol} is served over HTTP/1.1`, async () => {
      const mark = await rig.mark();
      const socket = await connect();
      socket.write(request(BODY, `connection: upgrade, close\r\nupgrade: ${protocol}\r\n`));
      expect(await readToEnd(socket)).to.match(/^HTTP\/1\.1 200 /);
      await rig.expectOrder(mark, 1, USAGE_COST);
    });
  }

  it('are followed by a gateway that serves the next calls, up to a hundred', async () => {
    await rig.expectOrder(await rig.mark(), 0, 0, generatedCases(100));
  });
});
