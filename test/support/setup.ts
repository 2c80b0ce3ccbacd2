/**
 * Loaded before every test file. No request of a test may leave the loopback. Stores are in memory if there is enough
 * of it.
 */
import { statfsSync } from 'node:fs';
import net from 'node:net';

const LOOPBACK = /^(127\.|::1$|localhost$|0\.0\.0\.0$|::$|::ffff:127\.)/;
const connect = net.Socket.prototype.connect;

net.Socket.prototype.connect = function guarded(this: net.Socket, ...args: unknown[]) {
  const first = Array.isArray(args[0]) ? args[0][0] : args[0];
  const options = (typeof first === 'object' && first !== null ? first : {}) as { host?: string; path?: string };
  const host =
    options.path === undefined ? (options.host ?? (typeof args[1] === 'string' ? args[1] : 'localhost')) : 'localhost';
  if (!LOOPBACK.test(host) && !host.endsWith('.invalid')) {
    throw new Error(`a test tried to reach ${host}: nothing leaves the loopback`);
  }
  return (connect as (...a: unknown[]) => net.Socket).apply(this, args);
} as typeof connect;

// Hundreds of stores are created and closed: waiting for the disk would take a third of a run. Containers often have 64
// MB here.
const MEMORY = '/dev/shm';
const NEEDED_BYTES = 4 * 1024 ** 3;

function isRoomy(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize >= NEEDED_BYTES;
  } catch {
    return false;
  }
}

if (process.env['TMPDIR'] === undefined && isRoomy(MEMORY)) process.env['TMPDIR'] = MEMORY;

// Removes the proxy settings of the machine that runs the tests; tests of proxies set their own.
for (const name of ['https_proxy', 'http_proxy', 'no_proxy']) {
  delete process.env[name];
  delete process.env[name.toUpperCase()];
}
