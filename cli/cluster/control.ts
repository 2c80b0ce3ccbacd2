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

/** Reply of a gateway to each command, sent as one line to its control socket. */
interface ControlReplies {
  readonly reload: ReloadReport;
  readonly compare: ReloadReport;
  readonly targets: RoutingState;
  /** State of the store as each process sees it, hook counts and parts of plugins of all processes. */
  readonly status: {
    readonly stores: readonly string[];
    readonly hooks: ProcessState['hooks'];
    readonly parts: ProcessState['parts'];
  };
}

type ControlCommand = keyof ControlReplies;

/** Work that a gateway does for commands. */
export interface ControlWork {
  readonly reloader: Pick<ReloadControl, 'reload' | 'compare'>;
  /** State of the targets, from all processes. */
  routing(): Promise<RoutingState>;
  /** State of each process. */
  processStates(): Promise<readonly ProcessState[]>;
}

const REPLIES: { readonly [C in ControlCommand]: (work: ControlWork) => Promise<ControlReplies[C]> } = Object.freeze({
  reload: ({ reloader }: ControlWork) => reloader.reload('tollgate reload', { via: 'cli', userId: systemUser() }),
  compare: ({ reloader }: ControlWork) => reloader.compare(),
  targets: ({ routing }: ControlWork) => routing(),
  status: async ({ processStates }: ControlWork) => {
    const states = await processStates();
    return {
      stores: states.map(({ store }) => store),
      hooks: states.flatMap(({ hooks }) => hooks),
      parts: states.flatMap(({ parts }) => parts),
    };
  },
});

/** Some systems refuse longer socket names (104 bytes on macOS, 108 on Linux). */
const LONGEST_FOLDER = 80;

const NAME = /^control-[0-9a-f]{8}\.sock$/;

/** Longest command in bytes. */
const MAX_BYTES = 1024;

/** Time limit for a gateway to reload: each plugin has 30 s to set up. */
const REPLY_MS = 120_000;

/** Folder of the control sockets: the data folder, or a temporary one if its name is too long for a socket. */
function controlFolder(dataDir: string): string {
  if (Buffer.byteLength(dataDir) <= LONGEST_FOLDER) return dataDir;
  const short = createHash('sha256').update(dataDir).digest('hex').slice(0, 16);
  return path.join(os.tmpdir(), `tollgate-${short}`);
}

/**
 * Listens for `tollgate reload`, `targets` and `status` on a socket that only this user may open. If the socket cannot
 * be created, the gateway runs without it; SIGHUP works there too. Returns a function that stops it.
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

/** Resolves when it listens. The socket is created with the owner's permissions alone. */
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
  // The command that requested it has ended; the reload continues.
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
      // The command sees that the gateway did not reply.
      socket.destroy();
    }
  });
}

function isCommand(text: string): text is ControlCommand {
  return Object.hasOwn(REPLIES, text);
}

/** One gateway's reply to a command. */
export type ControlReply<C extends ControlCommand> = ControlReplies[C] & { readonly pid: number };

/** Sends a command to every gateway that runs on a data folder. Removes sockets without a listener. */
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

/** Reads a gateway's reply; undefined if it no longer runs. */
function callGateway(file: string, command: ControlCommand): Promise<object | undefined> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(file);
    let text = '';
    socket.setEncoding('utf8');
    socket.setTimeout(REPLY_MS, () => socket.destroy(new Error('the gateway does not respond')));
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
      else reject(new Error('the gateway exited before it responded'));
    });
  });
}

function isReply(value: unknown): value is object {
  return isObject(value) && typeof value['pid'] === 'number';
}
