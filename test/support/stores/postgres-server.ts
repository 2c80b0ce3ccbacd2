import { chownSync, readdirSync } from 'node:fs';
import path from 'node:path';
import {
  findProgram,
  freePort,
  makeDataFolder,
  runToEnd,
  send,
  startServer,
  type TestServer,
} from '../processes/server-process.ts';

const folders = installedVersions();

/** Paths of `postgres` and `initdb`, or undefined if they are not installed. */
export const POSTGRES = findProgram('postgres', folders);
export const INITDB = findProgram('initdb', folders);

/** Private Postgres with fsync off: a SIGKILL of the server loses nothing, a power cut would. */
export async function startPostgresServer(): Promise<TestServer> {
  const port = await freePort();
  const data = makeDataFolder('postgres');
  const owner = serverOwner();
  if (owner.uid !== undefined && owner.gid !== undefined) chownSync(data.folder, owner.uid, owner.gid);
  runToEnd(
    INITDB ?? 'initdb',
    ['-D', data.folder, '-U', 'tollgate', '-A', 'trust', '--no-sync', '-E', 'UTF8', '--no-locale'],
    {
      ...owner,
      cwd: data.folder,
    },
  );
  const settings = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    port,
    fsync: 'off',
    max_connections: 60,
  };
  const command = () => ({
    program: POSTGRES ?? 'postgres',
    args: ['-D', data.folder, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
    options: { ...owner, cwd: data.folder },
    isReady: () => isReady(port),
  });
  return startServer(`postgres://tollgate@127.0.0.1:${port}/postgres`, port, command, data.remove);
}

/** Connects as a client does: a starting server returns an error (E), a ready one an authentication request (R). */
async function isReady(port: number): Promise<boolean> {
  const fields = Buffer.from('user\0tollgate\0database\0postgres\0\0');
  const head = Buffer.alloc(8);
  head.writeInt32BE(8 + fields.length, 0);
  head.writeInt32BE(196_608, 4);
  return (await send(port, Buffer.concat([head, fields]))).startsWith('R');
}

/** Postgres refuses to run as root; in that case it runs as the user `postgres` of its package. */
function serverOwner(): { readonly uid?: number; readonly gid?: number } {
  if (process.getuid?.() !== 0) return {};
  return { uid: Number(runToEnd('id', ['-u', 'postgres'])), gid: Number(runToEnd('id', ['-g', 'postgres'])) };
}

function installedVersions(): string[] {
  const root = '/usr/lib/postgresql';
  try {
    return readdirSync(root).map((version) => path.join(root, version, 'bin'));
  } catch {
    return [];
  }
}
