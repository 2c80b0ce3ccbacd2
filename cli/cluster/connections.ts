import type { Worker } from 'node:cluster';
import { createServer, type Server, Socket } from 'node:net';
import type { Listener } from '../../core/http/lifecycle.ts';
import { listen } from '../../core/http/server.ts';
import { send, sendToPrimary, type WorkerMessage } from './messages.ts';

/** Most connections that wait for a worker; more are refused. */
const MAX_WAITING = 4096;

/**
 * Port of a gateway with workers. The primary holds it, so that it stays open while workers exit and start. It assigns
 * connections to workers round robin, one at a time each, so that busy workers get fewer. A connection belongs to a
 * worker once the worker confirms it. If the worker exits first, another one gets the connection.
 */
export class Connections {
  readonly #server: Server;
  #bound: Promise<number> | undefined;
  #isEnding = false;
  readonly #waiting: Socket[] = [];
  /** Workers that accept connections, in order. The value is the connection assigned but not confirmed yet. */
  readonly #workers = new Map<Worker, Socket | undefined>();

  constructor() {
    this.#server = createServer({ pauseOnConnect: true, noDelay: true }, (socket) => {
      // The caller may disconnect before a worker has its connection.
      socket.on('error', () => socket.destroy());
      if (this.#waiting.length >= MAX_WAITING) socket.destroy();
      else this.#waiting.push(socket);
      this.#give();
    });
  }

  /** Handles a worker's messages about the port; ignores others. */
  async receive(worker: Worker, message: WorkerMessage): Promise<void> {
    if (message.tollgate === 'taken') this.#taken(worker);
    if (message.tollgate === 'listen') send(worker, await this.#add(worker, message));
    if (message.tollgate !== 'unlisten') return;
    this.remove(worker);
    send(worker, { tollgate: 'unlistened' });
  }

  /** Adds a worker that accepts connections. The first one opens the port. */
  async #add(worker: Worker, { host, port }: WorkerMessage & { readonly tollgate: 'listen' }): Promise<WorkerMessage> {
    try {
      this.#bound ??= listen(this.#server, host, port);
      const bound = await this.#bound;
      if (worker.isConnected()) this.#workers.set(worker, undefined);
      this.#give();
      return { tollgate: 'listening', port: bound };
    } catch (error) {
      const { message, code, syscall } = error as NodeJS.ErrnoException;
      return { tollgate: 'listening', port, problem: { message, code, syscall } };
    }
  }

  #taken(worker: Worker): void {
    const socket = this.#workers.get(worker);
    if (!socket) return;
    // Closes the handle of this process alone.
    socket.destroy();
    this.#workers.delete(worker);
    this.#workers.set(worker, undefined);
    this.#give();
  }

  /**
   * Removes a worker that stops accepting connections or has ended. Its unconfirmed connection goes to another worker.
   */
  remove(worker: Worker): void {
    const socket = this.#workers.get(worker);
    this.#workers.delete(worker);
    if (socket) this.#waiting.unshift(socket);
    this.#give();
    this.#closeIfOver();
  }

  /** Closes the port at once, or when no worker accepts connections any more. */
  end(isAtOnce: boolean): void {
    this.#isEnding = true;
    if (isAtOnce) this.#workers.clear();
    this.#closeIfOver();
  }

  #closeIfOver(): void {
    if (!this.#isEnding || this.#workers.size > 0) return;
    this.#server.close();
    for (const socket of this.#waiting.splice(0)) socket.destroy();
  }

  #give(): void {
    for (const [worker, given] of this.#workers) {
      if (given) continue;
      const socket = this.#waiting.shift();
      if (!socket) return;
      this.#workers.set(worker, socket);
      const message: WorkerMessage = { tollgate: 'connection' };
      worker.send(message, socket, { keepOpen: true }, () => {});
    }
  }
}

/** In a worker: receives connections from the primary, which holds the port. */
export function createWorkerListener(): Listener {
  const open = new Set<Socket>();
  return {
    async listen(server, host, port) {
      process.on('message', (message: WorkerMessage, socket: unknown) => {
        if (message.tollgate !== 'connection') return;
        // Confirm before reading: from here on the connection ends with this process.
        sendToPrimary({ tollgate: 'taken' });
        if (!(socket instanceof Socket)) return;
        if (open.size >= server.maxConnections) return void socket.destroy();
        open.add(socket);
        socket.once('close', () => open.delete(socket));
        // Like a server's own connections: a client that has sent everything may still read.
        socket.allowHalfOpen = true;
        server.emit('connection', socket);
      });
      const reply = await requestPrimary({ tollgate: 'listen', host, port }, 'listening');
      if (reply?.tollgate !== 'listening') throw new Error('the primary process of this gateway exited');
      if (reply.problem) throw Object.assign(new Error(reply.problem.message), reply.problem);
      // Starts the timer that closes slow requests.
      server.emit('listening');
      return reply.port;
    },
    async close(server) {
      await requestPrimary({ tollgate: 'unlisten' }, 'unlistened');
      await Promise.all([...open].map((socket) => new Promise((resolve) => socket.once('close', resolve))));
      // Ends the timer that closes slow requests. Earlier, it would close idle connections too.
      server.close();
    },
  };
}

/** Sends a request to the primary; resolves with undefined if it has ended. */
function requestPrimary(message: WorkerMessage, reply: WorkerMessage['tollgate']): Promise<WorkerMessage | undefined> {
  return new Promise((resolve) => {
    const done = (received?: WorkerMessage): void => {
      process.off('message', onMessage);
      process.off('disconnect', onGone);
      resolve(received);
    };
    const onMessage = (received: WorkerMessage): void => {
      if (received.tollgate === reply) done(received);
    };
    const onGone = (): void => done();
    process.on('message', onMessage);
    process.once('disconnect', onGone);
    if (process.connected) sendToPrimary(message);
    else done();
  });
}
