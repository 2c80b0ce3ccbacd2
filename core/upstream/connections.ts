import type { Socket } from 'node:net';
import { buildConnector, Client } from 'undici';

/** How long an idle socket is kept when the vendor does not say (`keep-alive: timeout=`). */
const KEEP_ALIVE_MS = 30_000;

/** One keep-alive connection: undici's client for one socket, which carries one request at a time. */
export interface Connection {
  readonly client: Client;
  /** The socket that was connected last; undefined before the first. */
  socket: Socket | undefined;
}

export interface ConnectionOptions {
  readonly connectMs: number;
  readonly maxHeaderBytes: number;
  /** Open connections to one origin, idle ones included. */
  readonly max: number;
}

/**
 * The connections to one origin. Not undici's `Pool`, which queues where we refuse, and does not tell whether a request
 * went out on a kept socket: only then may a POST be sent again when the vendor closed the socket under it.
 */
export class Connections {
  readonly #origin: string;
  readonly #options: ConnectionOptions;
  readonly #connect: buildConnector.connector;
  readonly #all = new Set<Connection>();
  readonly #idle: Connection[] = [];

  constructor(origin: string, options: ConnectionOptions) {
    this.#origin = origin;
    this.#options = options;
    this.#connect = buildConnector({ timeout: options.connectMs, rejectUnauthorized: true });
  }

  /** The idle connection that was used last, or a new one (always, when it has to be `fresh`); undefined when all are in use. */
  take(fresh: boolean): Connection | undefined {
    const kept = fresh ? undefined : this.#idle.pop();
    return kept ?? (this.#all.size < this.#options.max ? this.#open() : undefined);
  }

  /** Keeps a connection for the next request, when its response was read to the end and its socket is still there. */
  release(connection: Connection): void {
    if (connection.socket?.destroyed === false && this.#all.has(connection)) this.#idle.push(connection);
    else this.drop(connection);
  }

  /** Cuts a connection, with the request that it carries. A socket that is still being connected has its own deadline. */
  drop(connection: Connection): void {
    this.#all.delete(connection);
    const at = this.#idle.indexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
    void connection.client.destroy();
  }

  async close(): Promise<void> {
    await Promise.all([...this.#all].map(({ client }) => client.destroy()));
  }

  #open(): Connection {
    const client = new Client(this.#origin, {
      connect: (target, callback) =>
        this.#connect(target, (...result) => {
          connection.socket = result[1] ?? connection.socket;
          callback(...result);
        }),
      maxHeaderSize: this.#options.maxHeaderBytes,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
    });
    const connection: Connection = { client, socket: undefined };
    // One in use stays: undici connects it again by itself when it was closed before the request was written.
    client.on('disconnect', () => {
      if (this.#idle.includes(connection)) this.drop(connection);
    });
    this.#all.add(connection);
    return connection;
  }
}
