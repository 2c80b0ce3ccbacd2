import type { Server } from 'node:http';
import https, { type ServerOptions } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import type { TlsConfig } from '../config/tls.ts';
import type { Log } from '../contract/log.ts';

/** How long a client may take to agree on a key; as long as it may take for the headers of a request. */
const HANDSHAKE_MS = 15_000;

/** The options of a server with TLS. */
export function tlsOptions(tls: TlsConfig): ServerOptions {
  const { clientCa, clientAuth } = tls;
  return {
    ...contextOptions(tls),
    handshakeTimeout: HANDSHAKE_MS,
    requestCert: clientCa !== undefined,
    rejectUnauthorized: clientCa !== undefined && clientAuth === 'required',
  };
}

function contextOptions({ cert, key, passphrase, minVersion, clientCa: ca }: TlsConfig): ServerOptions {
  return { cert, key, minVersion, ...(passphrase !== undefined && { passphrase }), ...(ca !== undefined && { ca }) };
}

/**
 * Goes on with other files: connections that are open stay, the next ones get these. Whether there is TLS at all, and whether clients
 * are asked for certificates, stays as it was at the start: without an authority of ours any authority that Node knows would do.
 */
export function renewTls(server: Server, started: TlsConfig | undefined, next: TlsConfig | undefined): void {
  if (!(server instanceof https.Server) || started === undefined || next === undefined) return;
  const { clientCa: _next, ...rest } = next;
  const clientCa = started.clientCa === undefined ? undefined : (next.clientCa ?? started.clientCa);
  server.setSecureContext(contextOptions({ ...rest, ...(clientCa !== undefined && { clientCa }) }));
}

/** Gives a server a connection that needs no handshake any more, as Node documents for its `connection` event. */
export function feedConnection(server: Server, connection: Duplex): void {
  server.emit(server instanceof https.Server ? 'secureConnection' : 'connection', connection);
}

/** Looks after connections of a server with TLS until their handshake is over: the HTTP server does not know them before. */
export interface Handshakes {
  /** Cuts those that are not over. */
  cut(): void;
}

export function watchHandshakes(server: Server, log: Log): Handshakes {
  const open = new Map<string, Socket>();
  if (server instanceof https.Server) {
    server.on('connection', (socket: Socket) => {
      const name = nameOf(socket);
      open.set(name, socket);
      socket.once('close', () => open.get(name) === socket && open.delete(name));
    });
    server.prependListener('secureConnection', (socket: Duplex) => {
      if (!(socket instanceof TLSSocket)) return;
      open.delete(nameOf(socket));
      // Where certificates are optional, a wrong one is none all the same.
      if (!socket.authorized && Object.keys(socket.getPeerCertificate()).length > 0) {
        log.debug({ ip: socket.remoteAddress, code: socket.authorizationError }, 'a client certificate was refused');
        socket.destroy();
      }
    });
    server.on('tlsClientError', ({ code }: NodeJS.ErrnoException, socket: TLSSocket) => {
      open.delete(nameOf(socket));
      log.debug({ ip: socket.remoteAddress, code }, 'a TLS handshake failed');
    });
  }
  return {
    cut() {
      for (const socket of open.values()) socket.destroy();
      open.clear();
    },
  };
}

/** The far end of a connection: the same for a socket and for what TLS makes of it. */
function nameOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
