import net from 'node:net';
import { until } from '../wait.ts';

/** Connection between a client and a server on the loopback that can fail like a real one. */
export interface TcpProxy {
  readonly port: number;
  /** Passes the client's data and drops the server's responses. */
  dropReplies(): void;
  /** Holds the server's responses; resolves once `isAll` is true for the client's data since then. */
  holdReplies(isAll: (sent: string) => boolean): Promise<void>;
  /** Passes held and new responses until the client sends data again; later responses are held. */
  passRound(): void;
  /** Waits until `isAll` is true for the client's data since responses were held. */
  untilSent(isAll: (sent: string) => boolean): Promise<void>;
  /** Passes all data on new connections; connections that lost data are cut. */
  heal(): void;
  close(): Promise<void>;
}

export async function startTcpProxy(target: number): Promise<TcpProxy> {
  const pairs = new Set<readonly [net.Socket, net.Socket]>();
  /** Handling of responses; a `round` ends, and responses are held, when the client sends data. */
  let replies: 'pass' | 'drop' | 'hold' | 'round' = 'pass';
  /** Client data since responses were held. */
  let sent = '';
  const held: (() => void)[] = [];
  const passHeld = (): void => {
    for (const pass of held.splice(0)) pass();
  };
  const server = net.createServer((client) => {
    const upstream = net.connect(target, '127.0.0.1');
    const pair = [client, upstream] as const;
    pairs.add(pair);
    client.on('data', (data) => {
      if (replies === 'round') replies = 'hold';
      if (replies === 'hold') sent += data.toString('latin1');
      upstream.write(data);
    });
    upstream.on('data', (data) => {
      if (replies === 'hold') held.push(() => client.write(data));
      else if (replies !== 'drop') client.write(data);
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
    dropReplies: () => {
      replies = 'drop';
    },
    holdReplies: async (isAll) => {
      sent = '';
      replies = 'hold';
      await until('the client sent all it had to say', () => isAll(sent));
    },
    untilSent: (isAll) => until('the client sent all it had to say', () => isAll(sent)),
    passRound: () => {
      replies = 'round';
      passHeld();
    },
    heal: () => {
      replies = 'pass';
      passHeld();
      cut();
    },
    close: () => {
      cut();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
