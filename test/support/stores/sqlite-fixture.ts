import { mkdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { importDriver } from '../../../plugins/stores/sqlite/driver.ts';
import { FILE } from '../../../plugins/stores/sqlite/index.ts';

/** Time before which the dumps were written. Unix milliseconds. */
const WRITTEN_AT = Date.UTC(2026, 10, 28, 17, 5);
const DAY_MS = 86_400_000;

/** Moves all times of a dump by whole days, as if it had been written within the last day: finished requests expire. */
function asOfToday(dump: string): string {
  const moved = Math.floor((Date.now() - WRITTEN_AT) / DAY_MS) * DAY_MS;
  return dump.replaceAll(/\b1[78]\d{11}\b/g, (time) => String(Number(time) + moved));
}

/** Creates the file of a store from the dump of an earlier version in `test/fixtures/stores`. */
export async function writeSqliteFixture(folder: string, dump: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const { DatabaseSync } = await importDriver();
  const database = new DatabaseSync(path.join(folder, FILE));
  try {
    database.exec('PRAGMA journal_mode=WAL');
    database.exec(asOfToday(readFileSync(new URL(`../../fixtures/stores/${dump}`, import.meta.url), 'utf8')));
  } finally {
    database.close();
  }
}
