import { randomUUID } from 'node:crypto';
import { mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { isLoopback } from '../contract/hosts.ts';
import { isObject, parseJson } from '../contract/json.ts';
import { CliError, EXIT } from './io.ts';

/** Tokens of one gateway, as stored in the file. Times are Unix milliseconds. */
export interface SignIn {
  readonly accessToken: string;
  readonly refreshToken: string;
  readonly endsAt: number;
  /** Time from which the token is renewed before use. */
  readonly renewAt: number;
  readonly tokenEndpoint: string;
  readonly revocationEndpoint?: string;
  readonly email?: string;
}

/** Content of the file: sign-ins by gateway address, and the last one used. */
interface StoredSignIn {
  readonly last?: string;
  readonly signIns: Readonly<Record<string, SignIn>>;
}

/** Time limit of one request to a gateway. */
export const REQUEST_MS = 15_000;

/** https, or http on this machine. */
export function isSafe({ protocol, hostname }: URL): boolean {
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname));
}

/** True for one word that is safe on a terminal and in a header. */
export function isWord(value: unknown): value is string {
  return typeof value === 'string' && /^[\x21-\x7e]{1,4096}$/.test(value);
}

export function isCount(value: unknown): value is number {
  return typeof value === 'number' && value > 0 && Number.isFinite(value);
}

function folderOfUser(): string {
  const { XDG_CONFIG_HOME: config } = process.env;
  return path.join(
    config !== undefined && path.isAbsolute(config) ? config : path.join(os.homedir(), '.config'),
    'tollgate',
  );
}

const FILE = 'sign-ins.json';

/** Reads the file; empty if it is missing. */
export async function readStored(): Promise<StoredSignIn> {
  const file = path.join(folderOfUser(), FILE);
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw new CliError(`${file} cannot be read (${error.code ?? 'unknown'})`, EXIT.unexpected);
  });
  if (text === undefined) return { signIns: {} };
  const value = parseJson(text);
  const signIns = isObject(value) ? value['signIns'] : undefined;
  if (!isObject(value) || !isObject(signIns) || !Object.values(signIns).every(isSignIn))
    throw new CliError(`${file} is not a valid file of sign-ins`, EXIT.unexpected, 'Remove it, and sign in again.');
  const last = value['last'];
  const known: Record<string, SignIn> = {};
  for (const [url, signIn] of Object.entries(signIns)) if (isSignIn(signIn)) known[url] = signIn;
  return { ...(typeof last === 'string' && known[last] && { last }), signIns: known };
}

function isSignIn(value: unknown): value is SignIn {
  if (!isObject(value)) return false;
  const { accessToken, refreshToken, tokenEndpoint, revocationEndpoint, endsAt, renewAt } = value;
  return (
    isWord(accessToken) &&
    isWord(refreshToken) &&
    [tokenEndpoint, ...(revocationEndpoint === undefined ? [] : [revocationEndpoint])].every(
      (each) => typeof each === 'string' && URL.canParse(each) && isSafe(new URL(each)),
    ) &&
    isCount(endsAt) &&
    isCount(renewAt)
  );
}

/** Replaces the file atomically; only this user may read it. */
export async function writeStored(stored: StoredSignIn): Promise<void> {
  const folder = folderOfUser();
  const next = path.join(folder, `${FILE}.${randomUUID()}`);
  const handle = await open(next, 'wx', 0o600);
  try {
    await handle.writeFile(`${JSON.stringify(stored, undefined, 2)}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(next, path.join(folder, FILE));
}

/** Longer than a request takes: an older lock is stale. */
const STALE_MS = 4 * REQUEST_MS;
const LOCK_POLL_MS = 50;

/** Runs work under a lock, one process of this user at a time. Removes the lock of a process that was killed. */
export async function withLock<T>(work: () => Promise<T>): Promise<T> {
  const folder = folderOfUser();
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const lock = path.join(folder, `${FILE}.lock`);
  for (;;) {
    const handle = await open(lock, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'EEXIST') return undefined;
      throw new CliError(`${folder} cannot be written (${error.code ?? 'unknown'})`, EXIT.unexpected);
    });
    if (!handle) {
      if (await isLeft(lock)) await rm(lock, { force: true });
      else await new Promise((resolve) => setTimeout(resolve, LOCK_POLL_MS));
      continue;
    }
    try {
      await handle.writeFile(`${os.hostname()} ${process.pid}`);
      await handle.close();
      return await work();
    } finally {
      await rm(lock, { force: true });
    }
  }
}

async function isLeft(lock: string): Promise<boolean> {
  const found = await Promise.all([stat(lock), readFile(lock, 'utf8')]).catch(() => undefined);
  if (!found) return false;
  const [{ mtimeMs }, text] = found;
  if (Date.now() - mtimeMs > STALE_MS) return true;
  const [host, pid] = text.split(' ');
  if (host !== os.hostname() || !Number(pid)) return false;
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}
