import { mkdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { importDriver } from '../../../plugins/stores/sqlite/driver.ts';
import { FILE } from '../../../plugins/stores/sqlite/index.ts';

/** Creates the file of a store from the dump of an earlier version in `test/fixtures/stores`. */
export async function writeSqliteFixture(folder: string, dump: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const { DatabaseSync } = await importDriver();
  const database = new DatabaseSync(path.join(folder, FILE));
  try {
    database.exec('PRAGMA journal_mode=WAL');
    database.exec(readFileSync(new URL(`../../fixtures/stores/${dump}`, import.meta.url), 'utf8'));
  } finally {
    database.close();
  }
}
