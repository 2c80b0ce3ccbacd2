import net from 'node:net';
import { expect } from 'chai';
import { useTempFolder } from '../support/folders.ts';
import { eventually, until } from '../support/wait.ts';
import { connectThroughKills, connectThroughStops, startRolling } from './rolling.ts';

describe('a worker with connections that the primary process accepted', function () {
  this.timeout(600_000);
  const folder = useTempFolder('rolling-bounds');

  it('has the limits of a single process: connections, and slow requests', async () => {
    // All connections open well before the first request times out.
    const gateway = await startRolling(folder, { maxConnections: 3, requestTimeout: '8s' });
    /** Opens ten connections with unfinished requests; returns the gateway's responses to the accepted ones. */
    const connectTen = async (): Promise<readonly string[]> => {
      const closed = new Set<net.Socket>();
      const texts = new Map<net.Socket, string>();
      for (let at = 0; at < 10; at += 1) {
        const socket = net.connect(gateway.port, '127.0.0.1');
        socket.on('error', () => undefined);
        socket.on('close', () => closed.add(socket));
        socket.on('data', (bytes) => texts.set(socket, (texts.get(socket) ?? '') + String(bytes)));
        socket.write('GET /livez HTTP/1.1\r\n');
      }
      await until('all are closed', () => closed.size === 10);
      return [...texts.values()];
    };
    try {
      await gateway.workers();
      // A worker may still count a previous connection until it notices its end.
      await eventually(async () => {
        const responses = await connectTen();
        for (const text of responses) expect(text).to.match(/^HTTP\/1\.1 408 /);
        expect(responses).to.have.length(6);
      });
    } finally {
      gateway.running.child.kill('SIGKILL');
      await gateway.running.finished;
    }
  });
});

/** Stopped workers, and as many killed ones; `npm run test:nightly` makes 20. */
const ROUNDS = Number(process.env['TOLLGATE_SOAK'] ?? 5);

describe('new connections to a gateway of workers', function () {
  this.timeout(3_600_000);
  const folder = useTempFolder('rolling-slow');

  it(`are neither refused nor reset through ${ROUNDS} stops and as many kills of workers (E57)`, async () => {
    const gateway = await startRolling(folder);
    try {
      const { made, failed } = await connectThroughStops(gateway, ROUNDS);
      expect(failed).to.deep.equal([]);
      const one = { rounds: Math.ceil(ROUNDS / 2), isAll: false, connections: 40 };
      expect(await connectThroughKills(gateway, one)).to.deep.equal([]);
      const all = { rounds: Math.ceil(ROUNDS / 4), isAll: true, connections: 80 };
      expect(await connectThroughKills(gateway, all)).to.deep.equal([]);
      expect(made + one.rounds * one.connections + all.rounds * all.connections).to.be.at.least(50 * ROUNDS);
    } finally {
      gateway.running.child.kill('SIGKILL');
      await gateway.running.finished;
    }
  });
});
