import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import type { RoutingState } from '../../contract/call.ts';
import type { ReloadControl, ReloadReport } from '../../contract/gateway.ts';
import { isObject, parseJson } from '../../contract/json.ts';
import type { Log } from '../../contract/plugin.ts';
import type { ProcessState } from '../../core/plugins/gather.ts';
import { systemUser } from '../io.ts';

/** What one line to a control socket asks for, and what a gateway replies to it. */
interface ControlReplies {
  readonly reload: ReloadReport;
  readonly compare: ReloadReport;
  readonly targets: RoutingState;
  /** How the store does, as each of its processes finds, and what hooks came to in all of them. */
  readonly status: { readonly stores: readonly string[]; readonly hooks: ProcessState['hooks'] };
}

type ControlCommand = keyof ControlReplies;

/** What a gateway does for those who ask it. */
export interface ControlWork {
  readonly reloader: ReloadControl;
  /** What all of its processes know of targets. */
  routing(): Promise<RoutingState>;
  /** How each of its processes does. */
  processStates(): Promise<readonly ProcessState[]>;
}

const REPLIES: { readonly [C in ControlCommand]: (work: ControlWork) => Promise<ControlReplies[C]> } = Object.freeze({
  reload: ({ reloader }: ControlWork) => reloader.reload('tollgate reload', { via: 'cli', userId: systemUser() }),
  compare: ({ reloader }: ControlWork) => reloader.compare(),
  targets: ({ routing }: ControlWork) => routing(),
  status: async ({ processStates }: ControlWork) => {
    const states = await processStates();
    return { stores: states.map(({ store }) => store), hooks: states.flatMap(({ hooks }) => hooks) };
  },
});

/** Longer names of a socket are refused by some systems (104 bytes on macOS, 108 on Linux). */
const LONGEST_FOLDER = 80;

const NAME = /^control-[0-9a-f]{8}\.sock$/;

/** A command is a few words. */
const MAX_BYTES = 1024;

/** How long a gateway may take to reload: each plugin has 30 s to set up. */
const REPLY_MS = 120_000;

/** Where the gateways on a data folder have their control sockets: in it, unless its name is too long for a socket's. */
function controlFolder(dataDir: string): string {
  if (Buffer.byteLength(dataDir) <= LONGEST_FOLDER) return dataDir;
  const short = createHash('sha256').update(dataDir).digest('hex').slice(0, 16);
  return path.join(os.tmpdir(), `tollgate-${short}`);
}

/**
 * Listens for `tollgate reload`, `targets` and `status` on a socket that only this user may open. A gateway that cannot have one runs
 * without; SIGHUP works there too. Returns how to stop.
 */
export async function openControl(dataDir: string, work: ControlWork, log: Log): Promise<() => void> {
  const server = net.createServer((socket) => replyToCommand(socket, work));
  const folder = controlFolder(dataDir);
  const file = path.join(folder, `control-${randomBytes(4).toString('hex')}.sock`);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    await listenPrivately(server, file);
  } catch (error) {
    log.warn({ err: error }, 'tollgate reload, targets and status cannot reach this gateway: it has no control socket');
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

function replyToCommand(socket: net.Socket, work: ControlWork): void {
  let text = '';
  socket.setEncoding('utf8');
  // The command that requested it has ended; the reload goes on.
  socket.on('error', () => {});
  socket.on('data', async (part: string) => {
    text += part;
    if (text.length > MAX_BYTES) socket.destroy();
    if (!text.includes('\n')) return;
    socket.removeAllListeners('data');
    const command = text.trim();
    if (!isCommand(command)) return void socket.destroy();
    try {
      socket.end(`${JSON.stringify({ pid: process.pid, ...(await REPLIES[command](work)) })}\n`);
    } catch {
      // It hears that the gateway gave no reply.
      socket.destroy();
    }
  });
}

function isCommand(text: string): text is ControlCommand {
  return Object.hasOwn(REPLIES, text);
}

/** What one gateway replies to a command. */
export type ControlReply<C extends ControlCommand> = ControlReplies[C] & { readonly pid: number };

/** Sends a command to every gateway that runs on a data folder; sockets without a listener are removed. */
export async function callGateways<C extends ControlCommand>(
  dataDir: string,
  command: C,
): Promise<readonly ControlReply<C>[]> {
  const folder = controlFolder(dataDir);
  const replies = await Promise.all(listSockets(folder).map((name) => callGateway(path.join(folder, name), command)));
  return replies.flatMap((reply) => (reply as ControlReply<C> | undefined) ?? []);
}

function listSockets(folder: string): readonly string[] {
  try {
    return readdirSync(folder).filter((name) => NAME.test(name));
  } catch {
    return [];
  }
}

/** What a gateway replies; undefined when it no longer runs. */
function callGateway(file: string, command: ControlCommand): Promise<object | undefined> {
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

function isReply(value: unknown): value is object {
  return isObject(value) && typeof value['pid'] === 'number';
}
