import { createHash, createHmac, randomBytes } from 'node:crypto';
import { link, mkdir, open, readFile, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { OptionError, type Sets } from '../../../contract/index.ts';
import { findSecretWeakness } from '../kit/secret-strength.ts';
import { withStore } from './records.ts';

const PEPPER_BYTES = 32;

/** Server-side secret in every stored hash: a stolen store alone does not allow testing guessed keys. */
interface Pepper {
  /** Fingerprint that may be stored and shown. */
  readonly id: string;
  /** Returns the stored form of a key. */
  hash(keyText: string): Buffer;
}

/** Pepper of new keys, and those that older keys may use. */
export interface Peppers {
  readonly current: Pepper;
  /** The current one first. */
  readonly all: readonly Pepper[];
  find(id: string): Pepper | undefined;
}

interface PepperConfig {
  readonly pepper?: string | undefined;
  readonly previousPeppers?: readonly string[] | undefined;
}

/**
 * Reads the configured peppers, or the one in `<folder>/pepper`, which is created on first use. Several processes may
 * start at once: the first file to get the name wins, and all read it. Without a folder (a store within the process)
 * nothing is written. Throws an Error with a hint for a weak, damaged or unwritable pepper.
 */
export async function readPeppers(
  config: PepperConfig,
  folder: string | undefined,
  warn: (message: string) => void,
): Promise<Peppers> {
  assertStrength(config);
  const current = createPepper(config.pepper ?? (await readOrMake(folder, warn)));
  const previous = (config.previousPeppers ?? []).map(createPepper);
  const byId = new Map([current, ...previous].map((pepper) => [pepper.id, pepper]));
  return { current, all: [current, ...previous], find: (id) => byId.get(id) };
}

/** Throws an {@link OptionError} for the first configured pepper that can be guessed. */
export function assertStrength({ pepper, previousPeppers = [] }: PepperConfig): void {
  const given = [
    ['/pepper', pepper] as const,
    ...previousPeppers.map((text, at) => [`/previousPeppers/${at}`, text] as const),
  ];
  for (const [path, text] of given) {
    const weakness = text === undefined ? undefined : findSecretWeakness(text);
    if (weakness) throw new OptionError(path, weakness, 'Create one with: openssl rand -base64 32');
  }
}

/** Throws if the pepper file is unusable; does nothing if it is missing. */
export async function assertPepperFile(folder: string): Promise<void> {
  await readPepperFile(join(folder, 'pepper'), () => {}).catch((cause: Error) => {
    throw new OptionError('', `has an invalid file: ${cause.message}`);
  });
}

function createPepper(text: string): Pepper {
  const id = createHash('sha256').update(`tollgate pepper fingerprint\n${text}`).digest('hex').slice(0, 16);
  return { id, hash: (keyText) => createHmac('sha256', text).update(keyText).digest() };
}

async function readOrMake(folder: string | undefined, warn: (message: string) => void): Promise<string> {
  if (folder === undefined) return makePepper();
  const path = join(folder, 'pepper');
  return (await readPepperFile(path, warn)) ?? (await makePepperFile(folder, path, warn));
}

/** Creates a pepper as text. */
export function makePepper(): string {
  return randomBytes(PEPPER_BYTES).toString('base64url');
}

async function readPepperFile(path: string, warn: (message: string) => void): Promise<string | undefined> {
  let text: string;
  let mode: number;
  try {
    text = (await readFile(path, 'utf8')).trim();
    mode = (await stat(path)).mode;
  } catch (cause) {
    const { code = '' } = cause as NodeJS.ErrnoException;
    if (/^(ENOENT|ENOTDIR)$/.test(code)) return undefined;
    throw new Error(`The pepper for API keys in ${path} cannot be read.`, { cause });
  }
  if (Buffer.byteLength(text) < PEPPER_BYTES) {
    throw new Error(`The pepper in ${path} is damaged. Restore the file: the API keys of this store need it.`);
  }
  if (process.platform !== 'win32' && (mode & 0o077) !== 0) {
    warn(`Other users of this machine can read ${path}. Run: chmod 600 ${path}`);
  }
  return text;
}

/**
 * Writes the file under a temporary name, then links it: no reader sees a partial pepper, and no writer replaces one.
 */
async function makePepperFile(folder: string, path: string, warn: (message: string) => void): Promise<string> {
  const temporary = `${path}.${process.pid}.${randomBytes(6).toString('hex')}`;
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await writeDurably(temporary, `${makePepper()}\n`);
    await link(temporary, path).catch(ignoreExisting);
    await syncFolder(folder);
  } catch (cause) {
    throw new Error(
      `The pepper for API keys cannot be written to ${path}. Allow writes to the folder or set auth.api-key.pepper.`,
      { cause },
    );
  } finally {
    await unlink(temporary).catch(() => undefined);
  }
  const pepper = await readPepperFile(path, warn);
  if (pepper === undefined) throw new Error(`The pepper in ${path} was removed during start. Start the gateway again.`);
  return pepper;
}

async function writeDurably(path: string, text: string): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

function ignoreExisting(cause: NodeJS.ErrnoException): void {
  if (cause.code !== 'EEXIST') throw cause;
}

async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return;
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Set with the fingerprints of the peppers in use by this store's keys. */
const KNOWN = 'keys-peppers';
const MAX_PEPPERS = 20;

/**
 * Checks that this gateway has every pepper of the store's keys, and records the current one. A node with another
 * pepper would refuse every valid key with 401, so this throws an Error with a hint.
 */
export async function checkPeppers(sets: Sets, peppers: Peppers): Promise<void> {
  const known = await withStore(() => sets.list(KNOWN, { limit: MAX_PEPPERS }));
  if (known.some((id) => !peppers.find(id))) throw mismatch();
  if (known.includes(peppers.current.id)) return;
  // The bound admits one of two new nodes. The other one finds the set full, with a pepper that it has not seen.
  const outcome = await withStore(() => sets.add(KNOWN, peppers.current.id, known.length + 1));
  if (outcome === 'full') throw mismatch();
}

/** Makes the current pepper the only one; keys under others stop working. Returns the number of dropped peppers. */
export async function acceptPepper(sets: Sets, peppers: Peppers): Promise<number> {
  const known = await withStore(() => sets.list(KNOWN, { limit: MAX_PEPPERS }));
  const foreign = known.filter((id) => !peppers.find(id));
  for (const id of foreign) await withStore(() => sets.remove(KNOWN, id));
  await checkPeppers(sets, peppers);
  return foreign.length;
}

function mismatch(): Error {
  return new Error(
    'The API keys in this store belong to another pepper. Set the same auth.api-key.pepper on all gateways of the store. ' +
      'If it is lost, run "tollgate keys accept-pepper --yes".',
  );
}
