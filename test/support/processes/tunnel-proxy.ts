import http from 'node:http';
import net, { type AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';

/** A proxy that a test scripts: it connects every address to one port of the loopback, and notes what it is asked. */
export interface TunnelProxy {
  readonly url: string;
  readonly port: number;
  /** The addresses that connections were asked for, with what was said of who asks. */
  readonly asked: readonly { readonly address: string; readonly authorization: string | undefined }[];
  close(): Promise<void>;
}

/** Starts one. `refuse` may take the socket over in place of a connection: true says that it did. It listens on `host`, an address of this machine. */
export async function startTunnelProxy(
  port: number,
  refuse: (socket: Duplex) => boolean = () => false,
  host = '127.0.0.1',
): Promise<TunnelProxy> {
  const asked: { address: string; authorization: string | undefined }[] = [];
  const sockets = new Set<Duplex>();
  const server = http.createServer((_request, response) => void response.writeHead(400).end());
  server.on('connect', (request: http.IncomingMessage, socket: Duplex, head: Buffer) => {
    sockets.add(socket);
    socket.on('error', () => {});
    asked.push({ address: request.url ?? '', authorization: request.headers['proxy-authorization'] });
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
    asked,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
