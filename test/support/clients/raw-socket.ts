/** Connections to a gateway, for data that no HTTP client sends. */
import { once } from 'node:events';
import net from 'node:net';

/** Opens a connection. Its errors are ignored, because tests check the received data and the time of the close. */
export async function connectTo(url: string): Promise<net.Socket> {
  const socket = net.connect(Number(new URL(url).port), '127.0.0.1');
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

/** Reads all data until the other side closes. */
export async function readToEnd(socket: net.Socket): Promise<string> {
  let text = '';
  socket.on('data', (bytes) => {
    text += String(bytes);
  });
  await once(socket, 'close');
  return text;
}
