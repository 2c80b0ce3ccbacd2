import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { createSseWriter, type SseWriter, type SseWriterOptions } from '../../../contract/sse-writer.ts';
import { until } from '../../support/wait.ts';

const ERROR = { error: { message: 'no', type: 'server_error', code: 'internal_error', param: null } } as const;

describe('the writer of an event stream', () => {
  let server: http.Server;
  let socket: net.Socket;
  let received: string;
  let isClosed: boolean;

  afterEach(async () => {
    socket.destroy();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  /** Server whose one response has a writer, and a raw client that has requested it. */
  async function open(
    options: SseWriterOptions = {},
    request = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n',
  ): Promise<{ writer: SseWriter; res: http.ServerResponse }> {
    server = http.createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    received = '';
    isClosed = false;
    socket = net.connect((server.address() as net.AddressInfo).port, '127.0.0.1');
    socket.on('data', (bytes) => {
      received += bytes.toString();
    });
    socket.on('close', () => {
      isClosed = true;
    });
    socket.on('error', () => {});
    socket.write(request);
    const [, res] = (await once(server, 'request')) as [http.IncomingMessage, http.ServerResponse];
    return { res, writer: createSseWriter(res, options) };
  }

  it('sends its head with the first write', async () => {
    const { writer } = await open({ headers: { 'x-tollgate-provider': 'echo' } });
    expect(writer.started).to.equal(false);
    writer.write('data: 1\n\n');
    await until('the frame is there', () => received.includes('data: 1'));
    const head = received.toLowerCase();
    for (const line of [
      'http/1.1 200 ok',
      'content-type: text/event-stream; charset=utf-8',
      'cache-control: no-cache, no-transform',
      'x-accel-buffering: no',
      'x-tollgate-provider: echo',
    ]) {
      expect(head).to.include(line);
    }
    expect(writer.started).to.equal(true);
  });

  it('sends only its head on start', async () => {
    const { writer } = await open();
    writer.start();
    writer.start();
    await until('the head is there', () => received.includes('\r\n\r\n'));
    expect(received).to.not.include('data:');
  });

  it('writes all of one tick at once, in order, texts and bytes alike', async () => {
    const { writer, res } = await open();
    const writes: unknown[] = [];
    const write = res.write.bind(res);
    res.write = ((frames: string) => {
      writes.push(frames);
      return write(frames);
    }) as typeof res.write;
    writer.write('data: é\n\n');
    await Promise.resolve();
    writer.write(Buffer.from('data: 2\n\n'));
    await Promise.resolve().then(() => writer.write('data: 3\n\n'));
    writer.end();
    await until('the stream has ended', () => received.includes('\r\n0\r\n'));
    expect(writes.map(String)).to.deep.equal(['data: é\n\ndata: 2\n\ndata: 3\n\n']);
  });

  it('ends once, and writes nothing after the end', async () => {
    const { writer } = await open();
    writer.write('data: 1\n\n');
    writer.end();
    expect(writer.closed).to.equal(true);
    writer.end();
    writer.write('data: 2\n\n');
    writer.fail(ERROR);
    await until('the stream has ended', () => received.includes('\r\n0\r\n\r\n'));
    expect(received.match(/data: /g)).to.have.length(1);
  });

  it('fails with one error frame and the end', async () => {
    const { writer } = await open();
    writer.write('data: 1\n\n');
    writer.fail(ERROR);
    writer.fail(ERROR);
    await until('the stream has ended', () => received.includes('\r\n0\r\n\r\n'));
    expect(received.match(/^data: .*$/gm)).to.deep.equal(['data: 1', `data: ${JSON.stringify(ERROR)}`]);
  });

  it('sends a comment after silence, but not before the head', async () => {
    const { writer } = await open({ keepAliveMs: 30 });
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(received).to.equal('');
    writer.write('data: 1\n\n');
    await until('two comments came', () => (received.match(/: keep-alive\n\n/g)?.length ?? 0) >= 2);
    writer.end();
    await until('the stream has ended', () => received.includes('\r\n0\r\n\r\n'));
  });

  it('adds nothing to a response sent by other code', async () => {
    const { res } = await open({ keepAliveMs: 10 });
    res.writeHead(503, { 'content-length': '6' });
    res.write('no');
    await new Promise((resolve) => setTimeout(resolve, 50));
    res.end('body');
    await until('the answer is there', () => received.endsWith('\r\n\r\nnobody'));
  });

  it('makes a producer wait for a slow reader, and wakes it', async () => {
    const { writer } = await open();
    socket.pause();
    await fill(writer);
    let isDrained = false;
    const drained = writer.drained().then(() => {
      isDrained = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(isDrained).to.equal(false);
    socket.resume();
    await drained;
    expect(writer.closed).to.equal(false);
    expect(writer.write('data: last\n\n')).to.equal(true);
    await until('the last frame is there', () => received.includes('data: last'));
  });

  it('does not wait without a backlog', async () => {
    const { writer } = await open();
    await writer.drained();
    expect(writer.write('data: 1\n\n')).to.equal(true);
    await writer.drained();
  });

  it('wakes a waiting producer when the signal fires', async () => {
    const stop = new AbortController();
    const { writer } = await open({ signal: stop.signal });
    socket.pause();
    await fill(writer);
    const drained = writer.drained();
    stop.abort();
    await drained;
    await writer.drained();
  });

  it('wakes a waiting producer when the reader has disconnected, and is closed', async () => {
    const { writer } = await open();
    socket.pause();
    await fill(writer);
    const drained = writer.drained();
    socket.destroy();
    await drained;
    await until('the writer is closed', () => writer.closed);
    expect(writer.write('data: 1\n\n')).to.equal(true);
    writer.end();
    writer.fail(ERROR);
  });

  it('disconnects a reader that reads nothing for too long', async () => {
    const { writer } = await open({ writeIdleMs: 100, keepAliveMs: 60_000 });
    socket.pause();
    await fill(writer);
    await writer.drained();
    await until('the writer is closed', () => writer.closed);
  });

  it('disconnects a reader that never reads the end', async () => {
    const { writer, res } = await open({ writeIdleMs: 100 });
    socket.pause();
    await fill(writer);
    writer.end();
    await until('the response is cut', () => res.destroyed);
  });

  it('does not disconnect a slow reader @slow', async () => {
    const { writer } = await open({ writeIdleMs: 1_000, keepAliveMs: 60_000 });
    writer.start();
    for (let n = 0; n < 12; n++) {
      socket.pause();
      await fill(writer);
      // A reader that resumes after the writer would drain the buffers while the next round fills them.
      const resumed = pause(100).then(() => socket.resume());
      await Promise.all([writer.drained(), resumed]);
    }
    expect(writer.closed).to.equal(false);
    expect(isClosed).to.equal(false);
  });

  it('does nothing for an ended response', async () => {
    const { res } = await open();
    res.end('over');
    const late = createSseWriter(res);
    expect(late.closed).to.equal(true);
    late.write('data: 1\n\n');
    late.fail(ERROR);
    await late.drained();
    await until('the answer is there', () => received.includes('over'));
    expect(received).to.not.include('data:');
  });
});

/** Writes until the writer is blocked: the kernel's buffers of both sides are full then. */
async function fill(writer: SseWriter): Promise<void> {
  const frame = `data: ${'x'.repeat(60 * 1024)}\n\n`;
  for (let n = 0; n < 2000; n++) {
    writer.write(frame);
    await new Promise((resolve) => setImmediate(resolve));
    if (!writer.write('')) return;
  }
  throw new Error('the writer never asked to wait');
}
