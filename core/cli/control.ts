import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { isObject, parseJson } from '../contract/json.ts';
import type { Log } from '../contract/log.ts';
import type { Reloader, ReloadReport } from './reloader.ts';

/** What one line to a control socket asks for. */
export type ControlCommand = 'reload' | 'compare';

/** Longer names of a socket are refused by some systems (104 bytes on macOS, 108 on Linux). */
const LONGEST_FOLDER = 80;

const NAME = /^control-[0-9a-f]{8}\.sock$/;

/** A command is a few words. */
const MAX_BYTES = 1024;

/** How long a gateway may take to reload: each plugin has 30 s to set up. */
const REPLY_MS = 120_000;

/** Where the gateways on a data folder have their control sockets: in it, unless its name is too long for a socket's. */
export function controlFolder(dataDir: string): string {
  if (Buffer.byteLength(dataDir) <= LONGEST_FOLDER) return dataDir;
  const short = createHash('sha256').update(dataDir).digest('hex').slice(0, 16);
  return path.join(os.tmpdir(), `tollgate-${short}`);
}

/**
 * Listens for `tollgate reload` on a socket that only this user may open. A gateway that cannot have one runs without; SIGHUP works
 * there too. Returns how to stop.
 */
export async function openControl(
  dataDir: string,
  reloader: Pick<Reloader, ControlCommand>,
  log: Log,
): Promise<() => void> {
  const server = net.createServer((socket) => replyToCommand(socket, reloader));
  const folder = controlFolder(dataDir);
  const file = path.join(folder, `control-${randomBytes(4).toString('hex')}.sock`);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    await listenPrivately(server, file);
  } catch (error) {
    log.warn({ err: error }, 'tollgate reload cannot reach this gateway: it has no control socket');
    return () => {};
  }
  server.unref();
  return () => void server.close();
}

/** Resolves when it listens; the socket is born with the rights of its owner alone. */
function listenPrivately(server: net.Server, file: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    const before = process.umask(0o177);
    try {
      server.listen(file, () => {
        server.off('error', reject);
        resolve();
      });
    } finally {
      process.umask(before);
    }
  });
}

function replyToCommand(socket: net.Socket, reloader: Pick<Reloader, ControlCommand>): void {
  let text = '';
  socket.setEncoding('utf8');
  // Who asked and left is nobody's concern; the reload goes on.
  socket.on('error', () => {});
  socket.on('data', async (part: string) => {
    text += part;
    if (text.length > MAX_BYTES) socket.destroy();
    if (!text.includes('\n')) return;
    socket.removeAllListeners('data');
    const command = text.trim();
    if (command !== 'reload' && command !== 'compare') return void socket.destroy();
    const report = await (command === 'reload' ? reloader.reload('tollgate reload') : reloader.compare());
    socket.end(`${JSON.stringify({ pid: process.pid, ...report })}\n`);
  });
}

/** What one gateway replies to a command. */
export interface ControlReply extends ReloadReport {
  readonly pid: number;
}

/** Tells a command to every gateway that runs on a data folder; sockets that nobody listens on any more are removed. */
export async function callGateways(dataDir: string, command: ControlCommand): Promise<readonly ControlReply[]> {
  const folder = controlFolder(dataDir);
  const replies = await Promise.all(listSockets(folder).map((name) => callGateway(path.join(folder, name), command)));
  return replies.flatMap((reply) => reply ?? []);
}

function listSockets(folder: string): readonly string[] {
  try {
    return readdirSync(folder).filter((name) => NAME.test(name));
  } catch {
    return [];
  }
}

/** What a gateway replies; undefined when there is none any more. */
function callGateway(file: string, command: ControlCommand): Promise<ControlReply | undefined> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(file);
    let text = '';
    socket.setEncoding('utf8');
    socket.setTimeout(REPLY_MS, () => socket.destroy(new Error('the gateway does not answer')));
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNREFUSED' && error.code !== 'ENOENT') return reject(error);
      rmSync(file, { force: true });
      resolve(undefined);
    });
    socket.on('connect', () => socket.write(`${command}\n`));
    socket.on('data', (part: string) => {
      text += part;
    });
    socket.on('close', () => {
      const reply = parseJson(text);
      if (isReply(reply)) resolve(reply);
      else reject(new Error('the gateway ended before it answered'));
    });
  });
}

function isReply(value: unknown): value is ControlReply {
  return isObject(value) && typeof value['pid'] === 'number' && Array.isArray(value['changes']);
}
