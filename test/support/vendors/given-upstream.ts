import { once } from 'node:events';
import net from 'node:net';
import type { Endpoint, HttpRequest, Timeouts } from '../../../contract/provider.ts';
import { createUpstream, type Upstream, UpstreamError, type UpstreamResponse } from '../../../egress/upstream.ts';
import { createSilentLog } from '../log.ts';
import { chunk, type Script, type ScriptedUpstream, SSE_HEAD, startScriptedUpstream } from './scripted-upstream.ts';

/** Short timeouts for tests of expiry; all others are long, so that a busy machine does not matter. */
export const SHORT: Timeouts = { connectMs: 300, firstByteMs: 300, idleMs: 300, totalMs: 10_000 };

export interface SendExtras {
  readonly signal?: AbortSignal;
  readonly deadlines?: Partial<Timeouts>;
  readonly endpoint?: Partial<Endpoint>;
}

/** Creates a scripted vendor and an upstream before each test of the calling describe block. */
export function givenUpstream() {
  let vendor: ScriptedUpstream;
  let upstream: Upstream;

  beforeEach(async () => {
    vendor = await startScriptedUpstream();
    upstream = createUpstream({ log: createSilentLog(), limits: { maxResponseBytes: 256 * 1024 } });
  });

  afterEach(async () => {
    await upstream.close();
    await vendor.close();
  });

  const endpoint = (more: Partial<Endpoint> = {}): Endpoint => ({
    baseUrl: `${vendor.url}/v1`,
    credential: { header: 'authorization', prefix: 'Bearer ', value: 'sk-canary', required: true },
    error: () => ({ class: 'upstream_error', message: '' }),
    ...more,
  });

  function send(request: Partial<HttpRequest> = {}, extras: SendExtras = {}): Promise<UpstreamResponse> {
    const { signal = new AbortController().signal, deadlines = {} } = extras;
    const full = { path: '/chat', body: { hello: 'wörld' }, ...request };
    return upstream.send(endpoint(extras.endpoint), full, { signal, deadlines });
  }

  return {
    get vendor() {
      return vendor;
    },
    get upstream() {
      return upstream;
    },
    endpoint,
    send,
  };
}

/** Sends the same few bytes repeatedly, each time in a separate chunk. */
export function drip(text: string): Script {
  return async (wire) => {
    await wire.send(SSE_HEAD);
    while (!wire.isGone) {
      await wire.send(chunk(text));
      await wire.pause(20);
    }
  };
}

/** Accepts connections and sends nothing, so that a TLS handshake hangs; connecting includes the handshake. */
export async function startBlackHole() {
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

/** Error of a promise that must reject. */
export async function fails(promise: Promise<unknown>): Promise<Error> {
  try {
    await promise;
  } catch (error) {
    return error as Error;
  }
  throw new Error('it should have failed');
}

export async function failsUpstream(promise: Promise<unknown>): Promise<UpstreamError> {
  const error = await fails(promise);
  if (!(error instanceof UpstreamError)) throw error;
  return error;
}
