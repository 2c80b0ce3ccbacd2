import net from 'node:net';

/** A wire between a client and a server on the loopback that can be cut in ways a real one is. */
export interface TcpProxy {
  readonly port: number;
  /** Passes what the client sends and drops what the server answers. */
  dropAnswers(): void;
  /** Passes everything on new connections; those that lost something are cut. */
  heal(): void;
  close(): Promise<void>;
}

export async function startTcpProxy(target: number): Promise<TcpProxy> {
  const pairs = new Set<readonly [net.Socket, net.Socket]>();
  let drops = false;
  const server = net.createServer((client) => {
    const upstream = net.connect(target, '127.0.0.1');
    const pair = [client, upstream] as const;
    pairs.add(pair);
    client.on('data', (data) => upstream.write(data));
    upstream.on('data', (data) => {
      if (!drops) client.write(data);
    });
    const end = (): void => {
      pairs.delete(pair);
      for (const socket of pair) socket.destroy();
    };
    for (const socket of pair) socket.on('error', end).on('close', end);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cut = (): void => {
    for (const pair of pairs) for (const socket of pair) socket.destroy();
  };
  const address = server.address();
  return {
    port: typeof address === 'object' && address ? address.port : 0,
    dropAnswers: () => {
      drops = true;
    },
    heal: () => {
      drops = false;
      cut();
    },
    close: () => {
      cut();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
