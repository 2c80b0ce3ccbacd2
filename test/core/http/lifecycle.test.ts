import { once } from 'node:events';
import http, { type ServerResponse } from 'node:http';
import net from 'node:net';
import { expect } from 'chai';
import { isShutdown } from '../../../core/calls/run-call.ts';
import { closeOwnPort, Lifecycle } from '../../../core/http/lifecycle.ts';
import { createHttpServer, listen } from '../../../core/http/server.ts';
import { until } from '../../support/wait.ts';

describe('a server', () => {
  /** Server whose responses stay open until the test ends them. */
  async function serve(isEndless = false) {
    const lifecycle = new Lifecycle();
    const open: { readonly response: ServerResponse; readonly signal: AbortSignal }[] = [];
    const server = http.createServer((_request, response) => {
      open.push({
        response,
        signal: lifecycle.abortSignal(response, { onClosed: (done) => response.once('close', done) }, isEndless),
      });
    });
    const port = await listen(server, '127.0.0.1', 0);
    const send = () => {
      const controller = new AbortController();
      const reply = fetch(`http://127.0.0.1:${port}/`, { signal: controller.signal }).then(
        (response) => response.text(),
        () => 'cut',
      );
      return { reply, hangUp: () => controller.abort() };
    };
    return { lifecycle, server, open, send };
  }
  const at = <T>(list: readonly T[], index: number): T => list[index] ?? expect.fail('no request arrived');

  it('aborts the signal of a running response when its caller disconnects', async () => {
    const { lifecycle, server, open, send } = await serve();
    const { hangUp } = send();
    await until('the request is there', () => open.length === 1);
    const { signal } = at(open, 0);
    hangUp();
    await until('the signal fired', () => signal.aborted);
    expect(isShutdown(signal)).to.equal(false);
    await lifecycle.drain(server, { delayMs: 0, deadlineMs: 1000 });
  });

  it('does not abort the signal of a response that was sent', async () => {
    const { lifecycle, server, open, send } = await serve();
    const { reply } = send();
    await until('the request is there', () => open.length === 1);
    const { response, signal } = at(open, 0);
    response.end('done');
    expect(await reply).to.equal('done');
    await lifecycle.drain(server, { delayMs: 0, deadlineMs: 1000 });
    expect(signal.aborted).to.equal(false);
  });

  it('drains: not ready at once, a running response finishes, a second drain is the same', async () => {
    const { lifecycle, server, open, send } = await serve();
    const { reply } = send();
    await until('the request is there', () => open.length === 1);
    const drained = lifecycle.drain(server, { delayMs: 0, deadlineMs: 60_000 });
    expect(lifecycle).to.include({ phase: 'draining', draining: true });
    expect(lifecycle.drain(server, { delayMs: 0, deadlineMs: 1 })).to.equal(drained);
    at(open, 0).response.end('in time');
    expect(await reply).to.equal('in time');
    await drained;
    expect(lifecycle).to.include({ phase: 'closed', draining: true });
  });

  it('cancels running responses at the deadline, as a shutdown', async () => {
    const { lifecycle, server, open, send } = await serve();
    const { reply } = send();
    await until('the request is there', () => open.length === 1);
    const { response, signal } = at(open, 0);
    signal.addEventListener('abort', () => response.end('shut down'));
    await lifecycle.drain(server, { delayMs: 0, deadlineMs: 10 });
    expect(isShutdown(signal)).to.equal(true);
    expect(await reply).to.equal('shut down');
  });

  it('cancels endless responses when it starts to drain, and later ones immediately (E59)', async () => {
    const { lifecycle, server, open, send } = await serve(true);
    const { reply } = send();
    await until('the request is there', () => open.length === 1);
    expect(at(open, 0).signal.aborted).to.equal(false);
    const drained = lifecycle.drain(server, { delayMs: 200, deadlineMs: 60_000 });
    expect(isShutdown(at(open, 0).signal)).to.equal(true);
    const { reply: late } = send();
    await until('the second request is there', () => open.length === 2);
    expect(isShutdown(at(open, 1).signal)).to.equal(true);
    for (const { response } of open) response.end('over');
    expect(await Promise.all([reply, late])).to.deep.equal(['over', 'over']);
    await drained;
  });

  it('serves a request on a connection that was idle when the port was closed (G40)', async () => {
    const server = http.createServer((_request, response) => response.end('served'));
    const port = await listen(server, '127.0.0.1', 0);
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    const send = (by: http.Agent) =>
      new Promise<string>((resolve) => {
        const request = http.get({ host: '127.0.0.1', port, agent: by }, (response) => {
          response.resume();
          response.on('end', () => resolve(request.reusedSocket ? 'reused' : 'new'));
        });
        request.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
      });
    expect(await send(agent)).to.equal('new');
    const closed = closeOwnPort(server);
    await until('the port is closed', async () => (await send(new http.Agent())) === 'ECONNREFUSED');
    expect(await send(agent)).to.equal('reused');
    agent.destroy();
    await closed;
  });

  it('does not wait for a connection without a request, as browsers open in advance @slow', async () => {
    const hourMs = 3_600_000;
    const options = { host: '127.0.0.1', port: 0, requestTimeoutMs: 2 * hourMs, keepAliveMs: hourMs };
    const server = createHttpServer(() => undefined, options);
    server.headersTimeout = hourMs;
    const socket = net.connect(await listen(server, options.host, options.port), options.host);
    socket.resume();
    await once(server, 'connection');
    await new Lifecycle().drain(server, { delayMs: 0, deadlineMs: hourMs });
    if (!socket.closed) await once(socket, 'close');
  });

  it('cuts the connection of a response that does not end even then @slow', async () => {
    const { lifecycle, server, open, send } = await serve();
    const { reply } = send();
    await until('the request is there', () => open.length === 1);
    await lifecycle.drain(server, { delayMs: 0, deadlineMs: 10 });
    expect(await reply).to.equal('cut');
  });
});
