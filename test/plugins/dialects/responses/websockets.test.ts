import http, { type Server } from 'node:http';
import { expect } from 'chai';
import type { Upgrade } from '../../../../contract/route.ts';
import { createMemory, type Memory, type MemoryLimits, ownerOf } from '../../../../core/http/memory.ts';
import { listen } from '../../../../core/http/server.ts';
import { Upgrades } from '../../../../core/http/upgrades.ts';
import { SOCKET_LIMITS, Websockets } from '../../../../plugins/dialects/responses/websockets.ts';
import { frameOf, OPCODE, RawWebSocket } from '../../../support/clients/raw-websocket.ts';
import { createSilentLog } from '../../../support/log.ts';
import { until } from '../../../support/wait.ts';

/** Dialect that returns the byte length of a message without a request. */
const dialect = {
  connect: () => ({
    read: (message: object) => ({ events: [{ size: JSON.stringify(message).length }] }),
    event: (event: object) => event,
    refuse: (status: number, body: unknown) => ({ refused: status, body }),
  }),
  error: ({ code }: { code: string }) => ({ body: code }),
};

describe('the memory of websockets', () => {
  let server: Server;
  let sockets: Websockets;
  let upgrades: Upgrades;
  let memory: Memory;
  let url: string;

  async function start(
    limits: Partial<MemoryLimits>,
    bounds: Partial<Record<keyof typeof SOCKET_LIMITS, number>> = {},
  ): Promise<void> {
    server = http.createServer();
    memory = createMemory({ floorBytes: 0, ...limits });
    const rules = {
      ...{
        origins: [],
        trustProxy: 0,
        find: (path: string) => ({ path, handler: (upgrade: Upgrade) => sockets.take(upgrade) }),
      },
      // The key contains its identity: `account-user-number`.
      async authenticate({ headers }: http.IncomingMessage) {
        const keyId = String(headers.authorization).replace('Bearer ', '');
        const [account = '', userId = ''] = keyId.split('-');
        return { credential: 'key' as const, account, userId, keyId };
      },
    };
    const log = createSilentLog();
    sockets = new Websockets({ ...dialect, log }, { ...SOCKET_LIMITS, ...bounds });
    upgrades = new Upgrades({
      ...{ server, basePath: '', memory, log, maxMessageBytes: 10_000_000 },
      rules: () => rules,
      isDraining: () => false,
    });
    url = `http://127.0.0.1:${await listen(server, '127.0.0.1', 0)}`;
  }
  afterEach(() => {
    sockets.close();
    upgrades.close();
    server.close().closeAllConnections();
  });

  const open = (key: string): Promise<RawWebSocket> => RawWebSocket.open(url, '/ws', key);

  /** Returns true if an account could book this many bytes now. */
  function hasRoom(account: string, bytes: number): boolean {
    try {
      memory.book(ownerOf({ account }), bytes).release();
      return true;
    } catch {
      return false;
    }
  }

  it('E26: books the memory of fragments under their account, closes with 1013 over its limit, and releases all', async () => {
    // A single account may hold 2 MB: 667,000 bytes of messages.
    await start({ bytes: 3_000_000 });
    const peers = await Promise.all(['a-u1-1', 'a-u1-2', 'a-u2-3'].map(open));
    for (const peer of peers) peer.send(`"${'x'.repeat(300_000)}`, { isFinal: false });
    const codes = peers.map((peer) => peer.closeCode(60_000));
    expect(await Promise.race(codes)).to.equal(1013);
    const cut = peers.filter((peer) => peer.texts().includes('{"refused":429,"body":"rate_limited"}'));
    expect(cut).not.to.deep.equal([]);
    const other = await open('b-u3-4');
    other.send('{"x":1}');
    await until('another account is served', () => other.texts().includes('{"size":7}'));
    for (const { socket: each } of [...peers, other]) each.destroy();
    await until('all is given back', () => hasRoom('a', 2_000_000));
  });

  it('E26: is released message by message, in any frames', async () => {
    await start({ bytes: 3_000_000 });
    const peer = await open('a-u1-1');
    const text = JSON.stringify({ x: 'x'.repeat(200_000) });
    for (let count = 1; count <= 12; count += 1) {
      peer.send(text.slice(0, 70_000), { isFinal: false });
      peer.send('', { opcode: OPCODE.ping });
      peer.send(text.slice(70_000), { opcode: OPCODE.continuation });
      await until('it is answered', () => peer.texts().length === count);
    }
    await until('no more than a read is held', () => hasRoom('a', 1_700_000));
    peer.socket.destroy();
  });

  it('E26: closes with 1009 for a message that no account has room for, and with 1008 for a slow one', async () => {
    await start({ bytes: 3_000_000, leastRate: { bytes: 5000, everyMs: 200 } });
    const large = await open('a-u1-1');
    large.send(`"${'x'.repeat(900_000)}"`);
    expect(await large.closeCode(60_000)).to.equal(1009);
    large.socket.destroy();
    await until('its memory is back', () => hasRoom('a', 2_000_000));
    const slow = await open('a-u1-2');
    slow.socket.write(frameOf('x'.repeat(200_000)).subarray(0, 100_000));
    expect(await slow.closeCode(60_000)).to.equal(1008);
    expect(slow.texts()).to.deep.equal(['{"refused":408,"body":"request_timeout"}']);
  });

  for (const [whose, bounds, within, beyond, elsewhere] of [
    ['of a user over all keys', { perUser: 2 }, ['a-u1-1', 'a-u1-2'], 'a-u1-3', 'a-u2-4'],
    ['of a key', { perKey: 2 }, ['a-u1-1', 'a-u1-1'], 'a-u1-1', 'a-u1-2'],
  ] as const)
    it(`E26: counts the websockets ${whose}`, async () => {
      await start({}, bounds);
      await Promise.all(within.map(open));
      const refused = await open(beyond).catch((error: Error) => error.message);
      expect(refused).to.match(/^HTTP\/1\.1 429 /);
      await open(elsewhere);
    });
});
