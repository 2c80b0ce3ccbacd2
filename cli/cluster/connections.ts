import type { Worker } from 'node:cluster';
import { createServer, type Server, Socket } from 'node:net';
import type { Listener } from '../../core/http/lifecycle.ts';
import { listen } from '../../core/http/server.ts';
import { send, sendToPrimary, type WorkerMessage } from './messages.ts';

/** Connections that wait for a worker; more are refused. */
const MAX_WAITING = 4096;

/**
 * The port of a gateway of workers. The first process has it, so that it stays open while workers die and start, and gives connections to
 * them in turn, one at a time each: one that is busy gets fewer. A connection is a worker's when that says so; if it dies before, another
 * gets it.
 */
export class Connections {
  readonly #server: Server;
  #bound: Promise<number> | undefined;
  #isEnding = false;
  readonly #waiting: Socket[] = [];
  /** Workers that take connections, in turn; each with the connection that it was given and has not taken yet. */
  readonly #workers = new Map<Worker, Socket | undefined>();

  constructor() {
    this.#server = createServer({ pauseOnConnect: true, noDelay: true }, (socket) => {
      // A caller that leaves before a worker has its connection.
      socket.on('error', () => socket.destroy());
      if (this.#waiting.length >= MAX_WAITING) socket.destroy();
      else this.#waiting.push(socket);
      this.#give();
    });
  }

  /** What a worker says about the port, if it is about that. */
  async receive(worker: Worker, message: WorkerMessage): Promise<void> {
    if (message.tollgate === 'taken') this.#taken(worker);
    if (message.tollgate === 'listen') send(worker, await this.#add(worker, message));
    if (message.tollgate !== 'unlisten') return;
    this.remove(worker);
    send(worker, { tollgate: 'unlistened' });
  }

  /** From now on a worker gets connections; the first one has the port opened. */
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

  /** A worker takes no more, or is gone: what it had not taken goes to another. */
  remove(worker: Worker): void {
    const socket = this.#workers.get(worker);
    this.#workers.delete(worker);
    if (socket) this.#waiting.unshift(socket);
    this.#give();
    this.#closeIfOver();
  }

  /** Closes the port once no worker takes connections any more, or at once. */
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

/** In a worker: connections come from the primary, which has the port. */
export function createWorkerListener(): Listener {
  const open = new Set<Socket>();
  return {
    async listen(server, host, port) {
      process.on('message', (message: WorkerMessage, socket: unknown) => {
        if (message.tollgate !== 'connection') return;
        // Before anything of it is read: from here on it is lost with this process.
        sendToPrimary({ tollgate: 'taken' });
        if (!(socket instanceof Socket)) return;
        if (open.size >= server.maxConnections) return void socket.destroy();
        open.add(socket);
        socket.once('close', () => open.delete(socket));
        // As of a server's own connections: who has sent all may still read.
        socket.allowHalfOpen = true;
        server.emit('connection', socket);
      });
      const reply = await requestPrimary({ tollgate: 'listen', host, port }, 'listening');
      if (reply?.tollgate !== 'listening') throw new Error('the first process of this gateway is gone');
      if (reply.problem) throw Object.assign(new Error(reply.problem.message), reply.problem);
      // Begins to look for requests that come too slowly.
      server.emit('listening');
      return reply.port;
    },
    async close(server) {
      await requestPrimary({ tollgate: 'unlisten' }, 'unlistened');
      await Promise.all([...open].map((socket) => new Promise((resolve) => socket.once('close', resolve))));
      // Ends the timer that looks for slow requests. Before, it would close idle connections too.
      server.close();
    },
  };
}

/** Requests something of the primary; undefined when it is gone. */
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
