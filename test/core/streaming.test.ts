/** Upstream, SSE reader and SSE writer, joined as in the pipeline: the events that a caller of a stream receives. */
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { expect } from 'chai';
import { createEventReader, readEvents } from '../../contract/event-reader.ts';
import { createSseWriter } from '../../contract/sse-writer.ts';
import { createUpstream, type Upstream } from '../../egress/upstream.ts';
import { createSilentLog } from '../support/log.ts';
import {
  chunk,
  head,
  LAST_CHUNK,
  type Script,
  type ScriptedUpstream,
  SSE_HEAD,
  sse,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';
import { until } from '../support/wait.ts';

const ERROR = {
  error: { message: 'broken', type: 'upstream_error', code: 'provider_unavailable', param: null },
} as const;

describe('streaming', () => {
  let vendor: ScriptedUpstream;
  let upstream: Upstream;
  let gateway: http.Server;
  let port: number;
  let finished: number;

  beforeEach(async () => {
    vendor = await startScriptedUpstream();
    upstream = createUpstream({
      log: createSilentLog(),
      defaults: { idleMs: 800 },
      limits: { maxResponseBytes: 1 << 30 },
    });
    finished = 0;
    gateway = http.createServer((_, res) => void relay(res).finally(() => finished++));
    gateway.listen(0, '127.0.0.1');
    await once(gateway, 'listening');
    ({ port } = gateway.address() as net.AddressInfo);
  });

  afterEach(async () => {
    gateway.closeAllConnections();
    await new Promise((resolve) => gateway.close(resolve));
    await upstream.close();
    await vendor.close();
  });

  async function relay(res: http.ServerResponse): Promise<void> {
    const stop = new AbortController();
    const endpoint = { baseUrl: vendor.url, error: () => ({ class: 'upstream_error', message: '' }) as const };
    res.on('close', () => stop.abort());
    const writer = createSseWriter(res, { signal: stop.signal, writeIdleMs: 1_500 });
    try {
      const response = await upstream.send(endpoint, { path: '/chat', body: {} }, { signal: stop.signal });
      for await (const events of readEvents(response.body)) {
        if (!writer.write(events.map((event) => `data: ${event.data}\n\n`).join(''))) await writer.drained();
      }
      writer.end();
    } catch {
      writer.fail(ERROR);
    }
  }

  /** All data of a stream, as a caller reads it. */
  async function read(): Promise<string[]> {
    const reader = createEventReader();
    const [res] = (await once(http.get({ port, host: '127.0.0.1', agent: false }), 'response')) as [
      http.IncomingMessage,
    ];
    const seen: string[] = [];
    for await (const bytes of res) seen.push(...reader.push(bytes as Buffer).map((event) => event.data));
    return seen;
  }

  it('passes events on immediately, and ends', async () => {
    vendor.script(sse('1', '2', '[DONE]'));
    expect(await read()).to.deep.equal(['1', '2', '[DONE]']);
  });

  it('keeps code points intact wherever the vendor’s packets are split', async () => {
    const wire = Buffer.from('data: 😀中é\n\n');
    for (let at = 6; at < wire.length; at++) {
      vendor.script(async (wire_) => {
        await wire_.send(Buffer.concat([Buffer.from(SSE_HEAD), chunk(wire.subarray(0, at))]));
        await wire_.pause(2);
        await wire_.send(Buffer.concat([chunk(wire.subarray(at)), Buffer.from(LAST_CHUNK)]));
      });
      expect(await read()).to.deep.equal(['😀中é']);
    }
  });

  for (const [what, script] of [
    ['resets in the middle', broken((wire) => wire.reset())],
    ['closes in the middle', broken((wire) => wire.end())],
    ['falls silent in the middle', broken((wire) => wire.hang())],
  ] as const) {
    it(`ends in one error frame when the vendor ${what}, after the previous content`, async () => {
      vendor.script(script);
      expect(await read()).to.deep.equal(['1', '2', '3', JSON.stringify(ERROR)]);
      await until('the vendor’s connection is closed', () => vendor.connections.open === 0);
    });
  }

  it('rejects an endless event with one error frame, without buffering it', async () => {
    const before = process.memoryUsage().rss;
    vendor.script(async (wire) => {
      await wire.send(head(200, { 'content-type': 'text/event-stream', 'content-length': String(64 << 20) }));
      await wire.send('data: ');
      const piece = Buffer.alloc(256 * 1024, 'x');
      for (let n = 0; n < 255 && !wire.isGone; n++) await wire.send(piece);
    });
    expect(await read()).to.deep.equal([JSON.stringify(ERROR)]);
    expect(process.memoryUsage().rss - before).to.be.lessThan(64 << 20);
    await until('the vendor’s connection is closed', () => vendor.connections.open === 0);
  });

  for (const [when, script] of [
    ['before the first byte', (wire) => wire.hang()],
    ['in the middle', endless(chunk('data: x\n\n'), 10)],
  ] as const satisfies readonly (readonly [string, Script])[]) {
    it(`disconnects from the vendor when the caller disconnects ${when}`, async () => {
      vendor.script(script);
      const socket = net.connect(port, '127.0.0.1');
      socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
      const request = await vendor.request(0);
      if (when === 'in the middle') await once(socket, 'data');
      socket.destroy();
      await request.closed;
      await until('the call is over', () => finished === 1);
    });
  }

  it('stops the vendor while the caller reads nothing, in bounded memory, and cuts the caller in the end @slow', async () => {
    let sent = 0;
    const piece = chunk(`data: ${'x'.repeat(32 * 1024)}\n\n`);
    vendor.script(async (wire) => {
      await wire.send(SSE_HEAD);
      while (!wire.isGone) {
        await wire.send(piece);
        sent += piece.length;
      }
    });
    const socket = net.connect(port, '127.0.0.1');
    socket.on('error', () => {});
    socket.pause();
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
    const request = await vendor.request(0);
    await request.closed;
    await until('the call is over', () => finished === 1);
    expect(sent).to.be.lessThan(32 << 20);
    socket.destroy();
  });

  it('delivers everything to a slow caller', async () => {
    const piece = chunk(`data: ${'x'.repeat(32 * 1024)}\n\n`);
    vendor.script(async (wire) => {
      await wire.send(SSE_HEAD);
      for (let n = 0; n < 512; n++) await wire.send(piece);
      await wire.send(LAST_CHUNK);
    });
    const [res] = (await once(http.get({ port, host: '127.0.0.1', agent: false }), 'response')) as [
      http.IncomingMessage,
    ];
    const reader = createEventReader();
    let events = 0;
    let reads = 0;
    for await (const bytes of res) {
      events += reader.push(bytes as Buffer).length;
      if (reads++ % 40 === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    }
    expect(events).to.equal(512);
  });
});

function broken(how: Script): Script {
  return async (wire) => {
    await wire.send(SSE_HEAD);
    for (const data of ['1', '2', '3']) await wire.send(chunk(`data: ${data}\n\n`));
    await wire.pause(20);
    await how(wire);
  };
}

function endless(bytes: Buffer, everyMs: number): Script {
  return async (wire) => {
    await wire.send(SSE_HEAD);
    while (!wire.isGone) {
      await wire.send(bytes);
      await wire.pause(everyMs);
    }
  };
}
