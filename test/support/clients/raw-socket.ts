/** Connections to a gateway, for what no client of HTTP sends. */
import { once } from 'node:events';
import net from 'node:net';

/** A connection; its errors are passed over, for what counts is what came and when it was closed. */
export async function connectTo(url: string): Promise<net.Socket> {
  const socket = net.connect(Number(new URL(url).port), '127.0.0.1');
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

/** All that comes until the other side closes. */
export async function readToEnd(socket: net.Socket): Promise<string> {
  let text = '';
  socket.on('data', (bytes) => {
    text += String(bytes);
  });
  await once(socket, 'close');
  return text;
}
