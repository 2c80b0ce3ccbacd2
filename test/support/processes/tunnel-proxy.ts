import http from 'node:http';
import net, { type AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';

/** Scripted proxy that connects every address to one loopback port and records its requests. */
export interface TunnelProxy {
  readonly url: string;
  readonly port: number;
  /** Requested addresses, with the proxy credentials. */
  readonly requests: readonly { readonly address: string; readonly authorization: string | undefined }[];
  close(): Promise<void>;
}

/**
 * Starts a proxy on `host`, an address of this machine. `refuse` may handle the socket itself, which it confirms by
 * returning true.
 */
export async function startTunnelProxy(
  port: number,
  refuse: (socket: Duplex) => boolean = () => false,
  host = '127.0.0.1',
): Promise<TunnelProxy> {
  const requests: { address: string; authorization: string | undefined }[] = [];
  const sockets = new Set<Duplex>();
  const server = http.createServer((_request, response) => void response.writeHead(400).end());
  server.on('connect', (request: http.IncomingMessage, socket: Duplex, head: Buffer) => {
    sockets.add(socket);
    socket.on('error', () => {});
    requests.push({ address: request.url ?? '', authorization: request.headers['proxy-authorization'] });
    if (refuse(socket)) return;
    const vendor = net.connect(port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      vendor.write(head);
      socket.pipe(vendor).pipe(socket);
    });
    sockets.add(vendor);
    vendor.on('error', () => socket.destroy());
    vendor.on('close', () => socket.destroy());
    socket.on('close', () => vendor.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const own = (server.address() as AddressInfo).port;
  return {
    url: `http://${host}:${own}`,
    port: own,
    requests,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
