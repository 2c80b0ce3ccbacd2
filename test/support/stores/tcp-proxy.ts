import net from 'node:net';
import { until } from '../wait.ts';

/** A wire between a client and a server on the loopback that can be cut in ways a real one is. */
export interface TcpProxy {
  readonly port: number;
  /** Passes what the client sends and drops what the server answers. */
  dropAnswers(): void;
  /** Keeps what the server answers; resolves once `isAll` finds all it waits for in what the client sent since. */
  holdAnswers(isAll: (sent: string) => boolean): Promise<void>;
  /** Passes what is kept and what comes, until the client sends something again: the answers after that are kept. */
  passRound(): void;
  /** Waits until the client sent all this since answers were held. */
  untilSent(isAll: (sent: string) => boolean): Promise<void>;
  /** Passes everything on new connections; those that lost something are cut. */
  heal(): void;
  close(): Promise<void>;
}

export async function startTcpProxy(target: number): Promise<TcpProxy> {
  const pairs = new Set<readonly [net.Socket, net.Socket]>();
  /** What becomes of answers; a `round` is over, and they are held, when the client sends something. */
  let answers: 'pass' | 'drop' | 'hold' | 'round' = 'pass';
  /** Since they are held. */
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
      if (answers === 'round') answers = 'hold';
      if (answers === 'hold') sent += data.toString('latin1');
      upstream.write(data);
    });
    upstream.on('data', (data) => {
      if (answers === 'hold') held.push(() => client.write(data));
      else if (answers !== 'drop') client.write(data);
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
      answers = 'drop';
    },
    holdAnswers: async (isAll) => {
      sent = '';
      answers = 'hold';
      await until('the client sent all it had to say', () => isAll(sent));
    },
    untilSent: (isAll) => until('the client sent all it had to say', () => isAll(sent)),
    passRound: () => {
      answers = 'round';
      passHeld();
    },
    heal: () => {
      answers = 'pass';
      passHeld();
      cut();
    },
    close: () => {
      cut();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
