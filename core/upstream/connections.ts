import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import type * as Undici from 'undici';

/** The two files of `undici` that calls need: its index loads 110, `fetch` and WebSocket among them, and that is 50 ms of a start. */
const require = createRequire(import.meta.url);
const buildConnector = require('undici/lib/core/connect.js') as typeof Undici.buildConnector;
const Client = require('undici/lib/dispatcher/client.js') as typeof Undici.Client;

/** One keep-alive connection; carries one request at a time. */
export interface Connection {
  readonly client: Undici.Client;
  /** Answers read in full since the socket was opened; 0 means fresh. */
  served: number;
  /** The socket while it is being connected. */
  connecting: Socket | undefined;
}

/** Undici types it as returning nothing; it returns the socket that it opens. */
type Connect = (options: Undici.buildConnector.Options, callback: Undici.buildConnector.Callback) => Socket;

export interface Connections {
  /** An idle connection, the last used first, or a new one (always, with `fresh`); undefined when all `max` are busy. */
  take(fresh: boolean): Connection | undefined;
  /** Gives a connection back: kept when its answer was read to the end, destroyed otherwise. */
  release(connection: Connection, reusable: boolean): void;
  close(): Promise<void>;
}

export interface ConnectionOptions {
  readonly connectMs: number;
  readonly maxHeaderBytes: number;
  /** Open sockets to one origin, idle ones included. */
  readonly max: number;
}

/** How long an idle socket is kept when the vendor does not say (`keep-alive: timeout=`). */
const KEEP_ALIVE_MS = 30_000;

/**
 * The connections to one origin. Undici's own `Pool` does not tell whether a request went out on a reused socket, which
 * the transparent retry has to know, queues where we want to refuse, and looks through all its clients for a free one.
 */
export function createConnections(origin: string, options: ConnectionOptions): Connections {
  const connect = buildConnector({ timeout: options.connectMs, rejectUnauthorized: true }) as Connect;
  const all = new Set<Connection>();
  const idle: Connection[] = [];

  function open(): Connection {
    const client = new Client(origin, {
      connect(target, callback) {
        connection.connecting = connect(target, (...result) => {
          connection.connecting = undefined;
          callback(...result);
        });
      },
      pipelining: 1,
      maxHeaderSize: options.maxHeaderBytes,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
      // Our own clock watches; undici's would set a timer per request.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    const connection: Connection = { client, served: 0, connecting: undefined };
    client.on('disconnect', () => {
      connection.served = 0;
      const at = idle.lastIndexOf(connection);
      if (at < 0) return;
      idle.splice(at, 1);
      drop(connection);
    });
    all.add(connection);
    return connection;
  }

  function drop(connection: Connection): void {
    if (!all.delete(connection)) return;
    // Not from within undici's own callbacks: it still has to finish with the request that just failed.
    queueMicrotask(() => void destroy(connection));
  }

  return {
    take(fresh) {
      if (!fresh || all.size >= options.max) {
        const kept = idle.pop();
        if (kept && !fresh) return kept;
        if (kept) drop(kept);
      }
      return all.size < options.max ? open() : undefined;
    },
    release(connection, reusable) {
      if (!all.has(connection)) return;
      if (!reusable) drop(connection);
      else {
        connection.served += 1;
        idle.push(connection);
      }
    },
    async close() {
      const open = [...all];
      all.clear();
      idle.length = 0;
      await Promise.all(open.map(destroy));
    },
  };
}

/** A client that is destroyed leaves a socket that is still being connected to its own timeout; so it is cut here. */
function destroy({ client, connecting }: Connection): Promise<void> {
  const destroyed = client.destroy();
  connecting?.destroy(new Error('not needed any more'));
  return destroyed;
}
