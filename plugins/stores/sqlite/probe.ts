import { access, constants } from 'node:fs/promises';
import path from 'node:path';
import { storeUnavailable } from '../kit/failure.ts';
import { FILE } from './database.ts';
import { importDriver, sqliteFailure } from './driver.ts';
import { checkVersion, MIGRATIONS } from './schema.ts';

/** Whether the store could be opened, and what is there; nothing is made or changed. Rejects as opening does. */
export async function probeSqlite(folder: string): Promise<string> {
  const file = path.join(folder, FILE);
  const place = (await doesExist(file)) ? file : await nearestFolder(folder);
  try {
    await access(place, constants.R_OK | constants.W_OK);
  } catch (cause) {
    throw storeUnavailable(`The sqlite store cannot be written: this user may not write ${place}.`, cause);
  }
  return place === file ? describeFile(file) : `a new file ${file}`;
}

async function describeFile(file: string): Promise<string> {
  const { DatabaseSync } = await importDriver();
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    const version = Number(database.prepare('PRAGMA user_version').get()?.['user_version'] ?? 0);
    checkVersion(version, MIGRATIONS);
    const newest = MIGRATIONS.at(-1)?.version ?? 0;
    return version === newest ? `schema ${version}` : `schema ${version}, which a start takes to ${newest}`;
  } catch (cause) {
    throw sqliteFailure(cause, file);
  } finally {
    database.close();
  }
}

/** The folder itself, or the one above in which it would be made. */
async function nearestFolder(folder: string): Promise<string> {
  return (await doesExist(folder)) || path.dirname(folder) === folder ? folder : nearestFolder(path.dirname(folder));
}

function doesExist(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}
