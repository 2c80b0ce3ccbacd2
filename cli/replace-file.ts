import { randomBytes } from 'node:crypto';
import { access, chmod, constants, open, readdir, realpath, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';

/** End of the names of temporary files; a killed process may leave one. */
const TEMPORARY = /^[0-9a-f]{12}\.tmp$/;

/**
 * Replaces the content of a file in one step: a reader, or a start after a crash, finds the old content or the new one.
 * Symbolic links, mode and owner stay. Rejects with the error of the file system, and then nothing has changed.
 */
export async function replaceFile(file: string, content: Buffer): Promise<void> {
  const target = await realpath(file);
  const [folder, name] = [path.dirname(target), path.basename(target)];
  await removeLeftovers(folder, name);
  const { mode, uid, gid } = await stat(target);
  const temporary = path.join(folder, `.${name}.${randomBytes(6).toString('hex')}.tmp`);
  // It is private until it has the mode of the file.
  const handle = await open(temporary, 'wx', 0o600);
  try {
    try {
      await handle.writeFile(content);
      const made = await handle.stat();
      if (made.uid !== uid || made.gid !== gid) await handle.chown(uid, gid);
      await chmod(temporary, mode & 0o7777);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, target);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncFolder(folder);
}

/** Returns why a file cannot be replaced, as a sentence; undefined if it can. */
export async function whyNotReplaceable(file: string): Promise<string | undefined> {
  const target = await realpath(file);
  const { mode } = await stat(target);
  const isWritable = async (name: string): Promise<boolean> =>
    access(name, constants.W_OK).then(
      () => true,
      () => false,
    );
  // To root every file is writable, but a file without the bits is meant to stay.
  if ((mode & 0o222) === 0 || !(await isWritable(target))) return 'The file is read-only for this gateway.';
  return (await isWritable(path.dirname(target))) ? undefined : 'The folder of the file is read-only for this gateway.';
}

async function removeLeftovers(folder: string, name: string): Promise<void> {
  const start = `.${name}.`;
  const names = (await readdir(folder)).filter(
    (each) => each.startsWith(start) && TEMPORARY.test(each.slice(start.length)),
  );
  await Promise.all(names.map((each) => rm(path.join(folder, each), { force: true })));
}

/** Makes the new name durable; not every system can. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r').catch(() => undefined);
  await handle?.sync().catch(() => undefined);
  await handle?.close();
}
